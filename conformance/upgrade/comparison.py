"""What changes for an application that knows one broker and meets another: their traces of the same commands.

Both traces are judged by the dialect of the first one, so that what the second one does otherwise is a failure there,
documented or not. The second trace is judged by its own dialect as well: that says what such a difference is. Which
change between the two dialects explains it is found by judging once more (`causes`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from amqpspec.conformance.traces.trace import TraceError, TraceRow, read_trace
from amqpspec.conformance.upgrade.causes import Causes
from amqpspec.conformance.upgrade.changes import Change
from amqpspec.conformance.verdicts.judge import judge_all
from amqpspec.conformance.verdicts.judgement import SequenceJudgement, SuiteError, TargetDescription
from amqpspec.model.defects.known_defects import is_as_known
from amqpspec.model.promises.dialect_names import base_of
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.verdict import Failure, Verdict
from amqpspec.model.promises.versions import RABBITMQ, dialect_name_of, version_of


class Kind(StrEnum):
    """What a difference is on the side of the second target."""

    #: its own dialect allows it
    AS_DOCUMENTED = "a change of the new version"
    KNOWN = "a known defect of the new version"
    BROKEN = "a promise that the new version breaks"


@dataclass(slots=True)
class Difference:
    """One thing that an application would notice, by its identity and what it is."""

    failure: Failure
    kind: Kind
    #: the shortest commands that are known to show it
    commands: tuple[str, ...]
    #: the change between the two dialects that explains it; None: none does
    change: Change | None = None
    #: the known defect of the second target that explains it; "": none
    defect: str = ""
    #: the sequences that show it
    sequences: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Upgrade:
    """All that differs. `noticed` is what the second target does otherwise, `gone` what only the first one does."""

    one: TargetDescription
    other: TargetDescription
    noticed: tuple[Difference, ...]
    gone: tuple[Difference, ...]
    #: how many failures both targets show
    still: int
    #: sequences whose commands were the same
    compared: int
    #: those of them in which something ended the judging of the second target before the end
    cut_short: int
    #: sequences that only one of the two carried out, or with other commands, or that came to an error of this suite
    left_out: int
    errors: tuple[SuiteError, ...] = ()


#: By identity, kind, change and known defect.
_Noted = dict[tuple[str, Kind, Change | None, str], Difference]


@dataclass(frozen=True, slots=True)
class _Recorded:
    """What a trace says before it is judged: its target, and the commands of each sequence."""

    target: TargetDescription
    commands: Mapping[str, tuple[str, ...]]


def upgrade(one: Path, other: Path) -> Upgrade:
    """What differs between two traces, or directories of runs. Raises `TraceError`."""
    first, second = _recorded(one), _recorded(other)
    names = {name for name, commands in first.commands.items() if _is_same(commands, second.commands.get(name))}
    dialect = first.target.dialect
    before = _judged(one, names, dialect)
    after = _judged(other, names, dialect)
    target = replace(second.target, dialect=own_dialect(second.target))
    own = after if target.dialect == dialect else _judged(other, names, target.dialect)
    errors = {
        name: SuiteError(name, error, first.commands[name])
        for judged in (before, after, own)
        for name, each in judged.items()
        if (error := each.suite_error) is not None
    }
    # of what is undecided here nobody can say that one of them does it otherwise
    names -= errors.keys()
    before, after = ({name: each for name, each in judged.items() if name in names} for judged in (before, after))
    was = {failure.identity for each in before.values() for failure in each.failures}
    now = {failure.identity for each in after.values() for failure in each.failures}
    new = {name: [each for each in found.failures if each.identity not in was] for name, found in after.items()}
    causes = Causes(dialect_named(dialect), dialect_named(target.dialect))
    rows = _rows_of(other, {name for name, failures in new.items() if failures}, dialect)
    noticed: _Noted = {}
    gone: _Noted = {}
    for name, failures in new.items():
        for failure in failures:
            kind, defect = _kind(failure, own[name])
            change = causes.of(rows[name], failure) if kind is Kind.AS_DOCUMENTED else None
            if kind is Kind.AS_DOCUMENTED and change is None:
                kind, defect = _elsewhere(own[name])
            _note(noticed, name, Difference(failure, kind, first.commands[name], change, defect))
    for name, judgement in before.items():
        # the second target says nothing of what comes after the end of its judging
        if after[name].ended_by is None and after[name].verdict is not Verdict.INCONCLUSIVE:
            for failure in judgement.failures:
                if failure.identity not in now:
                    _note(
                        gone, name, Difference(failure, Kind.AS_DOCUMENTED, first.commands[name], defect=failure.defect)
                    )
    return Upgrade(
        first.target,
        target,
        tuple(noticed.values()),
        tuple(gone.values()),
        len(was & now),
        len(names),
        sum(each.ended_by is not None and before[name].ended_by is None for name, each in after.items()),
        len(first.commands.keys() | second.commands.keys()) - len(names),
        tuple(errors.values()),
    )


def nothing_compared(one: TargetDescription, other: TargetDescription, left_out: int) -> Upgrade:
    """At least one of the two carried out nothing; `left_out`: sequences of the other one."""
    return Upgrade(one, other, (), (), still=0, compared=0, cut_short=0, left_out=left_out)


def _recorded(path: Path) -> _Recorded:
    target: TargetDescription | None = None
    commands: dict[str, list[str]] = {}
    for row in read_trace(path):
        if row["kind"] == "start":
            target = target or TargetDescription(row["target"], row["product"], row["version"], row["dialect"])
            if row.get("repeats") is None:
                commands[row["sequence"]] = []
        elif row["kind"] == "command" and row["sequence"] in commands:
            commands[row["sequence"]].append(row["text"])
    if target is None:
        raise TraceError(f"{path}: has no sequence")
    return _Recorded(target, {name: tuple(listed) for name, listed in commands.items()})


def own_dialect(target: TargetDescription) -> str:
    """That of its version, if it says one: what it was judged by when it was recorded may be another's."""
    version = version_of(target.version) if target.product == RABBITMQ else None
    if version is None or base_of(target.dialect) == dialect_name_of(version):
        return target.dialect  # with the settings that it was seen to have
    return dialect_name_of(version)


def _is_same(one: tuple[str, ...], other: tuple[str, ...] | None) -> bool:
    """Are the commands the same, as far as both were carried out? A failure may end a sequence.

    A recorded application has no commands, so that nothing says that two of them did the same.
    """
    if not one or not other:
        return False
    least = min(len(one), len(other))
    return one[:least] == other[:least]


def _judged(path: Path, names: Iterable[str], dialect: str) -> dict[str, SequenceJudgement]:
    """By the name of the sequence what it is by that dialect."""
    return {each.sequence: each for each in judge_all(_rows(path, set(names), dialect))}


def _rows(path: Path, names: set[str], dialect: str) -> Iterator[TraceRow]:
    for row in read_trace(path):
        if row["sequence"] in names:
            if row["kind"] == "start":
                row["dialect"] = dialect
            yield row


def _rows_of(path: Path, names: set[str], dialect: str) -> dict[str, list[TraceRow]]:
    found: dict[str, list[TraceRow]] = {name: [] for name in names}
    for row in _rows(path, names, dialect):
        found[row["sequence"]].append(row)
    return found


def _kind(failure: Failure, own: SequenceJudgement) -> tuple[Kind, str]:
    """What the second target's own dialect says of the requirement in that sequence, or of the same frame; and the
    known defect that it names, "" if none.
    """
    blamed = [
        each
        for each in own.failures
        if each.requirement == failure.requirement or (each.observed == failure.observed != "nothing")
    ]
    if not blamed:
        return Kind.AS_DOCUMENTED, ""
    if all(is_as_known(each, own.dialect, own.version) for each in blamed):
        return Kind.KNOWN, blamed[0].defect
    return Kind.BROKEN, ""


def _elsewhere(own: SequenceJudgement) -> tuple[Kind, str]:
    """What no change explains may come from what the second target's own dialect blames at another place."""
    if own.failures and all(is_as_known(each, own.dialect, own.version) for each in own.failures):
        return Kind.KNOWN, own.failures[-1].defect
    return (Kind.BROKEN if own.failures else Kind.AS_DOCUMENTED), ""


def _note(noted: _Noted, name: str, difference: Difference) -> None:
    """The same failure may be documented in one sequence and break a promise in another: its commands show which."""
    failure, commands = difference.failure, difference.commands
    until = commands.index(failure.command) + 1 if failure.command in commands else len(commands)
    difference.commands = commands[:until]
    known = noted.setdefault((failure.identity, difference.kind, difference.change, difference.defect), difference)
    known.sequences.append(name)
    if until < len(known.commands):
        known.failure, known.commands = failure, commands[:until]
