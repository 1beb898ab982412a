"""Departures (`model.departures`) of dead-lettering."""

from __future__ import annotations

from model.alphabet import Frame
from model.broker import Broker
from model.departure import ANY_NUMBER, Departure
from model.inputs import process
from model.queues import QueueType
from model.rules.dead_letter import reaches_stream
from model.rules.message_expiry import EXPIRE, doubted_message
from model.state import ChannelState


def _sends_to_stream(broker: Broker, frame: Frame) -> bool:
    """Does the client reject a delivery, or does a message expire, whose dead letter goes to a stream?"""
    if frame.method == EXPIRE:
        expiring = doubted_message(broker, frame)
        return expiring is not None and reaches_stream(broker, *expiring)
    channel = broker.channels.get((frame.connection, frame.channel))
    if channel is None or channel.state is not ChannelState.OPEN or frame.arguments.get("requeue"):
        return False
    return any(reaches_stream(broker, entry.queue, entry.message) for entry in channel.unacknowledged.values())


def _lose_on_the_way_to_stream(broker: Broker, frame: Frame) -> None:
    streams = [queue for queue in broker.queues.values() if queue.type is QueueType.STREAM]
    ends = [len(queue.log) for queue in streams]
    process(broker, frame)
    for queue, end in zip(streams, ends, strict=True):
        if len(queue.log) > end:
            del queue.log[end:]
            queue.next_position = end
            queue.chunk_starts = {offset: begins for offset, begins in queue.chunk_starts.items() if offset < end}
            broker.refresh(queue)


DEAD_LETTER_DEPARTURES: tuple[Departure, ...] = (
    Departure(
        name="stream-takes-no-dead-letters",
        requirement="DLX-005",
        statement="A dead letter that is routed to a stream is lost.",
        source="v3.10.9 rabbit_stream_queue:deliver does nothing for a delivery without state, which is what"
        " rabbit_dead_letter:publish makes",
        dialects=("rabbitmq-3",),
        methods=("basic.nack", "basic.reject", EXPIRE),
        applies=_sends_to_stream,
        process=_lose_on_the_way_to_stream,
        shows_within=ANY_NUMBER,
    ),
)
