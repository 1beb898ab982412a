"""What a search spends its time on: making commands, waiting for the broker, judging."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from amqpspec.conformance.run import Runner
from amqpspec.conformance.run_options import RunOptions
from amqpspec.conformance.session.cleanup import Cleaner
from amqpspec.conformance.session.plan import Plan
from amqpspec.conformance.session.session import Session
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter
from amqpspec.conformance.verdicts.judge import SequenceJudge
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.dialects import dialect_of
from amqpspec.targets.brokers.resolve import running, server_properties
from amqpspec.targets.client.connections import Connections
from amqpspec.targets.client.wire import WireClient
from benchmarks.stopwatch import Stopwatch
from benchmarks.tables import ResultTable

PARTS = ("waiting", "opening", "cleaning up", "judging", "trace", "session", "plan")
HEADER = ("target", "sequences", "frames", "sequences/s", "frames/s", *PARTS, "Hypothesis")


def run(targets: Iterable[str], sequences: int) -> ResultTable:
    """One search of so many sequences on each target."""
    rows = []
    for name in targets:
        with running(name) as address:
            properties = server_properties(address)
            product = f"{properties.get('product')} {properties.get('version')}"
            description = TargetDescription(name, product, "", dialect_of(properties).name)
            label = "embedded" if name == "embedded" else product
            rows.append(_search(label, TargetUnderTest(address, description), sequences))
    return ResultTable(
        "Generation: where the time of a search goes",
        HEADER,
        tuple(rows),
        (
            "*Waiting* is for frames of the broker; the embedded one shares the process, so its work is in it. "
            "*Opening* is TCP and handshake. *Session* turns commands into frames and runs the barriers, *plan* is the "
            "model that the generator looks at, *Hypothesis* is all the rest. Failures are not shrunk.",
        ),
    )


def _search(label: str, target: TargetUnderTest, sequences: int) -> tuple[str, ...]:
    watch = Stopwatch()
    watch.watch(Connections, "_await_input", "waiting")
    watch.watch(WireClient, "open", "opening")
    watch.watch(Cleaner, "clean_up", "cleaning up")
    for method in ("__init__", "command", "event", "mark", "judgement"):
        watch.watch(SequenceJudge, method, "judging")
    watch.watch(TraceWriter, "_write", "trace")
    for method in ("__init__", "run", "__exit__"):
        watch.watch(Session, method, "session")
    watch.watch(Plan, "carry_out", "plan")
    # no scenario is for a requirement of this name
    options = RunOptions(only=("none",), seed=1, sequences=sequences, shrinking_time=0.0)
    with (
        tempfile.TemporaryDirectory(prefix="amqpspec-") as directory,
        TraceWriter(Path(directory) / "trace.jsonl") as trace,
    ):
        runner = Runner(target, trace, options)
        began = time.perf_counter()
        with watch:
            result = runner.run()
        took = time.perf_counter() - began
    shares = [f"{watch.seconds[part] / took:.0%}" for part in (*PARTS, Stopwatch.REST)]
    return (
        label,
        f"{result.sequences:,}",
        f"{result.frames:,}",
        f"{result.sequences / took:.1f}",
        f"{result.frames / took:,.0f}",
        *shares,
    )
