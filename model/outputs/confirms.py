"""Publisher confirms (area CONFIRM)."""

from __future__ import annotations

from model.alphabet import Frame
from model.broker import Broker
from model.mismatch import NONE, Mismatch, Mismatches, unexpected
from model.queues import Arrival, QueueType
from model.state import Channel, Expected
from model.stream_log import stored
from model.verdict import Shape


def observe_confirm(broker: Broker, channel: Channel, frame: Frame) -> Mismatches:
    """CONFIRM-003: each publish once; `multiple` means all that are still open up to the tag."""
    tag = frame.arguments.get("delivery_tag", 0)
    unconfirmed = channel.unconfirmed
    if frame.arguments.get("multiple"):
        numbers = [number for number in unconfirmed if number <= tag] if tag <= channel.published else []
    else:
        numbers = [tag] if tag in unconfirmed else []
    if not numbers:
        return unexpected("CONFIRM-003", f"{frame.method} of a publish that is not open")
    for owed in channel.owed:
        if isinstance(owed, Expected) and owed.publish and owed.publish in numbers:
            return unexpected("CONFIRM-009", f"{frame.method} before basic.return")
    fired = ["CONFIRM-002", "CONFIRM-003"]
    for number in numbers:
        copies = unconfirmed.pop(number)
        for queue, message in copies:
            if queue.unproven and message.arrival is not Arrival.RETURNING:  # it may be away again since
                broker.prove(queue, message)
            if queue.type is QueueType.STREAM:
                stored(queue, message.position)
        if len(copies) != 1:
            fired.append("CONFIRM-010" if copies else "CONFIRM-008")
    broker.settle_debts(channel)
    broker.fired(*fired)
    if frame.method == "basic.nack":
        return (Mismatch("CONFIRM-011", Shape.UNEXPECTED, "basic.nack of a message that no queue refused", False),)
    return NONE
