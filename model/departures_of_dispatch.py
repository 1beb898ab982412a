"""Departures (`model.departures`) of area SAC: a queue with ready messages that does not serve its active consumer.

What such a queue does next depends on what happens to wake it. So it owes nothing from then on (`Seat.is_stalled`), and
whoever is served first has the seat.
"""

from __future__ import annotations

from collections.abc import Iterator

from model.alphabet import Frame
from model.broker import Broker
from model.departure import Departure
from model.inputs import process
from model.queues import Consumer, Queue, QueueType
from model.state import ChannelState, Unacknowledged

_ENDS = ("basic.cancel", "channel.close", "connection.close", "connection.teardown", "socket.abort")
_RETURNS = ("basic.nack", "basic.reject", "basic.recover")
#: In error they end their channel, or all channels of the connection.
_OFTEN_WRONG = ("basic.ack", "basic.get", "basic.consume", "basic.qos", "queue.declare", "queue.delete", "queue.purge")


def _seats(broker: Broker, type: QueueType) -> Iterator[Queue]:
    return (queue for queue in broker.queues.values() if queue.single_active_consumer and queue.type is type)


def _held_on(broker: Broker, frame: Frame) -> list[Unacknowledged]:
    channel = broker.channels.get((frame.connection, frame.channel))
    return list(channel.unacknowledged.values()) if channel is not None else []


def _stall(broker: Broker, queues: list[Queue]) -> None:
    for queue in queues:
        queue.seat.stalled_at = broker.stamp
        broker.refresh(queue)


# -------------------------------------------------------------------------------- cancelled with a backlog


def _leaves_backlog(broker: Broker, frame: Frame) -> Queue | None:
    channel = broker.channels.get((frame.connection, frame.channel))
    consumer = channel.consumers.get(frame.arguments.get("consumer_tag", "")) if channel is not None else None
    if consumer is None or consumer.queue not in _seats(broker, QueueType.CLASSIC):
        return None
    return consumer.queue if consumer.queue.seat.holder is consumer and consumer.queue.messages else None


def _with_left_backlog(broker: Broker, frame: Frame) -> list[Queue]:
    """Queues that may not serve whoever followed a cancelled consumer, which shows once there is room for it."""
    if frame.method == "basic.cancel":
        queue = _leaves_backlog(broker, frame)
        return [queue] if queue is not None else []
    if frame.method == "basic.publish":
        return [queue for queue in _seats(broker, QueueType.CLASSIC) if queue.seat.is_stalled]
    return [
        queue
        for queue in _seats(broker, QueueType.CLASSIC)
        if queue.messages and queue.seat.reason == "SAC-002" and not queue.seat.is_stalled
    ]


def _leave_backlog(broker: Broker, frame: Frame) -> None:
    """With the next publish the queue may crash, and what comes of that is a matter of timing."""
    queues = _with_left_backlog(broker, frame)
    process(broker, frame)
    _stall(broker, queues)
    broker.is_astray |= frame.method == "basic.publish"


# ---------------------------------------------------------------------------- a seat that is left for somebody


def _left_on(broker: Broker, frame: Frame) -> list[Queue]:
    """Queues whose active consumer is to leave its seat, and has deliveries on the frame's channel."""
    held = _held_on(broker, frame)
    return [
        queue
        for queue in _seats(broker, QueueType.QUORUM)
        if queue.seat.is_being_left and any(entry.consumer is queue.seat.holder for entry in held)
    ]


def _leave_without_successor(broker: Broker, frame: Frame) -> None:
    left = _left_on(broker, frame)
    process(broker, frame)
    _stall(broker, [queue for queue in left if not queue.seat.is_being_left])


def _closed_while_leaving(broker: Broker, frame: Frame) -> list[Queue]:
    """Queues whose active consumer is to leave its seat to a waiting one, and may end together with it."""
    return [
        queue
        for queue in _seats(broker, QueueType.QUORUM)
        if queue.seat.is_being_left
        and queue.seat.holder is not None
        and queue.seat.holder.channel[0] == frame.connection
        and frame.channel in (0, queue.seat.holder.channel[1])
    ]


def _keep_what_it_held(broker: Broker, frame: Frame) -> None:
    seats = [(queue, queue.seat.holder) for queue in _closed_while_leaving(broker, frame)]
    process(broker, frame)
    ended = [queue for queue, holder in seats if holder is not None and not _is_there(broker, holder)]
    _stall(broker, ended)


def _is_there(broker: Broker, consumer: Consumer) -> bool:
    return broker.channels[consumer.channel].state is ChannelState.OPEN


def _may_outstay(broker: Broker, frame: Frame) -> bool:
    return any(q.seat.is_being_left or q.seat.has_outstayed for q in _seats(broker, QueueType.QUORUM))


def _go_on_leaving(broker: Broker, frame: Frame) -> None:
    """4.0: it does so even when it gives back the last of what it holds (rabbit_fifo:return)."""
    outstayed = [queue for queue in _seats(broker, QueueType.QUORUM) if queue.seat.has_outstayed]
    process(broker, frame)
    _stall(
        broker,
        [
            queue
            for queue in _seats(broker, QueueType.QUORUM)
            if queue.seat.has_outstayed or (frame.method in _RETURNS and queue in outstayed)
        ],
    )


# ------------------------------------------------------------------------------------ a tag that is used again


def _has_namesake(broker: Broker, consumer: Consumer) -> bool:
    """Does its channel hold deliveries of a cancelled consumer of that queue and tag?"""
    return any(
        entry.queue is consumer.queue and entry.consumer not in (None, consumer) and entry.consumer.tag == consumer.tag
        for entry in broker.channels[consumer.channel].unacknowledged.values()
        if entry.consumer is not None
    )


def _may_follow_namesake(broker: Broker, frame: Frame) -> bool:
    return any(
        _has_namesake(broker, consumer)
        for queue in _seats(broker, QueueType.QUORUM)
        for consumer in queue.consumers
        if frame.method in _ENDS or consumer is queue.seat.holder
    )


def _never_activate(broker: Broker, frame: Frame) -> None:
    process(broker, frame)
    stuck = [
        queue
        for queue in _seats(broker, QueueType.QUORUM)
        if queue.seat.holder is not None and _has_namesake(broker, queue.seat.holder)
    ]
    _stall(broker, stuck)


DISPATCH_DEPARTURES: tuple[Departure, ...] = (
    Departure(
        name="cancel-leaves-backlog",
        requirement="SAC-002",
        statement="When the active consumer of a classic queue is cancelled, the one that follows it is not handed what"
        " is ready. The next publish hands it the new message first, or crashes the queue.",
        source="rabbit_amqqueue_process:handle_call basic_cancel does not run the queue; attempt_delivery, badmatch",
        dialects=("rabbitmq-3",),
        methods=("basic.cancel", "basic.publish", "basic.ack", "basic.qos", *_RETURNS),
        applies=lambda broker, frame: bool(_with_left_backlog(broker, frame)),
        process=_leave_backlog,
    ),
    Departure(
        name="returned-seat-stays-empty",
        requirement="SAC-004",
        statement="When the active consumer gives back the last of what it holds, it leaves its seat to one of higher"
        " priority, and that one does not take it.",
        source="rabbit_fifo:return does not call activate_next_consumer",
        dialects=("rabbitmq-4.0",),
        methods=_RETURNS,
        applies=lambda broker, frame: bool(_left_on(broker, frame)),
        process=_leave_without_successor,
    ),
    Departure(
        name="left-seat-starves",
        requirement="SAC-004",
        statement="When the consumer of higher priority ends before it took the seat, the active one is handed nothing"
        " until it has settled everything.",
        source="rabbit_fifo:cancel_consumer of a waiting consumer leaves the active one quiescing",
        dialects=("rabbitmq-4.0", "rabbitmq-4.3"),
        methods=(*_ENDS, *_RETURNS, *_OFTEN_WRONG, "basic.publish"),
        applies=_may_outstay,
        process=_go_on_leaving,
    ),
    Departure(
        name="closed-seat-keeps-messages",
        requirement="CHAN-016",
        statement="When a channel ends with both the active consumer, which is to leave its seat, and the one of higher"
        " priority that waits for it, what the active one held is not ready again, and nobody takes the seat.",
        source="rabbit_fifo:handle_down, handle_waiting_consumer_down",
        dialects=("rabbitmq-4.3",),
        methods=(*_ENDS, *_OFTEN_WRONG, *_RETURNS, "basic.publish"),
        applies=lambda broker, frame: bool(_closed_while_leaving(broker, frame)),
        process=_keep_what_it_held,
    ),
    Departure(
        name="namesake-never-active",
        requirement="SAC-002",
        statement="A waiting consumer whose channel holds deliveries of a cancelled one with its tag takes the seat and"
        " is handed nothing, and nobody else is.",
        source="rabbit_fifo:activate_next_consumer keeps the status of the existing consumer, which is cancelled",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=(*_ENDS, *_RETURNS, "basic.publish"),
        applies=_may_follow_namesake,
        process=_never_activate,
    ),
)
