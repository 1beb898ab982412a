"""Measuring a profile: the commands that show a choice are carried out, and their trace is judged by each value.

A value explains what came where the trace passes by it. The commands are the same for all values, and judged while they
are carried out by the text that leaves the choice open.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from amqpspec.conformance.language.command_file import CommandFile
from amqpspec.conformance.language.names import plain
from amqpspec.conformance.profile.carrying_out import SEQUENCE, CarryingOut
from amqpspec.conformance.profile.profile import BASE, Profile, SeenChoice, SeenExtension, Working
from amqpspec.conformance.profile.shows import (
    means_otherwise,
    shows,
    shows_of_extensions,
    shows_of_meanings,
    shows_of_told,
    without_words,
)
from amqpspec.conformance.profile.told import base_of_told, seen_of_told
from amqpspec.conformance.profile.ways import carry_out_ways, seen_ways
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter, read_trace
from amqpspec.conformance.traces.trace_row import TraceRow, row_event
from amqpspec.conformance.verdicts.judge import judge
from amqpspec.conformance.verdicts.judgement import SequenceJudgement, SuiteError
from amqpspec.model.outputs.confirms import UNASKED
from amqpspec.model.outputs.replies import WITH_UNACKNOWLEDGED
from amqpspec.model.promises.capabilities import METHODS, capability_of
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialects.extensions import EXTENSIONS, text_with
from amqpspec.model.promises.dialects.settled import TEXT_CHOICES, with_choices
from amqpspec.model.promises.features import FEATURES, TOLD
from amqpspec.model.promises.registry import requirement
from amqpspec.model.promises.text_means import COUNTS, GET, MEANS, ROUND_TRIP
from amqpspec.model.promises.text_values import TextChoice, Value
from amqpspec.model.promises.verdict import Failure, Shape, Verdict

#: Beside what the means are looked at, one after another: a barrier that does without basic.get, and the round trip
#: without numbers.
_BLIND = {GET: "unknown"}
_BLIND_TO_NUMBERS = {ROUND_TRIP: {COUNTS: "untold"}}
#: Carried out again as if the broker lacked it, which has to be right then: a message that nobody gets is lost, which
#: is no matter of its count, and a publish that closes the channel is no matter of the round trip.
_TRIED_WITHOUT = (ROUND_TRIP, COUNTS)
#: Ends the details of what a broker does always, whatever it chose.
_HABITS = (WITH_UNACKNOWLEDGED, UNASKED)
#: The requirements of numbers of messages.
_COUNTING = ("GET-001", "QUEUE-001")
#: Choices within an extension, which only who announces it can make.
_WITHIN: Mapping[str, tuple[str, ...]] = {"use-by-exchanges": ("exchange_exchange_bindings",)}
#: By these frames a broker refuses what it was asked for.
_ENDS = ("channel.close", "connection.close", "socket.closed")


def _refuses_to_count(failure: Failure) -> bool:
    """Is the passive declare refused by which the suite asks for numbers, whatever was sent before it?"""
    return failure.detail in [f"{each} in place of queue.declare-ok" for each in _ENDS]


#: May the failure show that the broker lacks it?
LACKING: Mapping[str, Callable[[Failure], bool]] = {
    ROUND_TRIP: lambda failure: True,
    COUNTS: lambda failure: (failure.shape is Shape.MISSING and failure.detail == "messages ready")
    or _refuses_to_count(failure),
    GET: lambda failure: failure.command.partition(" ")[2].startswith("basic.get") and not _refuses_to_count(failure),
}


def measure(
    target: TargetUnderTest,
    trace_file: Path | None = None,
    choices: Collection[str] = TEXT_CHOICES,
    extensions: Collection[str] = (*EXTENSIONS, *TOLD),
    start_again: Callable[[], TargetUnderTest] | None = None,
    *,
    ways: bool = True,
) -> Profile:
    """The profile of the target, or as much of it as is about these. Raises `TargetError` when it is lost.

    `trace_file`: where the trace stays; None: nowhere. What a broker may not survive comes last.
    `start_again`: starts a target that was lost; what was under way then is no part of the profile.
    `ways`: RabbitMQ's own are looked at as well.
    """
    means_names = {each.name for each in MEANS}
    lacking_needs = {name for name, needs in _WITHIN.items() if not {*needs} <= (target.capabilities or set())}
    left_out = means_names | lacking_needs
    of_choices = {name: file for name, file in shows().items() if name in choices and name not in left_out}
    of_extensions = {name: file for name, file in shows_of_extensions().items() if name in extensions}
    of_told = {name: file for name, file in shows_of_told().items() if name in extensions}
    with tempfile.TemporaryDirectory(prefix="amqpspec-") as directory:
        place = trace_file or Path(directory) / "profile.jsonl"
        with TraceWriter(place) as trace:
            carrying_out = CarryingOut(target, trace, start_again)
            # by what the broker lacks of this all the others go: else each of them shows that alone
            means = _means(carrying_out, place)
            lacking = _lacking(means)
            bases = {name: with_choices(_base_of(name), lacking) for name in of_choices}
            bases |= {name: with_choices(_text_of(name), lacking) for name in of_extensions}
            bases |= {name: with_choices(base_of_told(name), lacking) for name in of_told}
            done = carrying_out.carry_out({**of_choices, **of_extensions, **of_told}, bases)
            rows = rows_by_name(place)
            announced = target.capabilities or frozenset()
            errors: list[SuiteError] = carrying_out.errors
            seen_extensions = [
                _seen_extension(name, name in announced, rows[name], bases[name], errors)
                for name in of_extensions
                if name in done
            ]
            in_part = [each.capability for each in seen_extensions if each.working is Working.IN_PART]
            otherwise = dict.fromkeys(_ignored(carrying_out, place, in_part, lacking), Working.IGNORED)
            in_part = [each for each in in_part if each not in otherwise]
            otherwise |= dict.fromkeys(_makes_no_difference(carrying_out, place, in_part, lacking), Working.IGNORED)
            in_part = [each for each in in_part if each not in otherwise]
            otherwise |= dict.fromkeys(_meaning_something_else(carrying_out, place, in_part), Working.OTHER_MEANING)
            done_ways = carry_out_ways(carrying_out) if ways else set()
            seen = seen_ways(done_ways, rows_by_name(place) if done_ways else {})
    told = (seen_of_told(name, rows[name]) for name in of_told if name in done)
    seen_rows = {name: rows[name] for name in TEXT_CHOICES if name in of_choices and name in done}
    seen_choices = _all_seen(seen_rows, lacking, errors)
    return Profile(
        (*(each for each in means if each.choice.name in choices), *seen_choices),
        (
            *(replace(each, working=otherwise.get(each.capability, each.working)) for each in seen_extensions),
            *(each for each in told if each is not None),
        ),
        tuple(sorted(announced.difference(of_extensions))),
        tuple(errors),
        ways=seen,
    )


def rows_by_name(place: Path) -> Mapping[str, list[TraceRow]]:
    """By sequence. What was carried out again is what was seen last."""
    rows: dict[str, list[TraceRow]] = {}
    for row in read_trace(place):
        name = row["sequence"].removeprefix(SEQUENCE)
        if row["kind"] == "start":
            rows[name] = []
        rows[name].append(row)
    return rows


def _means(carrying_out: CarryingOut, place: Path) -> tuple[SeenChoice, ...]:
    """What the broker lacks of what the suite looks at it by: that alone is asked, whatever else is wrong."""
    found: list[SeenChoice] = []
    for choice in MEANS:
        usual, without = choice.values
        lacking = _lacking(found)
        for file in (shows()[choice.name], means_otherwise().get(choice.name)):
            if file is None:
                continue
            judgement = _carried_out(carrying_out, place, choice.name, file, "", lacking)
            failures = judgement.failures if judgement else ()
            lacks = any(LACKING[choice.name](each) for each in failures if not each.detail.endswith(_HABITS))
            if lacks and choice.name in _TRIED_WITHOUT:
                as_if = {**lacking, choice.name: without.name}
                again = _carried_out(carrying_out, place, choice.name, file, without.name, as_if)
                lacks = again is not None and (
                    _explains(again)
                    or _is_delivered(place, again.sequence, choice.name)
                    or _goes_beyond(again.failures, filter(_refuses_to_count, failures))
                )
            if lacks:
                break
        found.append(SeenChoice(choice, (without if lacks else usual,), failures[0].observed if lacks else ""))
    return tuple(found)


def _goes_beyond(failures: Sequence[Failure], refusals: Iterable[Failure]) -> bool:
    """Was the suite's own question refused, and is nothing wrong with that command where nobody asks? What comes after
    it is another thing.
    """
    return any(all(each.command != refusal.command for each in failures) for refusal in refusals)


def _is_delivered(place: Path, sequence: str, name: str) -> bool:
    """Of the counts: did the message come, whatever else was wrong? Then it was there to be counted."""
    if name != COUNTS:
        return False
    rows = rows_by_name(place)[sequence.removeprefix(SEQUENCE)]
    return any(row["kind"] == "frame" and row["method"] == "basic.deliver" for row in rows)


def _carried_out(
    carrying_out: CarryingOut, place: Path, name: str, file: CommandFile, mark: str, lacking: Mapping[str, str]
) -> SequenceJudgement | None:
    """What came of the commands for the choice, looked at without what is lacking; None if the broker was lost."""
    sequence = f"{name} ({mark})" if mark else name
    base = with_choices(BASE, {**_BLIND, **_BLIND_TO_NUMBERS.get(name, {}), **lacking})
    if not carrying_out.carry_out({sequence: file}, {sequence: base}):
        return None
    return judged_by(rows_by_name(place)[sequence], base)


def _lacking(means: Iterable[SeenChoice]) -> dict[str, str]:
    """Choice to value."""
    return {seen.choice.name: seen.value.name for seen in means if seen.value and not seen.value.right}


def _all_seen(
    rows: Mapping[str, Sequence[TraceRow]], lacking: Mapping[str, str], errors: list[SuiteError]
) -> tuple[SeenChoice, ...]:
    """What is not certain is looked at again by what is: another choice may explain it as well, as long as it is open.
    """
    found = {name: _seen(TEXT_CHOICES[name], rows[name], lacking, errors) for name in rows}
    certain = {**lacking} | {name: seen.value.name for name, seen in found.items() if seen.value is not None}
    for name in found:
        if name not in certain:
            found[name] = _seen(TEXT_CHOICES[name], rows[name], certain, errors)
    return tuple(found.values())


def _seen(
    choice: TextChoice, rows: Sequence[TraceRow], known: Mapping[str, str], errors: list[SuiteError]
) -> SeenChoice:
    """`known`: the values of other choices. Where an error of this suite comes up, nothing is excluded."""
    base = _base_of(choice.name)
    judged = {each: judged_by(rows, with_choices(base, {**known, choice.name: each.name})) for each in choice.values}
    return seen_of(choice, rows, judged, errors, with_choices(base, known))


def seen_of(
    choice: TextChoice,
    rows: Sequence[TraceRow],
    judged: Mapping[Value, SequenceJudgement],
    errors: list[SuiteError],
    base: Dialect,
) -> SeenChoice:
    """What was seen, where each value judges the rows like this. `base`: the dialect that leaves it open."""
    erring = [judgement for judgement in judged.values() if note_error(judgement, rows, errors)]
    if erring:
        return SeenChoice(choice, choice.values)
    fitting = tuple(each for each, judgement in judged.items() if _explains(judgement))
    return SeenChoice(choice, fitting, "" if fitting else _observed(rows, judged_by(rows, base)))


def _explains(judgement: SequenceJudgement) -> bool:
    """Was all as that value has it? Numbers that take in the unacknowledged are another thing, and always do; so are
    confirms that nobody asked for.
    """
    if judgement.verdict is Verdict.PASS:
        return True
    failures = judgement.failures
    return bool(failures) and all(failure.detail.endswith(_HABITS) for failure in failures)


def _explains_but_for_counts(judgement: SequenceJudgement) -> bool:
    """The same, of a broker that may not know how to count at all: that is another thing than an extension."""
    counts = (
        (each.requirement in _COUNTING and "message-count" in each.detail) or each.detail.endswith(UNASKED)
        for each in judgement.failures
    )
    return judgement.verdict is Verdict.PASS or (bool(judgement.failures) and all(counts))


def _seen_extension(
    capability: str, announced: bool, rows: Sequence[TraceRow], base: Dialect, errors: list[SuiteError]
) -> SeenExtension:
    """It works where everything was right, and its method was taken or something that is about it made a difference."""
    judgement = judged_by(rows, base)
    if note_error(judgement, rows, errors):  # taken at its word
        return SeenExtension(capability, announced, Working.WORKS if announced else Working.REFUSED)
    about = (each for each in judgement.exercised if capability in (capability_of(each), *requirement(each).features))
    shown = capability in METHODS.values() or any(True for _ in about)
    if _explains_but_for_counts(judgement) and shown:
        return SeenExtension(capability, announced, Working.WORKS)
    observed = _observed(rows, judgement)
    if any(row["kind"] == "frame" and row["direction"] == "received" and row["method"] in _ENDS for row in rows):
        return SeenExtension(capability, announced, Working.REFUSED, observed)
    return SeenExtension(capability, announced, Working.IN_PART, observed)


def _ignored(
    carrying_out: CarryingOut, place: Path, names: Collection[str], lacking: Mapping[str, str]
) -> set[str]:
    """Those that make no difference: all is right if it is carried out again as if nobody had it. That is done side by
    side, and where it is not right once more alone, as a broker may get wrong what comes side by side.
    """
    bases = {f"{name} (without)": with_choices(text_with(_beside(name)), lacking) for name in names}
    files = {f"{name} (without)": shows_of_extensions()[name] for name in names}
    ignored: set[str] = set()
    for batch in (list(names), *([name] for name in names)):
        sequences = {f"{name} (without)": name for name in batch if name not in ignored}
        done = carrying_out.carry_out({each: files[each] for each in sequences}, bases)
        rows = rows_by_name(place) if done else {}
        ignored |= {sequences[each] for each in done if _explains_but_for_counts(judged_by(rows[each], bases[each]))}
    return ignored


def _makes_no_difference(
    carrying_out: CarryingOut, place: Path, names: Collection[str], lacking: Mapping[str, str]
) -> set[str]:
    """Those without whose word the broker does the same: judged as if nobody had them, it goes wrong in the same way.
    So it is with a broker that gets wrong what the feature is looked at by.
    """
    files = {name: without_words(name) for name in names}
    sequences = {f"{name} (no word)": file for name, file in files.items() if file is not None}
    bases = {f"{name} ({mark})": with_choices(text_with(_beside(name)), lacking)
             for name in names for mark in ("without", "no word")}  # fmt: skip
    done = carrying_out.carry_out(sequences, bases) if sequences else set()
    rows = rows_by_name(place) if done else {}
    alike: set[str] = set()
    for name in names:
        pair = [f"{name} ({mark})" for mark in ("without", "no word")]
        if pair[1] in done and pair[0] in rows:
            went = [_went(judged_by(rows[each], bases[each])) for each in pair]
            if went[0] == went[1]:
                alike.add(name)
    return alike


def _went(judgement: SequenceJudgement) -> list[tuple[str, str, str]]:
    """In which ways it went wrong, but for what became of the word itself, where that is a property of the message."""
    return [
        (each.requirement, each.shape.value, each.detail)
        for each in judgement.failures
        if each.requirement != "PUBLISH-016"
    ]


def _meaning_something_else(carrying_out: CarryingOut, place: Path, names: Iterable[str]) -> Iterator[str]:
    """Those by whose word the broker means something that is known: it goes as the commands for that have it."""
    for name in names:
        if name not in shows_of_meanings():
            continue
        sequence, file = f"{name} (another meaning)", shows_of_meanings()[name]
        if carrying_out.carry_out({sequence: file}, {sequence: BASE}):
            judgement = judged_by(rows_by_name(place)[sequence], BASE)
            if judgement.failures and " r" in judgement.failures[0].command:
                yield name


def _base_of(choice: str) -> Dialect:
    """The text with what the choice lies in."""
    return text_with(_WITHIN[choice]) if choice in _WITHIN else BASE


def _text_of(capability: str) -> Dialect:
    """The text with it, and with what it is tried with."""
    return text_with([capability, *_beside(capability)])


def _beside(capability: str) -> Collection[str]:
    """What is there beside the capability. Where consumers share their limits, a broker is not blamed for whom of them
    it serves. Where there are none, they are taken for each consumer's own.
    """
    if capability == "consumer_priorities":
        return ("per_consumer_qos",)
    return FEATURES[capability].needs if capability in FEATURES else ()


def judged_by(rows: Sequence[TraceRow], dialect: Dialect) -> SequenceJudgement:
    """By that dialect, whatever came of it while it was carried out."""
    start, end = rows[0].copy(), rows[-1].copy()
    start["dialect"] = dialect.name
    end["verdict"] = Verdict.PASS.value
    return judge([start, *rows[1:-1], end])


def note_error(judgement: SequenceJudgement, rows: Sequence[TraceRow], errors: list[SuiteError]) -> bool:
    """Did the judging come to an error of this suite?"""
    if judgement.suite_error is None:
        return False
    commands = tuple(row["text"] for row in rows if row["kind"] == "command")
    errors.append(SuiteError(judgement.sequence, judgement.suite_error, commands))
    return True


def _observed(rows: Sequence[TraceRow], judgement: SequenceJudgement) -> str:
    """What came that says most: the last error, else the last frame; or that nothing came."""
    if judgement.failures and judgement.failures[0].shape is Shape.MISSING:
        return f"nothing came, where this was due: {judgement.failures[0].detail}"
    if judgement.failures:
        return judgement.failures[0].observed
    received = [row_event(row) for row in rows if row["kind"] == "frame" and row["direction"] == "received"]
    errors = [each for each in received if each.name in _ENDS]
    return plain(str((errors or received)[-1])) if received else "nothing"
