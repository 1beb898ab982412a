"""Messages of which it is not known whether they survived: the broker went down before anybody was told.

Such a message may be there, or may not (`Message.may_be_absent`), each for itself: it may be handed out, and nobody is
owed it. Whoever sees it proves that it is there; what is handed out from behind it, and a number that leaves no room for
it, prove that it is not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from amqpspec.model.broker.broker_state import BrokerState
from amqpspec.model.broker.queues import Message, Queue
from amqpspec.model.promises.queue_types import QueueType

#: The requirements of what is left when the broker was started again, and of what is not.
DURABLE, QUORUM, HELD, CONFIRMED, BINDINGS, EXCLUSIVE = (f"DURABLE-00{number}" for number in range(1, 7))
COMMITTED, OFFSETS, ORDER = "DURABLE-007", "DURABLE-008", "DURABLE-009"
COUNTS, AGE, SETTLED, FIRST, PAUSED = (f"DURABLE-01{number}" for number in range(5))
WITHOUT_CONSUMERS, LETTERS, SET_UP, EXPIRES, HALF_CONTENT = (f"DURABLE-01{number}" for number in range(5, 10))
GIVEN_BACK = "DURABLE-020"


def shown_by(queue: Queue, message: Message) -> Iterator[str]:
    """What it shows that a message is handed over that was there before; it is out of the queue."""
    if not message.survived_by:
        return
    yield message.survived_by
    if queue.type is QueueType.STREAM:
        return
    if not message.redelivered:
        yield FIRST
    if queue.messages and queue.messages[0].survived_by:
        yield ORDER
    if message.delivery_count:
        yield COUNTS
    if message.deaths:
        yield LETTERS


def flag_requirement(message: Message) -> str:
    """The requirement that a wrong flag of such a message breaks."""
    return message.survived_by if message.survived_by in (HELD, GIVEN_BACK) else FIRST


def absent_at_most(broker: BrokerState, queue: Queue) -> int:
    """How many of the ready messages need not be there."""
    return sum(message.may_be_absent for message in queue.messages) if broker.has_absent else 0


def is_certain(broker: BrokerState, queue: Queue) -> bool:
    """Is any message ready, for all that is known?"""
    return len(queue.messages) > absent_at_most(broker, queue)


def all_are_there(broker: BrokerState, queue: Queue) -> None:
    """The queue was seen to have all of them."""
    if broker.has_absent:
        for message in queue.messages:
            message.may_be_absent = False
        note_doubts(broker)


def none_is_there(broker: BrokerState, queue: Queue, places: Collection[int] | None = None) -> None:
    """The queue was seen to have none of them. `places`: of those there."""
    if not broker.has_absent:
        return
    absent = [
        message
        for place, message in enumerate(queue.messages)
        if message.may_be_absent and (places is None or place in places)
    ]
    for message in absent:
        queue.returned -= list(queue.messages).index(message) < queue.returned
        queue.messages.remove(message)
        queue.unproven.pop(message, None)
        queue.gone.append(message)
    note_doubts(broker)


def note_doubts(broker: BrokerState) -> None:
    """Is there still anything that may be absent?"""
    broker.has_absent = any(message.may_be_absent for queue in broker.queues.values() for message in queue.messages)


def may_hand_out(broker: BrokerState) -> bool:
    """May some consumer be handed a message that is not certain to be there?"""
    return broker.has_absent and any(queue.consumers and absent_at_most(broker, queue) for queue in broker.queues.values())
