"""What was measured on: enough to compare numbers, nothing that names the machine."""

from __future__ import annotations

import datetime
import os
import platform
import time
from pathlib import Path


def description() -> str:
    """Processors, memory, Python, date, and how fast it is today, on one line."""
    cores = os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = os.getloadavg()[0]
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    return (
        f"{today}: {cores} cores of {_processor()}, {memory:.0f} GiB, {platform.system()}, "
        f"{platform.python_implementation()} {platform.python_version()}, load {load:.1f} at the start, "
        f"{_nanoseconds_of_an_addition():.0f} ns of processor time for an addition in a loop"
    )


def _nanoseconds_of_an_addition(times: int = 2_000_000) -> float:
    """What to compare two days by: where several machines share processors, one has twice the speed at another time."""
    total, began = 0, time.process_time()
    for number in range(times):
        total += number
    return (time.process_time() - began) * 1e9 / times


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
