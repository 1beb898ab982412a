"""The compliance table: requirement × target × verdict, with how many sequences said so.

It is a view of a `Tally` (`conformance.verdicts.tally`), in memory that depends on the number of distinct rows only.
Tallies made in several places (the partitions of a Spark job) are merged, so both ways give the same table.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from rich.text import Text

from amqpspec.conformance.traces.trace import TraceError, TraceRow, read_trace, sequences
from amqpspec.conformance.verdicts.grounds import why_not, without_ground
from amqpspec.conformance.verdicts.judge import judge_all, of_dialect, opened
from amqpspec.conformance.verdicts.judgement import SequenceJudgement, SuiteError
from amqpspec.conformance.verdicts.tally import (
    DEFECT,
    FAILURE,
    MEASUREMENT,
    NOT_FIXED,
    OWN,
    REFUTED,
    REPEATED,
    SEEN,
    TOTAL,
    UNEXPECTED,
    VERDICT,
    Part,
    Tally,
)
from amqpspec.model.defects.known_defects import strength_of
from amqpspec.model.promises.dialect_names import in_short
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.verdict import Failure, Verdict
from amqpspec.reports.accuracy import Accuracy, added_up
from amqpspec.reports.readable_table import ReadableTable, number_column, text_column
from amqpspec.reports.text import visible

PASS = str(Verdict.PASS)

#: Judges the rows of one sequence. Must be importable by name to be used by Spark.
Judge = Callable[[Iterable[TraceRow]], SequenceJudgement]


@dataclass(frozen=True, slots=True, order=True)
class TableRow:
    """So many sequences ended in `verdict` for `requirement` on `target`; "" for searches that did not end.

    `as_known` is their verdict against the broker as it is known: "pass" where every failure is a known defect.
    `exercised` is how often the rule made a difference in these sequences; `reason` is an example for
    verdicts that need one (inconclusive, not applicable), else "".
    """

    requirement: str
    target: str
    dialect: str
    verdict: str
    as_known: str
    sequences: int
    exercised: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class TableFailure:
    """A distinct failure on a target: the number of sequences that showed it, and the name of one of them."""

    target: str
    dialect: str
    failure: Failure
    sequences: int
    sequence: str
    #: a known defect explains it that is known of the target's version
    is_as_known: bool = False
    #: it does nothing to an application (`conformance.verdicts.minor`)
    is_minor: bool = False

    @property
    def is_harmless(self) -> bool:
        """Does it fail nothing?"""
        return self.is_minor or strength_of(self.failure) is Strength.ARGUABLE


@dataclass(frozen=True, slots=True, order=True)
class TableDefect:
    """A known defect on a target: the sequences that showed it, and those that would have and did not."""

    target: str
    dialect: str
    defect: str
    seen: int
    refuted: int


@dataclass(frozen=True, slots=True)
class TableAccuracy:
    """How late a target was where a time was up, to the millisecond."""

    target: str
    dialect: str
    accuracy: Accuracy


@dataclass(frozen=True, slots=True)
class ComplianceTable:
    """What any number of traces say. Rows, failures and known defects are in the order of their texts."""

    rows: tuple[TableRow, ...]
    failures: tuple[TableFailure, ...]
    sequences: int
    frames: int
    #: sequences that repeated or shortened others, which are judged and not counted; `frames` has theirs as well
    repeats: int = 0
    #: those only that some sequence put to the test
    defects: tuple[TableDefect, ...] = ()
    #: those targets only on which a time was up
    accuracies: tuple[TableAccuracy, ...] = ()
    #: (target, version) of RabbitMQ where the version is newer than what was verified
    newer: tuple[tuple[str, str], ...] = ()
    #: the targets of which no known defect is said to be fixed (`conformance.verdicts.known_behaviour.may_be_fixed`)
    not_fixed: frozenset[str] = frozenset()

    @property
    def exit_code(self) -> int:
        """1 if a requirement failed, else 4 if a sequence was inconclusive, else 0. Against the promise: that a
        known defect is known makes nothing green. What is only arguable or minor fails nothing.
        """
        verdicts = {row.verdict for row in self.rows}
        fails = Verdict.FAIL in verdicts and not self.is_harmless_only
        return 1 if fails else 4 if Verdict.INCONCLUSIVE in verdicts else 0

    @property
    def is_harmless_only(self) -> bool:
        """Are there failures, all of them arguable (`model.promises.strength`) or minor?"""
        return bool(self.failures) and all(found.is_harmless for found in self.failures)


def compliance_table(tally: Tally) -> ComplianceTable:
    """The table of all that was added up."""
    by_kind: defaultdict[str, list[Part]] = defaultdict(list)
    for part in tally.parts():
        by_kind[part.kind].append(part)
    groundless = without_ground(by_kind[VERDICT])
    rows = tuple(
        _groundless(row) if (row.requirement, row.target, row.dialect) in groundless and row.verdict == PASS else row
        for row in map(_row, by_kind[VERDICT])
    )
    failures = tuple(
        TableFailure(
            part.target, part.dialect, part.failure, part.sequences, part.example, part.as_known == OWN, part.is_minor
        )
        for part in by_kind[FAILURE]
    )
    totals = by_kind[TOTAL]
    return ComplianceTable(
        rows,
        failures,
        sum(part.sequences for part in totals if part.name != REPEATED),
        sum(part.frames for part in totals),
        sum(part.sequences for part in totals if part.name == REPEATED),
        _defects(by_kind[DEFECT]),
        _accuracies(by_kind[MEASUREMENT]),
        tuple(sorted({(part.target, part.name) for part in by_kind[NOT_FIXED] if part.name})),
        frozenset(part.target for part in by_kind[NOT_FIXED]),
    )


def _row(part: Part) -> TableRow:
    return TableRow(
        part.requirement,
        part.target,
        part.dialect,
        part.name,
        part.as_known,
        part.sequences,
        part.exercised,
        part.text,
    )


def _groundless(row: TableRow) -> TableRow:
    """What was kept by a broker of which nothing shows that it has the feature."""
    not_exercised = str(Verdict.NOT_EXERCISED)
    return replace(row, verdict=not_exercised, as_known=not_exercised, exercised=0, reason=why_not(row.requirement))


def _defects(parts: Iterable[Part]) -> tuple[TableDefect, ...]:
    counts: dict[tuple[str, str, str], dict[str, int]] = {}
    for part in parts:
        counts.setdefault((part.target, part.dialect, part.name), {})[part.as_known] = part.sequences
    return tuple(sorted(TableDefect(*key, n.get(SEEN, 0), n.get(REFUTED, 0)) for key, n in counts.items()))


def _accuracies(parts: Iterable[Part]) -> tuple[TableAccuracy, ...]:
    late: defaultdict[tuple[str, str], Counter[float]] = defaultdict(Counter)
    unexpected: Counter[tuple[str, str]] = Counter()
    for part in parts:
        key = part.target, part.dialect
        late[key][int(part.name) / 1000] += part.sequences
        unexpected[key] += part.sequences * (part.as_known == UNEXPECTED)
    return tuple(TableAccuracy(*key, added_up(late[key], unexpected[key])) for key in sorted(late))


def judge_traces(
    paths: Iterable[Path | str],
    judge: Judge | None = None,
    is_open: bool = False,
    unreadable: list[TraceError] | None = None,
    dialect: str | None = None,
) -> Iterator[SequenceJudgement]:
    """Judges every sequence of every trace, in this process. Raises `TraceError`.

    Without a `judge` it is the suite's, which needs no more memory for a long sequence than for a short one; with
    `is_open` in the open world, and with `dialect` by the one of that name, whatever the traces say. With
    `unreadable` nothing is raised: what cannot be read is told there, what comes before it in its trace is judged, and
    so are the other traces.
    """
    for path in paths:
        try:
            rows = read_trace(path) if unreadable is None else _readable(path, unreadable)
            rows = opened(rows) if is_open else rows
            rows = of_dialect(rows, dialect) if dialect else rows
            yield from judge_all(rows) if judge is None else map(judge, sequences(rows))
        except TraceError as error:
            # Errors of single rows name their file already.
            named = error if str(error).startswith(str(path)) else TraceError(f"{path}: {error}")
            if unreadable is None:
                raise named from error
            unreadable.append(named)


def _readable(path: Path | str, unreadable: list[TraceError]) -> Iterator[TraceRow]:
    """The rows of a trace as if it ended where it cannot be read: so a sequence that was under way is judged too."""
    try:
        yield from read_trace(path)
    except TraceError as error:
        unreadable.append(error)


def check_in_process(
    paths: Iterable[Path | str],
    judge: Judge | None = None,
    is_open: bool = False,
    unreadable: list[TraceError] | None = None,
    errors: list[SuiteError] | None = None,
    dialect: str | None = None,
) -> ComplianceTable:
    """The compliance table of some traces, made in this process; options as of `judge_traces`. Raises `TraceError`.
    `errors`: gets those of this suite.
    """
    tally = Tally()
    for judgement in judge_traces(paths, judge, is_open, unreadable, dialect):
        tally.add(judgement)
        if errors is not None and judgement.suite_error is not None:
            errors.append(SuiteError(judgement.sequence, judgement.suite_error))
    return compliance_table(tally)


def table_view(table: ComplianceTable) -> ReadableTable:
    """The rows for a terminal."""
    names = map(text_column, ("requirement", "target", "dialect", "verdict", "as known"))
    view = ReadableTable(*names, number_column("sequences"), number_column("exercised"), text_column("reason"))
    for row in table.rows:
        as_known = "" if row.as_known == row.verdict else row.as_known
        texts = (row.requirement or "(search)", row.target, in_short(row.dialect), row.verdict, as_known)
        numbers = (f"{row.sequences:,}", f"{row.exercised:,}" if row.exercised else "", row.reason)
        view.add_row(*(Text(visible(text)) for text in (*texts, *numbers)))
    return view
