"""Judges one trace and prints what that took, as JSON: `python -m benchmarks.judge_once PATH`.

A process of its own for each measurement, so that the greatest memory is that of this trace.
"""

from __future__ import annotations

import json
import resource
import sys
import time

from amqpspec.pipeline.table import check_in_process


def main(path: str) -> None:
    before = _peak()
    wall, processor = time.perf_counter(), time.process_time()
    table = check_in_process([path])
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
    main(sys.argv[1])
