"""Known defects (`model.defects.transitions`) of area SAC: a queue with ready messages that does not serve its active
consumer.

What such a queue does next depends on what happens to wake it. So it owes nothing from then on (`Seat.is_stalled`), and
whoever is served first has the seat.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.hooks import Guest, arm
from amqpspec.model.broker.queues import Arrival, Consumer, Phantom, Queue
from amqpspec.model.broker.state import Channel, Unacknowledged
from amqpspec.model.defects.channel_limiter import limiter_of
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import TEARDOWNS, Frame
from amqpspec.model.rules.inputs import process

CLASSIC_SEATS = "classic queue's active consumer"
WAITING_CONSUMERS = "waiting consumers"

ENDS = ("basic.cancel", "channel.close", "connection.close", *TEARDOWNS, "socket.abort")
RETURNS = ("basic.nack", "basic.reject", "basic.recover", "basic.recover-async")
#: In error they end their channel, or all channels of the connection.
OFTEN_WRONG = ("basic.ack", "basic.get", "basic.consume", "basic.qos", "queue.declare", "queue.delete", "queue.purge")


class ClassicSeats(Guest):
    """Knows when a classic queue has an active consumer."""

    name = CLASSIC_SEATS

    def seat_given(self, broker: Broker, queue: Queue, before: Consumer | None, requirement: str) -> None:
        if queue.type is QueueType.CLASSIC:
            arm(broker, CLASSIC_SEATS)


def seats(broker: Broker, type: QueueType) -> Iterator[Queue]:
    return (queue for queue in broker.queues.values() if queue.single_active_consumer and queue.type is type)


class WaitingConsumers(Guest):
    """Knows when a quorum queue may take the wrong one for its active consumer."""

    name = WAITING_CONSUMERS

    def consumer_goes(self, broker: Broker, consumer: Consumer, requirement: str) -> None:
        """Another one of its tag may come while it still holds something."""
        if _is_quorum_seat(consumer.queue) and holds_something(broker, consumer):
            arm(broker, WAITING_CONSUMERS)

    def delivery_timed_out(self, broker: Broker, channel: Channel, entry: Unacknowledged) -> None:
        """Its consumer goes with the next one of its tag."""
        if _is_quorum_seat(entry.queue) and entry.consumer is not None and holds_something(broker, entry.consumer):
            arm(broker, WAITING_CONSUMERS)

    def seat_given(self, broker: Broker, queue: Queue, before: Consumer | None, requirement: str) -> None:
        if queue.seat.is_being_left and queue.type is QueueType.QUORUM:
            arm(broker, WAITING_CONSUMERS)


def _is_quorum_seat(queue: Queue) -> bool:
    return queue.type is QueueType.QUORUM and queue.single_active_consumer


def holds_something(broker: Broker, consumer: Consumer) -> bool:
    """Does the consumer's channel hold a delivery that was made to it?"""
    return any(entry.consumer is consumer for entry in broker.channels[consumer.channel].unacknowledged.values())


def _held_on(broker: Broker, frame: Frame) -> list[Unacknowledged]:
    channel = broker.channels.get((frame.connection, frame.channel))
    return list(channel.unacknowledged.values()) if channel is not None else []


def stall(broker: Broker, queues: list[Queue]) -> None:
    for queue in queues:
        queue.seat.stalled_at = broker.stamp
        arm(broker, CLASSIC_SEATS)
        broker.refresh(queue)


# -------------------------------------------------------------------------------- cancelled with a backlog


def _leaves_backlog(broker: Broker, frame: Frame) -> Queue | None:
    channel = broker.channels.get((frame.connection, frame.channel))
    consumer = channel.consumers.get(frame.arguments.get("consumer_tag", "")) if channel is not None else None
    if consumer is None or consumer.queue not in seats(broker, QueueType.CLASSIC):
        return None
    return consumer.queue if consumer.queue.seat.holder is consumer and consumer.queue.messages else None


def _with_left_backlog(broker: Broker, frame: Frame) -> list[Queue]:
    """Queues that may not serve whoever followed a cancelled consumer, which shows once there is room for it."""
    if frame.method == "basic.cancel":
        queue = _leaves_backlog(broker, frame)
        return [queue] if queue is not None else []
    if frame.method == "basic.publish":
        return [
            queue
            for queue in seats(broker, QueueType.CLASSIC)
            if queue.seat.is_stalled or _is_held_back_by_channel(broker, queue)
        ]
    return [
        queue
        for queue in seats(broker, QueueType.CLASSIC)
        if queue.messages and queue.seat.reason == "SAC-002" and not queue.seat.is_stalled
    ]


def _is_held_back_by_channel(broker: Broker, queue: Queue) -> bool:
    """Would whoever followed a cancelled consumer have room, were there not a limit of its channel? The broker may
    know of none, or count otherwise (`model.defects.channel_limiter`): then it has been left with the backlog unseen.
    """
    holder = queue.seat.holder
    if holder is None or not queue.messages or queue.seat.reason != "SAC-002":
        return False
    channel = broker.channels.get(holder.channel)
    is_limited = channel is not None and channel.channel_prefetch > 0 and not limiter_of(broker, channel).is_followed
    return is_limited and not (0 < holder.prefetch <= holder.outstanding)


def _leave_backlog(broker: Broker, frame: Frame) -> None:
    """With the next publish the queue may crash, and what comes of that is a matter of timing.

    The publish may cross what ends the active consumer, or what makes room for the next one.
    """
    queues = _with_left_backlog(broker, frame)
    crashes = frame.method == "basic.publish" or any(map(_is_crossed_by_publish, queues))
    process(broker, frame)
    stall(broker, queues)
    broker.is_astray |= crashes


def _is_crossed_by_publish(queue: Queue) -> bool:
    """May a message arrive behind what is ready, and behind the input that is processed now?"""
    return any(message.arrival is Arrival.PUBLISHED for message in islice(queue.messages, 1, None))


# ---------------------------------------------------------------------------- a seat that is left for somebody


def _left_on(broker: Broker, frame: Frame) -> list[Queue]:
    """Queues whose active consumer is to leave its seat, and has deliveries on the frame's channel."""
    held = _held_on(broker, frame)
    return [
        queue
        for queue in seats(broker, QueueType.QUORUM)
        if queue.seat.is_being_left and any(entry.consumer is queue.seat.holder for entry in held)
    ]


def _leave_without_successor(broker: Broker, frame: Frame) -> None:
    left = _left_on(broker, frame)
    process(broker, frame)
    stall(broker, [queue for queue in left if not queue.seat.is_being_left])


def _may_outstay(broker: Broker, frame: Frame) -> bool:
    return any(
        (queue.seat.is_being_left and any(each.channel[0] == frame.connection for each in queue.consumers))
        or queue.seat.has_outstayed
        or _has_successor(queue)
        for queue in seats(broker, QueueType.QUORUM)
    )


def _has_successor(queue: Queue) -> bool:
    claim = queue.seat.claimant
    return claim is not None and claim[1] is Phantom.SUCCESSOR


def _go_on_leaving(broker: Broker, frame: Frame) -> None:
    """4.0: nobody follows when it gives back the last of what it holds (rabbit_fifo:return)."""
    outstayed = [queue for queue in seats(broker, QueueType.QUORUM) if queue.seat.has_outstayed]
    holders = [queue.seat.holder for queue in outstayed]
    _follow(broker)
    process(broker, frame)
    _follow(broker)
    stall(broker, [queue for queue in seats(broker, QueueType.QUORUM) if queue.seat.has_outstayed])
    if frame.method in RETURNS and not broker.dialect.quorum_return_frees_seat:
        seated = zip(outstayed, holders, strict=True)
        stall(broker, [queue for queue, holder in seated if holder in queue.consumers])


def _follow(broker: Broker) -> None:
    """Who has followed one that ought to have stayed has the seat."""
    for queue in seats(broker, QueueType.QUORUM):
        if queue.seat.claimant is not None and _has_successor(queue):
            queue.seat.holder, queue.seat.claimant = queue.seat.claimant[0], None
            queue.seat.reason = "SAC-004"
            broker.refresh(queue)


DISPATCH_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="cancel-leaves-backlog",
        requirement="SAC-002",
        statement="When the active consumer of a classic queue is cancelled, the one that follows it is not handed what"
        " is ready. The next publish hands it the new message first, or crashes the queue.",
        source="rabbit_amqqueue_process:handle_call basic_cancel does not run the queue; attempt_delivery, badmatch",
        dialects=("rabbitmq-3",),
        methods=("basic.cancel", "basic.publish", "basic.ack", "basic.qos", *RETURNS),
        guest=CLASSIC_SEATS,
        applies=lambda broker, frame: bool(_with_left_backlog(broker, frame)),
        process=_leave_backlog,
    ),
    DefectTransition(
        name="returned-seat-stays-empty",
        requirement="SAC-004",
        statement="When the active consumer gives back the last of what it holds, it leaves its seat to one of higher"
        " priority, and that one does not take it.",
        source="rabbit_fifo:return does not call activate_next_consumer",
        dialects=("rabbitmq-4.0",),
        methods=RETURNS,
        guest=WAITING_CONSUMERS,
        applies=lambda broker, frame: bool(_left_on(broker, frame)),
        process=_leave_without_successor,
    ),
    DefectTransition(
        name="left-seat-starves",
        requirement="SAC-004",
        statement="When the consumer of higher priority ends before it took the seat, the active one is handed nothing"
        " until it has settled everything; then another one of its priority may have the seat.",
        source="rabbit_fifo:cancel_consumer of a waiting consumer leaves the active one quiescing",
        dialects=("rabbitmq-4.0", "rabbitmq-4.3"),
        methods=(*ENDS, *RETURNS, *OFTEN_WRONG, "basic.publish"),
        guest=WAITING_CONSUMERS,
        applies=_may_outstay,
        process=_go_on_leaving,
    ),
)
