"""What a session is held with: where the broker is, what it is judged by, who operates it, what carries commands."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from amqpspec.conformance.verdicts.judgement import SeenWay, TargetDescription
from amqpspec.targets.address import Address
from amqpspec.targets.brokers.embedded_again import BrokenBroker
from amqpspec.targets.brokers.faults import FaultInjector
from amqpspec.targets.brokers.operator import Operator
from amqpspec.targets.client.carrier import Driver
from amqpspec.targets.client.wire import WireClient
from amqpspec.targets.clock import COMMON, Clock
from amqpspec.targets.drivers.library import Library

#: Seconds that an owed frame may take.
DEFAULT_DEADLINE = 5.0


@dataclass(frozen=True, slots=True)
class TargetUnderTest:
    """A broker that can be reached, and how it is judged. `deadline`: seconds that an owed frame may take."""

    address: Address
    description: TargetDescription
    deadline: float = DEFAULT_DEADLINE
    #: who can do what only the operator of the broker can; None where nobody may
    operator: Operator | None = None
    #: the server capabilities that it advertises; None: not known, so all of them
    capabilities: frozenset[str] | None = None
    #: what broker and session both go by, where they are in one process
    clock: Clock = COMMON
    #: makes what carries the commands of a sequence
    driver: Driver = WireClient
    #: the client library that this is; None: the suite's own client
    library: Library | None = None
    #: the highest number of a channel that it allows, and octets of its largest frame; 0: no limit
    channel_max: int = 0
    frame_max: int = 0
    #: seconds that a first login took
    login_time: float = 0.0
    #: who stops it, starts it again, and so on; None where nobody may
    faults: FaultInjector | None = None
    #: starts another broker like it, for one sequence that breaks it; None: faults are done to the target itself
    own_broker: Callable[[], AbstractContextManager[BrokenBroker]] | None = None
    #: what can be done to a broker of another kind, which the suite starts for all sequences that break it, as this one
    #: does not bear it
    faults_elsewhere: Collection[str] = ()
    #: extensions that were tried and do not work: to what came of it, in a few words
    not_working: Mapping[str, str] = field(default_factory=dict)
    #: what of RabbitMQ's own ways was seen of it
    compatibility: tuple[SeenWay, ...] = ()

    @property
    def offered_faults(self) -> Collection[str]:
        """Names of faults that may be done, here or to another broker like it."""
        return self.faults_elsewhere if self.faults is None else self.faults.offered

    @property
    def nodes(self) -> Sequence[int]:
        return (1,) if self.faults is None else self.faults.nodes

    @property
    def present_address(self) -> Address:
        """A broker that was started again may be elsewhere."""
        return self.address if self.faults is None else self.faults.address_of(self.faults.nodes[0])
