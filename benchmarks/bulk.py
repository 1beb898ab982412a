"""Bulk judging of a store: cost of a frame by length, memory, two cores against one, Spark beside one process, and
the rate at which a broker produces frames."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from amqpspec.pipeline.store.store import open_store
from benchmarks.errors import Invalid
from benchmarks.full_load import SECONDS, full_load
from benchmarks.planted import OPEN_KINDS
from benchmarks.processes import DRIVER, JVM, WORKERS
from benchmarks.processes import run as run_watched
from benchmarks.tables import ResultTable

LENGTHS = (1_000_000, 10_000_000)
SEARCHED = 200_000
#: Ways to judge: by one process, without Spark, and by Spark with one core and with all.
MASTERS = ("", "local[1]", "local[2]")
BROKER = "docker:amqpspec/rabbitmq:4.3"
HEADER = (
    "recording", "store", "frames", "sequences", "judged by", "seconds", "frames/s", "µs per frame",
    "µs of processor time per frame", "of that the JVM and the driver", "start, s", "peak, MiB",
    "driver / JVM / workers, MiB", "made in, s", "making: peak, MiB", "store, MB",
)  # fmt: skip
_ROOT = Path(__file__).resolve().parent.parent


def run(
    lengths: Sequence[int] = LENGTHS, masters: Sequence[str] = MASTERS, searched: int = SEARCHED, broker: str = BROKER,
    seconds: float = SECONDS, beside: str | None = None,
) -> ResultTable:  # fmt: skip
    """Make stores and judge them: those of applications in every way, the longest of several in the last only.

    `beside`: an address in an object store, at which those of applications are made and judged as well.

    In those of applications one violation of each kind is planted: just these must be found. `searched`: frames of a
    store of plain traffic in lockstep, and of one of searches, which are judged in the last way as well; 0: none.
    `broker`: at full load for so many `seconds`, twice; "": none.
    """
    rows = []
    recordings = [("applications", length) for length in sorted(lengths)]
    recordings += [("traffic", searched), ("searches", searched)] if searched else []
    for kind, length in recordings:
        with tempfile.TemporaryDirectory(prefix="amqpspec-bulk-") as folder:
            places = [str(Path(folder) / "store")]
            if beside is not None and kind == "applications":
                places.append(f"{beside}/{length}-{uuid4().hex}")
            in_every_way = kind == "applications" and (length < max(lengths) or len(lengths) == 1)
            for place in places:
                made = _made(place, kind, length)
                for master in masters if in_every_way else masters[-1:]:
                    rows.append((*_measured(kind, place, master, made.planted), *made.columns))
                    print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    return ResultTable(
        "Bulk: judging a store",
        HEADER,
        tuple(rows),
        (
            "Real recordings, repeated (`bulk_recordings.py`): *applications* are the connections of programs with "
            "real clients on the embedded broker, judged in the open world, with one violation of each of "
            f"{len(OPEN_KINDS)} kinds planted, and just these found; *traffic* is plain publishing and consuming in "
            "lockstep, *searches* are sequences of searches on RabbitMQ from tests/corpus. Reading and writing "
            "of results included, the start of Spark apart. *Peak* is the resident memory of all processes together at "
            "the worst moment, with shared pages counted in each.",
            "Processor time is that of all processes, of Spark's start and end as well.",
            *([_produced(broker, seconds)] if broker else []),
        ),
    )


def _produced(broker: str, seconds: float) -> str:
    """What the rates are held against: a broker that has the same machine for itself."""
    free, settled = (full_load(broker, each, seconds=seconds) for each in (False, True))
    return (
        f"In the same run {broker} at full load, with nobody who records or judges (`full_load.py`), produced "
        f"{free.frames / free.seconds:,.0f} frames/s ({free.published / free.seconds:,.0f} publishes/s) without "
        f"confirms and acknowledgements, and {settled.frames / settled.seconds:,.0f} frames/s "
        f"({settled.published / settled.seconds:,.0f} publishes/s) with both."
    )


@dataclass(frozen=True, slots=True)
class _Made:
    planted: int
    columns: tuple[str, str, str]


def _made(store: str, kind: str, length: int) -> _Made:
    """A store with recordings of that kind, made by a process of its own."""
    is_open = kind == "applications"
    options = {"applications": ["--applications", "--planted"], "traffic": ["--traffic"], "searches": []}[kind]
    command = [sys.executable, "-m", "benchmarks.bulk_recordings", store, "--frames", str(length), *options]
    began = time.perf_counter()
    try:
        cost = run_watched(command, _ROOT)
    except subprocess.CalledProcessError as error:
        raise Invalid(f"making {store} ended in {error.returncode}") from None
    octets = sum(part.octets for part in open_store(store).contents().parts)
    columns = f"{time.perf_counter() - began:.1f}", f"{cost.peak:,.0f}", f"{octets / 1e6:,.1f}"
    return _Made(len(OPEN_KINDS) if is_open else 0, columns)


def _measured(kind: str, store: str, master: str, planted: int) -> tuple[str, ...]:
    command = [sys.executable, "-m", "benchmarks.bulk_once", store, *([master] if master else [])]
    try:
        cost = run_watched(command, _ROOT)
    except subprocess.CalledProcessError as error:
        raise Invalid(f"judging {store} ended in {error.returncode}") from None
    said = json.loads(cost.output)
    if said["failed"] != planted or said["problems"]:
        raise Invalid(f"{store}: {said['failed']} sequences failed, {planted} are wrong, {said['problems']}")
    frames, seconds = said["frames"], said["judging"]
    processor = sum(cost.processor.values())
    beside = processor - cost.processor.get(WORKERS, 0.0) if master else 0.0
    return (
        kind,
        store.partition("://")[0] if "://" in store else "folder",
        f"{frames:,}",
        f"{said['sequences']:,}",
        master or "one process",
        f"{seconds:.1f}",
        f"{frames / seconds:,.0f}",
        f"{seconds / frames * 1e6:.1f}",
        f"{processor / frames * 1e6:.1f}",
        f"{beside / processor:.0%}",
        f"{said['start']:.1f}" if master else "",
        f"{cost.peak:,.0f}",
        " / ".join(f"{cost.peaks.get(name, 0.0):,.0f}" for name in (DRIVER, JVM, WORKERS)),
    )
