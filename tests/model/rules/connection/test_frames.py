"""Single and bad frames: what the broker owes for them, in every dialect, and who is blamed if it does otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from amqpspec.model.broker.copying import copy_broker
from amqpspec.model.broker.fingerprint import fingerprint
from amqpspec.model.broker.owed import Expected
from amqpspec.model.defects.known_defects import acceptor_for
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialects import DIALECTS
from amqpspec.model.promises.dialects.amqp_0_9_1 import AMQP_0_9_1
from amqpspec.model.promises.dialects.rabbitmq_3 import RABBITMQ_3
from amqpspec.model.promises.dialects.rabbitmq_4_0 import RABBITMQ_4_0
from amqpspec.model.promises.dialects.rabbitmq_4_3 import RABBITMQ_4_3
from amqpspec.model.protocol.methods import EMPTY_CONTENT, Content, Table, event_of
from amqpspec.model.protocol.patterns import Printed, choose
from tests.handshakes import opening

RABBITMQS = (RABBITMQ_3, RABBITMQ_4_0, RABBITMQ_4_3)
of_every_rabbitmq = pytest.mark.parametrize("dialect", RABBITMQS, ids=lambda dialect: dialect.name)


class Bench:
    """A judge that has seen connections a and b open, with channel 1 on both and a queue q."""

    def __init__(self, dialect: Dialect, channel_max: int = 0) -> None:
        self.acceptor = acceptor_for(dialect)
        for connection in "ab":
            for method in opening(connection, dialect):
                if method.name == "connection.tune-ok" and channel_max:
                    method.arguments["channel_max"] = channel_max
                (self.acceptor.sent if method.sent else self.acceptor.received)(method)
            self.open(1, connection)
        self.send("queue.declare", queue="q", exclusive=True, on="b")
        self.come("queue.declare-ok", {"queue": "q", "message_count": 0, "consumer_count": 0}, on="b", channel=1)

    def open(self, channel: int, on: str = "a") -> None:
        self.send("channel.open", channel=channel, on=on)
        self.come("channel.open-ok", {}, on=on, channel=channel)

    def send(
        self, method: str, content: Content | None = None, channel: int = 1, on: str = "a", **arguments: Any
    ) -> None:
        self.acceptor.sent(event_of(on, channel, method, arguments, True, content))

    def come(self, method: str, arguments: Table, on: str = "a", channel: int = 0) -> None:
        self.acceptor.received(event_of(on, channel, method, arguments, False))

    def publish(self, channel: int = 1, content: Content | None = None) -> None:
        self.send("basic.publish", content, channel, routing_key="q")

    def header(self, size: int = 0, **others: Any) -> None:
        self.send("frame.header", body_size=size, class_id=60, **others)

    def body(self, body: bytes, channel: int = 1) -> None:
        self.send("frame.body", Content({}, body), channel)

    @property
    def owed(self) -> list[Expected]:
        return [owed for owed in self.acceptor.broker.connections["a"].owed if isinstance(owed, Expected)]

    def close(self) -> tuple[int, str, tuple[int, int]]:
        """Code, text and identifiers of the one close that is owed; it comes, and nothing is wrong with it."""
        (owed,) = self.owed
        assert owed.method == "connection.close"
        arguments = {name: choose(value) for name, value in owed.arguments.items()}
        self.come("connection.close", arguments)
        self.is_right()
        return arguments["reply_code"], arguments["reply_text"], (arguments["class_id"], arguments["method_id"])

    def end(self) -> None:
        """The end of the stream is owed, and nothing else; it comes."""
        assert [owed.method for owed in self.owed] == ["socket.closed"]
        self.come("socket.closed", {"reason": "the broker ended the stream"})
        self.is_right()

    def is_right(self) -> None:
        self.acceptor.quiescent()
        assert self.acceptor.failures == []
        # the other connection goes on
        self.send("basic.qos", on="b")
        self.come("basic.qos-ok", {}, on="b", channel=1)
        assert self.acceptor.failures == []


@pytest.fixture(params=RABBITMQS, ids=lambda dialect: dialect.name)
def bench(request: pytest.FixtureRequest) -> Bench:
    return Bench(request.param)


def no_header(of: int = 60) -> str:
    return f"UNEXPECTED_FRAME - expected content header for class {of}, got non content header frame instead"


NO_BODY = "UNEXPECTED_FRAME - expected content body, got non content body frame instead"
NO_METHOD = "UNEXPECTED_FRAME - expected method frame, got non method frame instead"
PUBLISH = (60, 40)


class TestContents:
    def test_pieces_are_a_message(self, bench: Bench) -> None:
        bench.publish()
        bench.header(6, properties={"delivery_mode": 2})
        for piece in (b"abc", b"", b"def"):
            bench.body(piece)
        assert bench.owed == []
        (message,) = bench.acceptor.broker.queues["q"].messages
        assert message.content == Content({"delivery_mode": 2}, b"abcdef")

    def test_a_message_without_a_body_is_complete_with_its_header(self, bench: Bench) -> None:
        bench.publish()
        assert not bench.acceptor.broker.queues["q"].messages
        bench.header(0)
        assert [message.content for message in bench.acceptor.broker.queues["q"].messages] == [EMPTY_CONTENT]

    def test_a_method_in_place_of_the_header(self, bench: Bench) -> None:
        bench.publish()
        bench.send("basic.qos")
        assert bench.close() == (505, no_header(), PUBLISH)

    def test_a_whole_publish_in_place_of_the_header(self, bench: Bench) -> None:
        bench.publish()
        bench.publish(content=EMPTY_CONTENT)
        assert bench.close() == (505, no_header(), PUBLISH)

    def test_a_body_in_place_of_the_header(self, bench: Bench) -> None:
        bench.publish()
        bench.body(b"abc")
        assert bench.close() == (505, no_header(), PUBLISH)

    def test_anything_but_a_body(self, bench: Bench) -> None:
        bench.publish()
        bench.header(3)
        bench.header(3)
        assert bench.close() == (505, NO_BODY, PUBLISH)

    def test_arguments_do_not_matter_where_no_method_may_come(self, bench: Bench) -> None:
        bench.publish()
        bench.send("frame.method", class_id=60, method_id=10, payload="0001")
        assert bench.close() == (505, no_header(), PUBLISH)

    def test_a_weight_is_no_header(self, bench: Bench) -> None:
        bench.publish()
        bench.header(3, weight=1)
        assert bench.close() == (505, no_header(), PUBLISH)

    def test_content_without_a_method(self, bench: Bench) -> None:
        bench.body(b"")
        assert bench.close() == (505, NO_METHOD, (0, 0))

    def test_content_on_a_channel_that_is_not_open(self, bench: Bench) -> None:
        bench.body(b"abc", channel=9)
        assert bench.close() == (505, NO_METHOD, (0, 0))

    def test_a_publish_on_a_channel_that_is_not_open_is_refused_when_it_is_complete(self, bench: Bench) -> None:
        bench.send("basic.publish", channel=9)
        assert bench.owed == []
        bench.send("frame.header", channel=9, class_id=60)
        assert bench.close() == (504, "CHANNEL_ERROR - expected 'channel.open'", PUBLISH)

    def test_content_on_a_channel_that_is_closing(self, bench: Bench) -> None:
        bench.send("queue.declare", queue="missing", passive=True)
        text = "NOT_FOUND - no queue 'missing' in vhost '/'"
        close = {"reply_code": 404, "reply_text": text, "class_id": 50, "method_id": 10}
        bench.come("channel.close", close, channel=1)
        bench.publish(content=EMPTY_CONTENT)
        assert bench.owed == []
        bench.body(b"abc")
        assert bench.close() == (505, NO_METHOD, (0, 0))

    @pytest.mark.parametrize(("size", "rest"), [(3, b"abcdef"), (5, b"abcdefghi")])
    def test_a_body_that_is_too_long(self, bench: Bench, size: int, rest: bytes) -> None:
        bench.publish()
        bench.header(size)
        bench.body(rest)
        text = "FRAME_ERROR - content body frame exceeds remaining content size"
        assert bench.close() == (501, text, PUBLISH)

    @pytest.mark.known_defects
    @pytest.mark.parametrize(
        ("dialect", "defect"),
        [
            ("rabbitmq-3", "longer-body-unnoticed"), ("rabbitmq-4.0", "longer-body-unnoticed"), ("rabbitmq-4.3", ""),
        ],
    )  # fmt: skip
    def test_a_body_that_is_too_long_and_not_noticed_is_a_known_defect(self, dialect: str, defect: str) -> None:
        """Bodies are taken, until another frame is refused; and that is the only failure where it is known."""
        bench = Bench(DIALECTS[dialect])
        bench.publish()
        bench.header(2)
        for body in (b"abc", b"", b"more"):
            bench.body(body)
        bench.send("basic.qos")
        text = {"reply_code": 505, "reply_text": NO_BODY, "class_id": PUBLISH[0], "method_id": PUBLISH[1]}
        bench.come("connection.close", text)
        first, *others = bench.acceptor.failures
        assert (first.requirement, first.defect) == ("CHAN-015", defect)
        assert not (defect and others)

    def test_what_is_announced_is_limited(self, bench: Bench) -> None:
        bench.publish()
        bench.header(536_870_913)
        if bench.acceptor.broker.dialect is RABBITMQ_4_3:
            text = "FRAME_ERROR - content body size 536870913 exceeds maximum allowed size 536870912"
            assert bench.close() == (501, text, PUBLISH)
        else:
            assert bench.owed == []

    def test_too_large_a_message_closes_the_channel_when_it_is_complete(self, bench: Bench) -> None:
        limit = bench.acceptor.broker.dialect.max_message_size
        size = 128 * 1024 * 1024 + 1
        bench.publish()
        bench.header(size)
        piece = bytes(1024 * 1024)
        for _ in range(128):
            bench.body(piece)
        assembly = bench.acceptor.broker.channels[("a", 1)].assembly
        assert assembly is not None and assembly.pieces == ()
        bench.body(b"x")
        text = f"PRECONDITION_FAILED - message size {size} is larger than configured max size {limit}"
        close = {"reply_code": 406, "reply_text": text, "class_id": 60, "method_id": 40}
        bench.come("channel.close", close, channel=1)
        assert bench.acceptor.failures == []

    @pytest.mark.parametrize("size", [0, 3])
    def test_properties_that_cannot_be_read(self, bench: Bench, size: int) -> None:
        bench.publish()
        bench.header(size, payload="8000")
        if size:
            bench.body(b"abc")
        assert bench.close() == (541, "INTERNAL_ERROR", (0, 0))

    def test_the_exchange_is_looked_up_before_the_properties(self, bench: Bench) -> None:
        bench.send("basic.publish", exchange="missing")
        bench.header(0, payload="8000")
        text = "NOT_FOUND - no exchange 'missing' in vhost '/'"
        close = {"reply_code": 404, "reply_text": text, "class_id": 60, "method_id": 40}
        bench.come("channel.close", close, channel=1)
        assert bench.acceptor.failures == []

    def test_the_class_of_the_header(self) -> None:
        text = "expected content header for class 60, got one for class 50 instead"
        for dialect in RABBITMQS:
            bench = Bench(dialect)
            bench.publish()
            bench.send("frame.header", class_id=50, body_size=3)
            assert bench.close() == (505, f"UNEXPECTED_FRAME - {text}", PUBLISH)
        bench = Bench(AMQP_0_9_1)
        bench.publish()
        bench.send("frame.header", class_id=50, body_size=3)
        assert bench.close()[0] == 501

    def test_what_has_begun_is_copied_and_told_apart(self, bench: Bench) -> None:
        before = fingerprint(bench.acceptor.broker)
        bench.publish()
        bench.header(3)
        broker = bench.acceptor.broker
        assert fingerprint(broker) != before
        copied = copy_broker(broker)
        assert fingerprint(copied) == fingerprint(broker)
        bench.body(b"abc")
        assert copied.channels[("a", 1)].assembly is not None


class TestFrames:
    def test_too_large(self, bench: Bench) -> None:
        bench.send("frame.other", type=3, size=131_073)
        text = "FRAME_ERROR - type 3, all octets = <<>>: {frame_too_large,131073,131064}"
        assert bench.close() == (501, text, (0, 0))

    def test_the_tolerance(self, bench: Bench) -> None:
        bench.send("frame.other", type=9, payload="00" * 131_072)
        code, text, _ = bench.close()
        assert (code, text.partition(", ")[0]) == (501, "FRAME_ERROR - type 9")

    def test_a_wrong_end(self, bench: Bench) -> None:
        bench.send("frame.other", type=1, payload="003c", end=205)
        text = "FRAME_ERROR - type 1, all octets = <<0,60>>: {invalid_frame_end_marker,205}"
        assert bench.close() == (501, text, (0, 0))

    def test_how_erlang_breaks_lines_does_not_matter(self, bench: Bench) -> None:
        bench.send("frame.other", type=1, payload="003c000a00000000000000", end=205)
        text = (
            "FRAME_ERROR - type 1, all octets = <<0,60,0,10,0,0,0,0,0,0,0>>: {invalid_frame_end_marker,\n"
            "                                                   205}"
        )
        bench.come("connection.close", {"reply_code": 501, "reply_text": text, "class_id": 0, "method_id": 0})
        bench.is_right()

    def test_a_size_that_is_too_small(self, bench: Bench) -> None:
        bench.send("frame.other", type=1, payload="003c000a", size=2)
        text = "FRAME_ERROR - type 1, all octets = <<0,60>>: {invalid_frame_end_marker,0}"
        assert bench.close() == (501, text, (0, 0))

    def test_behind_a_fatal_error_not_even_a_close_is_answered(self, bench: Bench) -> None:
        bench.send("frame.other", payload="003c", end=205)
        bench.send("connection.close", channel=0)
        bench.close()
        bench.send("connection.close-ok", channel=0)
        assert bench.owed == []

    @pytest.mark.parametrize(
        ("kind", "payload"), [(0, ""), (9, "00"), (255, "616263"), (1, "003c00"), (2, "003c00000000"), (8, "78")]
    )
    def test_no_frame_of_amqp(self, bench: Bench, kind: int, payload: str) -> None:
        bench.send("frame.other", type=kind, payload=payload)
        code, text, identifiers = bench.close()
        assert (code, identifiers) == (501, (0, 0)) and text.endswith(": unknown_frame")

    @pytest.mark.parametrize(("kind", "requirement"), [(1, "CONN-015"), (9, "CONN-016")])
    def test_the_bare_text_wants_the_end_of_the_stream(self, kind: int, requirement: str) -> None:
        bench = Bench(AMQP_0_9_1)
        bench.send("frame.other", type=kind, payload="003c000a", end=205 if kind == 1 else 206)
        assert bench.owed[0].requirements == (requirement,)
        bench.end()

    def test_heartbeats(self, bench: Bench) -> None:
        bench.send("frame.other", type=8, channel=0)
        assert bench.owed == []
        bench.send("frame.other", type=8)
        assert bench.close() == (505, "UNEXPECTED_FRAME - type 8, all octets = <<>>", (0, 0))

    @pytest.mark.parametrize("is_header", [True, False])
    def test_content_on_channel_0(self, bench: Bench, is_header: bool) -> None:
        if is_header:
            bench.send("frame.header", class_id=60, body_size=3, channel=0)
        else:
            bench.body(b"abc", channel=0)
        octets = "<<0,60,0,0,0,0,0,0,0,0,0,3,0,0>>" if is_header else '<<"abc">>'
        text = f"UNEXPECTED_FRAME - type {2 if is_header else 3}, all octets = {octets}"
        assert bench.close() == (505, text, (0, 0))

    @pytest.mark.parametrize("payload", ["63000a", "003c00fa01"])
    def test_a_frame_that_tells_its_type_is_read_by_it(self, bench: Bench, payload: str) -> None:
        bench.send("frame.other", type=1, payload=payload.rjust(8, "0"))
        bench.end()

    def test_contents_that_tell_their_types(self, bench: Bench) -> None:
        bench.publish()
        bench.send("frame.other", type=2, payload="003c000000000000000000030000")
        bench.send("frame.other", type=3, payload="616263")
        assert [message.content.body for message in bench.acceptor.broker.queues["q"].messages] == [b"abc"]


class TestMethods:
    @pytest.mark.parametrize("channel", [0, 1, 9])
    @pytest.mark.parametrize("identifiers", [(99, 10), (60, 250), (10, 99)])
    def test_those_that_do_not_exist(self, bench: Bench, channel: int, identifiers: tuple[int, int]) -> None:
        class_id, method_id = identifiers
        bench.send("frame.method", channel=channel, class_id=class_id, method_id=method_id)
        bench.end()

    def test_within_content_as_well(self, bench: Bench) -> None:
        bench.publish()
        bench.send("frame.method", class_id=99, method_id=10)
        bench.end()

    @pytest.mark.parametrize("channel", [1, 9])
    def test_arguments_that_are_cut_short(self, bench: Bench, channel: int) -> None:
        bench.send("frame.method", channel=channel, class_id=60, method_id=10, payload="0001")
        assert bench.close() == (501, "FRAME_ERROR - cannot decode <<0,1>>", (60, 10))

    def test_long_arguments_are_shown_in_part(self, bench: Bench) -> None:
        bench.send("frame.method", class_id=60, method_id=40, payload=bytes(range(200)).hex())
        code, text, identifiers = bench.close()
        assert (code, identifiers, len(text)) == (501, (60, 40), 255)
        assert text.endswith("75,76,7...")

    def test_a_table(self, bench: Bench) -> None:
        bench.send("frame.method", class_id=50, method_id=10, payload="00", fault="table")
        bench.end()

    def test_a_text(self, bench: Bench) -> None:
        bench.send("frame.method", class_id=50, method_id=40, payload="00", fault="text")
        assert bench.close() == (501, "FRAME_ERROR - Malformed UTF-8 in shortstr", (0, 0))

    @pytest.mark.parametrize(
        ("fault", "close"),
        [
            ({}, (541, "INTERNAL_ERROR", (0, 0))),
            ({"fault": "table"}, (541, "INTERNAL_ERROR", (0, 0))),
            ({"fault": "text"}, (501, "FRAME_ERROR - Malformed UTF-8 in shortstr", (10, 40))),
        ],
    )
    def test_on_channel_0(self, bench: Bench, fault: Table, close: Any) -> None:
        bench.send("frame.method", channel=0, class_id=10, method_id=40, payload="00", **fault)
        assert bench.close() == close

    @pytest.mark.parametrize(
        "method", ["connection.open", "connection.tune-ok", "connection.start-ok", "queue.declare"]
    )
    def test_channel_0_is_for_the_connection(self, bench: Bench, method: str) -> None:
        bench.send(method, channel=0)
        code, text, _ = bench.close()
        assert (code, text) == (504, "CHANNEL_ERROR - unexpected method in connection state running")

    def test_a_publish_on_channel_0_is_refused_by_its_method_alone(self, bench: Bench) -> None:
        bench.send("basic.publish", channel=0)
        bench.send("frame.header", channel=0, class_id=60)
        assert bench.close()[2] == PUBLISH


class TestChannelMax:
    def test_the_number_of_channels_is_limited_and_not_their_numbers(self) -> None:
        for dialect in DIALECTS.values():
            if dialect.text.channel_max_is_a_number:
                continue
            bench = Bench(dialect, channel_max=2)
            bench.open(7)
            bench.send("channel.open", channel=8)
            code, text, identifiers = bench.close()
            assert (code, identifiers) == (530, (0, 0))
            assert text == "NOT_ALLOWED - number of channels opened (2) has reached the negotiated channel_max (2)"

    def test_in_the_text_it_is_the_number_that_is_limited(self) -> None:
        bench = Bench(DIALECTS["amqp-0-9-1"], channel_max=2)
        bench.open(2)
        bench.send("channel.open", channel=3)
        assert bench.close()[0] == 504

    @pytest.mark.parametrize("method", ["basic.qos", "basic.publish", "frame.body", "frame.header"])
    def test_whatever_comes_on_one_more(self, method: str) -> None:
        bench = Bench(RABBITMQ_4_3, channel_max=1)
        bench.send(method, channel=2)
        assert bench.close()[0] == 530

    def test_a_channel_counts_from_the_first_frame_of_a_content(self) -> None:
        bench = Bench(RABBITMQ_4_3, channel_max=2)
        bench.publish(channel=5)
        bench.send("channel.open", channel=6)
        assert bench.close()[0] == 530

    def test_what_is_closed_does_not_count(self) -> None:
        bench = Bench(RABBITMQ_4_3, channel_max=1)
        bench.send("channel.close")
        bench.come("channel.close-ok", {}, channel=1)
        bench.open(2)
        assert bench.acceptor.failures == []


class TestOutOfStep:
    """The client lies about a size: what it sends next is taken for the rest of that frame."""

    @pytest.fixture(params=[{"size": 100}, {"size": 1, "payload": "00ce003c"}])
    def lost(self, bench: Bench, request: pytest.FixtureRequest) -> Bench:
        bench.send("frame.other", **{"type": 1, "payload": "003c", **request.param})
        bench.send("basic.qos")
        bench.send("connection.close", channel=0)
        assert bench.owed == [] and bench.acceptor.failures == []
        return bench

    def test_nothing_need_come(self, lost: Bench) -> None:
        lost.is_right()

    def test_an_error_of_any_kind_may_come(self, lost: Bench) -> None:
        text = "FRAME_ERROR - whatever"
        lost.come("connection.close", {"reply_code": 501, "reply_text": text, "class_id": 0, "method_id": 0})
        lost.come("socket.closed", {"reason": ""})
        lost.is_right()

    def test_so_may_the_end(self, lost: Bench) -> None:
        lost.come("socket.closed", {"reason": ""})
        lost.is_right()

    def test_a_reply_may_not(self, lost: Bench) -> None:
        lost.come("basic.qos-ok", {}, channel=1)
        assert lost.acceptor.failures != []


CLOSE = {"reply_code": 501, "reply_text": "FRAME_ERROR - no", "class_id": 0, "method_id": 0}


class TestBlame:
    """The requirement that a broker breaks which does something else."""

    @of_every_rabbitmq
    @pytest.mark.parametrize(
        ("frames", "requirement"),
        [
            ([("frame.header", {"class_id": 60})], "CHAN-012"),
            ([("basic.publish", {}), ("basic.qos", {})], "CHAN-013"),
            ([("basic.publish", {}), ("frame.header", {"class_id": 1})], "CHAN-014"),
            ([("basic.publish", {}), ("frame.header", {"weight": 1})], "CHAN-014"),
            ([("basic.publish", {}), ("frame.header", {"payload": "ff"})], "CHAN-021"),
            ([("frame.other", {"type": 8})], "CHAN-020"),
            ([("frame.other", {"size": 200_000})], "CONN-014"),
            ([("frame.other", {"end": 1})], "CONN-015"),
            ([("frame.other", {"type": 7})], "CONN-016"),
            ([("frame.method", {"class_id": 99})], "CONN-017"),
            ([("frame.method", {"class_id": 60, "method_id": 10})], "CONN-018"),
        ],
    )
    def test_the_error_does_not_come(self, dialect: Dialect, frames: list[tuple[str, Table]], requirement: str) -> None:
        bench = Bench(dialect)
        for method, arguments in frames:
            bench.send(method, **arguments)
        bench.acceptor.overdue()
        assert [failure.requirement for failure in bench.acceptor.failures] == [requirement]

    @of_every_rabbitmq
    def test_a_close_where_the_end_is_owed(self, dialect: Dialect) -> None:
        bench = Bench(dialect)
        bench.send("frame.method", class_id=99, method_id=10)
        bench.come("connection.close", CLOSE)
        assert [failure.requirement for failure in bench.acceptor.failures] == ["CONN-017"]

    @of_every_rabbitmq
    def test_the_end_where_a_close_is_owed(self, dialect: Dialect) -> None:
        bench = Bench(dialect)
        bench.send("frame.other", size=200_000)
        bench.come("socket.closed", {"reason": ""})
        assert [failure.requirement for failure in bench.acceptor.failures] == ["CONN-014"]

    @of_every_rabbitmq
    def test_an_error_before_the_content_is_complete(self, dialect: Dialect) -> None:
        bench = Bench(dialect)
        bench.publish()
        bench.header(6)
        bench.body(b"abc")
        bench.come("connection.close", CLOSE)
        assert [failure.requirement for failure in bench.acceptor.failures] == ["CHAN-015"]

    @of_every_rabbitmq
    def test_a_limit_of_numbers(self, dialect: Dialect) -> None:
        bench = Bench(dialect, channel_max=2)
        bench.send("channel.open", channel=3)
        text = "CHANNEL_ERROR - channel number 3 exceeds the limit"
        bench.come("connection.close", CLOSE | {"reply_code": 504, "reply_text": text})
        assert [failure.requirement for failure in bench.acceptor.failures] == ["CONN-013"]

    @of_every_rabbitmq
    def test_a_limit_that_is_not_kept(self, dialect: Dialect) -> None:
        bench = Bench(dialect, channel_max=1)
        bench.send("channel.open", channel=2)
        bench.come("channel.open-ok", {}, channel=2)
        assert [failure.requirement for failure in bench.acceptor.failures] == ["CONN-013"]

    @pytest.mark.parametrize("identifiers", [(60, 10), (0, 0)])
    def test_in_the_text_a_method_that_is_cut_short_may_be_named_or_not(self, identifiers: tuple[int, int]) -> None:
        """CHAN-007: 0/0 where the failure was not caused by a decoded method."""
        bench = Bench(DIALECTS["amqp-0-9-1"])
        bench.send("frame.method", class_id=60, method_id=10, payload="0001")
        class_id, method_id = identifiers
        bench.come("connection.close", CLOSE | {"reply_code": 501, "class_id": class_id, "method_id": method_id})
        assert bench.acceptor.failures == []

    @of_every_rabbitmq
    def test_rabbitmq_names_it(self, dialect: Dialect) -> None:
        bench = Bench(dialect)
        bench.send("frame.method", class_id=60, method_id=10, payload="0001")
        text = "FRAME_ERROR - cannot decode <<0,1>>"
        bench.come("connection.close", CLOSE | {"reply_code": 501, "reply_text": text})
        assert {failure.requirement for failure in bench.acceptor.failures} == {"CHAN-007"}


def test_texts_that_show_octets() -> None:
    pattern = Printed("A - type 1, octets = <<", ">>: {end,1}", "example")
    assert pattern.matches("A - type 1, octets = <<1,2>>: {end,\n      1}")
    assert pattern.matches('A - type 1, octets = <<"é"/utf8>>: {end,1}')
    assert not pattern.matches("A - type 2, octets = <<1,2>>: {end,1}")
    assert not pattern.matches("A - type 1, octets = <<1,2>>: {end,2}")
    assert not pattern.matches("A-type1,octets=<<>>:{end,1")
    assert not pattern.matches(None)
    assert pattern.choose() == "example"
