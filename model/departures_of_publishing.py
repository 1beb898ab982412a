"""Departures (`model.departures`) of publishing."""

from __future__ import annotations

from model.alphabet import ChannelKey, Frame
from model.broker import Broker
from model.departure import Departure
from model.inputs import process
from model.queues import Arrival, Message, Queue, QueueType
from model.state import ChannelState, Expected

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


def _replies_to_nobody(broker: Broker, frame: Frame) -> bool:
    """Is it mandatory, and goes to the address of a consumer of replies that is gone?"""
    channel = broker.channels.get((frame.connection, frame.channel))
    arguments = frame.arguments
    if channel is None or channel.state is not ChannelState.OPEN or not arguments.get("mandatory"):
        return False
    address = arguments.get("routing_key", "")
    if arguments.get("exchange") or address in broker.queues:
        return False
    return address in broker.reply_addresses or address in broker.reply_addresses.values()


def _return_nothing(broker: Broker, frame: Frame) -> None:
    process(broker, frame)
    channel = broker.channels[(frame.connection, frame.channel)]
    returned = [owed for owed in channel.owed if isinstance(owed, Expected) and owed.method == "basic.return"]
    channel.owed = [owed for owed in channel.owed if not any(owed is each for each in returned[-1:])]
    broker.settle_debts(channel)
    broker.fired("PUBLISH-007")


PUBLISHING_DEPARTURES: tuple[Departure, ...] = (
    Departure(
        name="reply-to-nobody-not-returned",
        requirement="PUBLISH-007",
        statement="A mandatory message to the reply address of a consumer that is gone is neither delivered nor"
        " returned.",
        source="v4.3.5 rabbit_volatile_queue:new_target takes every address that a process can be read from",
        dialects=("rabbitmq-4.3",),
        methods=("basic.publish",),
        applies=_replies_to_nobody,
        process=_return_nothing,
    ),
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
