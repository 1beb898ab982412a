"""From a TARGET and its options to something that can be tested."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Self

from amqpspec.command_line.usage import UsageError
from amqpspec.conformance.losses import Restarts
from amqpspec.conformance.profile.measuring import measure
from amqpspec.conformance.profile.settings import as_seen, measure_settings, worth_measuring
from amqpspec.conformance.profile.shows import gentle
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.verdicts.judgement import THROUGH, TargetDescription
from amqpspec.model.promises.capabilities import advertised
from amqpspec.model.promises.dialects import dialect_named, dialect_of, is_known
from amqpspec.model.promises.dialects.settled import with_choices
from amqpspec.model.promises.text_means import MEANS
from amqpspec.model.promises.versions import RABBITMQ
from amqpspec.model.protocol.methods import Table
from amqpspec.reports.text import visible
from amqpspec.targets.address import parse_address
from amqpspec.targets.brokers.management_operator import ManagementOperator
from amqpspec.targets.brokers.operator import FirstOf, Operator
from amqpspec.targets.brokers.resolve import (
    RunningBroker,
    again_by,
    dialect_said_by,
    faults_elsewhere,
    faults_of,
    is_started_here,
    last_lines_of,
    met,
    operator_of,
    running_broker,
)
from amqpspec.targets.drivers.carriers import carrier_of
from amqpspec.targets.drivers.library import DISTRIBUTIONS, Library, library_named
from amqpspec.targets.errors import OperatorError

#: What a broker is looked at by.
NAMES_OF_MEANS = tuple(each.name for each in MEANS)
#: The driver that is the suite's own client.
WIRE = "wire"
#: Characters of a product's name or version that are shown.
_LONGEST_NAME = 100


@contextmanager
def target_under_test(options: argparse.Namespace) -> Iterator[TargetUnderTest]:
    """Start the target, ask what it is, choose the dialect. Raises `UsageError` and `TargetError`.

    Where the options want a profile, a product that is not known is judged by what it was seen to choose.
    """
    with StartedTarget(options) as started:
        yield started.target


class StartedTarget:
    """The same, for who may have to start it again. Use as a context manager."""

    def __init__(
        self, options: argparse.Namespace, *, apart: bool = False, keeps_data: bool = False, judged_by: str = ""
    ) -> None:
        """`apart`: the embedded broker has a process of its own. `keeps_data`: it can be stopped and started again.
        `judged_by`: the dialect of a product that is not known, which else is looked at.

        Raises `UsageError`.
        """
        if options.mode != "lockstep":
            raise UsageError(f"--mode {options.mode} is not available in this version; lockstep is")
        self._library = library_of(options.driver)
        self._options = options
        self._apart = apart
        self._keeps_data = keeps_data
        self._judged_by = judged_by
        self._asked = dialect_named(options.dialect) if options.dialect else None
        self._running = ExitStack()
        #: others that were started beside it
        self._beside = ExitStack()
        self._broker: RunningBroker | None = None
        self._target: TargetUnderTest | None = None
        #: while its choices are looked at
        self._introduction: TargetUnderTest | None = None
        #: it was said what it is held to
        self._is_said = False
        #: it is a product whose ways are known
        self._is_known = False
        #: one that its operator may have set to other ways
        self._is_rabbitmq = False

    def __enter__(self) -> Self:
        try:
            self._target = self._start()
        except BaseException:
            self._running.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._beside.close()
        finally:
            self._running.close()

    @property
    def target(self) -> TargetUnderTest:
        if self._target is None:
            raise RuntimeError("the target is not started yet")
        return self._target

    @property
    def restarts(self) -> Restarts | None:
        """Who may start it again; None: it was not started here."""
        return self if self._broker is not None and is_started_here(self._broker) else None

    def last_lines(self) -> tuple[str, ...]:
        return tuple(map(visible, last_lines_of(self._broker))) if self._broker is not None else ()

    def start_again(self) -> TargetUnderTest:
        """It is what it was, but where it listens and who operates it. Raises `TargetError`."""
        self._running.close()
        self._target = self._start()
        return self._target

    def breakable(self) -> tuple[TargetUnderTest, Restarts]:
        """Another one, to which faults can be done. Raises `TargetError`."""
        other = StartedTarget(self._options, keeps_data=True)
        other._target = self._target  # what it is is known
        self._beside.enter_context(other)
        return other.target, other

    def _start(self) -> TargetUnderTest:
        target = self._introduced()
        if self._target is not None:
            known = replace(
                target, description=self._target.description, capabilities=self._target.capabilities,
                not_working=self._target.not_working, compatibility=self._target.compatibility,
            )  # fmt: skip
            return self._through_library(known)
        dialect = dialect_named(target.description.dialect)
        again = self._introduced_again if self.restarts is not None else None
        self._introduction = target
        if not self._is_said and self._is_rabbitmq and getattr(self._options, "profile", True):
            dialect = as_seen(dialect, measure_settings(target, dialect, worth_measuring(dialect), again)[0])
            target = self._introduction
        elif not self._is_said and not self._is_known and self._judged_by:
            dialect = dialect_named(self._judged_by)
        elif not self._is_said and not self._is_known:
            if getattr(self._options, "profile", False):
                names = gentle()
                profile = measure(target, self._options.out / "profile.jsonl", names, names, again)
                dialect = profile.dialect
                self._introduction = replace(
                    self._introduction, not_working=profile.not_working, compatibility=profile.compatibility
                )
            else:
                # what a broker is looked at by is no choice of its own
                seen = measure(target, None, NAMES_OF_MEANS, (), again, ways=False)
                dialect = with_choices(dialect, seen.settled)
            target = self._introduction
        description = replace(target.description, dialect=dialect.name)
        capabilities = (target.capabilities or frozenset()) | dialect.announced
        return self._through_library(replace(target, description=description, capabilities=capabilities))

    def _through_library(self, target: TargetUnderTest) -> TargetUnderTest:
        """What is asked before, such as what it chose, goes over the wire."""
        if self._library is None:
            return target
        return replace(target, driver=carrier_of(self._library.driver), library=self._library)

    def _introduced_again(self) -> TargetUnderTest:
        """A target that was lost before the run began. Raises `TargetError`."""
        self._running.close()
        self._introduction = self._introduced()
        return self._introduction

    def _introduced(self) -> TargetUnderTest:
        """Started, and asked what it is."""
        options = self._options
        try:
            started = running_broker(
                options.target, self._asked, apart=self._apart, keeps_data=self._keeps_data,
                management=getattr(options, "management", None) or "",
            )  # fmt: skip
            broker = self._broker = self._running.enter_context(started)
        except ValueError as error:
            raise UsageError(str(error)) from None
        address = broker.address
        began = time.monotonic()
        properties, limits = met(broker)
        took = time.monotonic() - began
        operator = self._operator(broker, properties)
        said = dialect_said_by(broker)
        dialect = self._asked or (dialect_named(said) if said else dialect_of(properties))
        self._is_said = bool(self._asked or said)
        self._is_known = is_known(properties)
        self._is_rabbitmq = properties.get("product") == RABBITMQ
        product = _shown(properties.get("product", "unknown"))
        version = _shown(properties.get("version", "unknown"))
        label = getattr(options, "label", None) or label_of(options.target)
        if self._library is not None:
            label += f"{THROUGH}{self._library}"
        return TargetUnderTest(
            address,
            TargetDescription(label, product, version, dialect.name),
            options.deadline,
            operator,
            advertised(properties),
            channel_max=limits.channel_max,
            frame_max=limits.frame_max,
            login_time=took,
            faults=faults_of(broker),
            own_broker=again_by(options.target, self._asked.name if self._asked else ""),
            faults_elsewhere=() if self._keeps_data else faults_elsewhere(options.target),
        )

    def _operator(self, broker: RunningBroker, properties: Table) -> Operator | None:
        """Raises `UsageError`, and `OperatorError` where it cannot be had, or operates another broker."""
        try:
            operator = operator_of(broker)
        except ValueError as error:
            raise UsageError(str(error)) from None
        own = properties.get("cluster_name")
        for each in operator.operators if isinstance(operator, FirstOf) else (operator,):
            if isinstance(each, ManagementOperator) and own and each.cluster_name not in ("", own):
                what = f"{each} is the management of {each.cluster_name}, and {broker.address} is {own}"
                raise OperatorError(visible(what))
        return operator


def label_of(target: str) -> str:
    """What reports call it. Raises `UsageError`."""
    try:
        return str(parse_address(target)) if "://" in target else target
    except ValueError as error:
        raise UsageError(str(error)) from None


def library_of(driver: str) -> Library | None:
    """The client library of `--driver`; None: the suite's own client. Raises `UsageError` where it is not installed."""
    if driver == WIRE:
        return None
    if driver not in DISTRIBUTIONS:
        raise UsageError(f"--driver {driver}: several are for `amqpspec run`")
    library = library_named(driver)
    if library is None:
        needs = DISTRIBUTIONS[driver]
        raise UsageError(f"--driver {driver} needs {needs}, which is not installed: pip install 'amqpspec[drivers]'")
    return library


def _shown(said: object) -> str:
    """What a broker says of itself, fit for every report and of bounded length."""
    return visible(str(said)[:_LONGEST_NAME])
