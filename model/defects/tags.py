"""Known defects (`model.defects.transitions`) of consumer tags that are used again on quorum queues."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.copying import copy_broker
from amqpspec.model.broker.hooks import Guest, arm
from amqpspec.model.broker.limits import own_limit_holds
from amqpspec.model.broker.queues import Consumer
from amqpspec.model.broker.state import Channel, ChannelState, ConnectionState, Expected, Unacknowledged
from amqpspec.model.defects.crash import internal_error
from amqpspec.model.defects.dispatch import holds_something
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import ChannelKey, Frame
from amqpspec.model.protocol.patterns import Printed
from amqpspec.model.rules.inputs import process
from amqpspec.model.rules.unseen import be_away

MERGED_CONSUMERS = "merged consumers"
SERVICE_QUEUE = "service queue"


class MergedConsumers(Guest):
    """Knows when a quorum queue may take a consumer for a cancelled one of its tag."""

    name = MERGED_CONSUMERS

    def consumer_goes(self, broker: Broker, consumer: Consumer, requirement: str) -> None:
        """Another one of its tag may come while it still holds something."""
        if consumer.queue.type is QueueType.QUORUM and holds_something(broker, consumer):
            arm(broker, MERGED_CONSUMERS)

    def delivery_timed_out(self, broker: Broker, channel: Channel, entry: Unacknowledged) -> None:
        """Its consumer goes with the next one of its tag."""
        if entry.consumer is not None and holds_something(broker, entry.consumer):
            arm(broker, MERGED_CONSUMERS)


class ServiceQueue(Guest):
    """Knows when a quorum queue may serve a consumer at the place of a cancelled one of its tag."""

    name = SERVICE_QUEUE

    def consumer_goes(self, broker: Broker, consumer: Consumer, requirement: str) -> None:
        if consumer.queue.type is not QueueType.QUORUM or consumer.queue.single_active_consumer:
            return
        if requirement.startswith("CANCEL"):
            arm(broker, SERVICE_QUEUE)


#: Where the queue is gone when the channel asks for what it takes for missing, it says so as well.
_MISSING = Printed("INTERNAL_ERROR", "", "INTERNAL_ERROR")


def break_some_time(broker: Broker, channel: ChannelKey, reply_text: object = "INTERNAL_ERROR") -> None:
    """At some time from now on the channel crashes and its connection closes with 541; before that the others end."""
    connection = broker.connections[channel[0]]
    if connection.state is not ConnectionState.OPEN:
        return
    broker.teardowns.insert(0, channel)  # ahead of its connection, which another one may have broken as well
    if not any(isinstance(owed, Expected) and owed.method == "connection.close" for owed in connection.owed):
        broker.teardowns.append((connection.name, 0))
        connection.owed.append(internal_error(reply_text))
        broker.debtors[(connection.name, 0)] = None


def _bequests(broker: Broker) -> dict[Consumer, list[Unacknowledged]]:
    """Consumers of quorum queues whose tag was that of a cancelled one, and what is outstanding of that one's."""
    found: dict[Consumer, list[Unacknowledged]] = {}
    for channel in broker.channels.values():
        for entry in channel.unacknowledged.values():
            former = entry.consumer
            if former is None or entry.queue.type is not QueueType.QUORUM:
                continue
            consumer = channel.consumers.get(former.tag)
            if consumer is not None and consumer is not former and consumer.queue is entry.queue:
                found.setdefault(consumer, []).append(entry)
    return found


def _would_be_held_back(broker: Broker, frame: Frame) -> bool:
    """Is there, or does the input make, a consumer that would have no room if it counted those deliveries as well?"""
    if frame.method == "basic.consume" and _names_former_tag(broker, frame):
        return True
    for consumer, entries in _bequests(broker).items():
        if not own_limit_holds(consumer) and 0 < _credit(broker, consumer) <= consumer.outstanding + len(entries):
            return True
    return False


def _credit(broker: Broker, consumer: Consumer) -> int:
    """A consumer without acknowledgements has credit as well, which its channel returns at once."""
    return broker.channels[consumer.channel].prefetch if consumer.no_ack else consumer.prefetch


def _inherit(broker: Broker) -> None:
    for consumer, entries in _bequests(broker).items():
        consumer.prefetch = _credit(broker, consumer)
        for entry in entries:
            entry.consumer, entry.is_inherited = consumer, True
            consumer.outstanding += 1
        broker.refresh(consumer.queue)


def _inherit_deliveries(broker: Broker, frame: Frame) -> None:
    _inherit(broker)
    process(broker, frame)
    _inherit(broker)


def _heirs(broker: Broker) -> dict[Consumer, list[Unacknowledged]]:
    """Such consumers, also those of which the broker has shown that it takes them for the former ones."""
    found = _bequests(broker)
    for channel in broker.channels.values():
        for entry in channel.unacknowledged.values():
            if entry.is_inherited and entry.consumer is not None and entry.consumer in entry.queue.consumers:
                found.setdefault(entry.consumer, []).append(entry)
    return found


def _served(broker: Broker) -> Iterator[Consumer]:
    """Those of them that are handed a message now, or would be by the priority that their place goes by."""
    for consumer in _heirs(broker):
        if consumer.queue not in broker.deliverable:
            continue
        is_misplaced = consumer.former_priority is not None and not own_limit_holds(consumer)
        if is_misplaced or consumer in broker.recipients(consumer.queue):
            yield consumer


def _serves_heir(broker: Broker, frame: Frame) -> bool:
    if frame.method != "basic.consume" and not _heirs(broker):
        return False
    if frame.method == "basic.consume" and not _names_former_tag(broker, frame):
        return False
    lawful = copy_broker(broker)
    process(lawful, frame)
    return any(True for _ in _served(lawful))


def _names_former_tag(broker: Broker, frame: Frame) -> bool:
    channel = broker.channels.get((frame.connection, frame.channel))
    if channel is None or channel.state is not ChannelState.OPEN:
        return False
    tag = frame.arguments.get("consumer_tag", "")
    held = channel.unacknowledged.values()
    return bool(tag) and any(entry.consumer is not None and entry.consumer.tag == tag for entry in held)


def _lose_all(broker: Broker, consumer: Consumer) -> None:
    """The channel settles what it is handed before it looks at it, and with it what the former consumer holds.

    As these give their room back the queue may have handed it more before it hears of its end.
    """
    queue, channel = consumer.queue, broker.channels[consumer.channel]
    former = _heirs(broker)[consumer]
    for tag, entry in list(channel.unacknowledged.items()):
        if entry in former:
            del channel.unacknowledged[tag]
            broker.drop(queue, entry.message, "CONSUME-016")
    number, limit = len(queue.messages), _credit(broker, consumer)
    for _ in range(min(number, max(limit - len(former), 0)) if limit else number):
        broker.drop(queue, broker.take(queue, 0), "CONSUME-016")
    for message in islice(queue.messages, limit):
        message.may_be_gone = True
        be_away(broker, consumer, message)
    broker.refresh(queue)


def _break_heir(broker: Broker, frame: Frame) -> None:
    process(broker, frame)
    broker.fired("CONSUME-016")
    for consumer in list(_served(broker)):
        if consumer.no_ack:
            _lose_all(broker, consumer)
        break_some_time(broker, consumer.channel, _MISSING)


_LEAD_TO_DELIVERIES = (
    "basic.publish", "basic.consume", "basic.ack", "basic.nack", "basic.reject", "basic.recover",
    "basic.recover-async", "basic.cancel", "channel.close", "connection.close", "socket.abort",
)  # fmt: skip


def _misplaced(broker: Broker) -> Iterator[Consumer]:
    for queue in broker.queues.values():
        if queue.type is QueueType.QUORUM:
            yield from (consumer for consumer in queue.consumers if consumer.former_priority is not None)


def _may_be_misplaced(broker: Broker, frame: Frame) -> bool:
    return any(True for _ in _misplaced(broker)) or (
        frame.method == "basic.consume"
        and any(
            (frame.connection, frame.channel) == channel and tag == frame.arguments.get("consumer_tag")
            for queue in broker.queues.values()
            for channel, tag in queue.former_priorities
        )
    )


def _keep_place(broker: Broker, frame: Frame) -> None:
    for is_before in (True, False):
        for consumer in list(_misplaced(broker)):
            consumer.served_as, consumer.former_priority = consumer.former_priority, None
            broker.refresh(consumer.queue)
        if is_before:
            process(broker, frame)


def _with_room_of_former(broker: Broker) -> Iterator[Consumer]:
    """Consumers with a limit, when which were made the cancelled one of their tag held more than that."""
    for queue in broker.queues.values():
        if queue.type is QueueType.QUORUM:
            yield from (each for each in queue.consumers if 0 < each.prefetch < each.bequeathed)


def _keeps_room(broker: Broker, frame: Frame) -> bool:
    return any(True for _ in _with_room_of_former(broker))


def _keep_room(broker: Broker, frame: Frame) -> None:
    _inherit(broker)
    for consumer in list(_with_room_of_former(broker)):
        consumer.prefetch = consumer.bequeathed
        broker.refresh(consumer.queue)
    process(broker, frame)


TAG_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="reused-tag-inherits-deliveries",
        requirement="CONSUME-016",
        statement="A quorum queue takes a consumer with the tag of a cancelled one for that one: what is still"
        " unacknowledged of the old one counts against the limit of the new one.",
        source="rabbit_fifo:merge_consumer, consumers are known by tag and channel as long as they hold messages",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=_LEAD_TO_DELIVERIES,
        guest=MERGED_CONSUMERS,
        applies=_would_be_held_back,
        process=_inherit_deliveries,
    ),
    DefectTransition(
        name="reused-tag-keeps-room",
        requirement="CONSUME-016",
        statement="A quorum queue's consumer with the tag of a cancelled one that holds more than the limit of the new"
        " one may have as many unacknowledged deliveries as that one held, once these are settled.",
        source="v3.10.9 rabbit_fifo:merge_consumer (the credit is 0, not less) and increase_credit, which knows no most"
        " until 4.0",
        dialects=("rabbitmq-3",),
        methods=_LEAD_TO_DELIVERIES,
        guest=MERGED_CONSUMERS,
        applies=_keeps_room,
        process=_keep_room,
    ),
    DefectTransition(
        name="reused-tag-breaks-at-delivery",
        requirement="CONSUME-016",
        statement="A delivery to a quorum consumer with the tag of a cancelled one, of which something is still"
        " unacknowledged, crashes the channel; the connection closes with 541.",
        source="3.10.8 rabbit_fifo_client:handle_delivery takes what the former consumer holds for missing;"
        " rabbit_channel:handle_deliver0, function_clause; v3.10.9 checkout is told where the consumer's numbers begin",
        dialects=("rabbitmq-3",),
        methods=("basic.consume", "basic.publish", "basic.ack", "basic.nack", "basic.reject", "basic.recover"),
        guest=MERGED_CONSUMERS,
        applies=_serves_heir,
        process=_break_heir,
    ),
    DefectTransition(
        name="reused-tag-keeps-place",
        requirement="PRIORITY-001",
        statement="A quorum queue's consumer with the tag of a cancelled one has that one's place among those to be"
        " served, by its x-priority, until it was served once.",
        source="rabbit_fifo:maybe_queue_consumer, in 3.10 uniq_queue_in: the key of the cancelled one is still in"
        " service_queue; in 4.0 and 4.3 only if that one still holds messages",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=_LEAD_TO_DELIVERIES,
        guest=SERVICE_QUEUE,
        applies=_may_be_misplaced,
        process=_keep_place,
    ),
)
