"""Deleting recordings of a store, with what they were judged to be, while others add, judge and read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amqpspec.pipeline.judging.compaction import GRACE, LEFT_OVER, remove_files
from amqpspec.pipeline.store.files import StoreError
from amqpspec.pipeline.store.manifest import Contents
from amqpspec.pipeline.store.parts import Part
from amqpspec.pipeline.store.store import Store


@dataclass(frozen=True, slots=True)
class Choice:
    """Which recordings: those of all that is given. `before`: of earlier days; days as "2026-11-23"."""

    runs: tuple[str, ...] = ()
    day: str | None = None
    before: str | None = None

    @property
    def is_all(self) -> bool:
        """Is nothing given?"""
        return not (self.runs or self.day or self.before)

    def has(self, part: Part) -> bool:
        """Is the part one of them?"""
        return (
            (not self.runs or part.run in self.runs)
            and (self.day is None or part.day == self.day)
            and (self.before is None or part.day < self.before)
        )


@dataclass(frozen=True, slots=True)
class Deleted:
    """`parts`: those that do not count any more; `removed`: how many files are gone by now."""

    parts: Sequence[Part]
    removed: int


def delete(store: Store, choice: Choice, grace: float = GRACE, *, unnamed: bool = False) -> Deleted:
    """Let what is chosen count no more, in one moment, and remove what did not count for `grace` seconds.

    Who had begun to read it can go on with that. What was deleted is known to the store: it is not imported again under
    the same run. `unnamed`: remove too what no commit names and nobody has changed for a day. Raises `StoreError`,
    where the store has no such run too.
    """
    parts: Sequence[Part] = ()
    if not choice.is_all:
        known = {part.run for part in store.contents().parts}
        unknown = [run for run in choice.runs if run not in known]
        if unknown:
            raise StoreError(f"{store}: the store has no run {unknown[0]!r}")

        def chosen(contents: Contents) -> list[Part]:
            return [part for part in contents.parts if choice.has(part)]

        parts = store.remove(chosen)
    return Deleted(parts, remove_files(store, grace, LEFT_OVER if unnamed else None))
