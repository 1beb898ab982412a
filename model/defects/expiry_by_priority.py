"""The timer of a classic queue with priorities (rabbit_amqqueue_process).

deliver_or_enqueue looks at what is in front only if it is alone, and fetch looks at what is next only when it has taken
a message. So the queue sets no timer for a message that goes in front of others by its priority.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Unacknowledged
from amqpspec.model.broker.hooks import Guest, once_awake
from amqpspec.model.broker.queues import Consumer, Message, Queue
from amqpspec.model.broker.time_to_live import time_to_live
from amqpspec.model.judging.known_defect import OutputDefect
from amqpspec.model.outputs.mismatch import Mismatch, Mismatches
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.methods import Method

NAME = "expiry by priority"

LATE_BY_PRIORITY = "expired-priority-message-delivered"


@dataclass(slots=True)
class ExpiryMemory:
    #: messages that came to the front of others, and were not handed over since
    overlooked: dict[Message, None] = field(default_factory=dict)
    #: the one that is being handed over after its time
    late: Message | None = None


class ExpiryByPriority(Guest):
    """Knows for which messages there is no timer."""

    name = NAME

    def new_memory(self) -> ExpiryMemory:
        return ExpiryMemory()

    def message_enqueued(self, broker: Broker, queue: Queue, message: Message) -> None:
        if queue.type is not QueueType.CLASSIC or len(queue.messages) < 2 or queue.messages[0] is not message:
            return
        if time_to_live(broker.dialect, queue, message) is not None:
            broker.remembered(NAME).overlooked[message] = None

    @once_awake
    def message_handed_over(
        self, broker: Broker, queue: Queue, message: Message, consumer: Consumer | None, entry: Unacknowledged | None
    ) -> None:
        broker.remembered(NAME).overlooked.pop(message, None)

    @once_awake
    def message_expired(self, broker: Broker, queue: Queue, message: Message) -> None:
        if message in broker.remembered(NAME).overlooked:
            broker.bookkeeping.refuted.add(LATE_BY_PRIORITY)

    @once_awake
    def came_to_rest(self, broker: Broker) -> None:
        memory: ExpiryMemory = broker.remembered(NAME)
        if memory.overlooked:
            ready = {each for queue in broker.queues.values() for each in queue.messages}
            memory.overlooked = {each: None for each in memory.overlooked if each in ready}

    @once_awake
    def is_overlooked(self, broker: Broker, message: Message) -> bool | None:
        return message in broker.remembered(NAME).overlooked or None

    @once_awake
    def take_late(self, broker: Broker, message: Message) -> bool | None:
        memory: ExpiryMemory = broker.remembered(NAME)
        late, memory.late = memory.late, None
        return late is message or None

    def fingerprint(self, broker: Broker) -> object:
        return None  # it follows from the state


def _memory(broker: Broker) -> ExpiryMemory:
    memory: ExpiryMemory = broker.remembered(NAME)
    return memory


def _hand_over_late(broker: Broker, method: Method, mismatch: Mismatch) -> Mismatches | None:
    message = mismatch.about
    if not isinstance(message, Message) or NAME not in broker.memories:
        return None
    memory = _memory(broker)
    if message not in memory.overlooked:
        return None
    memory.late = message
    return (replace(mismatch, fatal=False, defect=LATE_BY_PRIORITY),)


EXPIRY_DEFECTS: tuple[OutputDefect, ...] = (
    OutputDefect(
        name=LATE_BY_PRIORITY,
        requirement="TTL-001",
        strength=Strength.PROMISED,
        statement="A message that goes in front of others by its priority does not expire in a classic queue: it stays,"
        " and is handed over however late.",
        source="rabbit_amqqueue_process:deliver_or_enqueue looks at what is in front only when it is alone, and fetch"
        " takes a message before it looks",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        goes_on=_hand_over_late,
        is_observed_again=True,
    ),
)
