"""What becomes of messages between the connections of a run: what is said, and what is left undecided."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from amqpspec import EmbeddedBroker
from amqpspec.command_line import main
from amqpspec.conformance.traces.trace import TraceRow, read_trace, sequences
from amqpspec.pipeline.conservation_job import conservation_with_spark
from amqpspec.pipeline.judging.conservation import (
    AGAIN,
    CHANGED,
    FLAGGED,
    LOST,
    TWICE,
    UNPUBLISHED,
    Conservation,
    conservation_of,
    conservation_of_run,
)
from amqpspec.pipeline.store.adding import add_trace
from amqpspec.pipeline.store.store import create_store
from benchmarks.applications import run_all
from tests.corpus.expectations import DIRECTORY
from tests.patience import patience
from tests.pipeline.small_disk import filled, small_disk
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


def delivered(time: float, body: str, again: bool = False, tag: int = 1, **others: Any) -> Frame:
    said = {"consumer_tag": "t", "redelivered": again, "body": body, "routing_key": "q", "delivery_tag": tag} | others
    return time, "received", "basic.deliver", said


def settled(time: float, tag: int, method: str = "basic.ack", **others: Any) -> Frame:
    return time, "sent", method, {"delivery_tag": tag} | others


def closed(time: float) -> list[Frame]:
    return [(time, "sent", "channel.close", {}), (time + 0.1, "received", "channel.close-ok", {})]


SELECT: Frame = (0.1, "sent", "confirm.select", {})
CONSUME: Frame = (0.5, "sent", "basic.consume", {"queue": "q", "consumer_tag": "t"})
EMPTY: list[Frame] = [(50.0, "sent", "basic.get", {"queue": "q"}), (50.1, "received", "basic.get-empty", {})]


def found(*connections: Iterator[TraceRow]) -> Conservation:
    return conservation_of([list(each) for each in connections])


def wrong(*connections: Iterator[TraceRow]) -> list[tuple[str, str]]:
    return [(each.requirement, each.what) for each in found(*connections).violations]


def publisher(*more: Frame) -> Iterator[TraceRow]:
    return rows("p", *declared(0.0), SELECT, *published(1.0, "m"), *more)


class TestAcrossConnections:
    def test_what_was_published_is_delivered(self) -> None:
        back = settled(2.5, 1, "basic.nack", requeue=True)
        consumer = rows("c", CONSUME, delivered(2.0, "m"), back, delivered(3.0, "m", again=True, tag=2), settled(4, 2))
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

    def test_lost_when_it_was_given_back(self) -> None:
        held = rows("c", CONSUME, delivered(2.0, "m"))
        assert wrong(publisher(*EMPTY), held) == [], "the queue was empty while it was held"
        back = rows("c", CONSUME, delivered(2.0, "m"), settled(3.0, 1, "basic.reject", requeue=True), *closed(4.0))
        assert wrong(publisher(*EMPTY), back) == [LOST]
        dropped = rows("c", CONSUME, delivered(2.0, "m"), settled(3.0, 1, "basic.reject"), *closed(4.0))
        assert wrong(publisher(*EMPTY), dropped) == []

    def test_a_delivery_that_the_recording_lacks_is_no_loss(self) -> None:
        why = {"/ q": "a delivery that a client has settled is not in the recording"}
        more = published(1.5, "m2", 2)
        for lacking in ([settled(2.5, 1)], [delivered(2.2, "m2", tag=2), settled(2.5, 1), settled(2.6, 2)]):
            result = found(publisher(*more, *EMPTY), rows("c", CONSUME, *lacking))
            assert (result.violations, result.undecided) == ([], why)
        unknown = rows("c", CONSUME, delivered(2.2, "m2", tag=2), settled(2.6, 2))
        assert wrong(publisher(*more, *EMPTY), unknown) == [LOST], "nobody knows of another delivery"

    def test_what_is_settled_comes_again(self) -> None:
        for ends in ((), closed(2.7)):
            first = rows("c", CONSUME, delivered(2.0, "m"), settled(2.5, 1), *ends)
            again = rows("d", CONSUME, delivered(3.0, "m", again=True))
            assert wrong(publisher(), first, again) == [AGAIN]
        first = rows("c", CONSUME, delivered(2.0, "m"), *closed(2.7))
        again = rows("d", CONSUME, delivered(3.0, "m", again=True))
        assert wrong(publisher(), first, again) == []

    def test_the_first_delivery_has_the_flag(self) -> None:
        assert wrong(publisher(), rows("c", CONSUME, delivered(2.0, "m", again=True))) == [FLAGGED]
        gone = rows("c", CONSUME, *closed(1.5))
        assert wrong(publisher(), gone, rows("d", CONSUME, delivered(2.0, "m", again=True))) == []

    def test_another_form(self) -> None:
        assert wrong(publisher(), rows("c", CONSUME, delivered(2.0, "m", routing_key="r"))) == [CHANGED]

    @pytest.mark.parametrize(("end", "violations"), [("tx.commit", []), ("tx.rollback", [UNPUBLISHED])])
    def test_a_transaction_publishes_with_its_commit(self, end: str, violations: list[tuple[str, str]]) -> None:
        publish: Frame = (1.0, "sent", "basic.publish", {"routing_key": "q", "body": "x"})
        transaction = rows("t", (0.5, "sent", "tx.select", {}), publish, (1.5, "sent", end, {}))
        assert wrong(publisher(), transaction, rows("c", CONSUME, delivered(2.0, "x"))) == violations
        early = rows("c", CONSUME, delivered(1.2, "x"))
        transaction = rows("t", (0.5, "sent", "tx.select", {}), publish, (1.5, "sent", end, {}))
        assert wrong(publisher(), transaction, early) == [UNPUBLISHED]


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


def test_spark_finds_the_same(tmp_path: Path, spark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    recorded(tmp_path / "recorded", "message-delivered-twice")
    store = create_store(tmp_path / "store")
    add_trace(store, tmp_path / "recorded", run="r")
    found = conservation_of_run(store, "r")
    assert TWICE in {(each.requirement, each.what) for each in found.violations}
    assert all(each.body for each in found.violations)
    assert conservation_with_spark(store, "r", "local[2]") == found
    assert main(["pipeline", "conservation", str(tmp_path / "store"), "--run", "r", "--spark", "local[2]"]) == 1
    assert "ACK-015" in capsys.readouterr().out


def test_its_gate_and_its_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was accepted is so in the table and on the page, until conservation is looked at again."""
    recorded(tmp_path / "recorded", "message-delivered-twice")
    store, page, accepted = str(tmp_path / "store"), tmp_path / "page.html", tmp_path / "accepted.toml"
    assert main(["pipeline", "import", store, str(tmp_path / "recorded"), "--run", "r", "--target", "b"]) == 0
    requirement, what = TWICE
    accepted.write_text('[[deviation]]\nidentity = "*|conservation|*"\nreason = "next week"\n')
    conservation = ["pipeline", "conservation", store, "--run", "r"]
    table = ["pipeline", "table", "conservation", store]
    capsys.readouterr()
    assert main(table) == 2
    assert "conservation of no run was looked at" in capsys.readouterr().err
    for options, codes, reason in (
        ([], (1,), ""), (["--gate", "known"], (1,), ""), (["--deviations", str(accepted)], (0, 4), "next week"),
    ):  # fmt: skip
        assert main([*conservation, *options]) in codes, options
        wrong = [line for line in capsys.readouterr().out.splitlines() if line.startswith(requirement)]
        assert wrong and {line.endswith("(accepted: next week)") for line in wrong} == {bool(reason)}
        assert main(table) == 0
        head, *rows = (line.split("\t") for line in capsys.readouterr().out.splitlines())
        found = [each for row in rows if (each := dict(zip(head, row, strict=True)))["verdict"] == "fail"]
        assert {(each["run"], each["target"], each["accepted"]) for each in found} == {("r", "b", reason)}
        assert sum(int(each["messages"]) for each in found) == len(wrong)
        assert (requirement, what) in {(each["requirement"], each["what"]) for each in found}
    assert main(["pipeline", "judge", store, "--quiet"]) in (0, 1, 4)
    assert main(["pipeline", "page", store, "--out", str(page)]) == 0
    assert what in page.read_text() and "next week" in page.read_text()
    accepted.write_text(accepted.read_text() + "expires = 2026-01-01\n")
    assert main([*conservation, "--deviations", str(accepted)]) == 1
    assert "it expired on 2026-01-01" in capsys.readouterr().err


@pytest.mark.parametrize("master", [(), ("--spark", "local[2]")])
def test_a_part_that_cannot_be_read_is_one_line(
    tmp_path: Path, spark: Any, capsys: pytest.CaptureFixture[str], master: tuple[str, ...]
) -> None:
    store = create_store(tmp_path / "store")
    part = add_trace(store, DIRECTORY / "embedded-faults.parquet", run="r").parts[0]
    (store.root / part.trace).write_bytes(b"PAR1 and no more")
    assert main(["pipeline", "conservation", str(store.root), "--run", "r", *master]) == 5
    (line,) = capsys.readouterr().err.splitlines()
    assert part.trace in line
    assert not list(store.temporary.iterdir())


@pytest.mark.parametrize("free", [0, 8, 56])
def test_a_full_disk_is_one_line_and_nothing_is_lost(
    tmp_path: Path, spark: Any, capsys: pytest.CaptureFixture[str], free: int
) -> None:
    with small_disk(tmp_path / "disk") as disk:
        store = create_store(disk / "store")
        for number in range(12):
            add_trace(store, DIRECTORY / "rabbitmq-4.3-search-traffic.parquet", run="r", target=f"broker {number}")
        before = {file: file.read_bytes() for file in disk.rglob("*") if file.is_file()}
        command = ["pipeline", "conservation", str(disk / "store"), "--run", "r", "--spark", "local[2]"]
        with filled(disk, free * 1024):
            assert main(command) == 2
            told = capsys.readouterr().err
            assert told.count("\n") == 1 and "No space left on device" in told
        assert {file: file.read_bytes() for file in disk.rglob("*") if file.is_file()} == before
        assert main(command) == main(command[:-2])
