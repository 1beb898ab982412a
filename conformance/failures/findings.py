"""The failures that a run found, each with the shortest commands that show it, and how often these do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from amqpspec.conformance.failures.reproducer import reproducer
from amqpspec.conformance.failures.shrink import shrink, waits
from amqpspec.conformance.language.command import Command
from amqpspec.conformance.scenarios.scenario_files import is_scenario
from amqpspec.conformance.verdicts.events import FailureShrunk, Listener, ShrinkingStarted, tell
from amqpspec.conformance.verdicts.judgement import FoundFailure, SequenceJudgement
from amqpspec.model.defects.known_defects import is_as_known
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.severity import rank
from amqpspec.model.promises.verdict import Failure
from amqpspec.model.promises.versions import Version

#: Seconds for shrinking all failures of a run, where nobody has said: as many as it took till then, within these.
LEAST_SHRINKING_TIME, MOST_SHRINKING_TIME = 20.0, 30.0
#: Seconds in which a run is to be over, shrinking included (reports come after it); after one that took longer, so many
#: are for shrinking.
WHOLE_RUN, LEAST_OF_LONG_RUN = 160.0, 10.0
#: Seconds for shrinking one failure.
SHRINKING_TIME = 20.0
#: The same for one that takes time to show.
WAITING_SHRINKING_TIME = 60.0
#: The gravest of those that are left has so many times its part of the time that is left, and at least so many seconds.
GENEROUS, LEAST_SHARE = 2.0, 1.0
#: Times that a shrunk sequence is run again, to tell what always fails from what is flaky.
REPEATS = 3

#: Runs commands as a sequence of that name. Raises `TargetError`.
RunAgain = Callable[[str, str, Sequence[Command]], SequenceJudgement]


def _time_for_shrinking(took: float) -> float:
    """Seconds, where nobody has said: `took` is how long the run has taken till then."""
    left = max(WHOLE_RUN - took, LEAST_OF_LONG_RUN)
    return min(max(took, LEAST_SHRINKING_TIME), MOST_SHRINKING_TIME, left)


class Findings:
    """`found`: by identity. `shrinking_time`: seconds for all failures; None: as long as the run took till then.

    Those that come when it is over keep all commands. `accepted`: those of which that is true are not shrunk.
    """

    def __init__(
        self,
        dialect: Dialect,
        shrinking_time: float | None,
        run_again: RunAgain,
        listeners: Iterable[Listener] = (),
        version: Version | None = None,
        accepted: Callable[[Failure], bool] | None = None,
    ) -> None:
        self._accepted = accepted or (lambda failure: False)
        self.found: dict[str, FoundFailure] = {}
        self._shrunk: set[str] = set()
        self._shown_by: dict[str, Sequence[Command]] = {}
        self._dialect, self._version = dialect, version
        self._shrinking_time = shrinking_time
        #: seconds; None: not begun
        self._time_left: float | None = None
        self._run_again = run_again
        self._listeners = tuple(listeners)

    def note(self, failure: Failure, sequence: str, commands: Sequence[Command]) -> None:
        """Commands of the sequence showed the failure. Those of a scenario count, which every run carries out; and of
        several the fewest, which take the least to shrink.
        """
        known = self.found.get(failure.identity)
        if known is None or (
            failure.identity not in self._shrunk
            and (not is_scenario(sequence), len(commands)) < (not is_scenario(known.sequence), len(known.commands))
        ):
            self._shown_by[failure.identity] = commands
            self._remember(failure, sequence, commands)

    def _remember(
        self,
        failure: Failure,
        sequence: str,
        commands: Sequence[Command],
        rate: tuple[int, int] | None = None,
        cut_short: bool = False,
    ) -> FoundFailure:
        """`rate`: how often the commands showed the failure, and of how many times. `cut_short`: for want of time."""
        found = FoundFailure(
            failure,
            sequence,
            commands=tuple(map(str, commands)),
            reproducer=reproducer(commands, failure),
            rate=rate,
            cut_short=cut_short,
        )
        self.found[failure.identity] = found
        return found

    def shrink_all(self, took: float = 0.0) -> None:
        """Look for the shortest commands that show each failure, and tell of it, the gravest first.

        `took`: seconds that the run has taken till now. Each failure has a share of the time, and what it leaves is for
        those after it. Raises `TargetError`, after that. Those that are left then are shrunk when it is called
        again.
        """
        if self._time_left is None:
            wanted = self._shrinking_time
            self._time_left = _time_for_shrinking(took) if wanted is None else wanted
        left: list[FoundFailure] = []
        for found in sorted(self.found.values(), key=lambda each: rank(each.failure)):
            if found.failure.identity in self._shrunk:
                continue
            if self._accepted(found.failure) or is_as_known(found.failure, self._dialect.name, self._version):
                # what it is is known: docs/findings.md, or the run that it was accepted from, has it as short as can be
                self._shrunk.add(found.failure.identity)
                tell(self._listeners, FailureShrunk(found))
            else:
                left.append(found)
        for number, found in enumerate(left):
            self._shrunk.add(found.failure.identity)
            share = max(self._shrinking_left * GENEROUS / (len(left) - number + 1), LEAST_SHARE)
            if self._shrinking_left > 0:
                started = ShrinkingStarted(found.failure.requirement, number + 1, len(left), self._shrinking_left)
                tell(self._listeners, started)
            self._shrink(found.failure, found.sequence, self._shown_by[found.failure.identity], share)

    @property
    def _shrinking_left(self) -> float:
        return self._time_left or 0.0

    def leave_the_rest(self) -> None:
        """Tell of all that is left by the commands that showed it."""
        self._time_left = 0.0
        self.shrink_all()

    def _shrink(self, failure: Failure, sequence: str, commands: Sequence[Command], share: float) -> None:
        latest = failure

        def shows(candidate: Sequence[Command]) -> bool:
            nonlocal latest
            judgement = self._run_again(f"shrinking {sequence} {next(counter)}", sequence, candidate)
            for other in judgement.failures:
                if other.identity == failure.identity:
                    latest = other
                    return True
            return False

        counter = iter(range(1, 1_000_000))
        began = time.monotonic()
        shortest: tuple[Command, ...] = tuple(commands)
        rate: tuple[int, int] | None = None
        cut_short = True
        try:
            if self._shrinking_left > 0:
                most = WAITING_SHRINKING_TIME if waits(commands) else SHRINKING_TIME
                shrunk = shrink(commands, shows, self._dialect, min(most, share, self._shrinking_left))
                shortest, cut_short = shrunk.commands, shrunk.cut_short
                rate = (sum(shows(shortest) for _ in range(REPEATS)), REPEATS)
                if not rate[0]:  # by chance what was shrunk had shown it, once
                    shortest, rate = tuple(commands), None
                    if self._shrinking_left > time.monotonic() - began:
                        rate = (sum(shows(shortest) for _ in range(REPEATS)), REPEATS)
        finally:
            self._time_left = self._shrinking_left - (time.monotonic() - began)
            found = self._remember(latest, sequence, shortest, rate, cut_short)
            tell(self._listeners, FailureShrunk(found))
