"""What a command costs with all processes that it starts: their memory and their processor time, by kind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

#: Seconds between two looks at the processes.
_EVERY = 0.25
_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
DRIVER, JVM, WORKERS = "driver", "JVM", "workers"


@dataclass(slots=True)
class Cost:
    """`peak`: MiB that all had together at the worst moment, and each kind at its own; `processor`: seconds."""

    output: str = ""
    peak: float = 0.0
    peaks: dict[str, float] = field(default_factory=dict)
    processor: dict[str, float] = field(default_factory=dict)


def run(
    command: Sequence[str], directory: Path, *, codes: Collection[int] = (0,), longest: float | None = None
) -> Cost:
    """Run a command to its end. Raises `subprocess.SubprocessError` if that is none of these exit codes, or takes
    longer than `longest` seconds.
    """
    cost, done = Cost(), threading.Event()
    with subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, text=True) as process:
        watcher = threading.Thread(target=_watch, args=(process.pid, cost, done), daemon=True)
        watcher.start()
        try:
            cost.output, _ = process.communicate(timeout=longest)
        except subprocess.TimeoutExpired:
            process.terminate()
            raise
        finally:
            done.set()
            watcher.join()
    if process.returncode not in codes:
        raise subprocess.CalledProcessError(process.returncode, command)
    return cost


def _watch(root: int, cost: Cost, done: threading.Event) -> None:
    processor: dict[int, tuple[str, float]] = {}
    while not done.wait(_EVERY):
        memory: defaultdict[str, float] = defaultdict(float)
        for pid, kind, resident, seconds in _tree(root):
            memory[kind] += resident
            processor[pid] = kind, max(seconds, processor.get(pid, ("", 0.0))[1])
        cost.peak = max(cost.peak, sum(memory.values()))
        for kind, resident in memory.items():
            cost.peaks[kind] = max(cost.peaks.get(kind, 0.0), resident)
    for kind, seconds in processor.values():
        cost.processor[kind] = cost.processor.get(kind, 0.0) + seconds


def _tree(root: int) -> list[tuple[int, str, float, float]]:
    """Process, kind, resident memory in MiB, processor time: of the root and of all that come from it."""
    parents: dict[int, tuple[int, str, float, float]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                text = (folder / "stat").read_text()
            except OSError:
                continue  # it has just ended
            name, _, rest = text.partition("(")[2].rpartition(")")
            fields = rest.split()
            seconds = (int(fields[11]) + int(fields[12])) / _TICK
            parents[int(folder.name)] = int(fields[1]), name, int(fields[21]) * _PAGE / 2**20, seconds
    found = []
    for pid, (_, name, resident, seconds) in parents.items():
        ancestors, each = [], pid
        while each in parents and each != root:
            each = parents[each][0]
            ancestors.append(each)
        if each == root:
            java = name == "java"
            below = any(parents[one][1] == "java" for one in ancestors if one in parents)
            found.append((pid, JVM if java else WORKERS if below else DRIVER, resident, seconds))
    return found


if sys.platform != "linux":
    raise ImportError("benchmarks.processes reads /proc, which is Linux only")
