"""What judging costs while it happens: the same traffic judged, only recorded, and neither, on the same machine."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.session.session import Session
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter, read_trace, row_event
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.defects.known_defects import acceptor_for
from amqpspec.model.promises.dialects import dialect_named, dialect_of
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.methods import TraceEvent
from amqpspec.targets.brokers.resolve import running, server_properties
from benchmarks.errors import Invalid
from benchmarks.tables import ResultTable, percent, spread
from benchmarks.unjudged import Step, replaying, steps_of
from benchmarks.workload import Workload

#: Commands of the run that tells how many fit into the time.
CALIBRATION = 1500
#: So many times as many commands as a judged run does in the time, so that the fastest of the three ways fills it too.
UNJUDGED_IS_FASTER = 2.6

HEADER = (
    "target", "commands", "frames per command", "judged, commands/s", "recorded only", "neither",
    "judging takes", "judging and recording take", "model alone", "client's µs per command",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Taken:
    """Seconds that something took, and those of them in which this thread had the processor."""

    wall: float
    processor: float


class Timer:
    """Begins when it is made; `taken` so far."""

    def __init__(self) -> None:
        self._wall, self._processor = time.perf_counter(), time.thread_time()

    def taken(self) -> Taken:
        return Taken(time.perf_counter() - self._wall, time.thread_time() - self._processor)


@dataclass(slots=True)
class Measured:
    """What each repetition took."""

    commands: int = 0
    frames: int = 0
    judged: list[Taken] = field(default_factory=list)
    recorded: list[Taken] = field(default_factory=list)
    neither: list[Taken] = field(default_factory=list)
    model: list[Taken] = field(default_factory=list)

    def row(self, name: str) -> tuple[str, ...]:
        processor = (self._processor(each) for each in (self.judged, self.recorded, self.neither))
        return (
            name,
            f"{self.commands:,}",
            f"{self.frames / self.commands:.1f}",
            self._rates(self.judged),
            self._rates(self.recorded),
            self._rates(self.neither),
            self._saved_by(self.recorded),
            self._saved_by(self.neither),
            percent([model.wall / judged.wall for model, judged in zip(self.model, self.judged, strict=True)]),
            " / ".join(f"{microseconds:.0f}" for microseconds in processor),
        )

    def _rates(self, taken: Sequence[Taken]) -> str:
        return spread([self.commands / each.wall for each in taken])

    def _processor(self, taken: Sequence[Taken]) -> float:
        return statistics.median(each.processor for each in taken) / self.commands * 1e6

    def _saved_by(self, others: Sequence[Taken]) -> str:
        """The share of the judged run's time that the other way does without, repetition by repetition."""
        return percent([1 - other.wall / judged.wall for other, judged in zip(others, self.judged, strict=True)])


def run(
    targets: Iterable[str], seconds: float, repetitions: int, calibration: int = CALIBRATION
) -> ResultTable:
    """Measure each target: `repetitions` times about `seconds` for each of the three ways, but no fewer commands than
    `calibration`.
    """
    rows = []
    for name in targets:
        with running(name) as address:
            properties = server_properties(address)
            product = f"{properties.get('product')} {properties.get('version')}"
            dialect = dialect_of(properties)
            target = TargetUnderTest(address, TargetDescription(name, product, "", dialect.name), deadline=30.0)
            label = "embedded" if name == "embedded" else product
            rows.append(_measure(target, seconds, repetitions, calibration).row(label))
    return ResultTable(
        "Live: what judging costs in lockstep",
        HEADER,
        tuple(rows),
        (
            "Medians of the repetitions, in brackets the least and the greatest. *Judging takes*: the share of the "
            "judged run's time by which recording alone is faster, repetition by repetition (aim: below 25 %); it "
            "holds the model, the session and the barriers' decisions. *Model alone*: the time that the "
            "acceptor needs for the same frames, without anything else. The last column is processor time of the "
            "suite's thread: judged / recorded only / neither. The traffic of the barriers is in all three.",
        ),
    )


def _measure(target: TargetUnderTest, seconds: float, repetitions: int, calibration: int) -> Measured:
    measured = Measured()
    with tempfile.TemporaryDirectory(prefix="amqpspec-") as directory:
        trace = Path(directory) / "trace.jsonl"
        took = _judged(target, _commands(target, calibration), trace).wall
        measured.commands = max(int(calibration / took * seconds * UNJUDGED_IS_FASTER), calibration)
        commands = _commands(target, measured.commands)
        for _ in range(repetitions):
            measured.judged.append(_judged(target, commands, trace))
            rows = list(read_trace(trace))
            steps = steps_of(rows)
            measured.frames = sum(1 for row in rows if row["kind"] == "frame")
            with TraceWriter(Path(directory) / "again.jsonl") as again:
                measured.recorded.append(_replayed(target, steps, again))
            measured.neither.append(_replayed(target, steps, None))
            measured.model.append(_model_alone(target, trace))
    return measured


def _commands(target: TargetUnderTest, count: int) -> list[Command]:
    return list(islice(Workload(dialect_named(target.description.dialect)).commands(), count))


def _replayed(target: TargetUnderTest, steps: Sequence[Step], trace: TraceWriter | None) -> Taken:
    with replaying(target.address, steps, "again", trace) as carry_out:
        timer = Timer()
        carry_out()
        return timer.taken()


def _judged(target: TargetUnderTest, commands: Sequence[Command], path: Path) -> Taken:
    with TraceWriter(path) as trace, Session(target, trace, "workload") as session:
        timer = Timer()
        for command in commands:
            session.run(command)
        taken = timer.taken()
        judgement = session.finish()
    # a known defect ends nothing: judging goes on from where it leads to
    unknown = [failure.identity for failure in judgement.failures if not failure.defect]
    if unknown or session.over or judgement.verdict is Verdict.INCONCLUSIVE:
        why = judgement.reason or ", ".join(unknown)
        raise Invalid(f"the workload did not pass on {target.description.label}: {why}")
    return taken


def _model_alone(target: TargetUnderTest, path: Path) -> Taken:
    """What the acceptor needs for the recorded frames, which are in memory already: the quickest of three."""
    steps: list[tuple[str, TraceEvent | None]] = []
    for row in read_trace(path):
        if row["kind"] == "frame":
            event = row_event(row)
            steps.append(("sent" if event.sent else "received", event))
        elif row["kind"] == "mark":
            steps.append((row["mark"], None))
    taken = []
    for _ in range(3):
        acceptor = acceptor_for(dialect_named(target.description.dialect))
        timer = Timer()
        for kind, step in steps:
            if step is not None:
                if kind == "sent":
                    acceptor.sent(step)
                else:
                    acceptor.received(step)
            elif kind == "barrier":
                acceptor.barrier(True)
            elif kind == "quiescent":
                acceptor.quiescent()
                acceptor.barrier(False)
        taken.append(timer.taken())
    return min(taken, key=lambda each: each.wall)
