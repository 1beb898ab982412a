"""RabbitMQ's limiter, a process beside the channel that counts in its own way (rabbit_limiter; up to 4.2).

It counts what is delivered and what is settled, and not always what the channel holds: the limits of the channel and of
its consumers share it, and what basic.get has got is counted in and never out.
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.limits import gets_under_way
from amqpspec.model.broker.queues import Consumer
from amqpspec.model.defects.situations import RECOVERIES, REFUSALS, named_queue, settled
from amqpspec.model.judging.windows import CRASH, SERVICE, Scope, Window, of_channel
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.verdict import Shape
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.basic.requeue import delivery_limit

_WITH_LIMITER = ("rabbitmq-3", "rabbitmq-4.0")


def _sets_limit(method: Method) -> bool:
    return method.name == "basic.qos" and bool(method.arguments.get("global_") and method.arguments["prefetch_count"])


def _lifts(broker: Broker, method: Method) -> Scope | None:
    channel = broker.open_channel(method)
    is_lifted = channel is not None and channel.channel_prefetch and not method.arguments.get("global_")
    return of_channel(method) if is_lifted else None


def _counts_gets(broker: Broker, method: Method) -> Scope | None:
    channel = broker.open_channel(method)
    if channel is None or channel.channel_prefetch or not _sets_limit(method):
        return None
    got = any(entry.consumer is None for entry in channel.unacknowledged.values())
    return of_channel(method) if got or gets_under_way(channel) else None


def _meets_uncounted(broker: Broker, method: Method) -> Scope | None:
    """Deliveries that the limiter does not count: of quorum queues and streams, and those that were under way."""
    channel = broker.open_channel(method)
    if channel is None:
        return None
    if method.name == "basic.consume":
        found = named_queue(broker, method)
        is_counted = found is None or found[1].type is QueueType.CLASSIC
        return None if is_counted or not channel.channel_prefetch else of_channel(method)
    if not _sets_limit(method):
        return None
    others = any(each.queue.type is not QueueType.CLASSIC for each in channel.consumers.values())
    return of_channel(method) if others or channel.unacknowledged or _served(broker, channel.consumers) else None


def _served(broker: Broker, consumers: dict[str, Consumer]) -> bool:
    return any(each.queue in broker.deliverable for each in consumers.values())


def _meets_no_ack(broker: Broker, method: Method) -> Scope | None:
    channel = broker.open_channel(method)
    if channel is None:
        return None
    if method.name == "basic.consume":
        return of_channel(method) if channel.channel_prefetch and method.arguments.get("no_ack") else None
    return of_channel(method) if _sets_limit(method) and any(c.no_ack for c in channel.consumers.values()) else None


def _gives_back_beyond(broker: Broker, method: Method) -> Scope | None:
    """The input gives back a message to a quorum queue that is beyond its delivery limit by that."""
    if method.name != "tx.commit" and not method.arguments.get("requeue"):
        return None
    for entry in settled(broker, method):
        queue = entry.queue
        limit = delivery_limit(broker, queue) if queue.type is QueueType.QUORUM and not queue.deleted else None
        if limit is not None and entry.consumer is not None and entry.message.delivery_count + 1 > limit:
            return of_channel(method)
    return None


LIMITS: tuple[Window, ...] = (
    Window(
        name="consumer-limit-lifts-channel-limit",
        requirement="QOS-010",
        statement="basic.qos with global=false ends the limit of the channel, which the guide calls independent of it.",
        source="rabbit_channel:handle_method basic.qos, global = false: rabbit_limiter:unlimit_prefetch",
        dialects=_WITH_LIMITER,
        by_chance=True,
        spoils=CRASH,  # a stream, which bears no limit of the channel, can be consumed from then
        kinds=("basic.qos",),
        arms=_lifts,
    ),
    Window(
        name="settled-gets-keep-their-room",
        requirement="QOS-013",
        strength=Strength.CONVENTIONAL,
        statement="What basic.get had got when the channel's limit came counts towards it for good, settled or not.",
        source="rabbit_channel: basic.qos counts all of unacked_message_q, notify_limiter leaves out basic.get's",
        dialects=_WITH_LIMITER,
        by_chance=True,
        spoils=SERVICE,
        kinds=("basic.qos",),
        arms=_counts_gets,
        explains=lambda broker, it: it.shape is Shape.MISSING,
    ),
    Window(
        name="uncounted-deliveries-make-room",
        requirement="QOS-008",
        statement="Settling what the limiter did not count, as deliveries from quorum queues and streams, and those"
        " under way when the limit came, makes room all the same: more than the limit are out.",
        source="rabbit_channel:notify_limiter counts deliveries of every queue type; rabbit_limiter:handle_cast ack",
        dialects=_WITH_LIMITER,
        by_chance=True,
        spoils=SERVICE,
        kinds=("basic.qos", "basic.consume"),
        arms=_meets_uncounted,
    ),
    Window(
        name="channel-limit-holds-no-ack",
        requirement="QOS-005",
        statement="A channel at its limit has nothing delivered to its consumers without acknowledgements either.",
        source="rabbit_limiter:handle_call can_send, prefetch_limit_reached is asked before AckRequired",
        dialects=_WITH_LIMITER,
        by_chance=True,
        spoils=SERVICE,
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
        spoils=SERVICE,
        kinds=(*REFUSALS, *RECOVERIES, "tx.commit"),
        arms=_gives_back_beyond,
    ),
)
