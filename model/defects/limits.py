"""RabbitMQ's limiter, a process beside the channel that counts in its own way (rabbit_limiter; up to 4.2).

It counts what is delivered and what is settled, and not always what the channel holds: the limits of the channel and of
its consumers share it, and what basic.get has got is counted in and never out.
"""

from __future__ import annotations

from functools import partial

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.limits import gets_under_way
from amqpspec.model.defects.situations import RECOVERIES, REFUSALS, named_queue, on_channel, settled
from amqpspec.model.judging.windows import CRASH, Window
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.verdict import Shape
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.basic.requeue import delivery_limit

_of_limiter = partial(Window, dialects=("rabbitmq-3", "rabbitmq-4.0"), by_chance=True)


def _sets_limit(method: Method) -> bool:
    return method.name == "basic.qos" and bool(method.arguments.get("global_") and method.arguments["prefetch_count"])


@on_channel
def _counts_gets(broker: Broker, channel: Channel, method: Method) -> bool:
    got = any(entry.consumer is None for entry in channel.unacknowledged.values())
    return not channel.channel_prefetch and _sets_limit(method) and (got or bool(gets_under_way(channel)))


@on_channel
def _meets_uncounted(broker: Broker, channel: Channel, method: Method) -> bool:
    """Deliveries that the limiter does not count: of quorum queues and streams, and those that were under way."""
    if method.name == "basic.consume":
        found = named_queue(broker, method)
        return found is not None and found[1].type is not QueueType.CLASSIC and bool(channel.channel_prefetch)
    queues = [each.queue for each in channel.consumers.values()]
    is_met = any(queue.type is not QueueType.CLASSIC or queue in broker.deliverable for queue in queues)
    return _sets_limit(method) and (is_met or bool(channel.unacknowledged))


@on_channel
def _meets_no_ack(broker: Broker, channel: Channel, method: Method) -> bool:
    if method.name == "basic.consume":
        return bool(channel.channel_prefetch and method.arguments.get("no_ack"))
    return _sets_limit(method) and any(consumer.no_ack for consumer in channel.consumers.values())


@on_channel
def _gives_back_beyond(broker: Broker, channel: Channel, method: Method) -> bool:
    """The input gives back a message to a quorum queue that is beyond its delivery limit by that."""
    given_back = settled(broker, method) if method.name == "tx.commit" or method.arguments.get("requeue") else []
    return any(
        entry.consumer is not None and entry.message.delivery_count + 1 > limit
        for entry in given_back
        if entry.queue.type is QueueType.QUORUM and not entry.queue.deleted
        if (limit := delivery_limit(broker, entry.queue)) is not None
    )


LIMITS: tuple[Window, ...] = (
    _of_limiter(
        name="consumer-limit-lifts-channel-limit",
        requirement="QOS-010",
        statement="basic.qos with global=false ends the limit of the channel, which the guide calls independent of it.",
        source="rabbit_channel:handle_method basic.qos, global = false: rabbit_limiter:unlimit_prefetch",
        spoils=CRASH,  # a stream, which bears no limit of the channel, can be consumed from then
        kinds=("basic.qos",),
        arms=on_channel(lambda _, channel, qos: bool(channel.channel_prefetch and not qos.arguments.get("global_"))),
    ),
    _of_limiter(
        name="settled-gets-keep-their-room",
        requirement="QOS-013",
        strength=Strength.CONVENTIONAL,
        statement="What basic.get had got when the channel's limit came counts towards it for good, settled or not.",
        source="rabbit_channel: basic.qos counts all of unacked_message_q, notify_limiter leaves out basic.get's",
        kinds=("basic.qos",),
        arms=_counts_gets,
        explains=lambda broker, it: it.shape is Shape.MISSING,
    ),
    _of_limiter(
        name="uncounted-deliveries-make-room",
        requirement="QOS-008",
        statement="Settling what the limiter did not count, as deliveries from quorum queues and streams, and those"
        " under way when the limit came, makes room all the same: more than the limit are out.",
        source="rabbit_channel:notify_limiter counts deliveries of every queue type; rabbit_limiter:handle_cast ack",
        kinds=("basic.qos", "basic.consume"),
        arms=_meets_uncounted,
    ),
    _of_limiter(
        name="channel-limit-holds-no-ack",
        requirement="QOS-005",
        statement="A channel at its limit has nothing delivered to its consumers without acknowledgements either.",
        source="rabbit_limiter:handle_call can_send, prefetch_limit_reached is asked before AckRequired",
        kinds=("basic.qos", "basic.consume"),
        arms=_meets_no_ack,
    ),
    Window(
        name="exceeded-limit-gives-room-twice",
        requirement="QOS-006",
        statement="For each message that a consumer gives back beyond the delivery limit its own limit grows by one.",
        source="v3.10.9 rabbit_fifo:return gives credit for all that is returned, and rabbit_fifo:complete gave it"
        " before for what exceeded the limit",
        dialects=("rabbitmq-3",),
        kinds=(*REFUSALS, *RECOVERIES, "tx.commit"),
        arms=_gives_back_beyond,
    ),
)
