"""Judges one trace and prints what that took, as JSON: `python -m benchmarks.judge_once PATH [--law-alone]`.

With `--law-alone` the judge follows no known defects.
A process of its own for each measurement (`judged`), so that the greatest memory is that of this trace.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from amqpspec.conformance.traces.trace import read_trace
from amqpspec.conformance.verdicts.judge import MakesAcceptor, judge_all
from amqpspec.conformance.verdicts.tally import Tally
from amqpspec.model.defects.known_defects import acceptor_for
from amqpspec.model.judging.acceptor import lawful_acceptor
from amqpspec.pipeline.table import compliance_table

#: Where `benchmarks` can be imported.
_ROOT = Path(__file__).resolve().parent.parent


def judged(path: Path, *options: str) -> dict[str, Any]:
    """What `main` prints, of a process of its own."""
    command = [sys.executable, "-m", "benchmarks.judge_once", str(path), *options]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True)
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def main(path: str, acceptor: MakesAcceptor) -> None:
    before = _peak()
    wall, processor = time.perf_counter(), time.process_time()
    tally = Tally()
    for judgement in judge_all(read_trace(path), acceptor):
        tally.add(judgement)
    table = compliance_table(tally)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    measured = {
        "frames": table.frames,
        "sequences": table.sequences,
        "wall": wall,
        "processor": processor,
        "peak": _peak(),
        "before": before,
        "exit": table.exit_code,
    }
    print(json.dumps(measured))


def _peak() -> float:
    """Greatest memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main(sys.argv[1], lawful_acceptor if "--law-alone" in sys.argv else acceptor_for)
