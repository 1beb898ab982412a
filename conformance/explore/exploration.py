"""All states of a world, breadth first, and what is wrong with them."""

from __future__ import annotations

import resource
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from amqpspec.conformance.explore.again import without_copies
from amqpspec.conformance.explore.agreement import not_exact
from amqpspec.conformance.explore.along import judged, judged_open, served
from amqpspec.conformance.explore.position import Keys, Position, Step
from amqpspec.conformance.explore.properties import AGREED, COMES_TO_REST, COPIED, JUDGED, SAME, SERVED, SOUND, wrong
from amqpspec.conformance.explore.steps import first_position, next_steps
from amqpspec.conformance.explore.world import World
from amqpspec.model.broker.broker import Broker
from amqpspec.model.outputs.debts import debts
from amqpspec.model.outputs.permitted import permitted
from amqpspec.model.protocol.methods import TraceEvent
from amqpspec.targets.suite_error import line_of

#: Most violations of one property that are told of one world.
MOST_TOLD = 3
#: In place of a state that the broker comes to by itself: it is quiet already.
_QUIET = -2

#: (states, states that wait, transitions, depth) so far
Progress = Callable[[str, int, int, int, int], None]


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is explored; 0: no bound."""

    #: 0: as the world says
    states: int = 0
    seconds: float = 0.0
    #: megabytes
    memory: int = 0
    #: ways that are gone again, without copies, and given to the judges
    ways: int = 100


@dataclass(frozen=True, slots=True)
class Violation:
    """A property does not hold: the way from the first position to where it shows."""

    world: str
    name: str
    what: str
    path: tuple[Step, ...]
    #: the states before and after, as text that tells what differs
    before: str = ""
    after: str = ""


@dataclass(slots=True)
class Explored:
    """What the exploration of one world has found."""

    world: str
    states: int = 0
    #: states that differ in something that is not compared
    variants: int = 0
    transitions: int = 0
    depth: int = 0
    seconds: float = 0.0
    #: states that are known and were not gone on from, and why
    unexplored: int = 0
    #: ways that were gone again
    ways: int = 0
    stopped_by: str = ""
    violations: list[Violation] = field(default_factory=list)
    #: requirements that made a difference
    exercised: Counter[str] = field(default_factory=Counter)
    #: frames that are accepted and not enumerated, by name: a simple broker would not send them first
    beyond: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class _Known:
    """A state that was reached: from which one, and by which step."""

    before: int
    step: Step | None
    depth: int
    state_key: int


class Exploration:
    """The states of one world. `broker`: the type of its broker, in place of the model's own."""

    def __init__(
        self, world: World, bounds: Bounds = Bounds(), progress: Progress | None = None, broker: type[Broker] = Broker
    ) -> None:
        self.world = world
        self.result = Explored(world.name)
        self._bounds = bounds
        self._progress = progress
        self._broker = broker
        self._known: list[_Known] = []
        #: places of states by all that is in them
        self._places: dict[int, int] = {}
        #: the keys of all states: those that compare as equal, from which clients may send the same, are one
        self._keys: set[int] = set()
        #: what the broker may do in states that compare as equal, and what follows from each step; both with the place
        #: of the first of them
        self._permitted: dict[int, tuple[int, int]] = {}
        self._following: dict[int, tuple[int, int]] = {}
        #: one state that the broker comes to from each, by itself; none where it is quiet
        self._by_itself: list[int] = []
        #: frames that led to the first position
        self.setup: list[TraceEvent | None] = []
        self._told: Counter[str] = Counter()

    def explore(self) -> Explored:
        """Raises `SetupFailed`."""
        began = time.monotonic()
        first, self.setup = first_position(self.world, self._broker)
        self.result.exercised.update(first.broker.bookkeeping.exercised)
        first.broker.bookkeeping.exercised.clear()
        key = first.keys()
        waiting = deque([(self._add(key, -1, None), first, key)])
        most = self._bounds.states or self.world.states
        while waiting:
            if why := self._must_stop(began, most):
                self.result.stopped_by, self.result.unexplored = why, len(waiting)
                break
            place, position, key = waiting.popleft()
            try:
                waiting.extend(self._expand(place, position, key))
            except Exception as error:  # noqa: BLE001 - whatever it is, the rules are not sound
                self._violated(SOUND, line_of(error), place, None, position, None)
            if self._progress is not None and place % 500 == 0:
                told = (len(self._keys), len(waiting), self.result.transitions, self._known[place].depth)
                self._progress(self.world.name, *told)
        self.result.states, self.result.variants = len(self._keys), len(self._known)
        self.result.depth = max((each.depth for each in self._known), default=0)
        if not self.result.unexplored:
            self._check_rest()
        self._check_ways()
        self.result.seconds = time.monotonic() - began
        return self.result

    def _must_stop(self, began: float, most: int) -> str:
        if most and len(self._known) >= most:
            return f"{most:,} states"
        if self._bounds.seconds and time.monotonic() - began > self._bounds.seconds:
            return f"{self._bounds.seconds:g} seconds"
        if self._bounds.memory and resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > self._bounds.memory * 1024:
            return f"{self._bounds.memory:,} megabytes"
        return ""

    def _add(self, key: Keys, before: int, step: Step | None) -> int:
        """The place of a state that was not known, or -1."""
        if key.whole in self._places:
            return -1
        place = self._places[key.whole] = len(self._known)
        self._keys.add(key.position)
        depth = self._known[before].depth + 1 if before >= 0 else 0
        self._known.append(_Known(before, step, depth, key.state))
        self._by_itself.append(-1)
        return place

    def _expand(self, place: int, position: Position, key: Keys) -> Iterator[tuple[int, Position, Keys]]:
        following: dict[str, int] = {}
        own: set[str] = set()
        goes_on = False
        for step, further in next_steps(position):
            self.result.transitions += 1
            self.result.kinds[step.kind] += 1
            exercised = further.broker.bookkeeping.exercised
            if exercised:
                self.result.exercised.update(exercised)
                exercised.clear()
            for violated, what in wrong(position, step, further):
                self._violated(violated.name, what, place, step, position, further)
            behind = further.keys()
            following[step.text] = behind.state
            if not step.is_by_client:
                own.add(step.text)
            found = self._add(behind, place, step)
            if not step.is_by_client and step.kind != "rest" and not goes_on:
                goes_on = True
                self._by_itself[place] = self._places[behind.whole]
            if found >= 0:
                yield found, further, behind
        for what in not_exact(position, following, self.result.beyond):
            self._violated(AGREED, what, place, None, position, None)
        if position.is_quiet or _is_contradictory(position) or (self.world.has_time and not own):
            self._by_itself[place] = _QUIET  # or what is owed comes later, when it is time
        if position.keys() != key:
            self._violated(COPIED, "what was done to copies has changed the original", place, None, position, None)
        self._compare(place, position, following, own)

    def _compare(self, place: int, position: Position, following: Mapping[str, int], own: set[str]) -> None:
        """Does the same follow as from the states that compare as equal, whatever clients may still send?"""
        state = self._known[place].state_key
        other, first = self._permitted.setdefault(state, (hash(frozenset(own)), place))
        if other != hash(frozenset(own)):
            self._not_the_same(place, first, position, "the broker may do something else")
            return
        for text, behind in following.items():
            other, first = self._following.setdefault(hash((state, text)), (behind, place))
            if other != behind:
                self._not_the_same(place, first, position, f"another state follows by {text}")
                return

    def _not_the_same(self, place: int, first: int, position: Position, how: str) -> None:
        path = "\n".join(f"    {each.text}" for each in self.path(first))
        what = f"it compares as equal with the state behind\n{path}\nand {how}"
        self._violated(SAME, what, place, None, position, None)

    def _check_rest(self) -> None:
        """Does each state come to a quiet one by the broker's own doing?"""
        rests: dict[int, bool] = {}
        for start in range(len(self._known)):
            way: list[int] = []
            place = start
            while place not in rests:
                way.append(place)
                rests[place] = False  # until it is known: a circle is no way to rest
                following = self._by_itself[place]
                if following < 0:
                    rests[place] = following == _QUIET
                    break
                place = following
            for each in way:
                rests[each] = rests[place]
            if not rests[start]:
                self._violated(COMES_TO_REST, "no quiet state is reached from it", start, None, None, None)

    def _violated(
        self, name: str, what: str, place: int, step: Step | None, before: Position | None, after: Position | None
    ) -> None:
        self._told[name] += 1
        if self._told[name] <= MOST_TOLD:
            path = self.path(place) if step is None else (*self.path(place), step)
            texts = [_state_text(each) if each is not None else "" for each in (before, after)]
            self.result.violations.append(Violation(self.world.name, name, what, path, *texts))

    def path(self, place: int) -> tuple[Step, ...]:
        """The steps by which the state was reached first."""
        steps: list[Step] = []
        while (known := self._known[place]).step is not None:
            steps.append(known.step)
            place = known.before
        return tuple(reversed(steps))

    def _check_ways(self) -> None:
        """Some of the ways to states from which none was reached first, which go through all that is known."""
        inner = {each.before for each in self._known}
        ends = [place for place in range(len(self._known)) if place not in inner]
        chosen = ends[:: max(-(-len(ends) // self._bounds.ways), 1)]
        self.result.ways = len(chosen)
        for place in chosen:
            path = self.path(place)
            alone = without_copies(self.world, path, self._broker)
            if alone is not None and alone.state_key() != self._known[place].state_key:
                self._violated(COPIED, "without any copy on the way another state is reached", place, None, None, None)
            for name, looks in ((JUDGED, judged), (JUDGED, judged_open), (SERVED, served)):
                try:
                    for what in looks(self.world, self.setup, path):
                        self._violated(name, what, place, None, None, None)
                except Exception as error:  # noqa: BLE001 - likewise
                    self._violated(name, line_of(error), place, None, None, None)


def _is_contradictory(position: Position) -> bool:
    """Does no broker come there? What it owes cannot come, as what came before was taken for right too early: a judge
    says so when the time for it is up.
    """
    broker = position.broker
    return not broker.quiet and not any(permitted(broker)) and any(debts(broker))


def _state_text(position: Position) -> str:
    """What is ready and who holds what, in a few lines."""
    lines = []
    for name, queue in position.broker.queues.items():
        ready = " ".join(message.content.body.decode(errors="replace") for message in queue.messages) or "nothing"
        lines.append(f"{name}: {ready} ready")
    for (connection, number), channel in position.broker.channels.items():
        held = " ".join(
            f"{tag}={entry.message.content.body.decode(errors='replace')}"
            for tag, entry in channel.unacknowledged.items()
        )
        owed = " ".join(getattr(each, "method", "basic.get") for each in channel.owed)
        open_ = " ".join(map(str, channel.unconfirmed))
        parts = [f"{connection}.{number} {channel.state.value}"]
        parts += [f"holds {held}"] if held else []
        parts += [f"is owed {owed}"] if owed else []
        parts += [f"waits for the confirms of {open_}"] if open_ else []
        lines.append(", ".join(parts))
    return "\n".join(lines)
