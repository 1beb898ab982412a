"""Departures (`model.departures`) of consumer tags that are used again on quorum queues."""

from __future__ import annotations

from collections.abc import Iterator

from model.alphabet import Frame
from model.broker import Broker
from model.copying import copy_broker
from model.departure import Departure, internal_error
from model.inputs import process
from model.queues import Consumer, QueueType
from model.state import ChannelState, ConnectionState


def break_some_time(broker: Broker, connection_name: str) -> None:
    """At some time from now on the connection closes with 541."""
    connection = broker.connections[connection_name]
    if connection.state is ConnectionState.OPEN:
        connection.owed.append(internal_error())
        broker.debtors[(connection.name, 0)] = None


def _heirs(broker: Broker) -> Iterator[Consumer]:
    """Consumers of quorum queues whose tag was that of a cancelled one of which deliveries are still outstanding."""
    for channel in broker.channels.values():
        for entry in channel.unacknowledged.values():
            former = entry.consumer
            if former is None or entry.queue.type is not QueueType.QUORUM:
                continue
            consumer = channel.consumers.get(former.tag)
            if consumer is not None and consumer is not former and consumer.queue is entry.queue:
                yield consumer


def _served(broker: Broker) -> Iterator[Consumer]:
    """Those of them that are handed a message now."""
    for consumer in _heirs(broker):
        if consumer.queue in broker.deliverable and consumer in broker.recipients(consumer.queue):
            yield consumer


def _serves_heir(broker: Broker, frame: Frame) -> bool:
    if frame.method != "basic.consume" and not any(True for _ in _heirs(broker)):
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


def _break_heir(broker: Broker, frame: Frame) -> None:
    process(broker, frame)
    broker.fired("CONSUME-016")
    for name in dict.fromkeys(consumer.channel[0] for consumer in list(_served(broker))):
        break_some_time(broker, name)


TAG_DEPARTURES: tuple[Departure, ...] = (
    Departure(
        name="reused-tag-breaks-at-delivery",
        requirement="CONSUME-016",
        statement="A delivery to a quorum consumer with the tag of a cancelled one, of which something is still"
        " unacknowledged, crashes the channel; the connection closes with 541.",
        source="3.10.8 rabbit_fifo_client:handle_delivery takes what the former consumer holds for missing;"
        " rabbit_channel:handle_deliver0, function_clause; v3.10.9 checkout is told where the consumer's numbers begin",
        dialects=("rabbitmq-3",),
        methods=("basic.consume", "basic.publish", "basic.ack", "basic.nack", "basic.reject", "basic.recover"),
        applies=_serves_heir,
        process=_break_heir,
    ),
)
