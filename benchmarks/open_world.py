"""How many of the embedded broker's planted defects show in the recordings of applications (`applications.py`)."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from amqpspec.conformance.traces.trace import read_trace, sequences
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.pipeline.judging.conservation import conservation_of
from amqpspec.pipeline.table import judge_traces
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.faults.all_faults import FAULTS
from benchmarks.applications import run_all
from benchmarks.errors import Invalid
from benchmarks.tables import ResultTable
from tests.proxies import recording

#: Areas that the applications have to do with.
MET = (
    "ACK", "BIND", "CANCEL", "CAP", "CHAN", "CONFIRM", "CONN", "CONSUME", "EXCHANGE", "GET", "PUBLISH", "QOS", "QUEUE",
    "TX",
)  # fmt: skip
_MESSAGES = 60
#: Seconds that the applications get: a broker that keeps something back makes them wait.
_SECONDS = 12.0


def area(name: str) -> str:
    return FAULTS[name].requirement.split("-")[0]


def recorded_failures(fault: str | None, directory: Path) -> tuple[list[str], dict[str, str]]:
    """Identities of the failures in the recordings of all applications on that variant, and what became of these."""
    dialect = dialect_named(FAULTS[fault].dialect) if fault else None
    with EmbeddedBroker(dialect, fault=fault) as broker:
        address = broker.address
        with recording(f"amqp://{address.host}:{address.port}", directory) as proxy:
            ended = run_all(f"amqp://guest:guest@127.0.0.1:{proxy.port}/", "app", _MESSAGES, _SECONDS)
    found = [each.identity for judged in judge_traces([directory]) for each in judged.failures]
    rows = [rows for file in sorted(directory.glob("*.jsonl")) for rows in sequences(read_trace(file))]
    between = dict.fromkeys(f"{each.requirement}|{each.what}" for each in conservation_of(rows).violations)
    return [*found, *between], ended


def run(names: Sequence[str] | None = None) -> ResultTable:
    """One row for each area, and one for all. Raises `Invalid` where a right broker is blamed."""
    caught: dict[str, list[str]] = {}
    noticed: set[str] = set()
    for name in [None, *(names or [each for each in FAULTS if area(each) in MET])]:
        with tempfile.TemporaryDirectory() as directory:
            failures, ended = recorded_failures(name, Path(directory))
        if name is None:
            if failures or ended:
                raise Invalid(f"the right broker: {failures} {ended}")
            continue
        caught[name] = failures
        if failures or ended:
            noticed.add(name)
        print(f"{name}: {failures} {ended}", flush=True)
    areas = [each for each in MET if each in map(area, caught)]
    rows = [_row(each, {name: found for name, found in caught.items() if area(name) == each}) for each in areas]
    return ResultTable(
        "Open world: planted defects in the recordings of applications",
        ("area", "defects", "caught", "by the requirement", "which"),
        (*rows, _row("all", caught)),
        (
            "Programs with pika, aio-pika and kombu (`applications.py`, `worker_application.py`) work on each defect "
            f"at one time, with {_MESSAGES} messages each, through `amqpspec record`; the recordings are judged in the "
            "open world, and between connections by conservation. *Caught*: anything is blamed; "
            "*by the requirement*: that which the defect breaks. A right broker is blamed for nothing. What is not "
            "caught is not met by these programs, or needs to be known of queues. "
            f"{len(noticed - {name for name, found in caught.items() if found})} others stopped a program or made it "
            "fail, and nothing is blamed on the broker.",
        ),
    )


def _row(label: str, caught: dict[str, list[str]]) -> tuple[str, ...]:
    found = [name for name, failures in caught.items() if failures]
    rightly = [name for name in found if any(each.startswith(f"{FAULTS[name].requirement}|") for each in caught[name])]
    which = "" if label == "all" else ", ".join(found)
    return label, str(len(caught)), str(len(found)), str(len(rightly)), which
