"""Consumers whose tag is that of a cancelled one which some process of the broker still knows.

rabbit_fifo knows consumers by tag and channel as long as they hold messages, and takes the new one for the one before
(rabbit_fifo:merge_consumer); rabbit_limiter and rabbit_stream_queue give credit to whoever has the tag. With a single
active consumer rabbit_fifo keeps those who wait in a list, all others, cancelled ones among them, in a map by tag and
channel: what gets into the wrong one of these is served wrongly, or not at all.
"""

from __future__ import annotations

from functools import partial

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, TimedOut, Unacknowledged
from amqpspec.model.broker.queues import Queue
from amqpspec.model.defects.situations import ENDS, at_queue, named_consumer, named_queue, single_active
from amqpspec.model.judging.windows import CRASH, SERVICE, Part, Scope, Window, of_any, of_connection
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.verdict import Shape
from amqpspec.model.protocol.methods import Method, TraceEvent
from amqpspec.model.rules.basic.requeue import former_consumers


def _held_by_tag(channel: Channel, method: Method) -> list[Queue]:
    """The queues of what the channel holds that was handed to a consumer of that tag."""
    tag = method.arguments.get("consumer_tag", "")
    held: list[Unacknowledged | TimedOut] = [*channel.unacknowledged.values(), *channel.timed_out.values()]
    return [each.queue for each in held if tag and each.consumer is not None and each.consumer.tag == tag]


@at_queue(QueueType.QUORUM)
def _reuses_tag_at_quorum_queue(broker: Broker, channel: Channel, queue: Queue, method: Method) -> bool:
    return named_consumer(broker, method) is None and queue in _held_by_tag(channel, method)


def _reuses_tag_beside_active(broker: Broker, method: Method) -> Scope | None:
    found = named_queue(broker, method)
    return _reuses_tag_at_quorum_queue(broker, method) if found and found[1].single_active_consumer else None


@at_queue(QueueType.CLASSIC, QueueType.STREAM)
def _reuses_tag_with_credit(broker: Broker, channel: Channel, queue: Queue, method: Method) -> bool:
    return queue.name in {each.name for each in _held_by_tag(channel, method)}


def _ends_waiting_of_same_tag(broker: Broker, event: TraceEvent) -> Scope | None:
    """A consumer that waits is cancelled, or ends with its channel, and an earlier one of its tag holds something."""
    waiting = (
        consumer
        for queue in single_active(broker)
        for consumer in queue.consumers
        if consumer is not queue.active.consumer and consumer.channel[0] == event.connection
    )
    return of_any(broker, (consumer.queue for consumer in waiting if former_consumers(broker, consumer)))


_consuming = partial(Window, kinds=("basic.consume",))
_by_chance = partial(_consuming, by_chance=True)

REUSED_TAGS: tuple[Window, ...] = (
    _consuming(
        name="reused-tag-gains-room",
        requirement="CONSUME-016",
        statement="Settling what a cancelled consumer of a classic queue or a stream holds lets a new consumer of its"
        " tag be handed more than its limit.",
        source="rabbit_limiter:ack_from_queue, rabbit_stream_queue:settle (credit goes to whoever has the tag)",
        arms=_reuses_tag_with_credit,
    ),
    _by_chance(
        name="reused-tag-keeps-place",
        requirement="PRIORITY-001",
        strength=Strength.CONVENTIONAL,
        statement="A quorum queue's consumer with the tag of a cancelled one has that one's place among those to be"
        " served, by its x-priority, until it was served once.",
        source="rabbit_fifo:maybe_queue_consumer, in 3.10 uniq_queue_in: the key of the cancelled one is still in"
        " service_queue; in 4.0 and 4.3 only if that one still holds messages",
        spoils=frozenset({Part.DELIVERY}),
        arms=at_queue(QueueType.QUORUM)(
            lambda broker, channel, queue, method: method.arguments.get("consumer_tag", "") in channel.ended_consumers
        ),
        explains=lambda broker, it: it.requirement == "PRIORITY-001",
    ),
    _consuming(
        name="consumer-of-same-tag-never-active",
        requirement="SAC-002",
        statement="A waiting consumer whose channel holds deliveries of a cancelled one with its tag becomes active"
        " and is handed nothing, and nobody else is.",
        source="rabbit_fifo:activate_next_consumer keeps the status of the existing consumer, which is cancelled",
        arms=_reuses_tag_beside_active,
    ),
    Window(
        name="consumer-of-same-tag-waits-on",
        requirement="SAC-002",
        statement="A waiting consumer that is cancelled, and whose channel holds deliveries of an earlier one with its"
        " tag, goes on to wait. When its turn comes it becomes the active consumer, and nobody is served.",
        source="rabbit_fifo:cancel_consumer cancels the earlier one again, which is still among the queue's consumers",
        by_chance=True,
        kinds=ENDS,
        arms=_ends_waiting_of_same_tag,
    ),
    _by_chance(
        name="consumer-of-same-tag-stays-active",
        requirement="SAC-004",
        statement="An active consumer whose channel holds deliveries of a cancelled one with its tag stays active when"
        " one of higher priority comes, until these are settled; meanwhile nobody is served.",
        source="rabbit_fifo:merge_consumer keeps what the cancelled one holds, and activate_next_consumer waits for it",
        dialects=("rabbitmq-4.0", "rabbitmq-4.3"),
        arms=_reuses_tag_beside_active,
    ),
    _by_chance(
        name="takeover-forgets-deliveries",
        requirement="CANCEL-016",
        statement="When a consumer takes over at once from an active one of lower priority, the queue forgets what a"
        " cancelled one with its tag still held: it is lost. To settle that settles what the new one holds.",
        source="rabbit_fifo:activate_next_consumer puts the new consumer in the place of the one with its key",
        dialects=("rabbitmq-4.0", "rabbitmq-4.3"),
        arms=_reuses_tag_beside_active,
    ),
    _by_chance(
        name="reused-tag-keeps-room",
        requirement="CONSUME-016",
        statement="A quorum queue's consumer with the tag of a cancelled one that holds more than the limit of the new"
        " one may have as many unacknowledged deliveries as that one held, once these are settled.",
        source="v3.10.9 rabbit_fifo:merge_consumer (the credit is 0, not less) and increase_credit, which knows no most"
        " until 4.0",
        dialects=("rabbitmq-3",),
        arms=_reuses_tag_at_quorum_queue,
        explains=lambda broker, it: it.requirement.startswith("QOS") and it.shape is Shape.UNEXPECTED,
    ),
    _consuming(
        name="reused-tag-breaks-at-delivery",
        requirement="CONSUME-016",
        statement="A delivery to a quorum consumer with the tag of a cancelled one, of which something is still"
        " unacknowledged, crashes the channel; the connection closes with 541.",
        source="3.10.8 rabbit_fifo_client:handle_delivery takes what the former consumer holds for missing;"
        " rabbit_channel:handle_deliver0, function_clause; v3.10.9 checkout is told where the consumer's numbers begin",
        dialects=("rabbitmq-3",),
        spoils=CRASH,
        arms=_reuses_tag_at_quorum_queue,
        explains=lambda broker, it: it.part not in SERVICE,
    ),
    _by_chance(
        name="reused-tag-inherits-deliveries",
        requirement="CONSUME-016",
        strength=Strength.CONVENTIONAL,
        statement="A quorum queue takes a consumer with the tag of a cancelled one for that one: what is still"
        " unacknowledged of the old one counts against the limit of the new one.",
        source="rabbit_fifo:merge_consumer, consumers are known by tag and channel as long as they hold messages",
        arms=_reuses_tag_at_quorum_queue,
    ),
    _consuming(
        name="reply-consumer-tag-taken-twice",
        requirement="REPLY-005",
        statement="The tag of a consumer of direct replies can be used again on its channel: it is not among the"
        " channel's consumers, where basic.consume looks for it.",
        source="rabbit_channel:handle_method basic.consume, consumer_mapping does not hold the reply consumer",
        spoils=CRASH,
        arms=lambda broker, it: of_connection(broker, it)
        if (known := named_consumer(broker, it)) and known.queue.reply_address
        else None,
        shows_at_once=True,
    ),
)
