"""Measuring a profile: the commands that show a choice are carried out, and their trace is judged by each value.

A value explains what came where the trace passes by it. The commands are the same for all values, and judged while they
are carried out by the text that leaves the choice open.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from amqpspec.conformance.language.command_file import CommandFile
from amqpspec.conformance.language.names import plain
from amqpspec.conformance.profile.profile import BASE, Profile, SeenChoice, SeenExtension
from amqpspec.conformance.profile.shows import shows, shows_of_extensions
from amqpspec.conformance.session.patience import Patience
from amqpspec.conformance.session.session import Session
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter, read_trace
from amqpspec.conformance.traces.trace_row import TraceRow, row_event
from amqpspec.conformance.verdicts.judge import judge
from amqpspec.conformance.verdicts.judgement import SequenceJudgement
from amqpspec.model.outputs.replies import WITH_UNACKNOWLEDGED
from amqpspec.model.promises.capabilities import METHODS, capability_of
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialects.extensions import EXTENSIONS, text_with
from amqpspec.model.promises.dialects.settled import TEXT_CHOICES, with_choices
from amqpspec.model.promises.text_values import TextChoice
from amqpspec.model.promises.verdict import Shape, Verdict
from amqpspec.targets.clock import COMMON

#: Sequences that are carried out at one time: nearly all of the time goes into waiting.
AT_ONCE = 6
#: Begins the name of a sequence.
_SEQUENCE = "profile "


def measure(
    target: TargetUnderTest,
    trace_file: Path | None = None,
    choices: Collection[str] = TEXT_CHOICES,
    extensions: Collection[str] = EXTENSIONS,
) -> Profile:
    """The profile of the target, or as much of it as is about these. Raises `TargetError` when it is lost.

    `trace_file`: where the trace stays; None: nowhere. What a broker may not survive comes last.
    """
    of_choices = {name: file for name, file in shows().items() if name in choices}
    of_extensions = {name: file for name, file in shows_of_extensions().items() if name in extensions}
    bases = {**dict.fromkeys(of_choices, BASE), **{name: _text_of(name) for name in of_extensions}}
    rows: dict[str, list[TraceRow]] = {}
    with tempfile.TemporaryDirectory(prefix="amqpspec-") as directory:
        place = trace_file or Path(directory) / "profile.jsonl"
        with TraceWriter(place) as trace:
            _carry_out(target, trace, {**of_choices, **of_extensions}, bases)
        for row in read_trace(place):
            rows.setdefault(row["sequence"].removeprefix(_SEQUENCE), []).append(row)
    announced = target.capabilities or frozenset()
    return Profile(
        _all_seen({name: rows[name] for name in TEXT_CHOICES if name in of_choices}),
        tuple(_seen_extension(name, name in announced, rows[name]) for name in of_extensions),
        tuple(sorted(announced.difference(of_extensions))),
    )


def _carry_out(
    target: TargetUnderTest, trace: TraceWriter, files: Mapping[str, CommandFile], bases: Mapping[str, Dialect]
) -> None:
    patience = Patience(target.deadline)

    def carry_out(name: str) -> None:
        under = replace(
            target,
            description=replace(target.description, dialect=bases[name].name),
            operator=None,
        )
        # a seed makes it part of a run, in which what is the same on every connection is judged elsewhere
        with Session(under, trace, _SEQUENCE + name, seed=0, patience=patience) as session:
            for command in files[name].commands:
                session.run(command)

    if target.clock is not COMMON:
        # whoever shares a clock with the broker takes turns
        for name in files:
            carry_out(name)
        return
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in pool.map(carry_out, [name for name, file in files.items() if not file.rough]):
            pass
    for name, file in files.items():
        if file.rough:
            carry_out(name)


def _all_seen(rows: Mapping[str, Sequence[TraceRow]]) -> tuple[SeenChoice, ...]:
    """What is not certain is looked at again by what is: another choice may explain it as well, as long as it is open.
    """
    found = {name: _seen(TEXT_CHOICES[name], rows[name], {}) for name in rows}
    certain = {name: seen.value.name for name, seen in found.items() if seen.value is not None}
    for name in found:
        if name not in certain:
            found[name] = _seen(TEXT_CHOICES[name], rows[name], certain)
    return tuple(found.values())


def _seen(choice: TextChoice, rows: Sequence[TraceRow], known: Mapping[str, str]) -> SeenChoice:
    """`known`: the values of other choices."""
    fitting = tuple(
        each
        for each in choice.values
        if _explains(_judged(rows, with_choices(BASE, {**known, choice.name: each.name})))
    )
    return SeenChoice(choice, fitting, "" if fitting else _observed(rows, _judged(rows, BASE)))


def _explains(judgement: SequenceJudgement) -> bool:
    """Was all as that value has it? Numbers that take in the unacknowledged are another thing, and always do."""
    if judgement.verdict is Verdict.PASS:
        return True
    failures = judgement.failures
    return bool(failures) and all(failure.detail.endswith(WITH_UNACKNOWLEDGED) for failure in failures)


def _seen_extension(capability: str, announced: bool, rows: Sequence[TraceRow]) -> SeenExtension:
    """It works where everything was right, and its method was taken or something that is about it made a difference."""
    judgement = _judged(rows, _text_of(capability))
    about = (requirement for requirement in judgement.exercised if capability_of(requirement) == capability)
    shown = capability in METHODS.values() or any(True for _ in about)
    works = judgement.verdict is Verdict.PASS and shown
    return SeenExtension(capability, announced, works, "" if works else _observed(rows, judgement))


def _text_of(capability: str) -> Dialect:
    """The text with it. Where consumers share their limits, a broker is not blamed for whom of them it serves. Where
    there are none, they are taken for each consumer's own.
    """
    beside = ["per_consumer_qos"] if capability == "consumer_priorities" else []
    return text_with([capability, *beside])


def _judged(rows: Sequence[TraceRow], dialect: Dialect) -> SequenceJudgement:
    """By that dialect, whatever came of it while it was carried out."""
    start, end = rows[0].copy(), rows[-1].copy()
    start["dialect"] = dialect.name
    end["verdict"] = Verdict.PASS.value
    return judge([start, *rows[1:-1], end])


def _observed(rows: Sequence[TraceRow], judgement: SequenceJudgement) -> str:
    """What came that says most: the last error, else the last frame; or that nothing came."""
    if judgement.failures and judgement.failures[0].shape is Shape.MISSING:
        return f"nothing came, where this was due: {judgement.failures[0].detail}"
    if judgement.failures:
        return judgement.failures[0].observed
    received = [row_event(row) for row in rows if row["kind"] == "frame" and row["direction"] == "received"]
    errors = [each for each in received if each.name in ("channel.close", "connection.close", "socket.closed")]
    return plain(str((errors or received)[-1])) if received else "nothing"
