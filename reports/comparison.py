"""Several runs side by side: requirements × targets, failures by identity, and what is new between two of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import pairwise

from amqpspec.model.promises.registry import Requirement, requirements
from amqpspec.model.promises.severity import ORDER, Severity, severity_by
from amqpspec.reports.overview import area_and_title
from amqpspec.reports.stored_run import StoredFailure, StoredRun, StoredVerdict


class Change(StrEnum):
    """What became of a failure from one run to another."""

    NEW = "new"
    FIXED = "fixed"
    STILL = "still"
    #: one of the two shows it, and the other has not tried
    UNTRIED = "not tried"


class Seen(StrEnum):
    """What a run says of a failure; one letter, which the page's script reads."""

    SHOWN = "f"
    NOT_SHOWN = "p"
    NOT_TRIED = "n"


_CHANGES: Mapping[tuple[Seen, Seen], Change] = {
    (Seen.SHOWN, Seen.SHOWN): Change.STILL,
    (Seen.SHOWN, Seen.NOT_SHOWN): Change.FIXED,
    (Seen.NOT_SHOWN, Seen.SHOWN): Change.NEW,
    (Seen.SHOWN, Seen.NOT_TRIED): Change.UNTRIED,
    (Seen.NOT_TRIED, Seen.SHOWN): Change.UNTRIED,
}


@dataclass(frozen=True)
class Group:
    """One failure, by its identity, in all runs."""

    identity: str
    #: in the order of the runs; None: the run does not have it
    of_runs: tuple[StoredFailure | None, ...]
    seen: tuple[Seen, ...]

    @cached_property
    def example(self) -> StoredFailure:
        """Of those that show it, the one with the fewest commands."""
        shown = [each for each in self.of_runs if each is not None]
        return min(shown, key=lambda each: len(each.commands) or len(each.command) + 1000)

    @property
    def requirement(self) -> str:
        return self.example.requirement

    @property
    def is_as_known(self) -> bool:
        """Is it a known defect of every target that shows it?"""
        return all(each.is_as_known for each in self.of_runs if each is not None)

    @property
    def is_warning(self) -> bool:
        """Is it, wherever it shows, what the text only recommends?"""
        return all(each.is_warning for each in self.of_runs if each is not None)

    @property
    def is_everywhere(self) -> bool:
        """Do all runs show it?"""
        return None not in self.of_runs

    @property
    def severity(self) -> Severity:
        failure = self.example
        return severity_by(failure.requirement, failure.shape, failure.detail, failure.observed)

    @property
    def rank(self) -> int:
        """By which groups are sorted, the gravest first."""
        return ORDER.index(self.severity)

    @property
    def states(self) -> str:
        """A letter (`Seen`) for each run."""
        return "".join(self.seen)

    def change(self, one: int, other: int) -> Change | None:
        """From one run to another, by their places; None: neither shows it."""
        return _CHANGES.get((self.seen[one], self.seen[other]))

    @property
    def observations(self) -> list[tuple[str, list[int]]]:
        """What was observed, each with the places of the runs that observed it."""
        listed: dict[str, list[int]] = {}
        for place, failure in enumerate(self.of_runs):
            if failure is not None:
                listed.setdefault(failure.observed, []).append(place)
        return list(listed.items())


@dataclass(frozen=True, slots=True)
class Row:
    """One requirement in all runs."""

    id: str
    area: str
    title: str
    statement: str
    source: str
    #: in the order of the runs; None: the run does not know it
    cells: tuple[StoredVerdict | None, ...]

    @property
    def differs(self) -> bool:
        """Do the runs not say the same?"""
        return len({None if cell is None else (cell.verdict, cell.as_known) for cell in self.cells}) > 1


@dataclass(frozen=True, slots=True)
class Sums:
    """How many failures changed in which way from one run to another."""

    one: int
    other: int
    counts: Mapping[Change, int]


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that the page shows. Groups are ordered: the worst first, then by how many targets show them."""

    runs: tuple[StoredRun, ...]
    rows: tuple[Row, ...]
    groups: tuple[Group, ...]

    def sums(self, one: int, other: int) -> Sums:
        changes = [group.change(one, other) for group in self.groups]
        return Sums(one, other, {change: changes.count(change) for change in Change})

    @property
    def in_turn(self) -> list[Sums]:
        """From each run to the next, and from the first to the last."""
        last = len(self.runs) - 1
        listed = [self.sums(one, other) for one, other in pairwise(range(len(self.runs)))]
        return listed + ([self.sums(0, last)] if last > 1 else [])


def compare(runs: Sequence[StoredRun], registry: Mapping[str, Requirement] | None = None) -> Comparison:
    """The runs side by side, in their order."""
    known = requirements() if registry is None else registry
    listed = dict.fromkeys(id for run in runs for id in run.requirements)
    order = {id: place for place, id in enumerate(known)}
    ids = sorted(listed, key=lambda id: (order.get(id, len(order)), id))
    identities = dict.fromkeys(identity for run in runs for identity in run.failures)
    groups = [_group(identity, runs) for identity in identities]
    groups.sort(key=lambda group: (group.rank, -group.states.count(Seen.SHOWN), group.identity))
    return Comparison(tuple(runs), tuple(_row(id, known.get(id), runs) for id in ids), tuple(groups))


def _group(identity: str, runs: Sequence[StoredRun]) -> Group:
    of_runs = tuple(run.failures.get(identity) for run in runs)
    shown = [failure for failure in of_runs if failure is not None]

    def seen(run: StoredRun, failure: StoredFailure | None) -> Seen:
        if failure is not None:
            return Seen.SHOWN
        # what does not show each time proves nothing where it does not show
        tried = all(each.is_steady for each in shown) and any(map(run.has_tried, shown))
        return Seen.NOT_SHOWN if tried else Seen.NOT_TRIED

    return Group(identity, of_runs, tuple(map(seen, runs, of_runs)))


def _row(id: str, requirement: Requirement | None, runs: Sequence[StoredRun]) -> Row:
    cells = tuple(run.requirements.get(id) for run in runs)
    if requirement is None:
        return Row(id, *area_and_title(id), "", "", cells)
    return Row(id, requirement.area, requirement.title, requirement.statement, requirement.source, cells)
