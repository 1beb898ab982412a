"""What becomes of messages between the connections of a run: what is said, and what is left undecided."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from amqpspec import EmbeddedBroker
from amqpspec.command_line import main
from amqpspec.conformance.traces.trace import TraceRow, read_trace, sequences
from amqpspec.pipeline.judging.conservation import LOST, TWICE, UNPUBLISHED, Conservation, Facts, conservation
from amqpspec.pipeline.store.adding import add_trace
from amqpspec.pipeline.store.store import create_store
from benchmarks.applications import run_all
from tests.patience import patience
from tests.proxies import recording

Frame = tuple[float, str, str, dict[str, Any]]


def rows(name: str, *frames: Frame, ends: bool = True) -> Iterator[TraceRow]:
    """A connection; a frame is (time, direction, method, arguments, of which `body` is the content's)."""
    yield TraceRow(kind="start", sequence=name, virtual_host="/")
    end = [(99.0, "received", "connection.close-ok", {})] if ends else []
    for time, direction, method, arguments in [(0.0, "sent", "socket.open", {}), *frames, *end]:
        row = TraceRow(kind="frame", sequence=name, time=time, connection="a", method=method)
        row["direction"] = "sent" if direction == "sent" else "received"
        row["channel"] = 0 if method.startswith(("socket", "connection")) else 1
        row["arguments"] = {key: value for key, value in arguments.items() if key != "body"}
        if "body" in arguments:
            row["body"] = arguments["body"]
        yield row


def declared(time: float, count: int = 0, **arguments: Any) -> list[Frame]:
    return [
        (time, "sent", "queue.declare", {"queue": "q", "arguments": arguments}),
        (time, "received", "queue.declare-ok", {"queue": "q", "message_count": count}),
    ]


def published(time: float, body: str, number: int = 1) -> list[Frame]:
    return [
        (time, "sent", "basic.publish", {"routing_key": "q", "body": body}),
        (time + 0.1, "received", "basic.ack", {"delivery_tag": number}),
    ]


def delivered(time: float, body: str, again: bool = False) -> Frame:
    return time, "received", "basic.deliver", {"consumer_tag": "t", "redelivered": again, "body": body}


SELECT: Frame = (0.1, "sent", "confirm.select", {})
CONSUME: Frame = (0.5, "sent", "basic.consume", {"queue": "q", "consumer_tag": "t"})
EMPTY: list[Frame] = [(50.0, "sent", "basic.get", {"queue": "q"}), (50.1, "received", "basic.get-empty", {})]


def found(*connections: Iterator[TraceRow]) -> Conservation:
    facts = Facts()
    for each in connections:
        facts.add(each)
    return conservation(facts)


def wrong(*connections: Iterator[TraceRow]) -> list[tuple[str, str]]:
    return [(each.requirement, each.what) for each in found(*connections).violations]


def publisher(*more: Frame) -> Iterator[TraceRow]:
    return rows("p", *declared(0.0), SELECT, *published(1.0, "m"), *more)


class TestAcrossConnections:
    def test_what_was_published_is_delivered(self) -> None:
        consumer = rows("c", CONSUME, delivered(2.0, "m"), delivered(3.0, "m", again=True))
        assert found(publisher(*EMPTY), consumer) == Conservation([], {}, messages=1, queues=1)

    def test_what_nobody_published(self) -> None:
        assert wrong(publisher(), rows("c", CONSUME, delivered(2.0, "m"), delivered(3.0, "x"))) == [UNPUBLISHED]
        assert wrong(publisher(), rows("c", CONSUME, delivered(0.9, "m"))) == [UNPUBLISHED], "before it was"

    def test_twice_without_the_flag(self) -> None:
        consumers = [rows(name, CONSUME, delivered(2.0, "m")) for name in "cd"]
        assert wrong(publisher(), *consumers) == [TWICE]
        consumers = [rows(name, CONSUME, delivered(2.0, "m")) for name in "cd"]
        assert wrong(publisher(*published(1.5, "m", 2)), *consumers) == [], "it was published two times"

    def test_lost(self) -> None:
        assert wrong(publisher(*EMPTY), rows("c", CONSUME)) == [LOST]


class TestUndecided:
    @pytest.mark.parametrize(
        "connections",
        [
            [rows("p", *declared(0.0, 3)), rows("c", CONSUME, delivered(2.0, "x"))],
            [publisher(), rows("c", CONSUME)],
            [publisher(*EMPTY), rows("c", CONSUME, ends=False)],
            [publisher((3.0, "sent", "queue.purge", {"queue": "q"}), *EMPTY)],
            [publisher(*EMPTY, *declared(0.2, 0, **{"x-max-length": 1}))],
            [rows("c", CONSUME, delivered(2.0, "x"))],
        ],
    )
    def test_nothing_is_said(self, connections: list[Iterator[TraceRow]]) -> None:
        result = found(*connections)
        assert result.violations == []
        assert result.undecided.keys() == {"/ q"}


def recorded(path: Path, fault: str | None) -> Conservation:
    with EmbeddedBroker(fault=fault) as broker, recording(f"amqp://127.0.0.1:{broker.address.port}", path) as proxy:
        run_all(f"amqp://guest:guest@127.0.0.1:{proxy.port}/", "app", 40, patience(30))
    return found(*map(iter, sequences(read_trace(path))))


def test_applications_on_a_right_broker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = recorded(tmp_path / "recorded", None)
    assert result.violations == []
    assert result.messages > 80
    add_trace(create_store(tmp_path / "store"), tmp_path / "recorded", run="r")
    assert main(["pipeline", "conservation", str(tmp_path / "store"), "--run", "r"]) in (0, 4)
    assert ": 0 wrong" in capsys.readouterr().out
    assert main(["pipeline", "conservation", str(tmp_path / "store"), "--run", "other"]) == 2


def test_a_message_delivered_twice(tmp_path: Path) -> None:
    assert TWICE in {(each.requirement, each.what) for each in recorded(tmp_path, "message-delivered-twice").violations}
