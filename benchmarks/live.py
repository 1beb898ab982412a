"""What judging costs while it happens: the same traffic judged, only recorded, and neither, on the same machine."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from benchmarks.tables import ResultTable, percent, spread
from benchmarks.unjudged import replay, steps_of
from benchmarks.workload import Workload
from conformance.command import Command
from conformance.judgement import TargetDescription
from conformance.session import Session, TargetUnderTest
from conformance.trace import TraceWriter, read_trace, row_frame
from model.acceptor import Acceptor
from model.alphabet import Frame
from model.dialects import dialect_named, dialect_of
from model.verdict import Verdict
from targets.resolve import running, server_properties

#: Commands of the run that tells how many fit into the time.
CALIBRATION = 1500

HEADER = (
    "target", "commands", "frames per command", "judged, commands/s", "recorded only", "neither",
    "judging takes", "judging and recording", "model alone",
)  # fmt: skip


class Invalid(Exception):
    """The workload did not pass on this target, so what was measured says nothing."""


@dataclass(slots=True)
class Measured:
    """Seconds of each repetition."""

    commands: int = 0
    frames: int = 0
    judged: list[float] = field(default_factory=list)
    recorded: list[float] = field(default_factory=list)
    neither: list[float] = field(default_factory=list)
    model: list[float] = field(default_factory=list)

    def row(self, name: str) -> tuple[str, ...]:
        count = self.commands
        shares = [1 - recorded / judged for recorded, judged in zip(self.recorded, self.judged, strict=True)]
        both = [1 - neither / judged for neither, judged in zip(self.neither, self.judged, strict=True)]
        model = [model / judged for model, judged in zip(self.model, self.judged, strict=True)]
        return (
            name,
            f"{count:,}",
            f"{self.frames / count:.1f}",
            spread([count / seconds for seconds in self.judged]),
            spread([count / seconds for seconds in self.recorded]),
            spread([count / seconds for seconds in self.neither]),
            percent(shares),
            percent(both),
            percent(model),
        )


def run(targets: Iterable[str], seconds: float, repetitions: int) -> ResultTable:
    """Measure each target: `repetitions` times about `seconds` for each of the three ways."""
    rows = []
    for name in targets:
        with running(name) as address:
            properties = server_properties(address)
            product = f"{properties.get('product')} {properties.get('version')}"
            dialect = dialect_of(properties)
            target = TargetUnderTest(address, TargetDescription(name, product, "", dialect.name), deadline=30.0)
            label = "embedded" if name == "embedded" else product
            rows.append(_measure(target, seconds, repetitions).row(label))
    return ResultTable(
        "Live: what judging costs in lockstep",
        HEADER,
        tuple(rows),
        (
            "Medians of the repetitions, in brackets the least and the greatest. *Judging takes*: the share of the "
            "judged run's time by which recording alone is faster (aim: below 25 %); it holds the model, the session "
            "and the barriers' decisions. *Model alone*: the time that the acceptor needs for the same frames, without "
            "anything else. The traffic of the barriers is in all three.",
        ),
    )


def _measure(target: TargetUnderTest, seconds: float, repetitions: int) -> Measured:
    measured = Measured()
    with tempfile.TemporaryDirectory(prefix="amqpspec-") as directory:
        trace = Path(directory) / "trace.jsonl"
        took = _judged(target, _commands(target, CALIBRATION), trace)
        # a little more, as what is recorded only is faster
        measured.commands = max(int(CALIBRATION / took * seconds * 1.4), CALIBRATION)
        commands = _commands(target, measured.commands)
        for _ in range(repetitions):
            measured.judged.append(_judged(target, commands, trace))
            rows = list(read_trace(trace))
            steps = steps_of(rows)
            measured.frames = sum(1 for row in rows if row["kind"] == "frame")
            with TraceWriter(Path(directory) / "again.jsonl") as again:
                measured.recorded.append(replay(target.address, steps, "again", again))
            measured.neither.append(replay(target.address, steps, "again", None))
            measured.model.append(_model_alone(target, trace))
    return measured


def _commands(target: TargetUnderTest, count: int) -> list[Command]:
    return list(islice(Workload(dialect_named(target.description.dialect)).commands(), count))


def _judged(target: TargetUnderTest, commands: Sequence[Command], path: Path) -> float:
    with TraceWriter(path) as trace, Session(target, trace, "workload") as session:
        began = time.perf_counter()
        for command in commands:
            session.run(command)
        took = time.perf_counter() - began
        judgement = session.finish()
    # a known departure ends nothing: judging goes on from where it leads to
    unknown = [failure.identity for failure in judgement.failures if not failure.departure]
    if unknown or session.over or judgement.verdict is Verdict.INCONCLUSIVE:
        why = judgement.reason or ", ".join(unknown)
        raise Invalid(f"the workload did not pass on {target.description.label}: {why}")
    return took


def _model_alone(target: TargetUnderTest, path: Path) -> float:
    """Seconds that the acceptor needs for the recorded frames, which are in memory already; median of three."""
    steps: list[tuple[str, Frame | None]] = []
    for row in read_trace(path):
        if row["kind"] == "frame":
            frame = row_frame(row)
            steps.append(("sent" if frame.sent else "received", frame))
        elif row["kind"] == "mark":
            steps.append((row["mark"], None))
    taken = []
    for _ in range(3):
        acceptor = Acceptor(dialect_named(target.description.dialect))
        began = time.perf_counter()
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
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)
