"""What a dead letter brings along of the deliveries that failed before: any number of them, told once, and no more."""

from __future__ import annotations

import pytest

from amqpspec.model.broker.queues import Message, Queue
from amqpspec.model.outputs.carried_counts import (
    counts_are_open,
    may_be_redelivered,
    note_brought,
    possible_counts,
    with_acquired_as_told,
)
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.field_types import Int64
from amqpspec.model.protocol.methods import Content


def letter(*, tries: int, failures: int = 0, is_first_here: bool = True) -> Message:
    return Message(
        Content({}, b"m"), "", "d", 0, deaths=({"reason": "rejected", "count": 1},), tries=tries, failures=failures,
        is_first_here=is_first_here,
    )  # fmt: skip


@pytest.fixture(params=QueueType)
def queue(request: pytest.FixtureRequest) -> Queue:
    return Queue("d", request.param)


def test_only_what_was_handed_out_before_may_come_as_a_redelivery(queue: Queue) -> None:
    assert may_be_redelivered(queue, letter(tries=1)) is (queue.type is not QueueType.STREAM)
    assert not may_be_redelivered(queue, letter(tries=0))
    assert not may_be_redelivered(queue, letter(tries=1, is_first_here=False)), "it came back to this queue"


def test_only_quorum_queues_tell_counts(queue: Queue) -> None:
    assert counts_are_open(queue, letter(tries=1)) is (queue.type is QueueType.QUORUM)
    assert not counts_are_open(queue, letter(tries=0))


def test_it_may_have_brought_any_number_along_and_the_dialects_is_tried_first() -> None:
    found = possible_counts(letter(tries=2, failures=1))
    assert found[0] == (1, 0, 0)
    assert {brought for brought, _, _ in found} == {0, 1, 2}
    assert {goes_on for brought, goes_on, _ in found if brought == 2} == {0, 2}


def test_what_its_first_delivery_told_may_go_on_counting_or_not() -> None:
    message = letter(tries=2)
    note_brought(message, (2, 0, 0), {"headers": {"x-acquired-count": Int64(1)}}, is_first=True)
    message.is_first_here, message.failures, message.delivery_count, message.acquired_count = False, 2, 1, 1
    found = possible_counts(message)
    assert set(found) == {(2, 1, 1), (2, 3, 1), (2, 1, 2), (2, 3, 2)}
    note_brought(message, found[0], {}, is_first=False)
    assert possible_counts(message) == [(2, 1, 1)], "the next delivery has told"


@pytest.mark.parametrize(("told", "is_taken"), [(0, True), (1, True), (2, True), (3, False), (-1, False), ("1", False)])
def test_it_may_have_been_acquired_as_often_as_it_was_handed_out(told: object, is_taken: bool) -> None:
    headers = {"x-acquired-count": Int64(told)}
    expected = with_acquired_as_told(letter(tries=2), {"headers": {"x-acquired-count": Int64(7)}}, {"headers": headers})
    assert (expected["headers"].get("x-acquired-count", 0) == told) is is_taken
