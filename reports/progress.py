"""How far a run is: what is done of how much, how long it took, and how long it will take as far as can be told."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console
from rich.text import Text

from amqpspec.conformance.verdicts.events import Event, FailureShrunk, RunStarted, SequenceFinished, ShrinkingStarted
from amqpspec.model.promises.verdict import Failure
from amqpspec.reports.text import plural, visible

#: Seconds between two lines where there is no terminal.
PAUSE = 30.0
#: Seconds that have to be over, and sequences, before it is told how long the rest will take.
_SURE_AFTER, _SURE_OF = 5.0, 20


def any_failure(failure: Failure) -> bool:
    """Whatever it is, it makes the run fail: where no gate is known."""
    return True


class Progress:
    """Listens to a run. `clock`: seconds; `fails`: does a failure make the run fail?"""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, fails: Callable[[Failure], bool] = any_failure
    ) -> None:
        self._clock = clock
        self._fails = fails
        self._began = clock()
        self.planned: int | None = None
        self.done = 0
        self.failing = 0
        self.shrunk = 0
        self._shrinking: ShrinkingStarted | None = None
        self._shrinking_since = 0.0

    def __call__(self, event: Event) -> None:
        match event:
            case RunStarted():
                self._began, self.planned = self._clock(), event.planned
            case SequenceFinished():
                self.done += 1
                self.failing += any(map(self._fails, event.judgement.failures))
            case ShrinkingStarted():
                self._shrinking, self._shrinking_since = event, self._clock()
            case FailureShrunk():
                self.shrunk += 1
            case _:
                pass

    @property
    def elapsed(self) -> float:
        return self._clock() - self._began

    @property
    def to_go(self) -> float | None:
        """Seconds that the rest of the sequences will take if they are like those that are done; None: who knows."""
        if not self.planned or self.done < _SURE_OF or self.elapsed < _SURE_AFTER:
            return None
        return self.elapsed / self.done * max(self.planned - self.done, 0)

    def times(self) -> str:
        """"1:05, about 2:10 to go", or what is made short now and how long the rest of that may take."""
        if (now := self._shrinking) is not None:
            most = max(now.seconds - (self._clock() - self._shrinking_since), 0.0)
            what = f"shrinking {now.requirement}, {now.number} of {now.of}"
            return f"{_minutes(self.elapsed)}, {what}, at most {_minutes(most)} to go"
        left = self.to_go
        return _minutes(self.elapsed) + (f", about {_minutes(left)} to go" if left else "")


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def _is_worth_a_line(event: Event, is_time: bool) -> bool:
    if isinstance(event, ShrinkingStarted):
        return is_time or event.number == 1
    return is_time and isinstance(event, (SequenceFinished, FailureShrunk))


class PlainProgress:
    """A listener that prints a line now and then, for where there is no terminal: a log."""

    def __init__(
        self,
        console: Console,
        clock: Callable[[], float] = time.monotonic,
        pause: float = PAUSE,
        fails: Callable[[Failure], bool] = any_failure,
    ) -> None:
        self._console = console
        self._clock = clock
        self._pause = pause
        self._progress = Progress(clock, fails)
        self._last = clock()

    def __call__(self, event: Event) -> None:
        self._progress(event)
        if isinstance(event, RunStarted):
            target = event.target
            many = plural(event.planned, "sequence") if event.planned else "a search"
            self._print(f"{target.product} {target.version} at {target.label}: {many}")
        elif _is_worth_a_line(event, self._clock() - self._last >= self._pause):
            self._last = self._clock()
            progress = self._progress
            shrunk = f", {plural(progress.shrunk, 'failure')} shrunk" if progress.shrunk else ""
            of = f" of {progress.planned:,}" if progress.planned else ""
            self._print(f"{progress.done:,}{of} done, {progress.failing:,} failed{shrunk}; {progress.times()}")

    def _print(self, line: str) -> None:
        self._console.print(Text(visible(line)), soft_wrap=True)
