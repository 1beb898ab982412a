"""Carrying out the commands of a profile, on a broker that may not survive them."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace

from amqpspec.conformance.language.command_file import CommandFile
from amqpspec.conformance.session.patience import Patience
from amqpspec.conformance.session.session import Session
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceError, TraceWriter
from amqpspec.conformance.verdicts.judgement import SuiteError
from amqpspec.model.promises.choices import Dialect
from amqpspec.targets.brokers.health import SHORT_TIME_LIMIT, TIME_LIMIT, check_alive
from amqpspec.targets.clock import COMMON
from amqpspec.targets.errors import TargetError
from amqpspec.targets.suite_error import line_of

#: Sequences that are carried out at one time: nearly all of the time goes into waiting.
AT_ONCE = 6
#: So many losses with nothing carried out to its end in between: the broker survives next to nothing.
ENOUGH = 3
#: Begins the name of a sequence.
SEQUENCE = "profile "


@dataclass(slots=True)
class _Part:
    """What came of some of the files: names of those that were begun, were carried out to their end, and were so before
    the target was seen to serve; and why it was lost.
    """

    begun: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)
    proven: set[str] = field(default_factory=set)
    lost: TargetError | None = None


class CarryingOut:
    """Carries out command files, each on connections of its own, and starts the target again that is lost by them."""

    def __init__(
        self, target: TargetUnderTest, trace: TraceWriter, start_again: Callable[[], TargetUnderTest] | None = None
    ) -> None:
        """`start_again`: None where nobody can start it."""
        self._target = target
        self._trace = trace
        self._start_again = start_again
        self._patience = Patience(target.deadline, target.login_time)
        #: of this suite
        self.errors: list[SuiteError] = []
        self._has_served = False
        with suppress(TargetError):  # who carries out the first commands is told so
            self._has_served = check_alive(target.address)
        #: since something was carried out to its end
        self._losses = 0

    def carry_out(self, files: Mapping[str, CommandFile], bases: Mapping[str, Dialect]) -> set[str]:
        """Carry out the files, each judged by its dialect. Gives the names of those that were carried out to their end.

        Those after which it was not seen to serve any more are carried out again one by one, as only so it shows what
        it does not survive. Raises `TargetError` where the target is lost and cannot be started again. One that is lost
        again and again is not asked any more.
        """
        done: set[str] = set()
        batches = deque([list(files)])
        while batches and self._losses < ENOUGH:
            names = batches.popleft()
            part = _Part()
            self._as_long_as_it_lasts(files, names, bases, part)
            lost = part.lost or (self._unnoticed_loss() if len(names) > 1 else None)
            served = part.done if lost is None else part.proven
            done |= served
            if served:
                self._losses = 0
            if lost is None:
                continue
            self._losses += 1
            if self._start_again is None:
                named = ", ".join(name for name in names if name in (part.begun - part.done or part.begun))
                behind = f"it answered at first, and was lost while its choices were looked at ({named})"
                raise TargetError(f"{lost}; {behind}")
            suspects = [name for name in names if name in part.begun - served]
            if len(suspects) > 1:
                batches.extend([name] for name in suspects)
            if rest := [name for name in names if name not in part.begun]:
                batches.append(rest)
            self._target = self._start_again()
        return done

    def _as_long_as_it_lasts(
        self, files: Mapping[str, CommandFile], names: Sequence[str], bases: Mapping[str, Dialect], part: _Part
    ) -> None:
        """What a broker may not survive comes last, and not beside others."""

        def carry_out(name: str, is_alone: bool) -> None:
            if part.lost is not None:
                return
            part.begun.add(name)
            try:
                is_overdue = self._carry_out(name, files[name], bases[name])
                finished = {name, *part.done.copy()}
                if is_alone or is_overdue:
                    self._check_alive()
                    part.proven |= finished
            except TargetError as error:
                part.lost = part.lost or error
            except TraceError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, others are looked at
                self.errors.append(SuiteError(SEQUENCE + name, line_of(error), tuple(map(str, files[name].commands))))
            else:
                part.done.add(name)

        # whoever shares a clock with the broker takes turns
        alone = [name for name in names if files[name].rough or len(names) == 1 or self._target.clock is not COMMON]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(carry_out, [name for name in names if name not in alone], itertools.repeat(False)))
        for name in sorted(alone, key=lambda each: files[each].rough):
            carry_out(name, True)

    def _carry_out(self, name: str, file: CommandFile, base: Dialect) -> bool:
        """Did something not come in time?"""
        target = self._target
        under = replace(target, description=replace(target.description, dialect=base.name), operator=None)
        # a seed makes it part of a run, in which what is the same on every connection is judged elsewhere
        with Session(under, self._trace, SEQUENCE + name, seed=0, patience=self._patience) as session:
            for command in file.commands:
                session.run(command)
        if (line := session.finish().suite_error) is not None:
            self.errors.append(SuiteError(SEQUENCE + name, line, tuple(map(str, file.commands))))
        return session.overdue > 0

    def _unnoticed_loss(self) -> TargetError | None:
        """Why no fresh connection is served, where one was at first: the broker hangs, or a part of it has ended. A
        sequence only says that nothing comes.
        """
        try:
            self._check_alive()
        except TargetError as error:
            return error
        return None

    def _check_alive(self) -> None:
        time_limit = self._patience.generous(SHORT_TIME_LIMIT, TIME_LIMIT)
        check_alive(self._target.address, time_limit, self._has_served)
