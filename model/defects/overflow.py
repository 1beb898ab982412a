"""Known defects (`model.defects.transitions`) of limits on queues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.dead_letter_headers import EXCHANGE, published_expiration, without_history
from amqpspec.model.broker.hooks import Guest, arm, once_awake
from amqpspec.model.broker.internal_events import (
    ChannelCrash,
    ConnectionTeardown,
    InternalEvent,
    MessageExpiry,
    Teardown,
)
from amqpspec.model.broker.overflow import BYTES, LENGTH, tell_publishers
from amqpspec.model.broker.queues import Message, Queue
from amqpspec.model.defects.transactions import forgetting_refusals
from amqpspec.model.defects.wrong_active_consumers import OFTEN_WRONG
from amqpspec.model.judging.known_defect import ANY_NUMBER, DefectTransition
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.content_size import properties_size
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.extensions.message_expiry import doubted_message
from amqpspec.model.rules.inputs import process

NAME = "octets of quorum queues"

#: What puts messages into queues, or back into them.
_BRING = (
    "basic.publish", "tx.commit", "basic.nack", "basic.reject", "basic.recover", "basic.recover-async",
    "channel.close", "connection.close", "socket.abort",
)  # fmt: skip
#: What does so if it is an error, which ends the channel.
_IF_WRONG = (*OFTEN_WRONG, "channel.open", "confirm.select", "tx.select", "tx.rollback")


@dataclass(slots=True)
class OctetsMemory:
    #: queues that are seen to count properties as well
    weighing: dict[Queue, None] = field(default_factory=dict)


class OctetsOfQuorumQueues(Guest):
    """Matters where a quorum queue has a limit in octets."""

    name = NAME

    def new_memory(self) -> OctetsMemory:
        return OctetsMemory()

    def queue_declared(self, broker: Broker, queue: Queue) -> None:
        if queue.type is QueueType.QUORUM and BYTES in queue.arguments:
            arm(broker, NAME)

    @once_awake
    def queue_deleted(self, broker: Broker, queue: Queue) -> None:
        broker.remembered(NAME).weighing.pop(queue, None)

    @once_awake
    def weight(self, broker: Broker, queue: Queue, message: Message) -> int | None:
        return stored_size(message) if queue in broker.remembered(NAME).weighing else None

    def fingerprint(self, broker: Broker) -> object:
        return tuple(sorted(queue.name for queue in broker.remembered(NAME).weighing))


def _memory(broker: Broker) -> OctetsMemory:
    memory: OctetsMemory = broker.remembered(NAME)
    return memory


def weigh_properties(broker: Broker, queue: Queue) -> None:
    """From now on the queue is known to count them."""
    _memory(broker).weighing[queue] = None


def stored_size(message: Message) -> int:
    """Octets of its properties and of its body."""
    return properties_size(_as_stored(message)) + message.sent_history + len(message.content.body)


def _as_stored(message: Message) -> Mapping[str, Any]:
    """Without the history of a dead letter, which is no part of the properties until it is delivered, and with the
    expiration that it had: what its deaths have changed is kept beside the message (mc_amqpl).
    """
    properties = message.content.properties
    if not message.deaths:
        return properties
    return without_history({**properties, "expiration": published_expiration(message.deaths)})


def _weight(messages: Iterator[Message]) -> int:
    return sum(properties_size(message.content.properties) + len(message.content.body) for message in messages)


def _at_stake(broker: Broker, event: Method | Teardown | MessageExpiry, queue: Queue) -> int:
    """Octets that the input may bring into the queue."""
    if isinstance(event, MessageExpiry):
        return _weight(_dead_letter(broker, event))
    if isinstance(event, Teardown) or (event.name not in _IF_WRONG and event.content is None):
        return _weight(_kept(broker, event))
    held = (each for channel in _channels(broker, event) for each in channel.unacknowledged.values())
    returning = _weight(each.message for each in held if each.queue is queue)
    content = event.content
    if content is None:
        return returning
    return returning + properties_size(content.properties) + len(content.body) + _weight(_driven_out(broker, queue))


def _driven_out(broker: Broker, queue: Queue) -> Iterator[Message]:
    """What one more message may drive out of other queues, as dead letters."""
    for other in broker.queues.values():
        has_limit = LENGTH in other.arguments or BYTES in other.arguments
        if has_limit and other is not queue and EXCHANGE in other.arguments:
            yield from other.messages


def _dead_letter(broker: Broker, event: MessageExpiry) -> Iterator[Message]:
    """The message that expires, where it may go to another queue then."""
    found = doubted_message(broker, event)
    if found is not None and EXCHANGE in found[0].arguments:
        yield found[1]


def _kept(broker: Broker, event: Method | Teardown) -> Iterator[Message]:
    """What the connection holds, and what its transactions have kept back."""
    for channel in _channels(broker, event):
        yield from (entry.message for entry in channel.unacknowledged.values())
        if channel.transaction is not None:
            yield from (publication.pattern for publication in channel.transaction.publications)


def _channels(broker: Broker, event: Method | Teardown) -> Iterator[Channel]:
    return (channel for channel in broker.channels.values() if channel.connection == event.connection)


def _overweight(broker: Broker, event: Method | Teardown | MessageExpiry) -> Iterator[Queue]:
    """Quorum queues that the input may bring beyond their limit, if properties count."""
    weighing = _memory(broker).weighing
    for queue in broker.queues.values():
        most = queue.arguments.get(BYTES)
        if most is None or queue.type is not QueueType.QUORUM or queue in weighing:
            continue
        at_stake = _at_stake(broker, event, queue)
        if at_stake and _weight(iter(queue.messages)) + at_stake > most:
            yield queue


def _brings_too_much(broker: Broker, event: Method | Teardown | MessageExpiry) -> bool:
    if not isinstance(event, MessageExpiry) and event.channel:
        channel = broker.open_channel(event)
        if channel is None:
            return False
    return any(True for _ in _overweight(broker, event))


def _weigh_properties(broker: Broker, event: Method | Teardown | MessageExpiry) -> None:
    for queue in list(_overweight(broker, event)):
        weigh_properties(broker, queue)
        # what it has now, it had before: whoever publishes to it has been told
        tell_publishers(broker, queue)
        for channel in broker.channels.values():
            if queue in channel.admissions:
                channel.admissions[queue] = channel.admissions[queue].heard
    if isinstance(event, InternalEvent) or event.name != "tx.commit":
        process(broker, event)
        return
    with forgetting_refusals(broker, (event.connection, event.channel)):  # the same brokers do that as well
        process(broker, event)


OVERFLOW_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="quorum-bytes-count-properties",
        requirement="OVERFLOW-004",
        strength=Strength.PROMISED,
        statement="A quorum queue with x-max-length-bytes counts the octets of the properties as well: two more for a"
        " message that has none.",
        source="v4.3.5 rabbit_fifo:maybe_enqueue, Size = MetaSize + BodySize of mc:size; guide: queue length limit,"
        " 'ignoring message properties and any overheads'",
        dialects=("rabbitmq-4.3",),
        methods=(*_BRING, *_IF_WRONG),
        internal_events=(ChannelCrash, ConnectionTeardown, MessageExpiry),
        guest=NAME,
        applies=_brings_too_much,
        process=_weigh_properties,
        # as many messages may seem to be there because what drives them out has not come yet
        shows_within=ANY_NUMBER,
    ),
)
