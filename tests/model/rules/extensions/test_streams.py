"""Streams: where reading begins, how much comes at a time, and what settling does not do (area STREAM)."""

from __future__ import annotations

import copy
from typing import Any, Self

import pytest

from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.promises.versions import RABBITMQ
from tests.model.judging.test_acceptor import ANOTHER, Conversation

VERSIONS = ("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3")
INVALID = "PRECONDITION_FAILED - invalid arg 'x-stream-offset' for queue 's' in vhost '/': {invalid_stream_offset_arg,"


class Reading(Conversation):
    """a.1 consumes, with a limit, from a stream to which b.1 publishes."""

    def __init__(
        self, dialect: str, limit: int, published: int = 0, at_once: bool = False, product: str = RABBITMQ
    ) -> None:
        super().__init__(dialect, product=product)
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

    def is_known(self, *names: str) -> bool:
        """Has all that was wrong the names of these known defects, and nothing else is wrong?"""
        return [failure.defect for failure in self.rest().acceptor.failures] == list(names)

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
    talk = Reading("rabbitmq-4.3", 5, published=3, at_once=True, product=ANOTHER).consume("last")
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
    talk = Reading("rabbitmq-4.3", 1, published=2, product=ANOTHER).consume().read(1, 0).rest().consume("first", "u")
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


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "line", ["basic.nack 1 requeue", "basic.nack 1", "basic.reject 1 requeue", "basic.nack 0 multiple"]
)
def test_giving_back_returns_credit_only(version: str, line: str) -> None:
    talk = Reading(version, 1, published=2).consume().read(1, 0).rest().send(f"a.1 {line}")
    assert talk.fork().read(2, 0).failure.requirement == "ACK-021"
    assert talk.fork().rest().failure.requirement == "ACK-021"
    assert talk.read(2, 1).passes()


@pytest.mark.parametrize("version", VERSIONS)
def test_recovering_reads_on(version: str) -> None:
    talk = Reading(version, 1, published=2).consume().read(1, 0).rest().send("a.1 basic.recover requeue")
    assert talk.fork().read(2, 0).failure.requirement == "STREAM-007"
    assert talk.read(2, 1).see("a.1", "basic.recover-ok").passes()


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
