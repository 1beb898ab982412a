"""What was published through an exchange: its queues by the bindings of the recording, or why they are not known."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pika
import pytest

from amqpspec import EmbeddedBroker
from amqpspec.command_line import main
from amqpspec.conformance.traces.trace import TraceRow, read_trace, sequences
from amqpspec.conformance.traces.trace_row import row_line
from amqpspec.pipeline.conservation_job import conservation_with_spark
from amqpspec.pipeline.judging.conservation import LOST, conservation_of, conservation_of_run
from amqpspec.pipeline.store.adding import add_trace
from amqpspec.pipeline.store.store import create_store
from tests.pipeline.test_conservation import EMPTY, SELECT, Frame, declared, found, rows
from tests.proxies import recording

EVERYTHING: tuple[list[str], dict[str, str]] = ([], {})


def asked(time: float, method: str, **arguments: Any) -> list[Frame]:
    """A request and its reply, a tenth of a second later."""
    return [(time, "sent", method, arguments), (time + 0.1, "received", f"{method}-ok", {})]


def exchange(time: float, name: str, type: str, **others: Any) -> list[Frame]:
    return asked(time, "exchange.declare", exchange=name, type=type, **others)


def bound(time: float, name: str, key: str = "k", queue: str = "q", **arguments: Any) -> list[Frame]:
    return asked(time, "queue.bind", queue=queue, exchange=name, routing_key=key, arguments=arguments)


def published(
    time: float, name: str, key: str = "k", confirmed: float = 0.1, number: int = 1, **more: Any
) -> list[Frame]:
    headers = more.pop("headers", None)
    said = {"exchange": name, "routing_key": key, "body": "m", "properties": {"headers": headers} if headers else {}}
    confirm: Frame = (time + confirmed, "received", "basic.ack", {"delivery_tag": number})
    return [(time, "sent", "basic.publish", said | more), confirm]


def connection(name: str, *frames: Frame) -> Iterator[TraceRow]:
    for row in rows(name, *frames):
        if row["kind"] == "frame" and row["method"] == "basic.publish":
            properties = row["arguments"].pop("properties")
            if properties:
                row["properties"] = properties
        yield row


def said(*frames: Frame, others: tuple[Frame, ...] = ()) -> tuple[list[str], dict[str, str]]:
    """Queues that have lost the message, and what is undecided. The queue q was empty, at the end as well."""
    connections = [connection("p", *declared(0.0), SELECT, *frames, *EMPTY)]
    if others:
        connections.append(connection("o", *others))
    result = found(*connections)
    assert {(each.requirement, each.what) for each in result.violations} <= {LOST}
    return [each.queue for each in result.violations], result.undecided


LOST_IN_Q: tuple[list[str], dict[str, str]] = (["/ q"], {})


class TestLost:
    @pytest.mark.parametrize(
        ("type", "key", "routing_key", "is_bound"),
        [
            ("direct", "k", "k", True), ("direct", "k", "K", False), ("direct", "", "", True),
            ("fanout", "", "anything", True),
            ("topic", "a.*.#", "a.b.c.d", True), ("topic", "a.*", "a.b.c", False), ("topic", "#", "", True),
        ],
    )  # fmt: skip
    def test_by_type(self, type: str, key: str, routing_key: str, is_bound: bool) -> None:
        expected = LOST_IN_Q if is_bound else EVERYTHING
        assert said(*exchange(0.2, "x", type), *bound(0.4, "x", key), *published(1.0, "x", routing_key)) == expected

    @pytest.mark.parametrize(
        ("arguments", "headers", "expected"),
        [
            ({"a": "1"}, {"a": "1"}, LOST_IN_Q),
            ({"a": "1"}, {"a": "2"}, EVERYTHING),
            ({"a": "1", "b": 2}, {"a": "1"}, EVERYTHING),
            ({"a": "1", "b": 2, "x-match": "any"}, {"a": "1"}, LOST_IN_Q),
            ({"a": None}, {"a": [1]}, LOST_IN_Q),
            ({"a": 1}, {"a": 1.0}, ([], {"/ q": "headers were compared whose equality no text decides"})),
        ],
    )
    def test_headers(self, arguments: dict[str, Any], headers: dict[str, Any], expected: object) -> None:
        frames = [*exchange(0.2, "x", "headers"), *bound(0.4, "x", **arguments), *published(1.0, "x", headers=headers)]
        assert said(*frames) == expected

    def test_predeclared_exchanges_are_known(self) -> None:
        assert said(*bound(0.4, "amq.topic", "a.*"), *published(1.0, "amq.topic", "a.b")) == LOST_IN_Q

    def test_through_several_exchanges(self) -> None:
        way = [*exchange(0.2, "x", "fanout"), *exchange(0.3, "y", "direct"), *bound(0.4, "y", "k")]
        way += asked(0.5, "exchange.bind", source="x", destination="y", routing_key="")
        assert said(*way, *published(1.0, "x", "k")) == LOST_IN_Q
        assert said(*way, *published(1.0, "x", "other")) == EVERYTHING
        circle = asked(0.6, "exchange.bind", source="y", destination="x", routing_key="k")
        assert said(*way, *circle, *published(1.0, "x", "k")) == LOST_IN_Q
        gone = asked(0.6, "exchange.unbind", source="x", destination="y", routing_key="")
        assert said(*way, *gone, *published(1.0, "x", "k")) == EVERYTHING

    def test_an_alternate_exchange(self) -> None:
        way = [*exchange(0.2, "x", "direct", arguments={"alternate-exchange": "y"}), *exchange(0.3, "y", "fanout")]
        assert said(*way, *bound(0.4, "y"), *published(1.0, "x", "nobody")) == LOST_IN_Q
        elsewhere = [*declared_as("r", 0.5), *bound(0.6, "x", "k", "r")]
        assert said(*way, *bound(0.4, "y"), *elsewhere, *published(1.0, "x", "k"))[0] == []

    def test_further_keys(self) -> None:
        frames = [*exchange(0.2, "x", "direct"), *bound(0.4, "x", "k")]
        assert said(*frames, *published(1.0, "x", "other", headers={"CC": ["k"]})) == LOST_IN_Q
        empty: list[Frame] = [(60.0, "sent", "basic.get", {"queue": "r"}), (60.1, "received", "basic.get-empty", {})]
        further = published(1.0, "", "r", headers={"BCC": ["q"]})
        assert said(*declared_as("r", 0.3), *further, *empty) == (["/ q", "/ r"], {})

    def test_several_queues_and_bindings(self) -> None:
        other = declared_as("r", 0.3)
        empty: list[Frame] = [(60.0, "sent", "basic.get", {"queue": "r"}), (60.1, "received", "basic.get-empty", {})]
        way = [
            *exchange(0.2, "x", "fanout"),
            *other,
            *bound(0.5, "x"),
            *bound(0.7, "x", "again"),
            *bound(0.8, "x", "", "r"),
        ]
        assert said(*way, *published(1.0, "x"), *empty) == (["/ q", "/ r"], {})

    def test_what_is_bound_by_another_client(self) -> None:
        others = (*exchange(0.2, "x", "direct"), *bound(0.4, "x"))
        assert said(*published(1.0, "x"), others=others) == LOST_IN_Q

    def test_the_queue_that_was_declared_last(self) -> None:
        bind = asked(0.4, "queue.bind", queue="", exchange="x", routing_key="")
        assert said(*exchange(0.2, "x", "direct"), *bind, *published(1.0, "x", "q")) == LOST_IN_Q

    def test_in_a_transaction(self) -> None:
        way = [*exchange(0.2, "x", "direct"), *bound(0.4, "x")]
        publish = published(1.0, "x")[0]
        commit = [*asked(0.6, "tx.select"), publish, *asked(1.5, "tx.commit")]
        connections = [connection("p", *declared(0.0), *way, *commit, *EMPTY)]
        assert [each.what for each in found(*connections).violations] == [LOST[1]]


def declared_as(queue: str, time: float) -> list[Frame]:
    said = {"queue": queue, "message_count": 0}
    return [(time, "sent", "queue.declare", {"queue": queue}), (time + 0.1, "received", "queue.declare-ok", said)]


class TestNotLost:
    def test_what_is_not_bound_any_more(self) -> None:
        way = [*exchange(0.2, "x", "direct"), *bound(0.4, "x")]
        for gone in (
            asked(0.6, "queue.unbind", queue="q", exchange="x", routing_key="k", arguments={}),
            [*asked(0.6, "exchange.delete", exchange="x"), *exchange(0.8, "x", "direct")],
            [*asked(0.6, "queue.delete", queue="q"), *declared(0.8)],
        ):
            assert said(*way, *gone, *published(1.0, "x"))[0] == []
        kept = asked(0.6, "queue.unbind", queue="q", exchange="x", routing_key="other", arguments={})
        assert said(*way, *kept, *published(1.0, "x")) == LOST_IN_Q

    def test_an_exchange_that_deletes_itself(self) -> None:
        way = [*exchange(0.2, "x", "direct", auto_delete=True), *bound(0.3, "x")]
        gone = asked(0.4, "queue.unbind", queue="q", exchange="x", routing_key="k", arguments={})
        entry = [*exchange(0.1, "e", "fanout"), *asked(0.25, "exchange.bind", source="e", destination="x")]
        assert (
            said(*entry, *way, *gone, *exchange(0.6, "x", "direct"), *bound(0.7, "x"), *published(1.0, "e"))
            == EVERYTHING
        )
        assert said(*entry, *way, *published(1.0, "e")) == LOST_IN_Q

    def test_what_was_returned(self) -> None:
        way = [*exchange(0.2, "x", "direct"), *bound(0.4, "x", "other")]
        publish, confirm = published(1.0, "x", mandatory=True)
        back: Frame = (1.05, "received", "basic.return", {"exchange": "x", "routing_key": "k", "body": "m"})
        assert said(*way, publish, back, confirm) == EVERYTHING

    def test_a_message_with_a_time_to_live(self) -> None:
        frames = [*exchange(0.2, "x", "direct"), *bound(0.4, "x"), *published(1.0, "x")]
        publisher = list(connection("p", *declared(0.0), SELECT, *frames, *EMPTY))
        next(row for row in publisher if row.get("method") == "basic.publish")["properties"] = {"expiration": "1"}
        result = conservation_of([publisher])
        assert (result.violations, result.undecided) == ([], {"/ q": "it has a message with a time to live"})

    def test_what_was_refused_is_not_bound(self) -> None:
        bind = bound(0.4, "x")[0]
        refused: Frame = (0.5, "received", "channel.close", {"class_id": 50, "method_id": 20, "reply_code": 404})
        others = (*exchange(0.2, "x", "direct"), bind, refused)
        assert said(*published(1.0, "x"), others=others) == EVERYTHING


CHANGED = "what was bound changed while a message was under way"


class TestUndecided:
    def test_exchanges_of_which_the_recording_does_not_tell(self) -> None:
        untold = "its type is not in the recording"
        assert said(*published(1.0, "x")) == ([], {"/ exchange x": untold})
        assert said(*bound(0.4, "x"), *published(1.0, "x")) == ([], {"/ exchange x": untold})
        passive = exchange(0.2, "x", "direct", passive=True)
        assert said(*passive, *bound(0.4, "x"), *published(1.0, "x")) == ([], {"/ exchange x": untold})
        alternate = exchange(0.2, "x", "direct", arguments={"alternate-exchange": "y"})
        assert said(*alternate, *published(1.0, "x")) == ([], {"/ exchange y": untold})

    def test_types_that_the_model_does_not_know(self) -> None:
        unknown = [*exchange(0.2, "x", "x-consistent-hash"), *bound(0.4, "x", "1")]
        why = {"/ exchange x": "the model does not know its type"}
        assert said(*unknown, *published(1.0, "x")) == ([], why)
        entry = [*exchange(0.5, "e", "fanout"), *asked(0.6, "exchange.bind", source="e", destination="x")]
        assert said(*unknown, *entry, *published(1.0, "e")) == ([], why)
        assert said(*unknown, *entry, *bound(0.8, "e"), *published(1.0, "e")) == (["/ q"], why), "of q it is certain"

    @pytest.mark.parametrize(
        "change",
        [
            [*bound(1.05, "x")],
            [*bound(0.95, "x")],
            [(0.5, "sent", "queue.bind", {"queue": "q", "exchange": "x", "routing_key": "k", "nowait": True})],
            [*bound(0.5, "x"), *asked(1.05, "queue.unbind", queue="q", exchange="x", routing_key="k")],
            [*bound(0.5, "x"), *asked(0.95, "exchange.delete", exchange="x")],
            [*bound(0.5, "x"), *asked(0.95, "queue.delete", queue="q")],
        ],
    )
    def test_what_changes_while_the_message_is_under_way(self, change: list[Frame]) -> None:
        assert said(*exchange(0.2, "x", "direct"), *published(1.0, "x"), others=tuple(change)) == ([], {"/ q": CHANGED})

    def test_a_channel_of_its_own_is_in_order(self) -> None:
        def silently(time: float) -> Frame:
            return time, "sent", "queue.bind", {"queue": "q", "exchange": "x", "routing_key": "k", "nowait": True}

        assert said(*exchange(0.2, "x", "direct"), silently(0.95), *published(1.0, "x")) == LOST_IN_Q
        publish, confirm = published(1.0, "x")
        assert said(*exchange(0.2, "x", "direct"), publish, silently(1.05), confirm) == EVERYTHING

    def test_two_clients_that_bind_and_unbind_at_one_time(self) -> None:
        unbinds = (*asked(0.55, "queue.unbind", queue="q", exchange="x", routing_key="k"),)
        frames = [*exchange(0.2, "x", "direct"), *bound(0.5, "x"), *published(1.0, "x")]
        assert said(*frames, others=unbinds) == ([], {"/ q": CHANGED})

    def test_a_mandatory_message_that_goes_nowhere_and_does_not_come_back(self) -> None:
        why = "a message was mandatory and not returned, and no binding in the recording matches it"
        assert said(*exchange(0.2, "x", "direct"), *published(1.0, "x", mandatory=True)) == ([], {"/ exchange x": why})


def recorded(path: Path) -> None:
    """An application that publishes through exchanges of all types, to queues that it consumes from."""
    with EmbeddedBroker() as broker, recording(f"amqp://127.0.0.1:{broker.address.port}", path) as proxy:
        publish_to_all(proxy.port)


def publish_to_all(port: int) -> None:
    with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        for type in ("direct", "fanout", "topic", "headers"):
            channel.exchange_declare(f"x-{type}", type)
            channel.queue_declare(f"q-{type}")
            channel.queue_bind(f"q-{type}", f"x-{type}", "k.#" if type == "topic" else "k", {"a": "1"})
        channel.exchange_declare("entry", "fanout")
        for type in ("direct", "fanout", "topic", "headers"):
            channel.exchange_bind(f"x-{type}", "entry")
            for number in range(3):
                properties = pika.BasicProperties(headers={"a": "1"})
                channel.basic_publish(f"x-{type}", "k", f"{type} {number}".encode(), properties, mandatory=True)
        channel.basic_publish("entry", "k", b"to all", pika.BasicProperties(headers={"a": "1"}))
        for type in ("direct", "fanout", "topic", "headers"):
            while (got := channel.basic_get(f"q-{type}"))[0] is not None:
                channel.basic_ack(got[0].delivery_tag)
        for type in ("direct", "fanout", "topic", "headers"):
            channel.queue_delete(f"q-{type}")
        for name in ("direct", "fanout", "topic", "headers"):
            channel.exchange_delete(f"x-{name}")
        channel.exchange_delete("entry")


def without(rows: list[TraceRow], body: str) -> Iterator[TraceRow]:
    """As if the broker had lost it: neither delivered nor acknowledged by its client."""
    tags: set[int] = set()
    for row in rows:
        arguments = row.get("arguments", {})
        if row.get("method") == "basic.get-ok" and row["body"] == body:
            tags.add(arguments["delivery_tag"])
            yield cast(TraceRow, {**row, "method": "basic.get-empty", "arguments": {}, "body": ""})
            continue
        if row.get("method") == "basic.ack" and row["direction"] == "sent" and arguments["delivery_tag"] in tags:
            continue
        yield row


def test_an_application(tmp_path: Path, spark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    recorded(tmp_path / "recorded")
    store = create_store(tmp_path / "store")
    add_trace(store, tmp_path / "recorded", run="right")
    (rows,) = sequences(read_trace(tmp_path / "recorded"))
    for body in ("topic 1", "to all"):
        file = tmp_path / f"{body}.jsonl"
        file.write_bytes(b"".join(map(row_line, without(rows, body))))
        add_trace(store, file, run=body)
    for master in ((), ("--spark", "local[2]")):
        assert main(["pipeline", "conservation", str(store.root), "--run", "right", *master]) == 0
        assert capsys.readouterr().out == "13 messages, 4 queues: 0 wrong\n"
        assert main(["pipeline", "conservation", str(store.root), "--run", "topic 1", *master]) == 1
        assert "CONFIRM-010 in / q-topic at " in capsys.readouterr().out
    found = conservation_of_run(store, "to all")
    assert {each.queue for each in found.violations} == {
        f"/ q-{type}" for type in ("direct", "fanout", "topic", "headers")
    }
    assert conservation_with_spark(store, "to all", "local[2]") == found
