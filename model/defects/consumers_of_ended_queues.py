"""Consumers of quorum queues and streams that are deleted, on channels whose clients are not told of such an end.

RabbitMQ up to 3.13: a channel that hears of the end of a queue makes the consumers that were there consumers of the
queue which has the name by then, as it does when a queue fails over (rabbit_channel:handle_consuming_queue_down_or_eol,
basic_consume of all that are to recover).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.hooks import Guest, arm, once_awake
from amqpspec.model.broker.owed import Expected
from amqpspec.model.broker.queues import Consumer, Queue
from amqpspec.model.defects import classic_active_consumer
from amqpspec.model.defects.stalled_queues import is_stalled, stall
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.methods import ChannelKey, Method
from amqpspec.model.rules.connection.closing import break_connection
from amqpspec.model.rules.inputs import process

NAME = "consumers of ended queues"


@dataclass(slots=True)
class EndedQueuesMemory:
    #: consumers of which the client was not told that they are gone, by channel and tag
    untold: dict[ChannelKey, dict[str, Consumer]] = field(default_factory=dict)
    #: quorum queues whose messages consumers that nobody sees may take and give back, any number of times
    serving_unseen: dict[Queue, None] = field(default_factory=dict)


class ConsumersOfEndedQueues(Guest):
    """Keeps the consumers whose end the client was not told of. Armed when there is one."""

    name = NAME

    def new_memory(self) -> EndedQueuesMemory:
        return EndedQueuesMemory()

    def queue_deleted(self, broker: Broker, queue: Queue) -> None:
        memory: EndedQueuesMemory = broker.remembered(NAME)
        memory.serving_unseen.pop(queue, None)
        if queue.type is QueueType.CLASSIC:
            return
        for consumer in sorted(queue.consumers, key=lambda each: (each.channel, each.tag)):
            if not broker.connections[consumer.channel[0]].is_told_of_cancels:
                memory.untold.setdefault(consumer.channel, {})[consumer.tag] = consumer
                arm(broker, NAME)

    @once_awake
    def consumer_added(self, broker: Broker, consumer: Consumer) -> None:
        broker.remembered(NAME).untold.get(consumer.channel, {}).pop(consumer.tag, None)

    @once_awake
    def cancel_asked(self, broker: Broker, channel: Channel, tag: str) -> None:
        broker.remembered(NAME).untold.get(channel.key, {}).pop(tag, None)

    @once_awake
    def channel_ended(self, broker: Broker, channel: Channel) -> None:
        broker.remembered(NAME).untold.pop(channel.key, None)

    @once_awake
    def serves_unseen(self, broker: Broker, queue: Queue) -> bool | None:
        return True if queue in broker.remembered(NAME).serving_unseen else None

    def fingerprint(self, broker: Broker) -> object:
        memory: EndedQueuesMemory = broker.remembered(NAME)
        untold = ((key, tag, each.queue.name) for key, those in memory.untold.items() for tag, each in those.items())
        return tuple(sorted(untold)), tuple(sorted(queue.name for queue in memory.serving_unseen))


def _memory(broker: Broker) -> EndedQueuesMemory:
    memory: EndedQueuesMemory = broker.remembered(NAME)
    return memory


def untold_of(broker: Broker, channel: Channel) -> dict[str, Consumer]:
    """The channel's consumers, by tag, that ended with their queues without the client being told."""
    return _memory(broker).untold.get(channel.key, {}) if NAME in broker.memories else {}


def note_serving_unseen(broker: Broker, queue: Queue) -> None:
    """Consumers that nobody sees may take its messages from now on."""
    _memory(broker).serving_unseen[queue] = None


def _next_queues(broker: Broker) -> Iterator[Queue]:
    """Queues that may have got the consumers of the deleted ones of their names."""
    for channel in broker.channels.values():
        for consumer in untold_of(broker, channel).values():
            queue = broker.queues.get(consumer.queue.name)
            if queue is None or queue.type is QueueType.STREAM or is_stalled(broker, queue):
                continue
            if queue.owner in (None, channel.connection):
                yield queue


def _serve_unseen(broker: Broker, method: Method) -> None:
    """Who is served from now on, and with what, nobody can tell."""
    for queue in list(_next_queues(broker)):
        queue.still_counted += 1
        if queue.type is QueueType.QUORUM:
            note_serving_unseen(broker, queue)
        stall(broker, [queue])
        arm(broker, classic_active_consumer.NAME)
    process(broker, method)


def _found_again(broker: Broker) -> Iterator[tuple[Consumer, Queue]]:
    """Consumers of deleted queues that may be those of the classic queue which has the name now."""
    for queue in _next_queues(broker):
        if queue.type is QueueType.CLASSIC:
            for channel in broker.channels.values():
                untold = untold_of(broker, channel).values()
                yield from ((consumer, queue) for consumer in untold if consumer.queue.name == queue.name)


def _serve_again(broker: Broker, method: Method) -> None:
    for former, queue in list(_found_again(broker)):
        channel = broker.channels[former.channel]
        if untold_of(broker, channel).pop(former.tag, None) is None:
            continue  # several of one queue are found several times
        consumer = Consumer(
            former.tag, former.channel, queue, former.no_ack, former.prefetch, former.exclusive, former.arguments,
            created=broker.stamp, announced=True, stamp=broker.stamp, prefetch_from=former.prefetch_from,
        )  # fmt: skip
        channel.consumers[former.tag] = consumer
        queue.consumers.append(consumer)
        broker.elect(queue, "SAC-001")
        broker.refresh(queue)
    process(broker, method)


def _uses_tag_of_gone_consumer(broker: Broker, method: Method) -> bool:
    """Is it the tag of a consumer that ended with its queue, of which the client was not told?"""
    channel = broker.open_channel(method)
    if channel is None:
        return False
    return method.arguments.get("consumer_tag", "") in untold_of(broker, channel)


def _refuse_tag(broker: Broker, method: Method) -> None:
    broker.stamp += 1
    broker.fired("CANCEL-010")
    text = f"NOT_ALLOWED - attempt to reuse consumer tag '{method.arguments['consumer_tag']}'"
    arguments = {"reply_code": 530, "reply_text": text, "class_id": 60, "method_id": 20}
    close = Expected("connection.close", arguments, ("CHAN-007",), counted=False)
    break_connection(broker, broker.channels[(method.connection, method.channel)], close)


ENDED_QUEUE_TAG_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="next-queue-keeps-tag",
        requirement="CANCEL-010",
        strength=Strength.PROMISED,
        statement="The tag of a consumer that ended with its queue, of which the client is not told, is refused as one"
        " in use if a queue of that name was declared again right away.",
        source="v3.10.9 rabbit_channel:handle_consuming_queue_down_or_eol, basic_consume of all that are to recover",
        dialects=("rabbitmq-3",),
        by_chance=True,
        methods=("basic.consume",),
        guest=NAME,
        applies=_uses_tag_of_gone_consumer,
        process=_refuse_tag,
    ),
)

ENDED_QUEUE_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="next-queue-gets-consumers",
        requirement="CANCEL-010",
        strength=Strength.PROMISED,
        statement="A channel that hears of the end of a quorum queue when a queue of that name exists again makes its"
        " consumers consumers of that one, which hands them messages that nobody sees.",
        source="v3.10.9 rabbit_channel:handle_consuming_queue_down_or_eol, basic_consume of all that are to recover;"
        " handle_cast queue_event, eol: drops the state of the new queue with that of the old",
        dialects=("rabbitmq-3",),
        by_chance=True,
        methods=("basic.publish", "basic.get", "basic.consume", "queue.declare", "queue.purge"),
        guest=NAME,
        applies=lambda broker, method: any(True for _ in _next_queues(broker)),
        process=_serve_unseen,
    ),
    DefectTransition(
        name="next-queue-serves-consumers",
        requirement="CANCEL-010",
        strength=Strength.PROMISED,
        statement="A channel that hears of the end of a quorum queue or a stream when there is a classic queue of that"
        " name makes its consumers consumers of that one.",
        source="v3.10.9 rabbit_channel:handle_consuming_queue_down_or_eol, basic_consume of all that are to recover",
        dialects=("rabbitmq-3",),
        by_chance=True,
        methods=("basic.publish", "basic.get", "basic.consume", "queue.declare", "queue.purge"),
        guest=NAME,
        applies=lambda broker, method: any(True for _ in _found_again(broker)),
        process=_serve_again,
    ),
)
