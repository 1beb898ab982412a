"""Shrinking: the shortest commands that still show it, with delivery tags that mean the same deliveries."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amqpspec.conformance.failures.shrink import shrink
from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.plan import Plan
from amqpspec.conformance.session.side_by_side import MOST_SET_ASIDE
from amqpspec.model.promises.dialects import DEFAULT_DIALECT

LONG = 60.0


def commands(*lines: str) -> list[Command]:
    return [parse_command(line) for line in lines]


def shortest(everything: Sequence[Command], shows: Callable[[Sequence[Command]], bool]) -> Sequence[Command]:
    shrunk = shrink(everything, shows, DEFAULT_DIALECT, LONG)
    assert not shrunk.cut_short, "there was time enough"
    return shrunk.commands


def lines(found: Sequence[Command]) -> list[str]:
    return [str(command) for command in found]


def carried_out(candidate: Sequence[Command]) -> Plan:
    plan = Plan(DEFAULT_DIALECT)
    for command in candidate:
        plan.carry_out(command)
    return plan


def settled(body: bytes, requirement: str) -> Callable[[Sequence[Command]], bool]:
    """Does running the commands settle the message with that body, by that requirement?"""

    def shows(candidate: Sequence[Command]) -> bool:
        return any(
            gone.body == body and gone.requirement == requirement
            for queue in carried_out(candidate).broker.queues.values()
            for gone in queue.gone
        )

    return shows


@settings(deadline=None, max_examples=150)
@given(st.integers(1, 30), st.sets(st.integers(0, 29)))
def test_what_is_needed_is_all_that_is_left(length: int, needed: set[int]) -> None:
    everything = commands(*(f"a.1 basic.qos {number}" for number in range(length)))
    needed = {number for number in needed if number < length} or {0}

    def shows(candidate: Sequence[Command]) -> bool:
        assert candidate, "nothing at all cannot show anything"
        return needed <= {command.arguments["prefetch_count"] for command in candidate}

    found = shortest(everything, shows)
    assert [command.arguments["prefetch_count"] for command in found] == sorted(needed)


def test_commands_that_are_needed_in_pairs() -> None:
    """No single command can be left out, but pairs can."""
    everything = commands(*(f"a.1 basic.qos {number}" for number in range(16)))

    def shows(candidate: Sequence[Command]) -> bool:
        present = {command.arguments["prefetch_count"] for command in candidate}
        pairs = all((number in present) == (number + 1 in present) for number in range(0, 16, 2))
        return pairs and {6, 7} <= present

    assert len(shortest(everything, shows)) == 2


def test_a_tag_goes_on_meaning_the_same_delivery() -> None:
    everything = commands(
        "a.1 queue.declare q",
        "a.1 basic.qos 5",
        "b.1 confirm.select",
        "b.1 basic.publish q body=m1",
        "b.1 basic.publish q body=m2",
        "a.1 basic.get q",
        "a.1 basic.ack 1",
        "b.1 basic.publish q body=m3",
        "a.1 basic.get q",
        "a.1 basic.get q",
        "a.1 basic.nack 2 requeue",
        "a.1 basic.ack 3",
        "a.1 channel.close",
    )
    shows = settled(b"m3", "ACK-001")
    assert shows(everything)
    found = shortest(everything, shows)
    assert lines(found) == [
        "a.1 queue.declare q",
        "b.1 basic.publish q body=m3",
        "a.1 basic.get q",
        "a.1 basic.ack 1",
    ]


def test_a_tag_on_another_channel_of_the_same_message() -> None:
    everything = commands(
        "a.1 queue.declare q",
        "a.1 basic.publish q body=m1",
        "a.1 basic.publish q body=m2",
        "a.1 basic.get q",
        "a.1 basic.nack 1 requeue",
        "b.1 basic.get q",
        "b.1 basic.get q",
        "b.1 basic.ack 2",
        "b.1 basic.reject 1",
    )
    assert lines(shortest(everything, settled(b"m2", "ACK-001"))) == [
        "a.1 queue.declare q",
        "a.1 basic.publish q body=m2",
        "b.1 basic.get q",
        "b.1 basic.ack 1",
    ]
    assert lines(shortest(everything, settled(b"m1", "ACK-013"))) == [
        "a.1 queue.declare q",
        "a.1 basic.publish q body=m1",
        "b.1 basic.get q",
        "b.1 basic.reject 1",
    ]


def test_a_tag_means_what_one_of_two_consumers_of_a_stream_got() -> None:
    """Both got the same message."""
    everything = commands(
        "a.1 queue.declare q durable x-queue-type=stream",
        "a.1 basic.qos 5",
        "a.1 basic.publish q body=m1",
        "a.1 basic.publish q body=m2",
        "a.1 basic.consume q tag=s x-stream-offset=first",
        "a.1 basic.consume q tag=t x-stream-offset=first",
        "a.1 basic.ack 3",
    )

    def shows(candidate: Sequence[Command]) -> bool:
        """Did t's first delivery get settled?"""
        channel = carried_out(candidate).channel("a", 1)
        bodies = [
            entry.message.content.body
            for entry in (channel.unacknowledged.values() if channel is not None else ())
            if entry.consumer is not None and entry.consumer.tag == "t"
        ]
        return bodies == [b"m2"]

    assert lines(shortest(everything, shows))[-1] == "a.1 basic.ack 1"


def test_what_need_not_be_in_flight_is_not() -> None:
    everything = commands("a.1 basic.qos 1 &", "b.1 basic.qos 2 &", "a.1 basic.qos 3 &", "b.1 basic.qos 4")

    def shows(candidate: Sequence[Command]) -> bool:
        return any(one.in_flight and one.connection == "b" for one in candidate) and candidate[0].connection == "a"

    assert lines(shortest(everything, shows)) == [
        "a.1 basic.qos 1",
        "b.1 basic.qos 2 &",
    ]


def test_content_in_pieces_stays_in_pieces() -> None:
    everything = commands(
        "a.1 basic.publish q unfinished &", "a.1! frame.header class-id=60 body-size=2 &", "a.1! frame.body body=m1"
    )
    found = shortest(everything, lambda candidate: len(candidate) == 3)
    assert [one.in_flight for one in found[1:]] == [True, False]


def test_a_connection_as_wished_is_kept_where_it_matters() -> None:
    everything = commands(
        "a.1 queue.declare q",
        "b connection.open consumer_cancel_notify=true",
        "b.1 basic.consume q tag=s",
        "b connection.close reply-code=200 reply-text=done",
        "c connection.open consumer_cancel_notify=false",
        "c.1 basic.consume q tag=t",
        "a.1 queue.delete q",
    )

    def shows(candidate: Sequence[Command]) -> bool:
        """Was a consumer ended that nobody is told of?"""
        return carried_out(candidate).broker.bookkeeping.exercised["CANCEL-010"] > 0

    assert lines(shortest(everything, shows)) == [
        "a.1 queue.declare q",
        "c connection.open consumer_cancel_notify=false",
        "c.1 basic.consume q consumer-tag=t",
        "a.1 queue.delete q",
    ]


def test_a_tag_that_never_meant_anything_stays() -> None:
    everything = commands("a.1 queue.declare q", "a.1 basic.publish q body=m1", "a.1 basic.get q", "a.1 basic.ack 40")

    def shows(candidate: Sequence[Command]) -> bool:
        return candidate[-1].arguments.get("delivery_tag") == 40

    assert lines(shortest(everything, shows)) == ["a.1 basic.ack 40"]


def test_no_single_command_of_the_result_can_be_left_out() -> None:
    everything = commands(
        "a.1 queue.declare q durable x-queue-type=quorum",
        "a.1 queue.declare r",
        "a.1 basic.qos 1",
        "a.1 basic.consume q tag=t",
        "b.1 confirm.select",
        *(f"b.1 basic.publish q body=m{number}" for number in range(6)),
        "a.1 basic.ack 1",
        "a.1 basic.nack 2 requeue",
        "a.1 basic.ack 3",
        "b.1 basic.get q",
        "a.1 basic.cancel t",
        "a.1 basic.ack 4",
        "b.1 basic.nack 1 multiple",
    )

    def shows(candidate: Sequence[Command]) -> bool:
        """A message came back to a consumer with a limit and was settled later."""
        exercised = carried_out(candidate).broker.bookkeeping.exercised
        return all(exercised[requirement] for requirement in ("ACK-015", "QOS-001", "ACK-013", "ACK-001"))

    assert shows(everything)
    found = shortest(everything, shows)
    assert shows(found)
    assert len(found) < len(everything) // 2
    for index in range(len(found)):
        assert not shows([*found[:index], *found[index + 1 :]]), f"{found[index]} could be left out"


def test_arguments_that_matter_are_all_that_is_left() -> None:
    everything = commands(
        "a.1 queue.declare d durable",
        'a.1 queue.declare q durable x-queue-type=quorum x-dead-letter-exchange="" x-dead-letter-routing-key=d',
        "a.1 basic.publish q mandatory body=m priority=1 expiration=60000",
        "a.1 basic.get q",
        "a.1 basic.reject 1",
    )

    def shows(candidate: Sequence[Command]) -> bool:
        """Is there a dead letter?"""
        return any(queue.name == "d" and queue.messages for queue in carried_out(candidate).broker.queues.values())

    assert lines(shortest(everything, shows)) == [
        "a.1 queue.declare d",
        'a.1 queue.declare q x-dead-letter-exchange="" x-dead-letter-routing-key=d',
        "a.1 basic.publish q body=m",
        "a.1 basic.get q",
        "a.1 basic.reject 1",
    ]


def test_a_tag_goes_on_meaning_the_same_delivery_where_an_argument_is_left_out() -> None:
    everything = commands(
        "a.1 queue.declare q x-max-priority=5",
        "a.1 basic.publish q body=m1",
        "a.1 basic.publish q body=m2 priority=2",
        "a.1 basic.get q",
        "a.1 basic.get q",
        "a.1 basic.ack 1",
    )
    settles = settled(b"m2", "ACK-001")
    assert lines(shortest(everything, lambda candidate: len(candidate) == 6 and settles(candidate))) == [
        "a.1 queue.declare q",
        "a.1 basic.publish q body=m1",
        "a.1 basic.publish q body=m2",
        "a.1 basic.get q",
        "a.1 basic.get q",
        "a.1 basic.ack 2",
    ]


def test_what_cannot_be_shortened_is_given_back() -> None:
    everything = commands("a.1 queue.declare q", "a.1 basic.get q")
    assert shortest(everything, lambda candidate: len(candidate) == 2) == tuple(everything)
    assert shortest(everything[:1], lambda candidate: False) == tuple(everything[:1])


@pytest.mark.parametrize("limit", [0.0, 0.05, 0.3])
def test_the_time_limit(limit: float) -> None:
    everything = commands(*(f"a.1 basic.qos {number}" for number in range(400)))
    tried = late = 0
    best = len(everything)

    def shows(candidate: Sequence[Command]) -> bool:
        """Takes its time, as a broker does that has to be waited for."""
        nonlocal tried, late, best
        tried += 1
        late += time.monotonic() > began + limit
        until = time.monotonic() + 0.01
        while time.monotonic() < until:
            pass
        wanted = all(any(c.arguments["prefetch_count"] == number for c in candidate) for number in range(0, 400, 2))
        best = len(candidate) if wanted else best
        return wanted

    began = time.monotonic()
    shrunk = shrink(everything, shows, DEFAULT_DIALECT, limit)
    assert late <= 1, "the time may end on the way to one more try, and not to two"
    assert (tried == 0) == (limit == 0.0) or limit == 0.05, "a busy machine may take that before the first try"
    assert len(shrunk.commands) == best, "the best so far"
    assert shrunk.cut_short
    assert best > 200, "it had no time to finish"


def test_what_waits_is_tried_many_at_a_time_with_the_same_end() -> None:
    everything = commands(*(f"a.1 basic.qos {number}" for number in range(12)), "broker clock.wait 1")
    lock = threading.Lock()
    running: list[Sequence[Command]] = []
    at_once: list[int] = []

    def shows(candidate: Sequence[Command]) -> bool:
        with lock:
            running.append(candidate)
            at_once.append(len(running))
        limits = {command.arguments["prefetch_count"] for command in candidate if command.method == "basic.qos"}
        with lock:
            running.remove(candidate)
        return {2, 7} <= limits and candidate[-1].method == "clock.wait"

    found = shortest(everything, shows)
    assert lines(found) == ["a.1 basic.qos 2", "a.1 basic.qos 7", "broker clock.wait 1"]
    assert max(at_once) <= MOST_SET_ASIDE
