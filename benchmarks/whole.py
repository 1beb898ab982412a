"""What a whole default run takes, scenarios, search, shrinking and reports: seconds, processor time, and waiting."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from amqpspec.conformance.traces.trace import read_trace
from amqpspec.model.protocol.methods import Method
from amqpspec.targets.address import Address
from amqpspec.targets.brokers.resolve import running
from amqpspec.targets.client.wire import WireClient
from benchmarks import processes
from benchmarks.errors import Invalid
from benchmarks.judge_once import judged
from benchmarks.tables import ResultTable

#: Round trips that the floor is measured by.
ROUND_TRIPS = 2000
HEADER = (
    "target", "seconds", "processor seconds", "sequences", "commands", "frames", "commands/s", "round trip, µs",
    "round trips", "floor, s", "overdue", "waited in vain, s", "failures, new", "judged offline, frames/s",
)  # fmt: skip
#: Seconds that a run may take.
LONGEST = 1200.0


@dataclass(slots=True)
class Traffic:
    """What the trace of a run holds. `round_trips`: how often something came after what had been sent."""

    sequences: int = 0
    commands: int = 0
    frames: int = 0
    round_trips: int = 0
    overdue: int = 0
    #: seconds, of all sequences together, which wait side by side
    waited: float = 0.0
    _sent: set[str] = field(default_factory=set)


def run(targets: Iterable[str], options: Sequence[str] = ()) -> ResultTable:
    """One default run on each target, or one with these `options`. Raises `Invalid` where a run gives no report."""
    return ResultTable(
        "Whole runs: what a default run takes",
        HEADER,
        tuple([_whole(target, options) for target in targets]),
        (
            "`amqpspec run TARGET --seed 1`, start of a container included. *Processor seconds* are those of the suite "
            "and of the embedded broker. *Round trip* is the median of a `basic.qos` on a connection of its own, "
            "measured before the run; the *floor* is what the run's round trips take at that rate one after another. "
            "*Overdue*: frames that were waited for in vain. *Judged offline*: its trace, once, reading included, per "
            "second of processor time on one core (aim for the recordings of RabbitMQ: 60,000).",
        ),
    )


def _whole(target: str, options: Sequence[str]) -> tuple[str, ...]:
    with running(target) as address:
        round_trip = _round_trip(address)
    with tempfile.TemporaryDirectory(prefix="amqpspec-") as directory:
        out = Path(directory)
        command = [sys.executable, "-m", "amqpspec", "run", target, "--seed", "1", "--quiet", "--out", directory]
        began = time.perf_counter()
        try:
            cost = processes.run([*command, *options], out, codes=(0, 1), longest=LONGEST)
        except subprocess.SubprocessError as error:
            raise Invalid(f"the run on {target} failed: {error}") from None
        took = time.perf_counter() - began
        traffic = traffic_of(out / "trace.jsonl")
        offline = judged(out / "trace.jsonl")
        report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    new = sum(1 for each in report["failures"] if each["as_known"] == "fail")
    return (
        target,
        f"{took:.0f}",
        f"{sum(cost.processor.values()):.0f}",
        f"{traffic.sequences:,}",
        f"{traffic.commands:,}",
        f"{traffic.frames:,}",
        f"{traffic.commands / took:,.0f}",
        f"{round_trip * 1e6:,.0f}",
        f"{traffic.round_trips:,}",
        f"{traffic.round_trips * round_trip:.1f}",
        f"{traffic.overdue:,}",
        f"{traffic.waited:.0f}",
        f"{new:,}",
        f"{offline['frames'] / offline['processor']:,.0f}",
    )


def traffic_of(trace: Path) -> Traffic:
    """Raises `TraceError`."""
    traffic = Traffic()
    for row in read_trace(trace):
        kind, name = row["kind"], row["sequence"]
        if kind == "start":
            traffic.sequences += 1
        elif kind == "command":
            traffic.commands += 1
        elif kind == "mark" and row["mark"] == "overdue":
            traffic.overdue += 1
            traffic.waited += row.get("waited") or 0.0
        elif kind == "frame":
            traffic.frames += 1
            if row["direction"] == "sent":
                traffic._sent.add(name)
            elif name in traffic._sent:
                traffic._sent.discard(name)
                traffic.round_trips += 1
    return traffic


def _round_trip(address: Address) -> float:
    """Seconds, the median."""
    taken = []
    with WireClient(address) as client:
        client.open("floor")
        for method in ("channel.open", *["basic.qos"] * ROUND_TRIPS):
            began = time.perf_counter()
            client.send(Method("floor", 1, method, {}, sent=True))
            if client.receive(30.0) is None:
                raise Invalid(f"{address} does not answer {method}")
            taken.append(time.perf_counter() - began)
    return statistics.median(taken[1:])
