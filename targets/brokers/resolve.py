"""What a TARGET on the command line means, and getting it to run.

`amqp://…`, `amqps://…`: a broker that runs somewhere. `embedded`, `embedded:FAULT`: ours. `docker:IMAGE`,
`cluster:IMAGE` (three nodes), `process:PATH`: started for the run. `FILE.toml`: an in-house broker, as the file says.
Anything else: the name of an entry point in the group `amqpspec.targets`, a function without arguments that gives a
context manager with an `address`, and an `operator()` if it has one.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol, runtime_checkable

from amqpspec.model.promises.choices import Dialect
from amqpspec.model.protocol.methods import Table
from amqpspec.targets.address import Address, logged_in, parse_address, without_login
from amqpspec.targets.brokers.embedded_again import EmbeddedAgain
from amqpspec.targets.brokers.faults import FaultInjector
from amqpspec.targets.brokers.management_address import ManagementAddress, parse_management_address
from amqpspec.targets.brokers.management_operator import ManagementOperator
from amqpspec.targets.brokers.operator import Operator
from amqpspec.targets.brokers.readiness import BrokerUnavailable
from amqpspec.targets.brokers.single_node import BROKER_FAULTS
from amqpspec.targets.client.connecting import trusting_context
from amqpspec.targets.client.wire import WireClient
from amqpspec.targets.clock import COMMON, Clock
from amqpspec.targets.codec.tune import Tune
from amqpspec.targets.errors import TargetError

ENTRY_POINT_GROUP = "amqpspec.targets"


class TargetSyntaxError(ValueError):
    """A TARGET that means nothing; one line."""


class RunningBroker(Protocol):
    """What an in-house target has to offer while its context is entered."""

    @property
    def address(self) -> Address: ...


@runtime_checkable
class OperatedBroker(RunningBroker, Protocol):
    """What it may offer besides."""

    def operator(self) -> Operator | None: ...


@dataclass(frozen=True, slots=True)
class _Elsewhere:
    """A broker that runs without us, and that we operate by its management at most."""

    address: Address
    management: ManagementAddress | None = None
    is_ours: bool = False

    def operator(self) -> Operator | None:
        return None if self.management is None else ManagementOperator(self.management, self.address)


@runtime_checkable
class LoggingBroker(RunningBroker, Protocol):
    """It knows what it wrote."""

    def last_lines(self) -> tuple[str, ...]: ...


@runtime_checkable
class EndingBroker(RunningBroker, Protocol):
    """It knows whether it has ended."""

    def why_it_ended(self) -> str: ...


def met(broker: RunningBroker) -> tuple[Table, Tune]:
    """`introduction` of a broker that was just started: where it ends instead, that is what is wrong.

    Raises `TargetError`.
    """
    address = broker.address
    try:
        return introduction(address)
    except TargetError as error:
        why = broker.why_it_ended() if isinstance(broker, EndingBroker) else ""
        if not why:
            raise
        hint = "" if address.heartbeat else " without heartbeats (an address that ends in ?heartbeat=60 has them)"
        raise BrokerUnavailable(f"{address}: when a client logged in{hint}, the broker {why}") from error


def last_lines_of(broker: RunningBroker) -> tuple[str, ...]:
    """The last that the broker wrote to its log, without the password; (): it is not known."""
    if not isinstance(broker, LoggingBroker):
        return ()
    try:
        password = broker.address.password
    except TargetError:
        password = ""
    # the password that every broker is delivered with is a word that logs have for other reasons
    hidden = password if password not in ("", "guest") else None
    return tuple(line.replace(hidden, "***") if hidden else line for line in broker.last_lines())


def is_started_here(broker: RunningBroker) -> bool:
    """Did the suite start the broker, so that it may start it again? A broker says so where it is not."""
    return bool(getattr(broker, "is_ours", True))


@contextmanager
def running(target: str, dialect: Dialect | None = None) -> Iterator[Address]:
    """Start the target if it has to be, give its address, and stop it at the end.

    `dialect` is spoken by the embedded broker. Raises `TargetSyntaxError`, `AddressError` (both ValueErrors) and
    `TargetError`.
    """
    with running_broker(target, dialect) as broker:
        yield broker.address


@contextmanager
def running_broker(
    target: str,
    dialect: Dialect | None = None,
    clock: Clock = COMMON,
    *,
    apart: bool = False,
    keeps_data: bool = False,
    management: str = "",
) -> Iterator[RunningBroker]:
    """The same, giving the broker. The embedded one goes by the `clock`. `apart`: it has a process of its own, if this
    process may have others; then nobody shares its clock. `keeps_data`: it can be stopped and started again.
    `management`: the address of its HTTP API, by which it is operated.
    """
    by_api = parse_management_address(management) if management else None
    if target.startswith(("amqp://", "amqps://")):
        address = logged_in(parse_address(target), target, os.environ)
        if address.tls:
            trusting_context(address)  # files that are wrong are told before anything is tried
        yield _Elsewhere(address, by_api)
        return
    with _broker(target, dialect, clock, apart, keeps_data, by_api) as broker:
        yield broker


@runtime_checkable
class JudgedBroker(RunningBroker, Protocol):
    """It says by which dialect it is judged; "": it does not."""

    @property
    def dialect_name(self) -> str: ...


def dialect_said_by(broker: RunningBroker) -> str:
    """The name of the dialect that the broker is to be judged by; "": it does not say."""
    return broker.dialect_name if isinstance(broker, JudgedBroker) else ""


def operator_of(broker: RunningBroker) -> Operator | None:
    """Who operates the broker, if somebody of ours can."""
    return broker.operator() if isinstance(broker, OperatedBroker) else None


@runtime_checkable
class BreakableBroker(RunningBroker, Protocol):
    """Faults can be done to it."""

    def faults(self) -> FaultInjector | None: ...


def faults_of(broker: RunningBroker) -> FaultInjector | None:
    """Who does faults to the broker, if somebody of ours can."""
    return broker.faults() if isinstance(broker, BreakableBroker) else None


def again_by(target: str, dialect: str) -> EmbeddedAgain | None:
    """What starts another broker like that one so fast that each sequence may break one of its own; None: nothing."""
    return EmbeddedAgain(target, dialect) if target.partition(":")[0] == "embedded" else None


def faults_elsewhere(target: str) -> Collection[str]:
    """What can be done to another broker that the target means, which keeps its data, as this one does not."""
    return BROKER_FAULTS if target.startswith("docker:") else ()


def is_target(text: str) -> bool:
    """Is it written as a target, whether or not that can be had? A file or folder of that name is written `./NAME`."""
    kind, _, rest = text.partition(":")
    return (
        text.startswith(("amqp://", "amqps://"))
        or kind == "embedded"
        or (kind in ("docker", "cluster", "process") and rest != "")
        or text.endswith(".toml")
        or any(entry_point.name == text for entry_point in entry_points(group=ENTRY_POINT_GROUP))
    )


def _broker(
    target: str,
    dialect: Dialect | None,
    clock: Clock,
    apart: bool,
    keeps_data: bool,
    management: ManagementAddress | None,
) -> AbstractContextManager[RunningBroker]:
    kind, _, rest = target.partition(":")
    if management is not None and is_target(target) and not target.endswith(".toml"):
        raise TargetSyntaxError(f"{target} is not operated by its management, which is for amqp://… and FILE.toml")
    if target == "embedded" or (kind == "embedded" and rest):
        from amqpspec.targets.brokers.embedded_broker import embedded
        from amqpspec.targets.brokers.embedded_process import EmbeddedBrokerProcess, can_be_apart

        here = embedded(target, dialect, clock)
        return EmbeddedBrokerProcess(target, dialect) if apart and can_be_apart() else here
    if kind == "docker" and rest:
        from amqpspec.targets.brokers.docker_broker import DockerBroker

        return DockerBroker(rest, keeps_data=keeps_data)
    if kind == "cluster" and rest:
        from amqpspec.targets.brokers.cluster_broker import ClusterBroker

        return ClusterBroker(rest)
    if kind == "process" and rest:
        from amqpspec.targets.brokers.process_broker import ProcessBroker

        return ProcessBroker(rest)
    if target.endswith(".toml"):
        from amqpspec.targets.brokers.broker_file import read_broker_file
        from amqpspec.targets.brokers.in_house_broker import InHouseBroker

        return InHouseBroker(read_broker_file(Path(target)), management)
    for entry_point in entry_points(group=ENTRY_POINT_GROUP):
        if entry_point.name == target:
            in_house: AbstractContextManager[RunningBroker] = entry_point.load()()
            return in_house
    raise TargetSyntaxError(
        f"{without_login(target)!r} is no target: give amqp://user:password@host:port/vhost, embedded,"
        f" embedded:FAULT, docker:IMAGE, cluster:IMAGE, process:PATH, FILE.toml, or the name of an entry point in the"
        f" group {ENTRY_POINT_GROUP}"
    )


def server_properties(address: Address) -> Table:
    """What the broker says of itself; raises `TargetError` where it cannot be reached or refuses."""
    return introduction(address)[0]


def introduction(address: Address) -> tuple[Table, Tune]:
    """The same, and the limits that it agreed to."""
    with WireClient(address) as client:
        client.open("probe")
        return client.server_properties("probe"), client.tune("probe")
