"""In which order frames were sent that a client reads from several connections: nobody knows.

A client reads what has come on one connection, and then what has come on another. Mostly that is no matter: what one
frame has to do with one of another connection is open in the model itself (`model.messages.find`). Not where times are
up: when a message goes from one consumer to the next as each of them times out, it makes sense to the judge only in
that order. So a delivery that nothing explains is looked at again behind what comes on the other connections, until the
client sends something or the broker is at rest.
"""

from __future__ import annotations

from collections.abc import Callable

from model.alphabet import Frame
from model.broker import Broker
from model.queues import QueueType


class EarlyFrames:
    """Frames that came too early, in their order, and what came behind them on the same connections."""

    def __init__(self) -> None:
        self._frames: list[Frame] = []

    def add(self, frame: Frame) -> None:
        self._frames.append(frame)

    def holds_up(self, frame: Frame) -> bool:
        """Is one of them before it on its connection?"""
        return any(other.connection == frame.connection for other in self._frames)

    def judge_again(self, judge: Callable[[Frame], None]) -> None:
        """In their order; those that still come too early are added anew."""
        count = 0
        while self._frames and len(self._frames) != count:
            waiting = self.take_all()
            count = len(waiting)
            for frame in waiting:
                if self.holds_up(frame):
                    self.add(frame)
                else:
                    judge(frame)

    def take_all(self) -> list[Frame]:
        frames, self._frames = self._frames, []
        return frames


def may_be_early(broker: Broker, frame: Frame) -> bool:
    """Is it a delivery from a queue with deadlines, which may have handed the message to another connection before?"""
    channel = broker.channels.get((frame.connection, frame.channel))
    if frame.method != "basic.deliver" or channel is None:
        return False
    consumer = channel.consumers.get(frame.arguments.get("consumer_tag", ""))
    if consumer is None or not consumer.queue.deadlines or consumer.queue.type is not QueueType.QUORUM:
        return False
    return any(other.channel[0] != frame.connection for other in consumer.queue.consumers)
