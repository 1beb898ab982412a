"""All states of a world, breadth first, and what is wrong with them."""

from __future__ import annotations

import gc
import resource
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from amqpspec.conformance.explore.again import without_copies
from amqpspec.conformance.explore.agreement import not_exact
from amqpspec.conformance.explore.along import judged, judged_open, served
from amqpspec.conformance.explore.position import Keys, Position, Step
from amqpspec.conformance.explore.properties import (
    AGREED,
    BLAMELESS,
    COMES_TO_REST,
    COPIED,
    JUDGED,
    SAME,
    SERVED,
    SOUND,
    wrong,
)
from amqpspec.conformance.explore.steps import first_position, next_steps
from amqpspec.conformance.explore.world import World
from amqpspec.model.broker.broker import Broker
from amqpspec.model.outputs.debts import debts
from amqpspec.model.outputs.permitted import permitted
from amqpspec.model.protocol.methods import TraceEvent
from amqpspec.targets.suite_error import line_of

#: Most violations of one property that are told of one world.
MOST_TOLD = 3
#: After so many states it is looked again how much memory is used.
MEMORY_EACH = 50
#: In place of a state that the broker comes to by itself: it is quiet already; none was found.
_QUIET, NONE_FOUND = -2, -1

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
        self.bounds = bounds
        self._progress = progress
        self._broker = broker
        self._known: list[_Known] = []
        #: places of states by all that is in them, in their order
        self._places: dict[int, int] = {}
        self._waiting: deque[tuple[int, Position, Keys]] = deque()
        #: the keys of all states: those that compare as equal, from which clients may send the same, are one
        self._keys: set[int] = set()
        #: what the broker may do in states that compare as equal, and what follows from each step; both with the place
        #: of the first of them
        self._permitted: dict[int, tuple[int, int]] = {}
        self._following: dict[int, tuple[int, int]] = {}
        #: one state that the broker comes to from each, by itself, as `Keys.whole`; none where it is quiet
        self._by_itself: list[int] = []
        #: frames that led to the first position
        self.setup: list[TraceEvent | None] = []
        self._told: Counter[str] = Counter()

    def explore(self) -> Explored:
        """Raises `SetupFailed`."""
        began = time.monotonic()
        with garbage_collected_seldom():
            self.begin()
            self.go_on(began)
            return self.finish(began)

    def finish(self, began: float) -> Explored:
        """What is looked at when nothing more is explored."""
        if not self.result.unexplored:
            self.are_at_no_rest(at_no_rest(self.by_itself()))
        self.check_ways(range(len(self._known)), self.bounds.ways)
        self.result.seconds = time.monotonic() - began
        return self.result

    def begin(self) -> None:
        """Carry out the setup. Raises `SetupFailed`."""
        first, self.setup = first_position(self.world, self._broker)
        self.result.exercised.update(first.broker.bookkeeping.exercised)
        first.broker.bookkeeping.exercised.clear()
        self._reached(first.keys(), -1, None, first)

    def go_on(self, began: float, waiting: int = 0) -> None:
        """Explore, until so many states wait if that is not 0."""
        expanded = memory = 0
        while self._waiting and not (0 < waiting <= len(self._waiting)):
            if expanded % MEMORY_EACH == 0:
                memory = memory_used()
            expanded += 1
            if why := self.must_stop(began, len(self._known), memory):
                self.result.stopped_by, self.result.unexplored = why, len(self._waiting)
                break
            place = self.expand_next()
            if self._progress is not None and place % 500 == 0:
                told = (len(self._keys), len(self._waiting), self.result.transitions, self._known[place].depth)
                self._progress(self.world.name, *told)
        self.result.states, self.result.variants = len(self._keys), len(self._known)
        self.result.depth = max((each.depth for each in self._known), default=0)

    def expand_next(self) -> int:
        """Look at all that follows from the first state that waits. Gives its place."""
        place, position, keys = self._waiting.popleft()
        try:
            self._expand(place, position, keys)
        except Exception as error:  # noqa: BLE001 - whatever it is, the rules are not sound
            self._violated(SOUND, line_of(error), place, None, position, None)
        return place

    def must_stop(self, began: float, states: int, memory: int) -> str:
        """Why nothing more is explored, with so many states known and megabytes used; "": it goes on."""
        most = self.bounds.states or self.world.states
        if most and states >= most:
            return f"{most:,} states"
        if self.bounds.seconds and time.monotonic() - began > self.bounds.seconds:
            return f"{self.bounds.seconds:g} seconds"
        if self.bounds.memory and memory > self.bounds.memory:
            return f"{self.bounds.memory:,} megabytes"
        return ""

    def _reached(self, keys: Keys, before: int, step: Step | None, position: Position) -> None:
        """That state was reached: if it was not known, it waits."""
        if keys.whole not in self._places:
            self._keys.add(keys.position)
            self._waiting.append((self._add(keys, before, step), position, keys))

    def _add(self, keys: Keys, before: int, step: Step | None) -> int:
        """The place of a state that was not known."""
        place = self._places[keys.whole] = len(self._known)
        depth = self._known[before].depth + 1 if before >= 0 else 0
        self._known.append(_Known(before, step, depth, keys.state))
        self._by_itself.append(NONE_FOUND)
        return place

    def _expand(self, place: int, position: Position, keys: Keys) -> None:
        following: dict[str, int] = {}
        own: set[str] = set()
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
                if step.kind != "rest" and self._by_itself[place] == NONE_FOUND:
                    self._by_itself[place] = behind.whole
            self._reached(behind, place, step, further)
        for what in not_exact(position, following, self.result.beyond):
            self._violated(AGREED, what, place, None, position, None)
        if position.is_quiet or _is_contradictory(position) or (self.world.has_time and not own):
            self._by_itself[place] = _QUIET  # or what is owed comes later, when it is time
        if position.keys() != keys:
            self._violated(COPIED, "what was done to copies has changed the original", place, None, position, None)
        self._compare(place, position, following, own)

    def _compare(self, place: int, position: Position, following: Mapping[str, int], own: set[str]) -> None:
        """Does the same follow as from the states that compare as equal, whatever clients may still send?"""
        behind = {hash(text): state for text, state in following.items()}
        found = self.differs(place, self._known[place].state_key, hash(frozenset(own)), behind)
        if found is not None:
            first, text = found
            name = next((each for each in following if text is not None and hash(each) == text), "")
            self.not_the_same(place, self.path(first), position, name)

    def differs(self, place: int, state: int, own: int, following: Mapping[int, int]) -> tuple[int, int | None] | None:
        """The place of another state that compares as equal, and by which step another one follows there; or by none,
        where the broker may do something else.
        """
        other, first = self._permitted.setdefault(state, (own, place))
        if other != own:
            return first, None
        for text, behind in following.items():
            other, first = self._following.setdefault(hash((state, text)), (behind, place))
            if other != behind:
                return first, text
        return None

    def not_the_same(self, place: int, first: Iterable[Step], position: Position, text: str) -> None:
        """By that step another state follows than behind that way; "": the broker may do something else."""
        path = "\n".join(f"    {each.text}" for each in first)
        how = f"another state follows by {text}" if text else "the broker may do something else"
        what = f"it compares as equal with the state behind\n{path}\nand {how}"
        self._violated(SAME, what, place, None, position, None)

    def by_itself(self, since: int = 0) -> dict[int, int]:
        """What the broker comes to by itself from each state, where that is known; also of all from that place on."""
        known = enumerate(zip(self._places, self._by_itself, strict=True))
        return {whole: further for place, (whole, further) in known if place >= since or further != NONE_FOUND}

    def are_at_no_rest(self, states: Iterable[int]) -> None:
        for whole in states:
            self._violated(
                COMES_TO_REST, "no quiet state is reached from it", self._places[whole], None, None, None
            )  # fmt: skip

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

    def check_ways(self, places: range, most: int) -> None:
        """Some of the ways to states from which none was reached first, which go through all that is known."""
        inner = {each.before for each in self._known}
        ends = [place for place in places if place not in inner]
        chosen = ends[:: max(-(-len(ends) // most), 1)]
        self.result.ways = len(chosen)
        for place in chosen:
            path = self.path(place)
            alone = without_copies(self.world, path, self._broker)
            if alone is not None and alone.state_key() != self._known[place].state_key:
                self._violated(COPIED, "without any copy on the way another state is reached", place, None, None, None)
            forgetful = without_copies(self.world, path, self._broker, is_forgetful=True)
            if forgetful is not None and forgetful.state_key() != self._known[place].state_key:
                self._violated(BLAMELESS, "by what words failures another state is reached", place, None, None, None)
            for name, looks in ((JUDGED, judged), (JUDGED, judged_open), (SERVED, served)):
                try:
                    for what in looks(self.world, self.setup, path):
                        self._violated(name, what, place, None, None, None)
                except Exception as error:  # noqa: BLE001 - likewise
                    self._violated(name, line_of(error), place, None, None, None)


@contextmanager
def garbage_collected_seldom() -> Iterator[None]:
    """What is found stays for long: to look through it again and again would take a fifth of the time."""
    usual = gc.get_threshold()
    gc.set_threshold(100_000, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def memory_used() -> int:
    """The most that this process has used so far, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def at_no_rest(by_itself: Mapping[int, int]) -> Iterator[int]:
    """States from which the broker comes to no quiet one by its own doing. `by_itself`: where it comes from each."""
    rests: dict[int, bool] = {}
    for start in by_itself:
        way: list[int] = []
        place = start
        while place not in rests:
            way.append(place)
            rests[place] = False  # until it is known: a circle is no way to rest
            following = by_itself[place]
            if following in (_QUIET, NONE_FOUND):
                rests[place] = following == _QUIET
                break
            place = following
        for each in way:
            rests[each] = rests[place]
        if not rests[start]:
            yield start


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
