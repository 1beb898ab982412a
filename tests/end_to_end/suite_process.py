"""`amqpspec` in a process of its own, whose memory is bounded, so that a hostile peer can harm nothing but it.

The processes are forked off one that has imported everything and has read the scenarios, which takes a second.
"""

from __future__ import annotations

import faulthandler
import json
import multiprocessing
import os
import resource
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.patience import patience

#: Octets that a run may need beyond what the process has when it begins. A content of 128 MiB is not too large: a
#: sequence may hold one, a client the one that came before, and the next one twice while it becomes whole.
MEMORY = 600 * 1024 * 1024

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([
    "tests.end_to_end.suite_process", "tests.end_to_end.loaded_suite", "hypothesis", "pyarrow.parquet",
    "amqpspec.command_line.run", "amqpspec.command_line.check", "amqpspec.conformance.traces.trace_parquet",
    "amqpspec.pipeline.table", "amqpspec.pipeline.spark_check", "amqpspec.reports.html",
    "amqpspec.reports.json_report", "amqpspec.reports.junit", "amqpspec.reports.terminal",
])  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What became of the process. `codes`: those of the commands that ended by themselves."""

    codes: tuple[int, ...]
    seconds: float
    output: str
    errors: str
    #: threads and sockets that were left when all commands had ended
    left: tuple[str, ...]


def amqpspec(commands: Sequence[Sequence[str]], directory: Path, seconds: float) -> Outcome:
    """Run the commands one after the other; what they print goes to `directory`.

    They may take `seconds`, on a machine that does nothing else.
    """
    seconds = patience(seconds)
    directory.mkdir(parents=True, exist_ok=True)
    told = directory / "told.json"
    told.unlink(missing_ok=True)
    arguments = ([list(each) for each in commands], str(directory), seconds)
    process = _CONTEXT.Process(target=_child, args=arguments, daemon=True)
    began = time.monotonic()
    process.start()
    process.join(seconds + patience(3))
    taken = time.monotonic() - began
    if process.is_alive():
        process.kill()
        process.join()
    codes, left = json.loads(told.read_text()) if told.exists() else ((), ())
    output, errors = _text(directory / "output.txt"), _text(directory / "errors.txt")
    return Outcome(tuple(codes), taken, output, errors, tuple(left))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="backslashreplace") if path.exists() else ""


def _child(commands: list[list[str]], directory: str, seconds: float) -> None:
    for descriptor, name in ((1, "output.txt"), (2, "errors.txt")):
        opened = os.open(f"{directory}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(opened, descriptor)
        os.close(opened)
    # as a terminal or a pipe has it: no lone surrogate can be written
    sys.stdout = open(1, "w", encoding="utf-8", errors="strict", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    faulthandler.dump_traceback_later(seconds, exit=True)
    from amqpspec.command_line.entry import main
    from amqpspec.conformance.failures import findings

    # shrinking takes whatever time it gets as long as it finds something, on a peer that makes everything slow
    findings.SHRINKING_TIME = findings.WAITING_SHRINKING_TIME = 3.0
    sockets = _sockets()
    # private writable memory, which is what Python's objects are made of (address space counts what is reserved only)
    limit = _data_size() + MEMORY
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    codes: list[int] = []
    for arguments in commands:
        codes.append(main(arguments))
        sys.stdout.flush()
        left = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
        left += sorted(_sockets() - sockets)
        Path(directory, "told.json").write_text(json.dumps((codes, left)))


def _data_size() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    raise OSError("the system does not tell how much memory a process has")


def _sockets() -> set[str]:
    found = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            target = str(descriptor.readlink())
        except OSError:
            continue  # that of the listing itself
        if target.startswith("socket:"):
            found.add(target)
    return found
