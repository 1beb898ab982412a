"""Streams: where reading begins, how much comes at a time, and what settling does not do (area STREAM)."""

from __future__ import annotations

import copy
from typing import Any, Self

import pytest

from amqpspec.model.promises.verdict import Verdict
from tests.model.judging.test_acceptor import Conversation

VERSIONS = ("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3")
INVALID = "PRECONDITION_FAILED - invalid arg 'x-stream-offset' for queue 's' in vhost '/': {invalid_stream_offset_arg,"


class Reading(Conversation):
    """a.1 consumes, with a limit, from a stream to which b.1 publishes."""

    def __init__(self, dialect: str, limit: int, published: int = 0, at_once: bool = False) -> None:
        super().__init__(dialect)
        self.names_mode = dialect != "rabbitmq-3"
        self.send("a.1 queue.declare s durable x-queue-type=stream")
        self.see("a.1", "queue.declare-ok", queue="s", message_count=0, consumer_count=0).rest()
        self.send(f"a.1 basic.qos {limit}").see("a.1", "basic.qos-ok").rest()
        if not at_once:
            self.send("b.1 confirm.select").see("b.1", "confirm.select-ok").rest()
        for number in range(published):
            self.send(f"b.1 basic.publish s body=m{number}")
            if not at_once:
                self.confirm("b.1", number + 1)
        self.rest()

    def consume(self, offset: str | None = "first", tag: str = "t") -> Self:
        self.send(f"a.1 basic.consume s tag={tag}" + (f" x-stream-offset={offset}" if offset else ""))
        return self.see("a.1", "basic.consume-ok", consumer_tag=tag)

    def read(self, tag: int, offset: int, consumer: str = "t", **wrong: Any) -> Self:
        headers = {"x-stream-offset": wrong.pop("named", offset)}
        properties: dict[str, Any] = {"headers": headers, **({"delivery_mode": 1} if self.names_mode else {})}
        return self.see(
            "a.1", "basic.deliver", f"m{offset}", consumer_tag=consumer, delivery_tag=tag,
            redelivered=wrong.get("redelivered", False), exchange="", routing_key="s", properties=properties,
        )  # fmt: skip

    def fork(self) -> Reading:
        return copy.deepcopy(self)

    def passes(self) -> bool:
        return self.rest().acceptor.verdict is Verdict.PASS

    def exercised(self, requirement: str) -> int:
        return self.acceptor.exercised[requirement]


# ---------------------------------------------------------------------------------------------- the beginning


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("offset", "first"), [("first", 0), ("0", 0), ("1", 1), ("2", 2), ("-5", 0), ("last", 2), ("1h", 0)]
)
def test_an_offset_says_where_reading_begins(version: str, offset: str, first: int) -> None:
    talk = Reading(version, 1, published=3).consume(offset).read(1, first)
    assert talk.passes()
    assert talk.exercised("STREAM-008") == 1


@pytest.mark.parametrize("offset", ["next", "3", None])
def test_what_is_yet_to_come(offset: str | None) -> None:
    talk = Reading("rabbitmq-4.3", 1, published=3).consume(offset)
    assert talk.fork().rest().send("b.1 basic.publish s body=m3").confirm("b.1", 4).read(1, 3).passes()
    early = talk.read(1, 0)
    assert early.failure.requirement == ("STREAM-008" if offset else "STREAM-004")


def test_a_number_beyond_the_end_is_waited_for() -> None:
    talk = Reading("rabbitmq-4.3", 5, published=1).consume("2").rest().send("b.1 basic.publish s body=m1")
    assert talk.confirm("b.1", 2).rest().acceptor.verdict is Verdict.PASS
    talk.send("b.1 basic.publish s body=m2").confirm("b.1", 3)
    assert talk.fork().read(1, 2).passes()
    assert talk.rest().failure.requirement == "STREAM-008"


@pytest.mark.parametrize("offset", ["0", "first"])
def test_reading_that_begins_elsewhere(offset: str) -> None:
    assert Reading("rabbitmq-4.3", 1, published=2).consume(offset).read(1, 1).failure.requirement == "STREAM-008"


def test_last_is_a_chunk_whose_extent_shows_with_the_first_delivery() -> None:
    talk = Reading("rabbitmq-4.3", 5, published=3, at_once=True).consume("last")
    for first in range(3):
        one = talk.fork()
        for place, offset in enumerate(range(first, 3)):
            one.read(place + 1, offset)
        assert one.passes()
        again = one.consume("last", "u")
        for other in set(range(3)) - {first}:
            assert again.fork().read(4 - first, other, "u").failure.requirement == "STREAM-008"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("offset", ["1x", "0h", '"1 h"'])
def test_what_is_no_interval(version: str, offset: str) -> None:
    talk = Reading(version, 1).send(f"a.1 basic.consume s tag=t x-stream-offset={offset}")
    text = INVALID + f'{{longstr,<<"{offset.strip(chr(34))}">>}}}}'
    talk.see("a.1", "channel.close", reply_code=406, reply_text=text, class_id=60, method_id=20)
    assert talk.send("a.1 channel.close-ok").passes()
    assert talk.exercised("STREAM-005") == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_a_word_that_nobody_knows(version: str) -> None:
    """Whatever its version, a broker that refuses it is right: 4.2.7 does."""
    talk = Reading(version, 1).send("a.1 basic.consume s tag=t x-stream-offset=foo")
    text = INVALID + '{longstr,<<"foo">>}}'
    talk.see("a.1", "channel.close", reply_code=406, reply_text=text, class_id=60, method_id=20)
    assert talk.send("a.1 channel.close-ok").passes()


@pytest.mark.known_defects
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("offset", ["foo", '""'])
def test_a_word_that_breaks_the_connection_is_a_known_defect(version: str, offset: str) -> None:
    """Mended in 4.2.7 and 4.3.1: of later versions it is not known (`KnownDefect.versions`)."""
    talk = Reading(version, 1).send(f"a.1 basic.consume s tag=t x-stream-offset={offset}")
    talk.see("a", "connection.close", reply_code=541, reply_text="INTERNAL_ERROR", class_id=0, method_id=0)
    assert (talk.failure.requirement, talk.failure.defect) == ("STREAM-005", "stream-offset-text-breaks")


@pytest.mark.known_defects
@pytest.mark.parametrize("version", VERSIONS)
def test_another_type_breaks_the_connection_and_is_a_known_defect(version: str) -> None:
    talk = Reading(version, 1).send("a.1 basic.consume s tag=t x-stream-offset=true")
    talk.see("a", "connection.close", reply_code=541, reply_text="INTERNAL_ERROR", class_id=0, method_id=0)
    assert (talk.failure.requirement, talk.failure.defect) == ("STREAM-005", "stream-offset-of-wrong-type-breaks")


# ------------------------------------------------------------------------------------------------ the reading


def test_others_read_the_same() -> None:
    talk = Reading("rabbitmq-4.3", 2, published=2).consume().read(1, 0).read(2, 1).rest()
    talk.send("a.1 basic.ack 2 multiple").rest().consume("first", "u")
    assert talk.fork().read(3, 0, "u").read(4, 1, "u").passes()
    assert talk.fork().rest().failure.requirement == "STREAM-003"
    assert talk.fork().read(3, 0, "u", redelivered=True).acceptor.failures[0].requirement == "STREAM-003"
    assert talk.read(3, 0, "u", named=1).acceptor.failures[0].requirement == "STREAM-003"


def test_what_others_have_read_is_not_left_out() -> None:
    talk = Reading("rabbitmq-4.3", 1, published=2).consume().read(1, 0).rest().consume("first", "u")
    assert talk.read(2, 1, "u").failure.requirement == "STREAM-003"


def test_nothing_comes_two_times_to_one_consumer() -> None:
    talk = Reading("rabbitmq-4.3", 3, published=2).consume().read(1, 0)
    assert talk.read(2, 0).failure.requirement == "STREAM-003"


# ------------------------------------------------------------------------------------------------- the credit


@pytest.mark.parametrize("version", VERSIONS)
def test_what_begins_a_chunk_waits_for_credit(version: str) -> None:
    talk = Reading(version, 2, published=4).consume().read(1, 0).read(2, 1)
    assert talk.fork().read(3, 2).failure.requirement == "STREAM-006"
    talk.rest().send("a.1 basic.ack 2")
    assert talk.fork().rest().failure.requirement == "STREAM-006"
    assert talk.read(3, 2).passes()
    assert talk.exercised("STREAM-006") == 3  # held back two times, credited once


def test_chunks_are_handed_over_whole_up_to_3_13_only() -> None:
    assert (
        Reading("rabbitmq-4.0", 1, 3, at_once=True).consume().read(1, 0).read(2, 1).failure.requirement == "STREAM-006"
    )
    talk = Reading("rabbitmq-3", 1, 3, at_once=True).consume().read(1, 0).read(2, 1).read(3, 2)
    assert talk.passes()


def test_whether_a_chunk_goes_on_is_open_until_all_is_at_rest() -> None:
    """m1 may be of one chunk with m0, though both are confirmed: a cancel behind them is not processed before."""
    talk = Reading("rabbitmq-3", 1).consume("next").rest()
    talk.send("b.1 basic.publish s body=m0 &", "b.1 basic.publish s body=m1 &", "a.1 basic.cancel t")
    talk.confirm("b.1", 2, multiple=True).read(1, 0)
    whole = talk.fork().read(2, 1).see("a.1", "basic.cancel-ok", consumer_tag="t")
    assert whole.passes()
    assert talk.see("a.1", "basic.cancel-ok", consumer_tag="t").passes()


def test_a_chunk_is_the_same_for_everybody() -> None:
    """What one consumer was handed beyond its limit is one chunk with what came before."""
    talk = Reading("rabbitmq-3", 1, 3, at_once=True).consume().read(1, 0).read(2, 1).rest()
    talk.consume("first", "u").read(3, 0, "u")
    assert talk.fork().read(4, 1, "u").passes()
    assert talk.rest().failure.requirement == "CONSUME-001"


def test_the_excess_counts() -> None:
    talk = Reading("rabbitmq-3", 1, 2, at_once=True).consume().read(1, 0).read(2, 1).rest()
    talk.send("b.1 basic.publish s body=m2").rest()
    talk.send("a.1 basic.ack 1").rest()
    assert talk.fork().read(3, 2).failure.requirement == "STREAM-006"
    assert talk.send("a.1 basic.ack 2").read(3, 2).passes()


@pytest.mark.parametrize(
    "line", ["basic.nack 1 requeue", "basic.nack 1", "basic.reject 1 requeue", "basic.nack 0 multiple"]
)
def test_giving_back_returns_credit_only(line: str) -> None:
    talk = Reading("rabbitmq-4.3", 1, published=2).consume().read(1, 0).rest().send(f"a.1 {line}")
    assert talk.fork().read(2, 0).failure.requirement == "ACK-021"
    assert talk.fork().rest().failure.requirement == "ACK-021"
    assert talk.read(2, 1).passes()


def test_giving_back_is_refused_before_4_0_unless_the_stream_is_gone() -> None:
    talk = Reading("rabbitmq-3", 1, published=2).consume().read(1, 0).rest()
    refused = talk.fork().send("a.1 basic.nack 1")
    text = "NOT_IMPLEMENTED - basic.nack and basic.reject not supported by stream queues queue 's' in vhost '/'"
    refused.see("a", "connection.close", reply_code=540, reply_text=text, class_id=60, method_id=120)
    assert refused.send("a connection.close-ok").see("a", "socket.closed").passes()
    talk.send("b.1 queue.delete s").see("b.1", "queue.delete-ok", message_count=0)
    talk.see("a.1", "basic.cancel", consumer_tag="t", nowait=True).rest()
    assert talk.send("a.1 basic.nack 1").passes()


def test_what_stands_before_the_stream_is_settled_before_it_refuses() -> None:
    talk = Reading("rabbitmq-3", 1, published=1).consume().read(1, 0).rest()
    for tag, name in enumerate(("q", "z")):
        talk.send(f"a.1 queue.declare {name} durable")
        talk.see("a.1", "queue.declare-ok", queue=name, message_count=0, consumer_count=0).rest()
        talk.send(f"a.1 basic.publish {name} body={name}").rest().send(f"a.1 basic.get {name}")
        talk.see(
            "a.1", "basic.get-ok", name,
            delivery_tag=tag + 2, redelivered=False, exchange="", routing_key=name, message_count=0,
        ).rest()  # fmt: skip
    talk.send("a.1 basic.nack 0 multiple")
    text = "NOT_IMPLEMENTED - basic.nack and basic.reject not supported by stream queues queue 's' in vhost '/'"
    talk.see("a", "connection.close", reply_code=540, reply_text=text, class_id=60, method_id=120)
    talk.send("a connection.close-ok").see("a", "socket.closed").rest()
    assert talk.send("b.1 basic.get q").see("b.1", "basic.get-empty").passes()
    talk.send("b.1 basic.get z").see(
        "b.1", "basic.get-ok", "z", delivery_tag=1, redelivered=True, exchange="", routing_key="z", message_count=0
    )
    assert talk.passes()


def test_what_stands_before_the_stream_is_given_back_before_it_refuses() -> None:
    """As by basic.nack, so behind what was published since, and not as the end of the connection gives back."""
    talk = Reading("rabbitmq-3", 1, published=1).consume().read(1, 0).rest()
    talk.send("a.1 queue.declare q durable x-queue-type=quorum")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send("a.1 basic.publish q body=p0").rest().send("a.1 basic.publish q body=p1").rest().send("a.1 basic.get q")
    talk.see(
        "a.1", "basic.get-ok", "p0", delivery_tag=2, redelivered=False, exchange="", routing_key="q", message_count=1,
        properties={"headers": {"x-delivery-count": 0}},
    ).rest()  # fmt: skip
    talk.send("a.1 basic.nack 0 multiple requeue")
    text = "NOT_IMPLEMENTED - basic.nack and basic.reject not supported by stream queues queue 's' in vhost '/'"
    talk.see("a", "connection.close", reply_code=540, reply_text=text, class_id=60, method_id=120)
    talk.send("a connection.close-ok").see("a", "socket.closed").rest().send("b.1 basic.get q")
    talk.see(
        "b.1", "basic.get-ok", "p1", delivery_tag=1, redelivered=False, exchange="", routing_key="q", message_count=1,
        properties={"headers": {"x-delivery-count": 0}},
    )  # fmt: skip
    assert talk.passes()


def test_recovering_reads_on_from_4_0_and_crashes_before() -> None:
    talk = Reading("rabbitmq-4.3", 1, published=2).consume().read(1, 0).rest().send("a.1 basic.recover requeue")
    assert talk.fork().read(2, 0).failure.requirement == "STREAM-007"
    assert talk.read(2, 1).see("a.1", "basic.recover-ok").passes()
    first = Reading("rabbitmq-3", 1, published=2).consume().read(1, 0).rest().send("a.1 basic.recover requeue")
    first.see("a", "connection.close", reply_code=541, reply_text="INTERNAL_ERROR", class_id=0, method_id=0)
    assert first.send("a connection.close-ok").see("a", "socket.closed").passes()


@pytest.mark.known_defects
def test_a_consumer_is_not_counted() -> None:
    talk = Reading("rabbitmq-4.3", 1).consume().rest().send("b.1 queue.declare s passive")
    assert talk.fork().see("b.1", "queue.declare-ok", queue="s", message_count=0, consumer_count=1).passes()
    talk.see("b.1", "queue.declare-ok", queue="s", message_count=0, consumer_count=0)
    assert (talk.failure.requirement, talk.failure.defect) == ("QUEUE-026", "stream-consumer-count")


def test_where_chunks_begin_is_left_open_rather_than_followed_in_many_ways() -> None:
    talk = Conversation("rabbitmq-4.3").send("a.1 confirm.select", "a.1 queue.declare s durable x-queue-type=stream")
    talk.see("a.1", "confirm.select-ok")
    talk.see("a.1", "queue.declare-ok", queue="s", message_count=0, consumer_count=0).rest()
    for first in range(1, 13, 3):
        talk.send(*(f"a.1 basic.publish s body=m{number} &" for number in range(first, first + 3)))
        talk.confirm("a.1", first).confirm("a.1", first + 2, multiple=True).rest()
    assert talk.acceptor.failures == []
    assert len(talk.acceptor.explanations) == 1


@pytest.mark.parametrize("left", [0, 1])
def test_the_room_that_is_made_before_the_stream_refuses_may_be_used_unseen(left: int) -> None:
    """And a queue that bears no return has given up what was."""
    talk = Reading("rabbitmq-3", 1, published=1).consume().read(1, 0).rest()
    talk.send("a.1 queue.declare q durable x-queue-type=quorum x-delivery-limit=-1")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send("a.1 basic.publish q body=p0").rest().send("a.1 basic.publish q body=p1").rest()
    talk.send("a.1 basic.qos 1").see("a.1", "basic.qos-ok").rest()
    talk.send("a.1 basic.consume q tag=u").see("a.1", "basic.consume-ok", consumer_tag="u")
    talk.see(
        "a.1", "basic.deliver", "p0", consumer_tag="u", delivery_tag=2, redelivered=False, exchange="",
        routing_key="q",
    ).rest()  # fmt: skip
    talk.send("a.1 basic.nack 0 multiple")
    text = "NOT_IMPLEMENTED - basic.nack and basic.reject not supported by stream queues queue 's' in vhost '/'"
    talk.see("a", "connection.close", reply_code=540, reply_text=text, class_id=60, method_id=120)
    talk.send("a connection.close-ok").see("a", "socket.closed")
    talk.send("b.1 queue.declare q passive")
    assert talk.see("b.1", "queue.declare-ok", queue="q", message_count=left, consumer_count=0).rest().passes()


def test_what_was_sent_before_the_first_of_a_chunk_was_seen_may_be_of_that_chunk() -> None:
    talk = Reading("rabbitmq-3", 1, published=1, at_once=True).consume("next").rest()
    talk.send("b.1 basic.publish s body=m1 &", "b.1 basic.publish s body=m2 &", "b.1 basic.publish s body=m3")
    assert talk.read(1, 1).read(2, 2).read(3, 3).passes()


def test_what_is_refused_before_the_stream_refuses_is_a_dead_letter() -> None:
    talk = Reading("rabbitmq-3", 1, published=1).consume().read(1, 0).rest()
    for name, arguments in (("d", ""), ("q", 'x-dead-letter-exchange="" x-dead-letter-routing-key=d')):
        talk.send(f"a.1 queue.declare {name} durable {arguments}")
        talk.see("a.1", "queue.declare-ok", queue=name, message_count=0, consumer_count=0).rest()
    talk.send("a.1 basic.publish q body=m1").rest().send("a.1 basic.get q").got("a.1", 2, "m1", 0).rest()
    talk.send("a.1 basic.nack 0 multiple")
    text = "NOT_IMPLEMENTED - basic.nack and basic.reject not supported by stream queues queue 's' in vhost '/'"
    talk.see("a", "connection.close", reply_code=540, reply_text=text, class_id=60, method_id=120)
    talk.send("a connection.close-ok").see("a", "socket.closed").rest()
    talk.send("b.1 queue.declare d passive")
    assert talk.see("b.1", "queue.declare-ok", queue="d", message_count=1, consumer_count=0).rest().passes()


@pytest.mark.parametrize("counted", [0, 1])
@pytest.mark.parametrize("name", ["q", "z"])
def test_what_recover_gives_back_before_it_crashes_over_a_stream_may_come_again(name: str, counted: int) -> None:
    """Queues hear of it by name: q before the stream s, and may hand it out to who crashes, for the second time."""
    talk = Reading("rabbitmq-3", 1, published=1).consume().read(1, 0).rest()
    talk.send(f"a.1 queue.declare {name} durable x-queue-type=quorum x-delivery-limit=1")
    talk.see("a.1", "queue.declare-ok", queue=name, message_count=0, consumer_count=0).rest()
    talk.send(f"a.1 basic.consume {name} tag=u").see("a.1", "basic.consume-ok", consumer_tag="u").rest()
    talk.send(f"b.1 basic.publish {name} body=m1").confirm("b.1", 2)
    about = {"consumer_tag": "u", "delivery_tag": 2, "redelivered": False, "exchange": "", "routing_key": name}
    talk.see("a.1", "basic.deliver", "m1", **about).rest().send("a.1 basic.recover requeue")
    talk.see("a", "connection.close", reply_code=541, reply_text="INTERNAL_ERROR", class_id=0, method_id=0)
    talk.send("a connection.close-ok").see("a", "socket.closed").send(f"b.1 queue.declare {name} passive")
    talk.see("b.1", "queue.declare-ok", queue=name, message_count=counted, consumer_count=0)
    talk.acceptor.overdue()
    assert talk.passes() is (counted == 1 or name == "q")
