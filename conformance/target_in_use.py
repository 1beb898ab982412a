"""The target of a run: where its sequences are carried out, whether it still serves, and how it is started again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from amqpspec.conformance.interruption import was_interrupted
from amqpspec.conformance.losses import Losses, Restarts
from amqpspec.conformance.run_options import RunOptions
from amqpspec.conformance.session.cleanup import Cleaner
from amqpspec.conformance.session.command_sequence import Place
from amqpspec.conformance.session.patience import Patience
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter
from amqpspec.targets.brokers.health import SHORT_TIME_LIMIT, TIME_LIMIT, Watch, check_alive, is_alive
from amqpspec.targets.errors import OperatorError, ServesNoMore, TargetError, TargetUnreachable


@dataclass(frozen=True, slots=True)
class _InUse:
    place: Place
    cleaner: Cleaner
    patience: Patience
    restarts: Restarts | None


class TargetInUse:
    """`restarts`: starts the target again; None: the suite did not start it, and cannot start it again."""

    def __init__(
        self, target: TargetUnderTest, trace: TraceWriter, options: RunOptions, restarts: Restarts | None
    ) -> None:
        self.patience = Patience(target.deadline, target.login_time)
        self.cleaner = Cleaner()
        self.place = Place(target, trace, options.seed, options.pace, was_interrupted, self.patience, self.cleaner)
        self._restarts = restarts
        #: the one that bears faults, where that is another one and it was started
        self._breakable: _InUse | None = None

    @property
    def target(self) -> TargetUnderTest:
        return self.place.target

    def start_again(self, error: TargetError) -> tuple[str, ...]:
        """Gives the last that the target had written. Raises `error`, for which it is lost, where nobody can do it."""
        if self._restarts is None or (isinstance(error, OperatorError) and is_alive(self.target.present_address)):
            raise error
        log = self._restarts.last_lines()
        target = self._restarts.start_again()
        self.cleaner.close()
        self.cleaner, self.patience = Cleaner(), self.patience.renewed()
        self.place = replace(self.place, target=target, cleaner=self.cleaner, patience=self.patience)
        return log

    # ------------------------------------------------------------------------------------ is it broken on purpose?

    @contextmanager
    def bearing_faults(self) -> Iterator[None]:
        """While it is entered, sequences are carried out on a target that may be broken: this one, or another one like
        it, which is started for that. Raises `TargetError`.
        """
        if not self.target.faults_elsewhere or self._restarts is None:
            yield
            return
        usual = self._in_use()
        if self._breakable is None:
            target, restarts = self._restarts.breakable()
            cleaner, patience = Cleaner(), Patience(target.deadline, target.login_time)
            place = replace(self.place, target=target, cleaner=cleaner, patience=patience)
            self._breakable = _InUse(place, cleaner, patience, restarts)
        self._use(self._breakable)
        try:
            yield
            self._breakable = self._in_use()
        except TargetError:
            self._breakable = None
            raise
        finally:
            self.cleaner.close()
            self._use(usual)

    def _in_use(self) -> _InUse:
        return _InUse(self.place, self.cleaner, self.patience, self._restarts)

    def _use(self, one: _InUse) -> None:
        self.place, self.cleaner, self.patience, self._restarts = one.place, one.cleaner, one.patience, one.restarts

    # ------------------------------------------------------------------------------------ does it still serve?

    def check_alive(self, losses: Losses, sequence: str) -> None:
        """A target that let a deadline pass, or ended connections, may be gone for good, or a part of it.

        Raises `TargetUnreachable` if so, which is told as seen after that sequence.
        """
        try:
            served = check_alive(self.target.present_address, self._alive_time, losses.has_been_served)
            losses.served += served  # others may have asked meanwhile
        except TargetError as error:
            lost = ServesNoMore if isinstance(error, ServesNoMore) else TargetUnreachable
            raise lost(f"after {sequence}: {error}") from error

    def watch(self, losses: Losses) -> Watch:
        """Asks it again and again."""
        return Watch(self.target.present_address, self._alive_time, losses.has_been_served)

    @property
    def _alive_time(self) -> float:
        return self.patience.generous(SHORT_TIME_LIMIT, TIME_LIMIT)
