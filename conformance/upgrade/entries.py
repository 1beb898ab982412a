"""What an upgrade changes, one entry for each change or known defect: a change shows in many requirements.

What nothing explains stands by itself. The gravest come first (`model.promises.severity`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from amqpspec.conformance.upgrade.changes import Change
from amqpspec.conformance.upgrade.comparison import Difference, Kind
from amqpspec.conformance.upgrade.links import Link, links_of
from amqpspec.conformance.verdicts.gate import Gate
from amqpspec.model.defects.known_defects import KNOWN_DEFECTS
from amqpspec.model.judging.known_defect import KnownDefect
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.severity import ORDER, Severity, rank, severity_of

_KINDS = (Kind.BROKEN, Kind.KNOWN, Kind.AS_DOCUMENTED)


@dataclass(frozen=True, slots=True)
class Entry:
    """One cause, and all that was noticed of it, what shows it in fewest commands first.

    `known`: why gate or deviation file accept it; None: they do not.
    """

    differences: tuple[Difference, ...]
    known: str | None = None

    @property
    def shortest(self) -> Difference:
        """What shows it in fewest commands."""
        return self.differences[0]

    @property
    def change(self) -> Change | None:
        return self.shortest.change

    @property
    def defect(self) -> KnownDefect | None:
        return KNOWN_DEFECTS.get(self.shortest.defect)

    @property
    def title(self) -> str:
        if self.change is not None:
            return self.change.title
        if self.defect is not None:
            return f"{self.defect.requirement} {self.defect.name}"
        failure = self.shortest.failure
        requirement = requirements().get(failure.requirement)
        return f"{failure.requirement} {requirement.title if requirement else ''}".strip()

    @property
    def what(self) -> str:
        """What kind of difference it is."""
        if self.change is not None:
            return str(self.change.kind)
        if self.shortest.kind is Kind.AS_DOCUMENTED:
            return "explained by nothing that is known"
        return str(self.shortest.kind)

    @property
    def statement(self) -> str:
        """What a known defect does, or what the requirement says; "" for a change, which has two sentences."""
        if self.change is not None:
            return ""
        if self.defect is not None:
            return self.defect.statement
        requirement = requirements().get(self.shortest.failure.requirement)
        return requirement.statement if requirement else ""

    @property
    def source(self) -> str:
        if self.change is not None:
            return self.change.difference.source
        return self.defect.source if self.defect is not None else ""

    @property
    def links(self) -> tuple[Link, ...]:
        return links_of(self.source)

    @property
    def name(self) -> str:
        """By which a deviation file names it, and an address of a report ends."""
        if self.change is not None:
            return self.change.name
        return self.shortest.defect or self.shortest.failure.identity

    @property
    def sequences(self) -> tuple[str, ...]:
        """Those that show it, each once."""
        return tuple(dict.fromkeys(name for each in self.differences for name in each.sequences))

    @property
    def severity(self) -> Severity:
        """What most of the sequences show, of these the worst: in a few the same cause may do worse."""
        counts: Counter[Severity] = Counter()
        for each in self.differences:
            counts[severity_of(each.failure)] += len(each.sequences)
        return min(counts, key=lambda severity: (-counts[severity], ORDER.index(severity)))

    @property
    def order(self) -> tuple[bool, int, int, int, str]:
        kind = _KINDS.index(self.shortest.kind)
        return self.known is not None, ORDER.index(self.severity), kind, -len(self.sequences), self.name


def entries_of(differences: Iterable[Difference]) -> tuple[Entry, ...]:
    """One for each change, known defect, and failure that neither explains; of one frame the worst failure only."""
    grouped: dict[object, list[Difference]] = {}
    for each in _worst_of_each_frame(list(differences)):
        key = each.change or each.defect or (each.failure.identity, each.kind)
        grouped.setdefault(key, []).append(each)
    found = (Entry(tuple(sorted(group, key=_length))) for group in grouped.values())
    return tuple(sorted(found, key=lambda entry: entry.order))


def _worst_of_each_frame(differences: Sequence[Difference]) -> list[Difference]:
    """One frame may differ in several ways."""
    listed = sorted(differences, key=lambda each: (rank(each.failure), _KINDS.index(each.kind), each.failure.identity))
    frames: dict[object, Difference] = {}
    for each in listed:
        failure = each.failure
        silent = failure.identity if failure.observed == "nothing" else ""
        frames.setdefault((failure.observed, failure.command, silent, each.change, each.defect), each)
    return list(frames.values())


def _length(difference: Difference) -> tuple[int, int, str]:
    return len(difference.commands), rank(difference.failure), difference.failure.identity


def accepted(
    entries: Iterable[Entry], gate: Gate, excuse_of: Callable[[str], str | None] = lambda identity: None
) -> tuple[Entry, ...]:
    """The entries, those marked that gate or deviation file accept. `excuse_of`: why that identity is accepted."""
    marked = (Entry(each.differences, _excuse(each, gate, excuse_of)) for each in entries)
    return tuple(sorted(marked, key=lambda entry: entry.order))


def _excuse(entry: Entry, gate: Gate, excuse_of: Callable[[str], str | None]) -> str | None:
    listed = excuse_of(identity_of(entry))
    if listed is not None:
        return listed
    excuses = [excuse_of(each.failure.identity) for each in entry.differences]
    if all(excuses):
        return excuses[0]
    return entry.what if gate is Gate.KNOWN and (entry.change or entry.defect) else None


def identity_of(entry: Entry) -> str:
    """As a deviation file has it: of a change "change|NAME", of a known defect the one that a run reports."""
    if entry.change is not None:
        return entry.change.identity
    if entry.defect is not None:
        return f"{entry.defect.requirement}|{entry.defect.name}"
    return entry.shortest.failure.identity
