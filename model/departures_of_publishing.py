"""Departures (`model.departures`) of publishing."""

from __future__ import annotations

from model.alphabet import ChannelKey, Frame
from model.broker import Broker
from model.departure import Departure
from model.inputs import process
from model.queues import Arrival, Message, Queue, QueueType

_ENDS = ("channel.close", "connection.close", "connection.teardown", "socket.abort")


def _on_their_way(broker: Broker, frame: Frame) -> list[tuple[Queue, Message]]:
    """Messages that the channels which the input ends have published to quorum queues, and may not be there yet."""
    return [
        (queue, message)
        for queue in broker.queues.values()
        if queue.type is QueueType.QUORUM
        for message in queue.unproven
        if message.arrival is Arrival.PUBLISHED and _is_ended(message.via, frame)
    ]


def _is_ended(channel: ChannelKey | None, frame: Frame) -> bool:
    if channel is None or frame.method not in _ENDS:
        return False
    return channel[0] == frame.connection and frame.channel in (0, channel[1])


def _lose(broker: Broker, frame: Frame) -> None:
    on_their_way = _on_their_way(broker, frame)
    process(broker, frame)
    for queue, message in on_their_way:
        if message in queue.messages:
            broker.take(queue, queue.messages.index(message))
            broker.drop(queue, message, message.reason)
            broker.refresh(queue)


PUBLISHING_DEPARTURES: tuple[Departure, ...] = (
    Departure(
        name="closing-overtakes-publishes",
        requirement="PUBLISH-002",
        statement="What a channel publishes to a quorum queue right before it is closed is lost, if it has published"
        " there before.",
        source="v3.10.9 rabbit_fifo_client:enqueue sends with low priority, so that the end of the channel comes first;"
        " rabbit_fifo:handle_down forgets the numbers that it expects, and maybe_enqueue then waits for number 1",
        dialects=("rabbitmq-3",),
        methods=_ENDS,
        applies=lambda broker, frame: bool(_on_their_way(broker, frame)),
        process=_lose,
    ),
)
