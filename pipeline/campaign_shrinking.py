"""The failures of a campaign, each with the shortest commands that show it: looked for once, where the command runs.

What is found stays in the store, `shrunk/target=TARGET/IDENTITY.amqp`: a failure that has its file there is not new,
and is not shrunk again by this campaign or a later one. Known defects of the target's version are not shrunk at all.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from amqpspec.conformance.failures.findings import Findings
from amqpspec.conformance.interruption import raise_if_interrupted, was_interrupted
from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.command_file import judged_by
from amqpspec.conformance.run import SHRINKING_DEADLINE
from amqpspec.conformance.session.cleanup import Cleaner
from amqpspec.conformance.session.command_sequence import CommandSequence, Place
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter
from amqpspec.conformance.verdicts.judgement import FoundFailure, SuiteError
from amqpspec.model.defects.known_defects import is_as_known
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.verdict import Failure
from amqpspec.pipeline.store.labels import label_in_store
from amqpspec.pipeline.store.parts import folder_name
from amqpspec.pipeline.store.store import Store
from amqpspec.targets.brokers.health import check_alive
from amqpspec.targets.errors import TargetError

SHRUNK = "shrunk"


@dataclass(frozen=True, slots=True)
class Shown:
    """The first sequence of a share that showed a failure, with its commands up to there."""

    target: str
    failure: Failure
    sequence: str
    commands: tuple[Command, ...]


@dataclass(frozen=True, slots=True)
class Shrunk:
    """A new failure, and the file of its commands. `lost`: the target was lost meanwhile; its other failures wait.
    There is no file where it was lost over the first one.
    """

    target: str
    found: FoundFailure
    file: str | None
    lost: str | None = None


def file_of(target: str, failure: Failure) -> str:
    """Where in a store the shortest commands of a failure are, if they were looked for."""
    return shrunk_file(target, failure.requirement, failure.identity)


def shrunk_file(target: str, requirement: str, identity: str) -> str:
    """The same by what a table says of a failure."""
    name = f"{requirement}-{sha256(identity.encode()).hexdigest()[:12]}.amqp"
    return f"{SHRUNK}/target={folder_name(label_in_store(target))}/{name}"


def shrink_new(
    store: Store,
    targets: Sequence[TargetUnderTest],
    shown: Iterable[Shown],
    seconds: float,
    seed: int,
    errors: list[SuiteError] | None = None,
) -> Iterator[Shrunk]:
    """Shrink what was never shrunk, target by target. `seconds`: for each target. `errors`: gets those of this suite.
    Raises `StoreError`, `TraceError`.
    """
    errors = [] if errors is None else errors
    of_target: dict[str, dict[str, Shown]] = {}
    for each in shown:
        of_target.setdefault(each.target, {}).setdefault(each.failure.identity, each)
    for target in targets:
        label, description = target.description.label, target.description
        new = {
            identity: each
            for identity, each in of_target.get(label, {}).items()
            if not store.files.exists(file_of(label, each.failure))
            and not is_as_known(each.failure, description.dialect, description.judged_version)
        }
        if new:
            yield from _shrunk(store, replace(target, operator=None, faults=None), new, seconds, seed, errors)


def _shrunk(
    store: Store,
    target: TargetUnderTest,
    new: Mapping[str, Shown],
    seconds: float,
    seed: int,
    errors: list[SuiteError],
) -> Iterator[Shrunk]:
    label, lost = target.description.label, None
    with _trace() as trace, Cleaner() as cleaner:
        place = Place(target, trace, seed, is_stopped=was_interrupted, cleaner=cleaner)

        def run_again(name: str, repeats: str, commands: Sequence[Command]) -> Sequence[Failure]:
            again = CommandSequence(name, tuple(commands), repeats=repeats, deadline=SHRINKING_DEADLINE)
            outcome = place.carry_out(again)
            raise_if_interrupted()
            if outcome.overdue:
                check_alive(target.address)
            return outcome.judgement.failures

        dialect = dialect_named(target.description.dialect)
        findings = Findings(dialect, seconds, run_again, version=target.description.judged_version)
        for each in new.values():
            findings.note(each.failure, each.sequence, each.commands)
        try:
            findings.shrink_all()
        except TargetError as error:
            lost = str(error)
        errors += findings.errors
    had_their_turn = {id: found for id, found in findings.found.items() if found.rate is not None or lost is None}
    if not had_their_turn:
        yield Shrunk(label, next(iter(findings.found.values())), None, lost)
    for identity, found in had_their_turn.items():
        file = file_of(label, new[identity].failure)
        head = f"@title {found.failure.identity}\n{judged_by(dialect.name)}"
        store.files.put(file, (head + "\n".join(found.commands) + "\n").encode())
        yield Shrunk(label, found, store.named(file), lost)


@contextmanager
def _trace() -> Iterator[TraceWriter]:
    """Of the tries, which nobody asks for when they are over."""
    with (
        tempfile.TemporaryDirectory(prefix="amqpspec-shrinking-") as directory,
        TraceWriter(Path(directory) / "trace.jsonl") as trace,
    ):
        yield trace
