"""Streams as a channel reads and settles them (rabbit_stream_queue, whose state is kept by the channel's process)."""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Unacknowledged
from amqpspec.model.broker.copying import copy_broker
from amqpspec.model.broker.hooks import Guest, arm
from amqpspec.model.broker.owed import Expected
from amqpspec.model.broker.queues import UNKNOWN_TAG, Consumer
from amqpspec.model.defects import delivery_numbers
from amqpspec.model.defects.crash import crash_with
from amqpspec.model.defects.settled_tags import settles
from amqpspec.model.defects.stream_settlement import process_refusing
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.versions import versions
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.extensions.stream_consuming import OFFSET, offset_has_wrong_type
from amqpspec.model.rules.inputs import process

NAME = "stream readers"

SETTLING = ("basic.ack", "basic.nack", "basic.reject", "basic.recover", "basic.recover-async")


class StreamReaders(Guest):
    """Armed when a stream is consumed from."""

    name = NAME

    def consumer_added(self, broker: Broker, consumer: Consumer) -> None:
        if consumer.queue.type is QueueType.STREAM:
            arm(broker, NAME)


def _of_deleted_queues(broker: Broker, method: Method) -> list[Unacknowledged]:
    """Deliveries of deleted queues that the input settles: now streams have their names, and the channel knows them."""
    channel = broker.open_channel(method)
    if channel is None:
        return []
    streams = {name for name, kind in channel.known_types.items() if kind is QueueType.STREAM and name in broker.queues}
    if method.name == "tx.commit" and channel.transaction is not None:
        # it publishes first, and so comes to know them
        published = {queue.name for each in channel.transaction.publications for queue in each.routes.queues}
        streams |= {name for name in published & broker.queues.keys() if broker.queues[name].type is QueueType.STREAM}
    return [
        entry
        for tag, entry in channel.unacknowledged.items()
        if entry.queue.deleted and entry.queue.name in streams and settles(channel, method, tag)
    ]


def _settles_at_stream(broker: Broker, method: Method) -> bool:
    return bool(_of_deleted_queues(broker, method))


def _settle_at_stream(broker: Broker, method: Method) -> None:
    for entry in _of_deleted_queues(broker, method):
        entry.queue = broker.queues[entry.queue.name]
    process_refusing(broker, method)


def _is_read_by_channel(broker: Broker, method: Method) -> bool:
    """Does the channel, which is to have one more consumer of the stream, read it already?"""
    channel = broker.open_channel(method)
    if channel is None or method.arguments.get("nowait"):
        return False
    queue = broker.queues.get(method.arguments.get("queue", "") or channel.last_queue or "")
    if queue is None or queue.type is not QueueType.STREAM:
        return False
    return any(consumer.queue is queue for consumer in channel.consumers.values())


def _serve_before_consume_ok(broker: Broker, method: Method) -> None:
    former = broker.serial
    process(broker, method)
    channel = broker.channels[(method.connection, method.channel)]
    tag = method.arguments.get("consumer_tag", "")
    if broker.serial > former:
        tag = f"{UNKNOWN_TAG}{broker.serial}"
    consumer = channel.consumers.get(tag)
    if consumer is not None:
        consumer.announced = True


def _has_offset_of_wrong_type(broker: Broker, method: Method) -> bool:
    table = method.arguments.get("arguments") or {}
    if {"x-priority", "x-consumer-timeout"} & table.keys() or not offset_has_wrong_type(table):
        return False
    channel = broker.open_channel(method)
    if channel is None or not channel.prefetch or method.arguments.get("no_ack"):
        return False
    queue = broker.queues.get(method.arguments.get("queue", "") or channel.last_queue or "")
    if queue is None or queue.type is not QueueType.STREAM or channel.channel_prefetch:
        return False
    return method.arguments.get("consumer_tag", "") not in channel.consumers


def _has_offset_without_number(broker: Broker, method: Method) -> bool:
    """Is the offset a text that the law refuses, and that begins with no digit?"""
    offset = (method.arguments.get("arguments") or {}).get(OFFSET)
    if not isinstance(offset, str) or offset[:1].isdecimal() or broker.open_channel(method) is None:
        return False
    # whether it is the offset that is refused is known only when the rule has been asked
    lawful = copy_broker(broker)
    process(lawful, method)
    channel = lawful.channels[(method.connection, method.channel)]
    return any(isinstance(owed, Expected) and "STREAM-005" in owed.requirements for owed in channel.owed)


STREAM_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="next-stream-refuses-settlement",
        requirement="ACK-012",
        strength=Strength.CONVENTIONAL,
        statement="Giving back a delivery of a deleted queue is refused with 540, or crashes the channel if by"
        " basic.recover, when the channel has dealt with a new stream of its name.",
        source="v3.10.9 rabbit_channel:foreach_per_queue (settles by the queue's name), rabbit_stream_queue:settle",
        dialects=("rabbitmq-3",),
        by_chance=True,
        methods=(*SETTLING[1:], "tx.commit"),
        guest=delivery_numbers.NAME,
        applies=_settles_at_stream,
        process=_settle_at_stream,
    ),
    DefectTransition(
        name="stream-serves-before-consume-ok",
        requirement="CONSUME-001",
        strength=Strength.CONVENTIONAL,
        statement="When news of a stream that a channel reads crosses a basic.consume of a further consumer there, that"
        " one is handed messages before its consume-ok.",
        source="rabbit_stream_queue:consume casts consume-ok to its own channel, behind what is there already;"
        " handle_event osiris_offset serves all readers",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        by_chance=True,
        methods=("basic.consume",),
        guest=NAME,
        applies=_is_read_by_channel,
        process=_serve_before_consume_ok,
    ),
    DefectTransition(
        name="stream-offset-of-wrong-type-breaks",
        requirement="STREAM-005",
        strength=Strength.CONVENTIONAL,
        statement="An x-stream-offset that is neither number, time nor text crashes the channel; the connection"
        " closes with 541.",
        source="rabbit_stream_queue:parse_offset_arg (takes any value), osiris:init_reader",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=("basic.consume",),
        applies=_has_offset_of_wrong_type,
        process=crash_with("STREAM-005"),
    ),
    DefectTransition(
        name="stream-offset-text-breaks",
        requirement="STREAM-005",
        strength=Strength.CONVENTIONAL,
        statement="An x-stream-offset that is text, and neither a word nor begins with a digit, crashes the channel;"
        " the connection closes with 541.",
        source="v4.0.5 rabbit_amqqueue:check_max_age, list_to_integer of no digits; mended in 4.2.7 and 4.3.1",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=("basic.consume",),
        applies=_has_offset_without_number,
        process=crash_with("STREAM-005"),
        versions=(versions("3.10.0", "4.2.6"), versions("4.3.0", "4.3.0")),
    ),
)
