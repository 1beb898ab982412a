"""In which order frames were sent that a client reads from several connections: nobody knows.

A client reads what has come on one connection, and then what has come on another. Mostly that is no matter: what one
frame has to do with one of another connection is open in the model itself (`model.outputs.delivered_message.find`). Not
where times are up: when a message goes from one consumer to the next as each of them times out, or when one has expired
that comes to the head of a queue, as that before it is handed out, and goes on to another queue, it makes sense to the
judge only in that order. Nor where the active consumer of a queue is cancelled: what it was handed before comes on its
connection, what the next one is handed after that comes on another. So a delivery that nothing explains is looked at
again after what comes on the other connections, until the client sends something or the broker is at rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.dead_letter_headers import EXCHANGE
from amqpspec.model.broker.internal_events import Input, Teardown, lane_of
from amqpspec.model.broker.owed import PendingGet
from amqpspec.model.broker.queues import Queue
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import TraceEvent

#: Inputs that end a consumer.
_ENDS = ("basic.cancel", "channel.close", "connection.close", "socket.abort")


class EarlyOutputs:
    """Frames that came too early, in their order, and what came after them on the same connections."""

    def __init__(self) -> None:
        self.frames: list[TraceEvent] = []

    def add(self, event: TraceEvent) -> None:
        self.frames.append(event)

    def holds_up(self, event: TraceEvent) -> bool:
        """Is one of them before it on its connection?"""
        return bool(self.frames) and any(other.connection == event.connection for other in self.frames)

    def judge_again(self, judge: Callable[[TraceEvent], None]) -> None:
        """In their order; those that still come too early are added anew."""
        count = 0
        while self.frames and len(self.frames) != count:
            waiting = self.take_all()
            count = len(waiting)
            for event in waiting:
                if self.holds_up(event):
                    self.add(event)
                else:
                    judge(event)

    def take_all(self) -> list[TraceEvent]:
        events, self.frames = self.frames, []
        return events


def may_be_early(broker: Broker, pending: Iterable[Input], event: TraceEvent) -> bool:
    """Is this delivery from a queue with deadlines, which may have handed the message to another connection before; may
    the message have expired where another one was in front of it, which goes to another connection; or may the active
    consumer, on another connection, have been handed what was in front of it before it ended?

    `pending`: the inputs that are under way.
    """
    channel = broker.channels.get((event.connection, event.channel))
    if channel is None:
        return False
    consumer = channel.consumers.get(event.arguments.get("consumer_tag", ""))
    if consumer is None:
        return False
    if broker.ageing and any(
        EXCHANGE in queue.in_force and _hands_out(broker, pending, queue, event.connection)
        for queue in broker.ageing
        if queue is not consumer.queue
    ):
        return True
    if _active_consumer_may_end(consumer.queue, pending, event.connection):
        return True
    if not consumer.queue.deadlines or consumer.queue.type is not QueueType.QUORUM:
        return False
    return any(other.channel[0] != event.connection for other in consumer.queue.consumers)


def _active_consumer_may_end(queue: Queue, pending: Iterable[Input], connection: str) -> bool:
    """May an input under way end the active consumer, which is on another connection than that?"""
    active = queue.active.consumer
    if active is None or active.channel[0] == connection:
        return False
    return any(lane_of(each)[0] == active.channel[0] and _may_end(each) for each in pending)


def _may_end(event: Input) -> bool:
    return isinstance(event, Teardown) or (isinstance(event, TraceEvent) and event.name in _ENDS)


def _hands_out(broker: Broker, pending: Iterable[Input], queue: Queue, connection: str) -> bool:
    """May somebody on another connection than that be handed a message of the queue now?"""
    if any(consumer.channel[0] != connection for consumer in queue.consumers):
        return True
    sent = (each for each in pending if isinstance(each, TraceEvent))
    if any(each.name == "basic.get" and each.connection != connection for each in sent):
        return True
    return any(
        isinstance(owed, PendingGet) and owed.queue is queue
        for channel in broker.channels.values()
        if channel.connection != connection
        for owed in channel.owed
    )
