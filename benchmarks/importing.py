"""What `amqpspec.testing` costs who imports it: processor time of a Python process, beside one that does nothing."""

from __future__ import annotations

import resource
import subprocess
import sys

from benchmarks.tables import ResultTable, spread

#: Processes for each repetition.
_TIMES = 7
PROGRAMS = {
    "nothing": "pass",
    "importing `EmbeddedBroker`": "from amqpspec.testing import EmbeddedBroker",
    "importing it, and serving": "from amqpspec.testing import EmbeddedBroker\nwith EmbeddedBroker(): pass",
    "importing pika, to compare": "import pika",
}


def run(repetitions: int) -> ResultTable:
    spent: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for program in PROGRAMS.values():
        _processor_time(program)  # which compiles what was never imported
    for _ in range(repetitions * _TIMES):
        for name, program in PROGRAMS.items():
            spent[name].append(_processor_time(program) * 1000)
    least = min(spent["nothing"])
    rows = [(name, spread(times), f"{min(times) - least:,.0f}") for name, times in spent.items()]
    note = (
        "Processor time of a process, in milliseconds: median, least to greatest. *Beside nothing*: the least, less "
        "the least of a process that does nothing (aim for `EmbeddedBroker`: below 100)."
    )
    return ResultTable("Importing the embedded broker", ("program", "ms", "beside nothing, ms"), tuple(rows), (note,))


def _processor_time(program: str) -> float:
    """Seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
