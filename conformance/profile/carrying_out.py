"""Carrying out the commands of a profile, on a broker that may not survive them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

from amqpspec.conformance.language.command_file import CommandFile
from amqpspec.conformance.session.patience import Patience
from amqpspec.conformance.session.session import Session
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter
from amqpspec.model.promises.choices import Dialect
from amqpspec.targets.brokers.health import SHORT_TIME_LIMIT, check_alive
from amqpspec.targets.clock import COMMON
from amqpspec.targets.errors import TargetError

#: Sequences that are carried out at one time: nearly all of the time goes into waiting.
AT_ONCE = 6
#: So many losses with nothing carried out to its end in between: the broker survives next to nothing.
ENOUGH = 3
#: Begins the name of a sequence.
SEQUENCE = "profile "


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
        self._has_served = False
        with suppress(TargetError):  # who carries out the first commands is told so
            self._has_served = check_alive(target.address)
        #: only one shows what it is that the target does not survive
        self._at_once = AT_ONCE
        #: since something was carried out to its end
        self._losses = 0

    def carry_out(self, files: Mapping[str, CommandFile], bases: Mapping[str, Dialect]) -> set[str]:
        """Carry out the files, each judged by its dialect. Gives the names of those that were carried out to their end.

        Raises `TargetError` where the target is lost and cannot be started again. One that is lost again and again is
        not asked any more.
        """
        done: set[str] = set()
        left = list(files)
        while left and self._losses < ENOUGH:
            before = len(done)
            begun, lost = self._as_long_as_it_lasts(files, left, bases, done)
            if lost is None and self._at_once > 1 and (lost := self._unnoticed_loss()) is not None:
                self._at_once = 1
                done -= begun
                if len(begun) > 1 and self._start_again is not None:
                    begun = set()  # which of them does it is found one by one
            left = [name for name in left if name not in begun]
            if len(done) > before:
                self._losses = 0
            if lost is None:
                continue
            self._losses += 1
            if self._start_again is None:
                names = ", ".join(name for name in files if name in begun - done)
                behind = f"it answered at first, and was lost while its choices were looked at ({names})"
                raise TargetError(f"{lost}; {behind}")
            self._target = self._start_again()
        return done

    def _as_long_as_it_lasts(
        self, files: Mapping[str, CommandFile], names: Iterable[str], bases: Mapping[str, Dialect], done: set[str]
    ) -> tuple[set[str], TargetError | None]:
        """Names of what was begun, and why the target was lost. What a broker may not survive comes last."""
        begun: set[str] = set()
        lost: list[TargetError] = []
        lock = threading.Lock()

        def carry_out(name: str) -> None:
            with lock:
                if lost:
                    return
                begun.add(name)
            try:
                self._carry_out(name, files[name], bases[name])
            except TargetError as error:
                with lock:
                    lost.append(error)
            else:
                with lock:
                    done.add(name)

        rough = [name for name in names if files[name].rough]
        gentle = [name for name in names if not files[name].rough]
        if self._target.clock is not COMMON:
            # whoever shares a clock with the broker takes turns
            rough, gentle = [*gentle, *rough], []
        with ThreadPoolExecutor(self._at_once) as pool:
            list(pool.map(carry_out, gentle))
        for name in rough:
            carry_out(name)
        return begun, lost[0] if lost else None

    def _carry_out(self, name: str, file: CommandFile, base: Dialect) -> None:
        target = self._target
        under = replace(target, description=replace(target.description, dialect=base.name), operator=None)
        # a seed makes it part of a run, in which what is the same on every connection is judged elsewhere
        with Session(under, self._trace, SEQUENCE + name, seed=0, patience=self._patience) as session:
            for command in file.commands:
                session.run(command)
        if self._at_once == 1:
            self._check_alive()

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
        # nothing else is under way
        time_limit = self._patience.generous(SHORT_TIME_LIMIT, SHORT_TIME_LIMIT)
        check_alive(self._target.address, time_limit, self._has_served)
