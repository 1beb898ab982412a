"""The part of the state that matters for a failure, in words."""

from __future__ import annotations

from collections.abc import Iterator

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, ChannelState
from amqpspec.model.broker.owed import Expected
from amqpspec.model.broker.queues import Queue
from amqpspec.model.outputs.permitted import permitted
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Method, TraceEvent
from amqpspec.model.protocol.wording import value_text

#: Most lines, and most permitted frames, that a failure shows.
MOST = 12


def allowed_frames(broker: Broker, seen: TraceEvent) -> tuple[str, ...]:
    """What the broker might have sent instead of a frame, in words; "nothing" when it owes nothing, barriers apart.

    That is what may come on the same connection, and who else may be handed the message that was delivered.
    """
    barrier = set(_owed_to_barrier(broker))
    events = [each for each in permitted(broker) if (each.connection, each.channel, each.name) not in barrier]
    here = [each for each in events if each.connection == seen.connection or _is_handed_over(seen, each)]
    return tuple(str(each) for each in (here or events)[:MOST]) or ("nothing: the broker should be silent",)


def _is_handed_over(seen: TraceEvent, other: TraceEvent) -> bool:
    """Do both deliver the same message?"""
    if not (isinstance(seen, Method) and isinstance(other, Method) and seen.name == other.name == "basic.deliver"):
        return False
    return seen.content is not None and other.content is not None and seen.content.body == other.content.body


def _owed_to_barrier(broker: Broker) -> Iterator[tuple[str, int, str]]:
    """Replies to the suite's own questions: true, and no help to a reader."""
    for channel in broker.channels.values():
        for owed in channel.owed:
            if not owed.counted:
                for method in (owed.method,) if isinstance(owed, Expected) else ("basic.get-ok", "basic.get-empty"):
                    yield channel.connection, channel.number, method


def state_lines(broker: Broker, event: TraceEvent | None) -> tuple[str, ...]:
    """Lines for the channel of `event` (all channels if it has none), and for all queues, those in use there first."""
    channels = [c for c in broker.channels.values() if c.state is not ChannelState.CLOSED]
    if event is not None:
        channels = [c for c in channels if c.key == (event.connection, event.channel)] or channels
    queues: dict[Queue, None] = {}
    for channel in channels:
        for consumer in channel.consumers.values():
            queues[consumer.queue] = None
        for entry in channel.unacknowledged.values():
            queues[entry.queue] = None
    for queue in broker.queues.values():
        queues[queue] = None
    lines = [_channel_line(channel) for channel in channels]
    lines += [_queue_line(queue) for queue in queues]
    return tuple(lines[:MOST])


def _channel_line(channel: Channel) -> str:
    outstanding = ", ".join(
        f"{tag}={value_text(entry.message.content.body)}" for tag, entry in list(channel.unacknowledged.items())[:MOST]
    )
    text = f"channel {channel.connection}.{channel.number} {channel.state.value}: unacknowledged [{outstanding}]"
    if channel.unconfirmed:
        text += f", unconfirmed {list(channel.unconfirmed)[:MOST]}"
    for consumer in channel.consumers.values():
        limit = f" of {consumer.prefetch}" if consumer.prefetch else ""
        text += f", consumer {consumer.tag} on {consumer.queue.name} holds {consumer.outstanding}{limit}"
    return text


def _queue_line(queue: Queue) -> str:
    stored = queue.log if queue.type is QueueType.STREAM else queue.messages
    ready = ", ".join(
        value_text(message.content.body) + (" (redelivered)" if message.redelivered else "")
        for message in list(stored)[:MOST]
    )
    more = f" and {len(stored) - MOST} more" if len(stored) > MOST else ""
    gone = " deleted" if queue.deleted else ""
    return f"queue {queue.name} ({queue.type.value}{gone}): ready [{ready}]{more}, consumers {len(queue.consumers)}"
