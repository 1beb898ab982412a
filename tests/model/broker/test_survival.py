"""Messages of which it is not known whether they are there."""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.queues import Message, Queue
from amqpspec.model.broker.survival import absent_at_most, all_are_there, is_certain, none_is_there, note_doubts
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.protocol.methods import EMPTY_CONTENT


def queue_of(doubts: str) -> tuple[Broker, Queue]:
    """A message for each letter: "?" may be absent."""
    broker, queue = Broker(dialect_named("rabbitmq-4.3")), Queue("q", durable=True)
    broker.queues["q"] = queue
    for letter in doubts:
        message = Message(EMPTY_CONTENT, "", "q", 0)
        broker.enqueue(queue, message)
        message.may_be_absent = letter == "?"
    broker.prove_all(queue)
    note_doubts(broker)
    return broker, queue


def test_numbers_are_ranges() -> None:
    broker, queue = queue_of("?m?")
    assert absent_at_most(broker, queue) == 2 and is_certain(broker, queue)
    assert broker.ready_range(queue) == (1, 3)
    broker, queue = queue_of("??")
    assert not is_certain(broker, queue) and broker.ready_range(queue) == (0, 2)


def test_all_or_none() -> None:
    broker, queue = queue_of("?m?")
    all_are_there(broker, queue)
    assert broker.ready_range(queue) == (3, 3) and not broker.has_doubts
    broker, queue = queue_of("?m?")
    none_is_there(broker, queue)
    assert broker.ready_range(queue) == (1, 1) and not broker.has_doubts


def test_those_in_front_only() -> None:
    broker, queue = queue_of("?m?")
    queue.returned = 2
    none_is_there(broker, queue, [0])
    assert len(queue.messages) == 2 and broker.has_doubts and queue.returned == 1


def test_who_is_handed_out_was_there() -> None:
    broker, queue = queue_of("?")
    assert not broker.take(queue, 0).may_be_absent and not broker.has_doubts
