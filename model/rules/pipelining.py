"""Requests sent before the replies to earlier ones have come (CHAN-004, CHAN-019, CONSUME-004, CONSUME-005).

Their rules only allow: whatever order the replies come in is right. So what exercises them is the sending.
"""

from __future__ import annotations

from collections.abc import Sequence

from model.alphabet import Frame
from model.broker import Broker
from model.state import Expected

#: Methods whose replies the channel itself sends, in their order. Those to consume and cancel come from the queue.
ANSWERED_BY_CHANNEL = frozenset(
    {
        "basic.get", "basic.qos", "basic.recover", "channel.flow", "confirm.select", "exchange.bind",
        "exchange.declare", "exchange.delete", "exchange.unbind", "queue.bind", "queue.declare", "queue.delete",
        "queue.purge", "queue.unbind",
    }
)  # fmt: skip


def note_pipelined(broker: Broker, pending: Sequence[Frame], frame: Frame) -> None:
    """`frame` is being sent while `pending` inputs need not be processed yet; replies may be owed."""
    if frame.method == "channel.open":
        if any(other.method == "channel.close" and _on_same_channel(other, frame) for other in pending):
            broker.fired("CHAN-004")
        return
    consumed = _unanswered(broker, pending, frame, "basic.consume")
    cancelled = _unanswered(broker, pending, frame, "basic.cancel")
    tag = frame.arguments.get("consumer_tag", "")
    if frame.method == "basic.cancel" and tag in consumed:
        broker.fired("CONSUME-005")
    elif frame.method == "basic.consume" and tag in cancelled:
        broker.fired("CONSUME-004")
    elif frame.method in ANSWERED_BY_CHANNEL and not frame.arguments.get("nowait") and (consumed or cancelled):
        broker.fired("CHAN-019")


def _on_same_channel(one: Frame, other: Frame) -> bool:
    return (one.connection, one.channel) == (other.connection, other.channel)


def _unanswered(broker: Broker, pending: Sequence[Frame], frame: Frame, method: str) -> set[object]:
    """Consumer tags of requests of that method on the frame's channel whose reply is still to come."""
    key = (frame.connection, frame.channel)
    tags: set[object] = {
        other.arguments.get("consumer_tag", "")
        for other in pending
        if (other.connection, other.channel) == key and other.method == method and not other.arguments.get("nowait")
    }
    channel = broker.channels.get(key)
    if channel is not None:
        for owed in channel.owed:
            if isinstance(owed, Expected) and owed.method == f"{method}-ok":
                tags.add(owed.arguments["consumer_tag"])
    return tags
