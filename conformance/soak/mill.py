"""Drives all clients of a soak, in one thread: whatever comes is given to whom it is for, and each does what is due.

Everything that goes over the wire is written to the trace first, each connection as a sequence of its own. A soak has
phases: its queues are declared, the clients run, they come to an end, the queues are emptied, and deleted.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from zlib import crc32

from amqpspec.conformance.session.nodes import node_of
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.soak.client import Client, State
from amqpspec.conformance.soak.consumer import Consumer
from amqpspec.conformance.soak.disturber import Disturber
from amqpspec.conformance.soak.drainer import Drainer
from amqpspec.conformance.soak.errands import Errands, declaring, deleting
from amqpspec.conformance.soak.options import SoakOptions
from amqpspec.conformance.soak.outstanding import Outstanding
from amqpspec.conformance.soak.plan import TRANSIENT, PublisherPlan, SoakPlan
from amqpspec.conformance.soak.presence import Presence
from amqpspec.conformance.soak.publisher import Publisher
from amqpspec.conformance.soak.schedule import NEEDS, Kind, schedule
from amqpspec.conformance.soak.soak_trace import SoakTrace
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Fault, TraceEvent
from amqpspec.targets.address import Address
from amqpspec.targets.client.network import Network
from amqpspec.targets.client.wire import WireClient
from amqpspec.targets.errors import TargetError, TargetUnreachable

#: Frames that are received before everybody has another turn.
_A_ROUND = 40
#: Seconds that nobody waits for anything.
_MOMENT = 0.005
#: How many times as long as it took to find out that a node cannot be reached nobody tries it again: while one client
#: connects, nobody else does anything, and who is not there at all refuses nothing.
_SHUNNED = 4
#: Seconds in which no connection to a node can be opened, while nothing is known to be wrong, until it is lost: the
#: patience so many times, and no more than that.
_PATIENCES, LOST_AFTER = 3, 60.0
#: Messages that may be outstanding in a queue.
_MOST_OUTSTANDING = 1500
#: Messages a second that a publisher sends to a stream, which keeps them all, or to a queue that refuses most of more.
_SLOW_RATE = 200
#: Seconds that consumers stay away who leave before their broker ends: that takes a container a part of a second.
_AWAY = 1.5
#: Seconds between two looks at what the user is told.
_PROGRESS = 0.5


class Interrupted(Exception):
    """The user wants no more of it."""


class Mill:
    """Use `run`. `asks_to_end`: how often the user asked for the end: once ends the soak in order, twice at once.
    `tell`: what is shown while it runs, a line.
    """

    def __init__(
        self,
        target: TargetUnderTest,
        plan: SoakPlan,
        options: SoakOptions,
        trace: SoakTrace,
        tell: Callable[[str], None],
        asks_to_end: Callable[[], int],
    ) -> None:
        self.target, self.plan, self.options = target, plan, options
        self.patience = options.patience
        self.chosen = random.Random(f"soak {plan.seed}")
        self.trace = trace
        self.outstanding = Outstanding(
            tuple(queue.name for queue in plan.queues if queue.type is not QueueType.STREAM)
        )
        self.problems: list[str] = []
        #: queues that were emptied at the end, or read to it
        self.emptied: set[str] = set()
        #: seconds of the trace at which phases began
        self.phases: dict[str, float] = {}
        self._tell, self._asks_to_end = tell, asks_to_end
        self._wire = WireClient(target.address, trace.event)
        kinds = options.faults
        nodes = target.faults.nodes if target.faults is not None else (1,)
        disturbances = schedule(plan.seed, kinds, nodes, options.seconds)
        #: a network that can fail, between some clients and the broker
        self._network = Network() if self._needs_network(kinds) else None
        self.disturber = Disturber(target.faults, disturbances, self)
        self._clients: dict[str, Client] = {}
        self._running: list[Client] = []
        #: how often a broker was about to end, by kind
        self._about_to_end: Counter[Kind] = Counter({Kind.STOP: 1})
        self._presence = Presence()
        #: by node, until when nobody tries to connect to it
        self._shunned: dict[int, float] = {}
        self._next_progress = 0.0
        self._phase = ""
        self._ends = 0.0

    def _needs_network(self, kinds: Iterable[Kind]) -> bool:
        offered = self.target.faults.offered if self.target.faults is not None else ()
        return any(kind in kinds and not set(NEEDS[kind]) <= set(offered) for kind in (Kind.CUT, Kind.SLOW))

    # ------------------------------------------------------------------------------------------ phases

    def run(self) -> None:
        """Raises `TargetError` where the broker is lost, `Interrupted` where the user does not wait for the end."""
        try:
            with self._wire:
                self._phases()
        finally:
            if self._network is not None:
                self._network.close()
            self.disturber.close()

    def _phases(self) -> None:
        plan, options = self.plan, self.options
        declared = Errands("declare", declaring(plan), self)
        self._begin("declaring", [declared])
        self._until(lambda: declared.is_done, LOST_AFTER)
        self.problems += declared.refusals
        publishers = [self._publisher(each) for each in plan.publishers]
        may_leave = Kind.CLIENT in options.faults
        consumers = [Consumer(each, self, self.outstanding, may_leave) for each in plan.consumers]
        self._begin("running", [*publishers, *consumers])
        self._ends = time.monotonic() + options.seconds
        self._until(lambda: bool(self._asks_to_end()), options.seconds, disturbed=True)
        self.disturber.end()
        self._until(lambda: self.disturber.is_quiet, LOST_AFTER * 5, disturbed=True)
        self._phase = "waiting for confirms"
        self._finish(publishers, options.patience)
        self._finish(consumers, options.patience)
        drainers = [
            Drainer(f"d{number}", queue, self, self.outstanding, options.patience)
            for number, queue in enumerate(plan.queues, 1)
        ]
        self._begin("emptying the queues", drainers)
        self._until(lambda: all(each.is_done and each.state is State.OFFLINE for each in drainers), _LONG)
        self.emptied = {each.queue.name for each in drainers if each.is_empty}
        deleted = Errands("delete", deleting(plan), self)
        self._begin("deleting", [deleted])
        self._until(lambda: deleted.is_done and deleted.state is State.OFFLINE, LOST_AFTER)

    def _publisher(self, plan: PublisherPlan) -> Publisher:
        queues = [self.plan.queue(name) for name in plan.queues]
        is_slow = any(queue.type is QueueType.STREAM or queue.is_limited for queue in queues)
        rates = [rate for rate in (self.options.rate, _SLOW_RATE if is_slow else 0.0) if rate]
        return Publisher(plan, self, self.outstanding, _MOST_OUTSTANDING, min(rates, default=0.0))

    def _begin(self, phase: str, clients: Sequence[Client]) -> None:
        self._phase = phase
        self.phases[phase] = self.trace.time
        self._running = list(clients)

    def _finish(self, clients: Sequence[Client], patience: float) -> None:
        for each in clients:
            each.finish()

        def are_over() -> bool:
            return all(each.is_done and each.state is State.OFFLINE for each in clients)

        self._until(are_over, patience + LOST_AFTER)
        for each in clients:
            each.is_done = True
            each.abort()

    def _until(self, is_over: Callable[[], bool], seconds: float, *, disturbed: bool = False) -> None:
        """Go on until it is over, or the time is. Raises `TargetError`, `Interrupted`."""
        until = time.monotonic() + seconds
        while not is_over():
            now = time.monotonic()
            if now > until:
                break
            if disturbed:
                self.disturber.turn(now)
            if self.disturber.lost:
                raise TargetUnreachable(f"the broker did not come back: {self.disturber.lost}")
            if self._asks_to_end() > 1:
                raise Interrupted
            for client in self._running:
                client.turn(now)
            self._receive()
            self._look(now)

    def _receive(self) -> None:
        wait = _MOMENT
        for _ in range(_A_ROUND):
            event = self._wire.receive(wait)
            if event is None:
                if wait and not self._wire.open_names():
                    threading.Event().wait(wait)
                return
            client = self._clients.get(event.connection)
            if client is not None:
                self._presence.hear(event)
                client.received(event)
            wait = 0.0

    def _look(self, now: float) -> None:
        """Is the broker still there? And what is the user told?"""
        limit = min(LOST_AFTER, _PATIENCES * self.patience)
        self._presence.look(self.disturber.reachable(), now, limit)
        if now >= self._next_progress:
            self._next_progress = now + _PROGRESS
            counts = self.outstanding
            left = f", {max(self._ends - now, 0.0):.0f} s left" if self._phase == "running" else ""
            self._tell(
                f"{self._phase}{left}: {counts.published:,} published, {counts.confirmed:,} confirmed,"
                f" {counts.delivered:,} delivered, {len(self.disturber.done)} faults"
            )

    # ------------------------------------------------------------------------------------------ for clients

    def now(self) -> float:
        return time.monotonic()

    def connect(self, client: Client) -> Address | None:
        """A node is chosen among those that are there."""
        reachable = self.disturber.reachable()
        if not reachable:
            return None
        node = self.chosen.choice(reachable)
        injector = self.target.faults
        address = injector.address_of(node) if injector is not None else self.target.address
        began = self.now()
        self._presence.tried(node, began)
        if began < self._shunned.get(node, 0.0):
            return None
        several = len(self.disturber.nodes) > 1
        client.connection = f"{client.name}@{node}" if several else client.name
        try:
            if self._goes_through_network(client.connection) and self._network is not None:
                address = replace(address, way=self._network.way_to(client.connection, address))
            self._wire.connect(client.connection, address, timeout=5.0)
        except (TargetError, ValueError):
            self._shunned[node] = self.now() + _SHUNNED * (self.now() - began)
            return None
        self._clients[client.connection] = client
        return address

    def send(self, event: TraceEvent, more: bool = False) -> None:
        self._wire.send(event, more)

    def abort(self, client: Client) -> None:
        self._wire.abort(client.connection)

    def leave(self, client: Client) -> None:
        self._wire.leave(client.connection)
        self.trace.over(client.connection)

    # ------------------------------------------------------------------------------------------ for the disturber

    def note(self, fault: Fault) -> None:
        self._wire.note(fault)

    def mishap(self, choice: int) -> None:
        """One client in three."""
        drawn = random.Random(choice)
        for client in self._running:
            if drawn.random() < 1 / 3:
                client.mishap(drawn.randrange(1 << 16))

    def before_the_end(self, kind: Kind) -> None:
        """Every second queue has no consumers any more, so that what they give back, and what is published last, waits
        in it; and publishers by the default exchange stop there in the middle of a content.
        """
        self._about_to_end[kind] += 1
        leaving = {each.name for each in self.plan.queues[self._about_to_end[kind] % 2 :: 2]}
        for client in self._running:
            if isinstance(client, Consumer) and client.plan.queue in leaving:
                client.stay_away(_AWAY)
            elif isinstance(client, Publisher) and not client.plan.exchange and leaving.issuperset(client.plan.queues):
                client.stop_within_content()

    def are_gone(self, nodes: Iterable[int]) -> bool:
        wanted = set(nodes)
        return all(each.state is State.OFFLINE or node_of(each.connection) not in wanted for each in self._running)

    def cut_off(self, nodes: Iterable[int]) -> None:
        wanted = set(nodes)
        for each in self._running:
            if node_of(each.connection) in wanted and self._wire.is_open(each.connection):
                each.abort()

    def back(self) -> None:
        """What is transient need not be there any more."""
        self._shunned.clear()
        transient = frozenset(each.name for each in self.plan.publishers if each.delivery_mode == TRANSIENT)
        for queue in self.plan.queues:
            if queue.type is QueueType.CLASSIC:
                self.outstanding.forget(queue.name, transient)

    def _goes_through_network(self, connection: str) -> bool:
        """One connection of a publisher or consumer in three, always the same ones."""
        return connection[0] in "pc" and crc32(connection.encode()) % 3 == 0

    def through_network(self) -> list[str]:
        return [name for name in self._wire.open_names() if self._network and self._goes_through_network(name)]

    def on_network(self, fault: Fault) -> None:
        assert self._network is not None
        name = fault.arguments["connection"]
        if fault.name == "network.cut":
            self._network.cut(name)
        elif fault.name == "network.slow":
            self._network.slow(name, fault.arguments["milliseconds"] / 1000)
        else:
            self._network.heal(name)

    def quorum_queues(self) -> list[str]:
        return [queue.name for queue in self.plan.queues if queue.type is QueueType.QUORUM]


#: Seconds: nobody waits so long for a queue that gives nothing, as the drainers have a patience of their own.
_LONG = 3600.0
