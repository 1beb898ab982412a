"""What was measured on: enough to compare numbers, nothing that names the machine."""

from __future__ import annotations

import datetime
import os
import platform
from pathlib import Path


def description() -> str:
    """Processors, memory, Python and date on one line."""
    cores = os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = os.getloadavg()[0]
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    return (
        f"{today}: {cores} cores of {_processor()}, {memory:.0f} GiB, {platform.system()}, "
        f"{platform.python_implementation()} {platform.python_version()}, load {load:.1f} at the start"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
