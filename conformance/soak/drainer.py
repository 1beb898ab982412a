"""Who empties a queue at the end of a soak, and reads a stream from its beginning."""

from __future__ import annotations

from math import inf

from amqpspec.conformance.soak.client import Mill
from amqpspec.conformance.soak.consumer import Consumer
from amqpspec.conformance.soak.message import content, identity_of_delivery, is_marker, marker
from amqpspec.conformance.soak.outstanding import Outstanding
from amqpspec.conformance.soak.plan import PERSISTENT, ConsumerPlan, SoakQueue, Style
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import TraceEvent

#: Seconds without a delivery until it looks whether the queue is empty.
_LOOK_AFTER = 0.3
_PREFETCH = 200
#: Seconds without a delivery until a stream is given one more last message: right after a start it may lose one
#: (docs/findings.md, DURABLE-004).
_MARK_AGAIN = 1.0
#: How often at the most: a broker may alter messages, so that none is known for the last one.
_MOST_MARKERS = 8
#: How many times the patience a queue has to get emptier.
_GIVES_UP = 3
#: How often it asks once more for the number of consumers when it has left, and seconds in between.
_QUESTIONS, _ASK_AGAIN = 6, 0.5


class Drainer(Consumer):
    """`patience`: seconds that it waits for what should come and does not. `is_empty` says at the end whether the queue
    was found empty; of a stream: whether it was read to its end.
    """

    def __init__(self, name: str, queue: SoakQueue, mill: Mill, outstanding: Outstanding, patience: float) -> None:
        style = Style.READING if queue.type is QueueType.STREAM else Style.MULTIPLE
        super().__init__(ConsumerPlan(name, queue.name, style, _PREFETCH), mill, outstanding, may_leave=False)
        self.queue = queue
        self.is_empty = False
        self._patience = patience
        #: what was outstanding at the least, or read at the most; and since when
        self._best, self._best_since = 0, -1.0
        self._highest = 0
        #: how often it asks yet whether a consumer is left, and when
        self._questions, self._next_question = 0, inf
        self._is_looking = self._is_getting = self._is_cancelled = False
        #: how many messages it has published behind everything else in a stream, and when the last one
        self._markers, self._marked_at = 0, 0.0

    def open_channel(self) -> None:
        self._is_looking = self._is_getting = self._is_cancelled = False
        self._offset, self._next_question = -1, inf
        super().open_channel()
        self.last_delivery = self.mill.now()

    def on_channel(self, event: TraceEvent) -> None:
        name = event.name
        if event.channel == self.channel:
            if name == "queue.declare-ok":
                self.waits_since = None
                if not self._is_cancelled:
                    self._looked(event.arguments.get("message_count", 0))
                elif event.arguments.get("consumer_count", 0) and self._questions:
                    self._next_question = self.mill.now() + _ASK_AGAIN
                else:
                    self._is_getting = True
                    self.ask()
                return
            if name == "basic.consume-ok" and self.queue.type is QueueType.STREAM and not self._markers:
                self._mark()
            elif name == "basic.cancel-ok":
                self._is_cancelled, self._questions = True, _QUESTIONS
                self._ask_for_numbers()
                return
            elif name == "basic.get-ok":
                super().on_channel(event)
                self.settle_all()
                self.ask()
                return
        super().on_channel(event)

    def _mark(self) -> None:
        name = self.queue.name
        said = content(marker(self.name, self._markers), "", name, PERSISTENT)
        self._markers, self._marked_at = self._markers + 1, self.mill.now()
        self.send(self.channel, "basic.publish", said, exchange="", routing_key=name)

    def delivered(self, event: TraceEvent) -> None:
        super().delivered(event)
        self._highest = max(self._highest, self._offset)
        identity = identity_of_delivery(event)
        if identity is not None and is_marker(identity):
            self.is_empty = True
            self.finish()

    def turn(self, now: float) -> None:
        """A queue that never gets any emptier is left as it is."""
        reached = self._highest if self.queue.type is QueueType.STREAM else -self._outstanding.of(self.queue.name)
        if reached > self._best or self._best_since < 0:
            self._best, self._best_since = reached, now
        elif now - self._best_since > _GIVES_UP * self._patience and not self.is_done:
            super(Consumer, self).finish()
        super().turn(now)

    def act(self, now: float) -> None:
        idle = now - self.last_delivery
        if self.held and idle > 0.02:
            self.settle_all()
        if self.queue.type is QueueType.STREAM:
            if idle > self._patience:
                self.finish()
            elif (
                self.waits_since is None and self._markers < _MOST_MARKERS
                and min(idle, now - self._marked_at) > _MARK_AGAIN
            ):  # fmt: skip
                self._mark()
        elif now >= self._next_question:
            self._next_question, self._questions = inf, self._questions - 1
            self._ask_for_numbers()
        elif not (self._is_looking or self._is_cancelled or self.held) and idle > _LOOK_AFTER:
            self._is_looking = True
            self._ask_for_numbers()

    def _ask_for_numbers(self) -> None:
        self.waits_since = self.mill.now()
        self.send(self.channel, "queue.declare", queue=self.queue.name, passive=True)

    def _looked(self, ready: int) -> None:
        self._is_looking = False
        idle = self.mill.now() - self.last_delivery
        is_all_there = not ready and not self._outstanding.of(self.queue.name)
        if is_all_there or idle > self._patience:
            self.waits_since = self.mill.now()
            self.send(self.channel, "basic.cancel", consumer_tag="t")

    def found_empty(self) -> None:
        if self._is_getting:
            self.is_empty = True
            self.finish()

    def finish(self) -> None:
        if self.held:
            self.settle_all()
        super().finish()
