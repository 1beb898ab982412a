"""One world explored by several processes, each of which goes on from the states that it has reached itself.

A part of the exploration begins as a copy of the process that has explored the world until enough states wait, and
takes its share of these. Which states are new, and whether equal ones have equal successors, is asked of the part that
the state belongs to by its number (`owner`): only numbers go from one part to the other, and no state. A state that
several have reached is left to the one with the fewest that wait. All go on to a greater depth at one time, so that a
counterexample is still a shortest one.
"""

from __future__ import annotations

import gc
import multiprocessing
import time
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

from amqpspec.conformance.explore.exploration import (
    MOST_TOLD,
    Bounds,
    Exploration,
    Explored,
    Progress,
    at_no_rest,
    garbage_collected_seldom,
    memory_used,
)
from amqpspec.conformance.explore.position import Keys, Position, Step
from amqpspec.conformance.explore.world import World

#: So many states wait for each part before the world is shared.
_WAITING = 30
#: Most states that a part goes on from before all tell each other what they have reached.
_MOST_AT_A_TIME = 250

#: What was reached, three numbers each (`Keys`); what follows from states: each its number, its place, what the broker
#: may do, how many steps there are, and each step with the state behind it.
Reached: TypeAlias = "array[int]"
Followed: TypeAlias = "array[int]"
#: A state that differs from an equal one: its place, the part of the other one and its place, and the step by which;
#: 0: the broker may do something else.
Difference = tuple[int, int, int, int]


def can_be_shared() -> bool:
    """Can this process make copies of itself?"""
    return "fork" in multiprocessing.get_all_start_methods()


def explore_shared(world: World, bounds: Bounds, parts: int, progress: Progress | None = None) -> Explored:
    """The states of the world, explored by so many processes. Raises `SetupFailed`."""
    with garbage_collected_seldom():
        return _explore_shared(world, bounds, parts, progress)


def _explore_shared(world: World, bounds: Bounds, parts: int, progress: Progress | None) -> Explored:
    began = time.monotonic()
    whole = _Part(world, bounds, progress)
    whole.begin()
    whole.go_on(began, waiting=parts * _WAITING)
    if not whole.waits or whole.result.stopped_by:
        return whole.finish(began)
    gc.collect()
    gc.freeze()
    context = multiprocessing.get_context("fork")
    pipes: list[Connection] = []
    processes = []
    try:
        for number in range(parts):
            here, there = context.Pipe()
            process = context.Process(target=_work, args=(whole, number, parts, there, [*pipes, here]), daemon=True)
            process.start()
            there.close()
            pipes.append(here)
            processes.append(process)
        _go_on(whole, pipes, began, progress)
    finally:
        gc.unfreeze()
        for pipe in pipes:
            pipe.close()
        for process in processes:
            process.terminate()
            process.join()
    whole.result.seconds = time.monotonic() - began
    return whole.result


def owner(state: int, parts: int) -> int:
    """The part that is asked about states of that number."""
    return state % parts


# ------------------------------------------------------------------------------------------ what is done in parts


class _Part(Exploration):
    """A part of the exploration; before it is shared, all of it."""

    def __init__(self, world: World, bounds: Bounds, progress: Progress | None) -> None:
        super().__init__(world, bounds, progress)
        self._number = self._parts = 0
        #: states that were there before the exploration was shared
        self._before = 0
        self._claims: dict[int, tuple[Keys, int, Step | None, Position]] = {}
        self._followed: list[Followed] = []
        self._expanded: dict[int, tuple[Position, dict[int, str]]] = {}
        #: states that belong to this part, and that some part has reached
        self._own: set[int] = set()

    @property
    def waits(self) -> bool:
        return bool(self._waiting)

    def take_share(self, number: int, parts: int) -> None:
        """From now on this is the part of that number."""
        self._number, self._parts, self._before = number, parts, len(self._known)
        for _ in range(len(self._waiting)):
            place, position, keys = self._waiting.popleft()
            if place % parts == number:
                self._waiting.append((place, position, keys))
        self.result = Explored(self.world.name)
        self._told.clear()

    def _reached(self, keys: Keys, before: int, step: Step | None, position: Position) -> None:
        if not self._parts:
            super()._reached(keys, before, step, position)
        elif keys.whole not in self._places and keys.whole not in self._claims:
            self._claims[keys.whole] = keys, before, step, position

    def _compare(self, place: int, position: Position, following: Mapping[str, int], own: set[str]) -> None:
        if not self._parts:
            super()._compare(place, position, following, own)
            return
        texts = {hash(text): text for text in following}
        self._expanded[place] = position, texts
        pairs = [each for text, state in following.items() for each in (hash(text), state)]
        state = self._known[place].state_key
        self._followed[owner(state, self._parts)].extend(
            (state, place, hash(frozenset(own)), len(following), *pairs)
        )

    def expand(self, depth: int) -> tuple[list[Reached], list[Followed], int]:
        """Go on from states of that depth. Gives what was reached, and what follows, by the part that is asked."""
        self._claims.clear()
        self._expanded.clear()
        self._followed = [array("q") for _ in range(self._parts)]
        for _ in range(_MOST_AT_A_TIME):
            if not self._waiting or self._known[self._waiting[0][0]].depth != depth:
                break
            self.expand_next()
        reached = [array("q") for _ in range(self._parts)]
        for keys, *_ in self._claims.values():
            reached[owner(keys.state, self._parts)].extend(keys)
        return reached, self._followed, len(self._waiting)

    def decide(
        self, reached: Sequence[Reached], followed: Sequence[Followed], waiting: Sequence[int]
    ) -> tuple[list[bytes], list[list[Difference]]]:
        """Who goes on from what the parts have reached, and which states are not what equal ones are, by part."""
        granted = [bytearray(len(each) // 3) for each in reached]
        for number in sorted(range(self._parts), key=lambda number: waiting[number]):
            numbers = reached[number]
            for place in range(0, len(numbers), 3):
                _, position, whole = numbers[place : place + 3]
                if whole not in self._own and whole not in self._places:
                    self._own.add(whole)
                    self._keys.add(position)
                    granted[number][place // 3] = 1
        differences = [list(self._different(number, each)) for number, each in enumerate(followed)]
        return [bytes(each) for each in granted], differences

    def _different(self, number: int, followed: Followed) -> list[Difference]:
        found = []
        at = 0
        while at < len(followed):
            state, place, own, count = followed[at : at + 4]
            pairs = followed[at + 4 : at + 4 + 2 * count]
            at += 4 + 2 * count
            # places are told apart by the part, from here on; those from before are known to all
            differs = self.differs(self._id(number, place), state, own, dict(zip(pairs[::2], pairs[1::2], strict=True)))
            if differs is not None:
                first, text = differs
                found.append((place, *self._part_and_place(first), 0 if text is None else text))
        return found

    def _id(self, number: int, place: int) -> int:
        return place if place < self._before else place * self._parts + number + self._before

    def _part_and_place(self, first: int) -> tuple[int, int]:
        if first < self._before:
            return 0, first
        place, number = divmod(first - self._before, self._parts)
        return number, place

    def take(self, granted: Sequence[bytes], differences: Sequence[tuple[int, Sequence[Step], int]]) -> dict[str, int]:
        """Keep what this part goes on from. Gives how far it is."""
        at = [0] * self._parts
        for keys, before, step, position in self._claims.values():
            asked = owner(keys.state, self._parts)
            if granted[asked][at[asked]]:
                self._waiting.append((self._add(keys, before, step), position, keys))
            at[asked] += 1
        for place, first, text in differences:
            position, texts = self._expanded[place]
            self.not_the_same(place, first, position, texts.get(text, ""))
        return {
            "known": len(self._known) - self._before,
            "keys": len(self._keys),
            "waiting": len(self._waiting),
            "depth": self._known[self._waiting[0][0]].depth if self._waiting else -1,
            "transitions": self.result.transitions,
            "memory": memory_used(),
        }

    def steps_to(self, place: int) -> tuple[Step, ...]:
        return self.path(place)

    def own_by_itself(self) -> dict[int, int]:
        return self.by_itself(self._before)

    def end(self, restless: Sequence[int]) -> Explored:
        """What this part has found. `restless`: of its own states, those from which no quiet one is reached."""
        self.are_at_no_rest(restless)
        self.check_ways(range(self._before, len(self._known)), max(self.bounds.ways // self._parts, 1))
        self.result.depth = max((each.depth for each in self._known), default=0)
        return self.result


def _work(part: _Part, number: int, parts: int, pipe: Connection, others: Sequence[Connection]) -> None:
    """Does what it is told, until the pipe is closed. `others`: ends that only who tells it may keep open."""
    for each in others:
        each.close()
    part.take_share(number, parts)
    try:
        while True:
            name, *arguments = pipe.recv()
            pipe.send(getattr(part, name)(*arguments))
    except (EOFError, KeyboardInterrupt, BrokenPipeError):
        return


# ------------------------------------------------------------------------------------------ what is told to parts


def _go_on(whole: _Part, pipes: Sequence[Connection], began: float, progress: Progress | None) -> None:
    result = whole.result
    numbers = range(len(pipes))
    known, transitions, keys = result.variants, result.transitions, result.states
    depth = result.depth - 1
    while True:
        expanded = _ask(pipes, "expand", [(depth,)] * len(pipes))
        waiting = [each[2] for each in expanded]
        asked = [([each[0][to] for each in expanded], [each[1][to] for each in expanded], waiting) for to in numbers]
        decided = _ask(pipes, "decide", asked)
        granted = [[each[0][to] for each in decided] for to in numbers]
        differing: list[list[tuple[int, Sequence[Step], int]]] = [
            [
                (place, _tell(pipes[part], "steps_to", first), text)
                for each in decided
                for place, part, first, text in each[1][to][:MOST_TOLD]
            ]
            for to in numbers
        ]
        told = _ask(pipes, "take", [(granted[to], differing[to]) for to in numbers])
        at_all = {name: sum(each[name] for each in told) for name in told[0]}
        result.variants = known + at_all["known"]
        result.states = keys + at_all["keys"] - keys * len(pipes)
        depths = [each["depth"] for each in told if each["depth"] >= 0]
        if not depths:
            break
        depth = min(depths)
        if progress is not None:
            waits = at_all["waiting"]
            progress(result.world, result.states, waits, transitions + at_all["transitions"], depth)
        if why := whole.must_stop(began, result.variants, at_all["memory"]):
            result.stopped_by, result.unexplored = why, at_all["waiting"]
            break
    _end(whole, pipes)


def _end(whole: _Part, pipes: Sequence[Connection]) -> None:
    result = whole.result
    restless: list[list[int]] = [[] for _ in pipes]
    if not result.unexplored:
        own = _ask(pipes, "own_by_itself", [()] * len(pipes))
        by_itself = whole.by_itself()
        for each in own:
            by_itself |= each
        missing = set(at_no_rest(by_itself))
        restless = [[state for state in each if state in missing] for each in own]
    for part in _ask(pipes, "end", [(each,) for each in restless]):
        for each in fields(Explored):
            value = getattr(part, each.name)
            if isinstance(value, Counter):
                getattr(result, each.name).update(value)
        result.transitions += part.transitions
        result.ways += part.ways
        result.depth = max(result.depth, part.depth)
        result.violations += part.violations
    told: Counter[str] = Counter()
    kept = []
    for violation in sorted(result.violations, key=lambda violation: len(violation.path)):
        told[violation.name] += 1
        if told[violation.name] <= MOST_TOLD:
            kept.append(violation)
    result.violations[:] = kept


def _ask(pipes: Sequence[Connection], name: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Tell all parts to do that at one time; what they give, in their order."""
    for pipe, each in zip(pipes, arguments, strict=True):
        pipe.send((name, *each))
    return [pipe.recv() for pipe in pipes]


def _tell(pipe: Connection, name: str, argument: int) -> Any:
    pipe.send((name, argument))
    return pipe.recv()
