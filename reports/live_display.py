"""The display on a terminal while a run goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from amqpspec.conformance.verdicts.events import (
    Event,
    FailureShrunk,
    RunFinished,
    RunStarted,
    SequenceFinished,
    SequenceStarted,
)
from amqpspec.conformance.verdicts.judgement import FoundFailure
from amqpspec.model.defects.known_defects import is_as_known, strength_of
from amqpspec.model.promises.dialect_names import in_short
from amqpspec.model.promises.registry import Requirement, requirements
from amqpspec.model.promises.severity import severity_of
from amqpspec.model.promises.verdict import Failure, Verdict
from amqpspec.model.promises.versions import Version
from amqpspec.reports.overview import ACCEPTED_SIGN, SIGNS, VERDICTS
from amqpspec.reports.progress import Progress, any_failure
from amqpspec.reports.terminal import STYLES
from amqpspec.reports.text import plural, visible


class LiveDisplay:
    """A listener that shows a run while it works: a line that counts, and each failure once it is shrunk.

    Where the console is no terminal it prints the start and the failures only. Use it as a context manager,
    so that the terminal is put in order again also after an error. `fails`: does a failure make the run fail?
    """

    def __init__(
        self,
        console: Console,
        registry: Mapping[str, Requirement] | None = None,
        fails: Callable[[Failure], bool] = any_failure,
    ) -> None:
        self._console = console
        self._fails = fails
        self._registry = requirements() if registry is None else registry
        self._counts: dict[Verdict, int] = dict.fromkeys(VERDICTS, 0)
        self._planned: int | None = None
        self._dialect = ""
        self._version: Version | None = None
        self._frames = 0
        #: sequences with failures, none of which fails the run
        self._accepted = 0
        self._progress = Progress(fails=fails)
        self._running: dict[str, None] = {}
        self._live = Live(console=console, get_renderable=self._line, refresh_per_second=8, transient=True)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def __call__(self, event: Event) -> None:
        self._progress(event)
        match event:
            case SequenceStarted():
                self._running[event.sequence] = None
            case SequenceFinished():
                self._running.pop(event.judgement.sequence, None)
                if event.judgement.verdict is Verdict.FAIL and not any(map(self._fails, event.judgement.failures)):
                    self._accepted += 1
                else:
                    self._counts[event.judgement.verdict] += 1
                self._frames += event.judgement.frames
            case FailureShrunk():
                self._console.print(self._failure(event.found))
            case RunStarted():
                self._planned = event.planned
                target = event.target
                self._dialect, self._version = target.dialect, target.judged_version
                seed = "" if event.seed is None else f", seed {event.seed}"
                facts = f"at {target.label}, {in_short(target.dialect)}, {event.mode}{seed}"
                self._console.print(Text(visible(f"{target.product} {target.version} {facts}")))
            case RunFinished():
                self._live.stop()
            case _:
                pass

    def _failure(self, found: FoundFailure) -> RenderableType:
        id = found.failure.requirement
        requirement = self._registry.get(id)
        line = Text(f"{SIGNS[Verdict.FAIL]} {id}", style=STYLES[Verdict.FAIL])
        if not self._fails(found.failure):
            line = Text(f"{ACCEPTED_SIGN} {id}", style="bold")
        line.append(visible(f" {requirement.title}" if requirement else ""), style="bold")
        severity = severity_of(found.failure)
        line.append(visible(f"  {severity}: {found.failure.shape}: {found.failure.observed}"), style="")
        known = is_as_known(found.failure, self._dialect, self._version)
        known_as = f"known defect {found.failure.defect}, " if known else ""
        again = ", not seen again" if found.not_seen_again else ""
        line.append(f"  {known_as}{strength_of(found.failure)}{again}", style="dim")
        return line

    def _line(self) -> Text:
        """What there is room for, each part whole: half a number is another number."""
        done = sum(self._counts.values()) + self._accepted
        line = Text(f"{done:,} of {self._planned:,}" if self._planned else plural(done, "sequence"), style="bold")
        counts = {verdict: count for verdict, count in self._counts.items() if count}
        parts = [Text(f"  {SIGNS[verdict]} {count:,} {verdict}", STYLES[verdict]) for verdict, count in counts.items()]
        if self._accepted:
            parts.append(Text(f"  {ACCEPTED_SIGN} {self._accepted:,} accepted"))
        parts += [Text(f"  {each}", "dim") for each in (self._progress.times(), plural(self._frames, "frame"))]
        if running := list(self._running):  # it is changed while another thread draws the line
            parts.append(Text(visible(f"  {running[-1]}"), "dim"))
        for part in parts:
            if line.cell_len + part.cell_len <= self._console.width:
                line.append_text(part)
        line.truncate(self._console.width, overflow="ellipsis")
        return line
