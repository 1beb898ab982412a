"""Consumers of a quorum queue whose tag is that of a cancelled one which still holds something.

rabbit_fifo knows consumers by tag and channel as long as they hold messages, so it takes the new one for the one before
(rabbit_fifo:merge_consumer). The channel, which knows them apart, may not bear what comes of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, Unacknowledged
from amqpspec.model.broker.copying import copy_broker
from amqpspec.model.broker.hooks import Guest, arm, once_awake
from amqpspec.model.broker.limits import own_limit_holds
from amqpspec.model.broker.queues import Consumer
from amqpspec.model.defects.crash import break_some_time
from amqpspec.model.defects.service_queue import LEAD_TO_DELIVERIES, is_misplaced
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.methods import Method
from amqpspec.model.protocol.patterns import Printed
from amqpspec.model.rules.basic.requeue import former_consumers
from amqpspec.model.rules.basic.unseen import be_away
from amqpspec.model.rules.inputs import process

NAME = "merged consumers"


@dataclass(slots=True)
class MergedMemory:
    #: consumers whose tag is that of cancelled ones, and how much these held when the consumer was made
    held_before: dict[Consumer, int] = field(default_factory=dict)
    #: deliveries to a consumer that is gone, for which the queue has been seen to take another one of its tag
    inherited: set[Unacknowledged] = field(default_factory=set)


class MergedConsumers(Guest):
    """Knows the consumers that a quorum queue may take for a cancelled one of their tag. Armed when there is one."""

    name = NAME

    def new_memory(self) -> MergedMemory:
        return MergedMemory()

    def consumer_added(self, broker: Broker, consumer: Consumer) -> None:
        if consumer.queue.type is QueueType.QUORUM and (former := former_consumers(broker, consumer)):
            held = broker.channels[consumer.channel].unacknowledged.values()
            broker.remembered(NAME).held_before[consumer] = sum(entry.consumer in former for entry in held)
            arm(broker, NAME)

    @once_awake
    def consumer_goes(self, broker: Broker, consumer: Consumer, requirement: str) -> None:
        broker.remembered(NAME).held_before.pop(consumer, None)

    @once_awake
    def deliveries_settled(
        self, broker: Broker, channel: Channel, settled: Sequence[tuple[int, Unacknowledged]], requirement: str
    ) -> None:
        inherited = broker.remembered(NAME).inherited
        if inherited:
            inherited.difference_update(entry for _, entry in settled)

    @once_awake
    def channel_ended(self, broker: Broker, channel: Channel) -> None:
        memory: MergedMemory = broker.remembered(NAME)
        for consumer in [each for each in memory.held_before if each.channel == channel.key]:
            del memory.held_before[consumer]

    def fingerprint(self, broker: Broker) -> object:
        held_before = broker.remembered(NAME).held_before
        present = ((each, many) for each, many in held_before.items() if each in each.queue.consumers)
        return tuple(sorted((each.channel, each.tag, many) for each, many in present))


def _memory(broker: Broker) -> MergedMemory:
    memory: MergedMemory = broker.remembered(NAME)
    return memory


#: Where the queue is gone when the channel asks for what it takes for missing, it says so as well.
_MISSING = Printed("INTERNAL_ERROR", "", "INTERNAL_ERROR")


def _taken_for_former(broker: Broker) -> dict[Consumer, list[Unacknowledged]]:
    """Consumers of quorum queues whose tag was that of a cancelled one, and what is outstanding of that one's."""
    found: dict[Consumer, list[Unacknowledged]] = {}
    for channel in broker.channels.values() if _memory(broker).held_before else ():
        for entry in channel.unacknowledged.values():
            former = entry.consumer
            if former is None or entry.queue.type is not QueueType.QUORUM:
                continue
            consumer = channel.consumers.get(former.tag)
            if consumer is not None and consumer is not former and consumer.queue is entry.queue:
                found.setdefault(consumer, []).append(entry)
    return found


def _would_be_held_back(broker: Broker, method: Method) -> bool:
    """Is there, or does the input make, a consumer that would have no room if it counted those deliveries as well?"""
    if method.name == "basic.consume" and _names_former_tag(broker, method):
        return True
    for consumer, entries in _taken_for_former(broker).items():
        if not own_limit_holds(consumer) and 0 < _credit(broker, consumer) <= consumer.outstanding + len(entries):
            return True
    return False


def _credit(broker: Broker, consumer: Consumer) -> int:
    """A consumer without acknowledgements has credit as well, which its channel returns at once."""
    return broker.channels[consumer.channel].prefetch if consumer.no_ack else consumer.prefetch


def _inherit(broker: Broker) -> None:
    for consumer, entries in _taken_for_former(broker).items():
        consumer.prefetch = _credit(broker, consumer)
        for entry in entries:
            entry.consumer = consumer
            _memory(broker).inherited.add(entry)
            consumer.outstanding += 1
        broker.refresh(consumer.queue)


def _inherit_deliveries(broker: Broker, method: Method) -> None:
    _inherit(broker)
    process(broker, method)
    _inherit(broker)


def _merged(broker: Broker) -> dict[Consumer, list[Unacknowledged]]:
    """Such consumers, also those of which the broker has shown that it takes them for the former ones."""
    found = _taken_for_former(broker)
    inherited = _memory(broker).inherited
    for channel in broker.channels.values() if inherited else ():
        for entry in channel.unacknowledged.values():
            if entry in inherited and entry.consumer is not None and entry.consumer in entry.queue.consumers:
                found.setdefault(entry.consumer, []).append(entry)
    return found


def _served(broker: Broker) -> Iterator[Consumer]:
    """Those of them that are handed a message now, or would be by the priority that their place goes by."""
    for consumer in _merged(broker):
        if consumer.queue not in broker.deliverable:
            continue
        has_other_place = is_misplaced(broker, consumer) and not own_limit_holds(consumer)
        if has_other_place or consumer in broker.recipients(consumer.queue):
            yield consumer


def _serves_merged(broker: Broker, method: Method) -> bool:
    if method.name != "basic.consume" and not _merged(broker):
        return False
    if method.name == "basic.consume" and not _names_former_tag(broker, method):
        return False
    lawful = copy_broker(broker)
    process(lawful, method)
    return any(True for _ in _served(lawful))


def _names_former_tag(broker: Broker, method: Method) -> bool:
    channel = broker.open_channel(method)
    if channel is None:
        return False
    tag = method.arguments.get("consumer_tag", "")
    held = channel.unacknowledged.values()
    return bool(tag) and any(entry.consumer is not None and entry.consumer.tag == tag for entry in held)


def _lose_all(broker: Broker, consumer: Consumer) -> None:
    """The channel settles what it is handed before it looks at it, and with it what the former consumer holds.

    As these give their room back the queue may have handed it more before it hears of its end.
    """
    queue, channel = consumer.queue, broker.channels[consumer.channel]
    former = _merged(broker)[consumer]
    for tag, entry in list(channel.unacknowledged.items()):
        if entry in former:
            del channel.unacknowledged[tag]
            broker.note_gone(queue, entry.message, "CONSUME-016")
    number, limit = len(queue.messages), _credit(broker, consumer)
    for _ in range(min(number, max(limit - len(former), 0)) if limit else number):
        broker.note_gone(queue, broker.take(queue, 0), "CONSUME-016")
    for message in islice(queue.messages, limit):
        message.may_be_gone = True
        be_away(broker, consumer, message)
    broker.refresh(queue)


def _break_merged(broker: Broker, method: Method) -> None:
    process(broker, method)
    broker.fired("CONSUME-016")
    for consumer in list(_served(broker)):
        if consumer.no_ack:
            _lose_all(broker, consumer)
        break_some_time(broker, consumer.channel, _MISSING)


def _with_room_of_former(broker: Broker) -> Iterator[Consumer]:
    """Consumers with a limit, when which were made the cancelled one of their tag held more than that."""
    for consumer, many in _memory(broker).held_before.items():
        if consumer in consumer.queue.consumers and 0 < consumer.prefetch < many:
            yield consumer


def _keeps_room(broker: Broker, method: Method) -> bool:
    return any(True for _ in _with_room_of_former(broker))


def _keep_room(broker: Broker, method: Method) -> None:
    _inherit(broker)
    for consumer in list(_with_room_of_former(broker)):
        consumer.prefetch = _memory(broker).held_before[consumer]
        broker.refresh(consumer.queue)
    process(broker, method)


MERGED_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="reused-tag-inherits-deliveries",
        requirement="CONSUME-016",
        strength=Strength.CONVENTIONAL,
        statement="A quorum queue takes a consumer with the tag of a cancelled one for that one: what is still"
        " unacknowledged of the old one counts against the limit of the new one.",
        source="rabbit_fifo:merge_consumer, consumers are known by tag and channel as long as they hold messages",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        by_chance=True,
        methods=LEAD_TO_DELIVERIES,
        guest=NAME,
        begins_with=("basic.consume",),
        applies=_would_be_held_back,
        process=_inherit_deliveries,
    ),
    DefectTransition(
        name="reused-tag-keeps-room",
        requirement="CONSUME-016",
        strength=Strength.PROMISED,
        statement="A quorum queue's consumer with the tag of a cancelled one that holds more than the limit of the new"
        " one may have as many unacknowledged deliveries as that one held, once these are settled.",
        source="v3.10.9 rabbit_fifo:merge_consumer (the credit is 0, not less) and increase_credit, which knows no most"
        " until 4.0",
        dialects=("rabbitmq-3",),
        by_chance=True,
        methods=LEAD_TO_DELIVERIES,
        guest=NAME,
        applies=_keeps_room,
        process=_keep_room,
    ),
    DefectTransition(
        name="reused-tag-breaks-at-delivery",
        requirement="CONSUME-016",
        strength=Strength.PROMISED,
        statement="A delivery to a quorum consumer with the tag of a cancelled one, of which something is still"
        " unacknowledged, crashes the channel; the connection closes with 541.",
        source="3.10.8 rabbit_fifo_client:handle_delivery takes what the former consumer holds for missing;"
        " rabbit_channel:handle_deliver0, function_clause; v3.10.9 checkout is told where the consumer's numbers begin",
        dialects=("rabbitmq-3",),
        methods=("basic.consume", "basic.publish", "basic.ack", "basic.nack", "basic.reject", "basic.recover"),
        guest=NAME,
        begins_with=("basic.consume",),
        applies=_serves_merged,
        process=_break_merged,
    ),
)
