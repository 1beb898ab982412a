"""Judges a store and prints what that took, as JSON: `python -m benchmarks.bulk_once STORE [MASTER]`.

Without a master it is this process that judges. What was judged before is judged again.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import nullcontext
from typing import Any

from amqpspec.pipeline.bulk_judging import judge_store
from amqpspec.pipeline.spark_session import spark_session
from amqpspec.pipeline.store.store import open_store


def main(folder: str, master: str | None) -> None:
    store = open_store(folder)
    began = time.perf_counter()
    session: Any = spark_session(master) if master else nullcontext()
    with session:
        started = time.perf_counter()
        summary = judge_store(store, master, again=True)
        ended = time.perf_counter()
    measured = {
        "frames": summary.frames,
        "sequences": summary.sequences,
        "failed": summary.failed,
        "problems": summary.problems,
        "start": started - began,
        "judging": ended - started,
    }
    print(json.dumps(measured))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)
