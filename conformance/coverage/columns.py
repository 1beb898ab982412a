"""The columns: what is so at the moment that a command is sent, read from the state of the model.

Each group asks one question of the channel, and of the queue that the command is about. It has one answer, or none
where the question makes no sense: how a delivery came that is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.length_limits import BYTES, LENGTH, size
from amqpspec.model.broker.limits import counted
from amqpspec.model.broker.queues import Queue
from amqpspec.model.promises.queue_types import QueueType

#: Gives the column of the group; None: it has none here.
Question = Callable[[Broker, Channel, Queue | None], str | None]


def _out(broker: Broker, channel: Channel, queue: Queue | None) -> str:
    number = len(channel.unacknowledged)
    return ("nothing out", "one out", "several out")[min(number, 2)]


def _came(broker: Broker, channel: Channel, queue: Queue | None) -> str | None:
    ways = {entry.consumer is None for entry in channel.unacknowledged.values()}
    if not ways:
        return None
    return "by both" if len(ways) > 1 else "by get" if True in ways else "by consumer"


def _before(broker: Broker, channel: Channel, queue: Queue | None) -> str | None:
    """What the channel had is given back: by basic.recover, or what it has was given back by whomever."""
    if any(each.again == "RECOVER-004" for each in channel.over):
        return "after a recover"
    return "redelivered" if any(each.message.redelivered for each in channel.unacknowledged.values()) else None


def _elsewhere(broker: Broker, channel: Channel, queue: Queue | None) -> str:
    others = (each for key, each in broker.channels.items() if key != channel.key)
    return "out on another channel" if any(each.unacknowledged for each in others) else "nothing out elsewhere"


def _consumers(broker: Broker, channel: Channel, queue: Queue | None) -> str | None:
    """Of the queue: here is the channel of the command."""
    if queue is None or queue.reply_address:
        return None
    here = sum(each.channel == channel.key for each in queue.consumers)
    elsewhere = len(queue.consumers) - here
    if queue.single_active_consumer and queue.consumers:
        return "active and waiting" if len(queue.consumers) > 1 else "active alone"
    if not elsewhere:
        return ("no consumer", "one here", "several here")[min(here, 2)]
    return "here and elsewhere" if here else "elsewhere"


def _replies(broker: Broker, channel: Channel, queue: Queue | None) -> str | None:
    """Who waits for replies at that address, beside whom?"""
    if queue is None or not queue.reply_address:
        return None
    tags = {each.tag for each in queue.consumers}
    others = [each.tag for key, channel in broker.channels.items() for each in channel.consumers.values()
              if each.queue.reply_address and each.queue is not queue]  # fmt: skip
    if not others:
        return "one client's replies"
    return "replies under one tag" if tags.intersection(others) else "replies under two tags"


def _limit(broker: Broker, channel: Channel, queue: Queue | None) -> str:
    """Of the channel, else of its consumers."""
    if channel.channel_prefetch:
        is_used_up = counted(broker, channel) >= channel.channel_prefetch
        return "shared limit used up" if is_used_up else "shared limit with room"
    limited = [each for each in channel.consumers.values() if each.prefetch and not each.no_ack]
    if not limited:
        return "limit for those to come" if channel.prefetch else "no limit"
    return "limit used up" if any(each.outstanding >= each.prefetch for each in limited) else "limit with room"


def _limits(broker: Broker, channel: Channel, queue: Queue | None) -> str | None:
    """Are the limits of those that are there, and of those to come, the same?"""
    limits = {each.prefetch for each in channel.consumers.values() if not each.queue.reply_address}
    return "another limit since" if limits and limits != {channel.prefetch} else None


def _fullness(broker: Broker, channel: Channel, queue: Queue | None) -> str | None:
    if queue is None:
        return "no queue"
    if queue.reply_address or queue.type is QueueType.STREAM:
        return None
    length, octets = queue.in_force.get(LENGTH), queue.in_force.get(BYTES)
    if _reaches(length, len(queue.messages)) or _reaches(octets, size(broker, queue, queue.messages)):
        return "full"
    return "something ready" if queue.messages else "empty"


def _reaches(limit: object, number: int) -> bool:
    return isinstance(limit, int) and number >= limit


def _kind(broker: Broker, channel: Channel, queue: Queue | None) -> str | None:
    if queue is None or queue.reply_address:
        return None
    if queue.single_active_consumer:
        return "single active consumer"
    return "priorities" if "x-max-priority" in queue.arguments else queue.type.value


def _mode(broker: Broker, channel: Channel, queue: Queue | None) -> str:
    if channel.transaction is not None:
        return "transaction"
    return "confirms" if channel.confirming else "plain"


#: The groups, each with its columns and its question.
GROUPS: Mapping[str, tuple[tuple[str, ...], Question]] = {
    "out": (("nothing out", "one out", "several out"), _out),
    "came": (("by get", "by consumer", "by both"), _came),
    "before": (("redelivered", "after a recover"), _before),
    "elsewhere": (("nothing out elsewhere", "out on another channel"), _elsewhere),
    "consumers": (
        (
            "no consumer", "one here", "several here", "elsewhere", "here and elsewhere", "active alone",
            "active and waiting",
        ),
        _consumers,
    ),
    "replies": (("one client's replies", "replies under two tags", "replies under one tag"), _replies),
    "limit": (
        (
            "no limit", "limit for those to come", "limit with room", "limit used up", "shared limit with room",
            "shared limit used up",
        ),
        _limit,
    ),
    "limits": (("another limit since",), _limits),
    "queue": (("no queue", "empty", "something ready", "full"), _fullness),
    "kind": (("classic", "quorum", "stream", "single active consumer", "priorities"), _kind),
    "mode": (("plain", "transaction", "confirms"), _mode),
}  # fmt: skip
