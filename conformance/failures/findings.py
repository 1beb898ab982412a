"""The failures that a run found, each with the shortest commands that show it, and how often these do.

Shrinking is mostly waiting for what never comes. So several failures are shrunk at one time, each on connections of its
own.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from amqpspec.conformance.failures.reproducer import program
from amqpspec.conformance.failures.shrink import shrink, waits
from amqpspec.conformance.failures.shrinking_time import (
    FIRST,
    MOST_SHRINKING_TIME,
    SHRINKING_TIME,
    WAITING_SHRINKING_TIME,
    ShrinkingTime,
    time_for_shrinking,
)
from amqpspec.conformance.language.command import EXPECT, Command
from amqpspec.conformance.scenarios.configured_alike import changes_broker
from amqpspec.conformance.scenarios.scenario_files import is_scenario
from amqpspec.conformance.session.side_by_side import MOST_SET_ASIDE
from amqpspec.conformance.traces.trace import TraceError
from amqpspec.conformance.verdicts.events import FailureShrunk, Listener, ShrinkingStarted, tell
from amqpspec.conformance.verdicts.habits import habits
from amqpspec.conformance.verdicts.judgement import FoundFailure, SuiteError
from amqpspec.conformance.verdicts.library import is_of_library
from amqpspec.model.defects.known_defects import is_as_known
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.registry import requirements, suite_requirements
from amqpspec.model.promises.severity import rank
from amqpspec.model.promises.verdict import Failure
from amqpspec.model.promises.versions import Version
from amqpspec.targets.errors import TargetError
from amqpspec.targets.suite_error import line_of

#: Failures that are shrunk at one time.
AT_ONCE = 6
#: Times that a shrunk sequence is run again, to tell what always fails from what is flaky.
REPEATS = 3

#: Runs commands as a sequence of that name, which repeats another, and gives the failures that show. Raises
#: `TargetError`.
RunAgain = Callable[[str, str, Sequence[Command]], Sequence[Failure]]


class Findings:
    """`found`: by identity. `shrinking_time`: seconds for all failures; None: as long as the run took till then.

    Those that come when it is over keep all commands. `accepted`: those of which that is true are not shrunk.
    `at_once`: so many are shrunk at one time.
    """

    def __init__(
        self,
        dialect: Dialect,
        shrinking_time: float | None,
        run_again: RunAgain,
        listeners: Iterable[Listener] = (),
        version: Version | None = None,
        accepted: Callable[[Failure], bool] | None = None,
        at_once: int = AT_ONCE,
    ) -> None:
        self._accepted = accepted or (lambda failure: False)
        self.found: dict[str, FoundFailure] = {}
        self._shrunk: set[str] = set()
        self._shown_by: dict[str, Sequence[Command]] = {}
        self._dialect, self._version = dialect, version
        self._shrinking_time = shrinking_time
        #: seconds
        self._time_left = shrinking_time if shrinking_time is not None else MOST_SHRINKING_TIME
        #: identities of those whose shrinking has begun and is not over
        self._under_way: set[str] = set()
        #: identities of those that are shrunk to the end
        self._first: frozenset[str] = frozenset()
        self._run_again = run_again
        self._numbers = itertools.count(1)
        #: so many of their sequences run at one time
        self._room = threading.BoundedSemaphore(MOST_SET_ASIDE)
        self._at_once = at_once
        self._listeners = tuple(listeners)
        #: of this suite, while a failure was shrunk or written down
        self.errors: list[SuiteError] = []

    def note(self, failure: Failure, sequence: str, commands: Sequence[Command]) -> None:
        """Commands of the sequence showed the failure. Those of a scenario count, which every run carries out; and of
        several the fewest, which take the least to shrink. What is as RabbitMQ does is no example of what is not.
        """
        known = self.found.get(failure.identity)
        if known is None or (
            failure.identity not in self._shrunk
            and _to_be_shown(failure, sequence, commands) < _to_be_shown(known.failure, known.sequence, known.commands)
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
        written = ""
        try:
            if not is_of_library(failure):  # a program for the broker would not show it
                written = program(commands, failure)
        except Exception as error:  # noqa: BLE001 - the failure is known all the same
            self._erred(error, sequence, commands)
        found = FoundFailure(
            failure,
            sequence,
            commands=tuple(map(str, commands)),
            reproducer=written,
            rate=rate,
            cut_short=cut_short,
        )
        self.found[failure.identity] = found
        return found

    def _erred(self, error: Exception, sequence: str, commands: Sequence[Command]) -> None:
        self.errors.append(SuiteError(sequence, line_of(error), tuple(map(str, commands))))

    def shrink_all(self, took: float = 0.0) -> None:
        """Look for the shortest commands that show each failure, and tell of it, the gravest first. Those that change
        the broker as a whole come last, one by one. Where nobody has said how long that may take, the first few are
        shrunk to the end.

        `took`: seconds that the run has taken till now. Each failure has a share of the time, and what it leaves is for
        those after it. Raises `TargetError`, after that. Those that are left then are shrunk when it is called again;
        those that were under way come last then, one by one, as only so it shows what the target does not survive.
        """
        if self._shrinking_time is None:
            self._time_left = min(self._time_left, time_for_shrinking(took))
        first: list[FoundFailure] = []
        together: list[FoundFailure] = []
        alone: list[FoundFailure] = []
        self._first = self._first_few() if self._shrinking_time is None and self._time_left > 0 else frozenset()
        for found in sorted(self.found.values(), key=_order):
            identity = found.failure.identity
            if identity in self._shrunk:
                continue
            if self._is_settled(found.failure):
                # what it is is known: docs/findings.md, or the run that it was accepted from, has it as short as can be
                self._tell(found)
            elif self._at_once == 1 or identity in self._under_way or changes_broker(self._shown_by[identity]):
                alone.append(found)
            elif identity in self._first:
                first.append(found)
            else:
                together.append(found)
        if len(together) == 1:
            together, alone = [], together + alone
        began = time.monotonic()
        shrinking = ShrinkingTime(len(first) + len(together), len(alone), self._at_once, began + self._time_left)
        try:
            # whatever the others do to the broker does not reach these
            self._shrink_together(first, shrinking)
            self._shrink_together(together, shrinking)
            for found in alone:
                try:
                    self._tell(self._shrink(found, shrinking))
                except TargetError:
                    self._tell(self.found[found.failure.identity])
                    raise
        finally:
            self._time_left -= time.monotonic() - began

    def _is_settled(self, failure: Failure) -> bool:
        """Is it known what the failure is?"""
        if failure.requirement in requirements() and failure.requirement not in suite_requirements():
            return True  # what a line of a file expects holds after all its commands, and not after some of them
        return self._accepted(failure) or is_as_known(failure, self._dialect.name, self._version)

    def _first_few(self) -> frozenset[str]:
        """Identities of the failures that a reader sees first: of several that have one cause there is one."""
        under = {identity for cause in habits(self.found.values()) for identity in cause.under}
        listed = [
            each.failure.identity
            for each in sorted(self.found.values(), key=_order)
            if each.failure.identity not in under and not self._is_settled(each.failure)
        ]
        return frozenset(listed[:FIRST])

    def _shrink_together(self, several: Sequence[FoundFailure], shrinking: ShrinkingTime) -> None:
        with ThreadPoolExecutor(self._at_once, thread_name_prefix="shrinking") as pool:
            begun: deque[Future[FoundFailure]] = deque()
            try:
                begun.extend(pool.submit(self._shrink, found, shrinking) for found in several)
                while begun:
                    shrunk = begun[0].result()
                    begun.popleft()
                    self._tell(shrunk)
            except BaseException as error:
                shrinking.end(error)
                for each in begun:
                    if each.exception() is None:
                        self._tell(each.result())
                raise

    def _tell(self, found: FoundFailure) -> None:
        """It is as short as it will be."""
        self._shrunk.add(found.failure.identity)
        tell(self._listeners, FailureShrunk(found))

    def leave_the_rest(self) -> None:
        """Tell of all that is left by the commands that showed it."""
        self._time_left = 0.0
        self.shrink_all()

    def _shrink(self, found: FoundFailure, shrinking: ShrinkingTime) -> FoundFailure:
        failure, sequence = found.failure, found.sequence
        commands = [each for each in self._shown_by[failure.identity] if each.connection != EXPECT]
        latest = failure

        def shows(candidate: Sequence[Command]) -> bool:
            nonlocal latest
            shrinking.go_on()
            with self._room:
                shown = self._run_again(f"shrinking {sequence} {next(self._numbers)}", sequence, candidate)
            for other in shown:
                if other.identity == failure.identity and other.like == failure.like:
                    latest = other
                    return True
            return False

        shrinking.go_on()
        self._under_way.add(failure.identity)
        is_first = failure.identity in self._first
        number, share = shrinking.begin(is_first)
        shortest: tuple[Command, ...] = tuple(commands)
        rate: tuple[int, int] | None = None
        cut_short = True
        try:
            if is_first or shrinking.left > 0:
                left = max(shrinking.left, 0.0)
                tell(self._listeners, ShrinkingStarted(failure.requirement, number, shrinking.of, left))
                most = WAITING_SHRINKING_TIME if waits(commands) else SHRINKING_TIME
                most = share if is_first else most
                shrunk = shrink(commands, shows, self._dialect, min(most, share))
                shortest, cut_short = shrunk.commands, shrunk.cut_short
                rate = (sum(shows(shortest) for _ in range(REPEATS)), REPEATS)
                if not rate[0]:  # by chance what was shrunk had shown it, once
                    shortest, rate = tuple(commands), None
                    if is_first or shrinking.left > 0:
                        rate = (sum(shows(shortest) for _ in range(REPEATS)), REPEATS)
        except (TargetError, TraceError) as error:
            shrinking.end(error)
            raise
        except Exception as error:  # noqa: BLE001 - it stays as long as it is, and others are shrunk
            self._erred(error, sequence, commands)
        except BaseException as error:
            shrinking.end(error)
            raise
        finally:
            found = self._remember(latest, sequence, shortest, rate, cut_short)
        self._under_way.remove(failure.identity)
        return found


def _order(found: FoundFailure) -> tuple[bool, int]:
    """By which failures are shrunk: as they will be listed."""
    return bool(found.failure.like), rank(found.failure)


def _to_be_shown(failure: Failure, sequence: str, commands: Sequence[object]) -> tuple[bool, bool, int]:
    """By which of several examples one is chosen: the least."""
    return bool(failure.like), not is_scenario(sequence), len(commands)
