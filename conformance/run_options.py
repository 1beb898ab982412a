"""What a run is asked to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from amqpspec.conformance.session.pacing import Lockstep, Pace
from amqpspec.model.promises.verdict import Failure


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What to run. `time_budget`: seconds for the search to begin new sequences in, None for no limit.

    `gives_up`: nobody has asked for so many sequences, so that a run whose target is lost in it may leave some out.
    """

    only: Sequence[str] = ()
    seed: int = 0
    sequences: int = 100
    steps: int = 30
    time_budget: float | None = None
    #: seconds for shrinking all failures of the run; None: as long as it took till then (`Findings`)
    shrinking_time: float | None = None
    #: no scenarios
    search_only: bool = False
    #: nothing more is begun once a failure of which that is true has been found
    enough: Callable[[Failure], bool] | None = None
    #: names of the themes of the search (`conformance.search.machine.THEMES`); none: all
    themes: tuple[str, ...] = ()
    #: what happens between one command and the next
    pace: Pace = Lockstep
    #: sequences that are carried out at one time, each by a process of its own; 1: by this one
    jobs: int = 1
    #: the search leaves out what the target was seen to refuse; if not, all targets get the same commands
    learns: bool = True
    #: failures of which that is true are accepted for now, and not shrunk (again)
    accepted: Callable[[Failure], bool] | None = None
    gives_up: bool = False
    #: sequences of the search may stop and kill a target that others would use as well: it goes one by one
    breaks: bool = False
    #: seconds that were spent on the run before it began, such as on looking at the target
    before: float = 0.0
