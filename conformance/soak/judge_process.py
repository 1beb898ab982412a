"""Judges the trace of a soak in a process of its own, while it is written.

It may fall behind: the clients do not wait for it. It goes on when they are done, until it has seen all.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from amqpspec.conformance.soak.growing_trace import GrowingTrace
from amqpspec.conformance.soak.judging import Judging, SoakJudgement
from amqpspec.conformance.traces.trace import read_trace
from amqpspec.conformance.traces.trace_row import TraceError

#: Rows between two looks at what the clients' process wants, and seconds between two looks at the trace.
_ROWS, _MOMENT = 5_000, 0.2
#: How much less of the machine it gets than the clients.
_NICE = 2
#: What the clients' process says: the trace is complete; what was judged by now is enough.
_IS_COMPLETE, _IS_ENOUGH = "complete", "enough"


@dataclass(frozen=True, slots=True)
class Progress:
    """It has judged so many seconds of the trace, and found so much that is wrong."""

    seconds: float = 0.0
    wrong: int = 0


class JudgeProcess:
    """Judges `path`. `finish` gives the judgement once the trace is complete. Use as a context manager."""

    def __init__(self, path: Path, patience: float) -> None:
        self._path, self._patience = path, patience
        self.progress = Progress()
        self._pipe: Connection | None = None
        self._process: BaseProcess | None = None
        self._is_over = False

    def __enter__(self) -> JudgeProcess:
        forking = "forkserver" in multiprocessing.get_all_start_methods()
        context: Any = multiprocessing.get_context("forkserver" if forking else "spawn")
        self._pipe, other_end = context.Pipe()
        arguments = (str(self._path), self._patience, other_end)
        self._process = context.Process(target=_judge, args=arguments, name="judge of the soak", daemon=True)
        self._process.start()
        other_end.close()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._pipe is not None:
            self._pipe.close()

    def look(self) -> Progress:
        """How far it is by now."""
        found = self._received(0.0)
        while isinstance(found, Progress):
            self.progress = found
            found = self._received(0.0)
        return self.progress

    def finish(self, tell: Callable[[Progress], None], is_enough: Callable[[], bool]) -> SoakJudgement:
        """The trace is complete: what is judged of it, or once it `is_enough` what was judged by then. `tell` is told
        how far it is. Raises `TraceError`.
        """
        if self._pipe is None:
            raise RuntimeError("the judge was not begun")
        with suppress(OSError):
            self._pipe.send(_IS_COMPLETE)
        asked = False
        while True:
            if is_enough() and not asked:
                asked = True
                with suppress(OSError):
                    self._pipe.send(_IS_ENOUGH)
            found = self._received(0.5)
            if isinstance(found, SoakJudgement):
                return found
            if isinstance(found, TraceError):
                raise found
            if isinstance(found, Progress):
                self.progress = found
                tell(found)
            elif self._is_over:
                return self._judged_here(is_enough)

    def _judged_here(self, is_enough: Callable[[], bool]) -> SoakJudgement:
        """The other process is no more: a signal to all has ended it before it could ignore that, or the system has."""
        judging = Judging(self._patience)
        for line, row in enumerate(read_trace(self._path), 1):
            if is_enough():
                return judging.end(is_cut_short=True)
            judging.row(row, line)
        return judging.end()

    def _received(self, timeout: float) -> Any:
        # not `is_alive`, which goes by the process that it was forked from: a signal to all of a group ends only that
        assert self._pipe is not None
        try:
            return self._pipe.recv() if self._pipe.poll(timeout) else None
        except (EOFError, OSError):
            self._is_over = True
            return None


def _judge(path: str, patience: float, pipe: Connection) -> None:
    # what is interrupted at the terminal is the soak, which ends the judging after everything else
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    os.nice(_NICE)
    # nobody may be there any more to be told
    with suppress(OSError, EOFError):
        try:
            found: SoakJudgement | TraceError = _judged(Path(path), patience, pipe)
        except TraceError as error:
            found = error
        pipe.send(found)


def _judged(path: Path, patience: float, pipe: Connection) -> SoakJudgement:
    trace, judging = GrowingTrace(path), Judging(patience)
    is_complete, told = False, 0.0
    try:
        while True:
            is_last = is_complete
            for row in trace.rows():
                judging.row(row, trace.line)
                if trace.line % _ROWS == 0 and time.monotonic() - told > _MOMENT:
                    told = time.monotonic()
                    pipe.send(Progress(judging.ledger.time, judging.wrong))
                    if pipe.poll(0):
                        said = pipe.recv()
                        is_complete = is_complete or said == _IS_COMPLETE
                        if said == _IS_ENOUGH:
                            return judging.end(is_cut_short=True)
            if is_last:
                return judging.end()
            pipe.send(Progress(judging.ledger.time, judging.wrong))
            if pipe.poll(_MOMENT):
                is_complete = is_complete or pipe.recv() == _IS_COMPLETE
    finally:
        trace.close()
