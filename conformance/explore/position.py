"""A position: a state of the broker, what it will do by itself, and what the clients of the world may still send."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

from amqpspec.conformance.explore.beside import beside
from amqpspec.conformance.explore.world import World
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.fingerprint import fingerprint
from amqpspec.model.broker.internal_events import InternalEvent
from amqpspec.model.broker.stream_log import known_chunks
from amqpspec.model.judging.explanation import Explanation
from amqpspec.model.protocol.methods import TraceEvent


class Keys(NamedTuple):
    """Numbers by which positions are told apart."""

    #: equal for states that compare as equal, whatever clients may still send
    state: int
    #: equal for positions from which the same can come
    position: int
    #: equal for positions that differ in nothing, not even in what is not compared
    whole: int


@dataclass(slots=True)
class Position:
    """One place in the exploration of a world. It is copied before anything is done to it."""

    world: World
    explanation: Explanation
    #: how often each command of the world may still be sent, and how many may be sent in all
    left: tuple[int, ...]
    inputs_left: int
    #: how many messages were published, each with a body of its own
    published: int = 0
    #: the time, in seconds
    now: float = 1.0
    #: queues and bodies of its messages, once they were looked for: of those that are there, and of those that are gone
    places: tuple[Counter[tuple[str, bytes]], Counter[tuple[str, bytes]]] | None = field(default=None, init=False)

    @property
    def broker(self) -> Broker:
        return self.explanation.broker

    def fork(self) -> Position:
        return Position(
            self.world, self.explanation.fork(), self.left, self.inputs_left, self.published, self.now,
        )  # fmt: skip

    @property
    def is_quiet(self) -> bool:
        """The broker owes nothing, and what it has to do by itself is done."""
        return self.explanation.is_settled and self.explanation.is_quiet

    def keys(self) -> Keys:
        state = self.state_key()
        position = hash((state, self.left, self.inputs_left, self.published))
        return Keys(state, position, hash((position, beside(self.broker))))

    def state_key(self) -> int:
        """The same, whatever clients may still send. Of what differs in known chunks the judge keeps what is common."""
        broker = self.broker
        # of one trace these are alike in all states that are compared (`model.broker.field_kinds.apart`)
        heard = tuple(each.heard for _, each in sorted(broker.connections.items()))
        at = (self.now, broker.last_at_rest, broker.busy_since, broker.client_idle_until, broker.looked_ahead_until)
        times = (*at, heard)
        return hash((fingerprint(broker), known_chunks(broker), self.under_way, times if self.world.has_time else 0))

    @property
    def under_way(self) -> Hashable:
        """What the broker does by itself, sooner or later: of one lane in its order."""
        pending = self.explanation.pending
        if not pending:
            return ()
        lanes: dict[object, list[Hashable]] = {}
        for each in pending:
            assert isinstance(each, InternalEvent), "inputs are processed at once"
            lanes.setdefault(each.lane, []).append(each)
        return frozenset((lane, tuple(events)) for lane, events in lanes.items())


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happens: what it is, and what goes over the wire with it."""

    #: "input", "close-ok", "internal", "output", "rest" or "wait"
    kind: str
    #: one line that says what it is, equal for equal steps
    text: str
    frames: tuple[TraceEvent, ...] = ()

    @property
    def is_by_client(self) -> bool:
        return self.kind in ("input", "close-ok", "wait")
