"""The model as a server of several virtual hosts: each is a world of its own, with a `Responder` and so a model.

A connection begins in the broker's own virtual host, and goes where connection.open leads it. What the operator does
is done in each of them, so all know the same users, virtual hosts, settings and alarms.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace

from amqpspec.model.broker.connections import ConnectionState
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.protocol.methods import OPERATOR, ChannelKey, Content, TraceEvent
from amqpspec.targets.clock import COMMON, Clock
from amqpspec.targets.embedded.handshake import DEFAULT_ACCESS, Access
from amqpspec.targets.embedded.hooks import Fault
from amqpspec.targets.embedded.own_publish import publish
from amqpspec.targets.embedded.responder import Responder
from amqpspec.targets.embedded.served_broker import ServedBroker


class HostsResponder:
    """A `Responder` for all of them. `own`: that of the broker's own virtual host."""

    def __init__(
        self, dialect: Dialect, fault: Fault | None = None, access: Access = DEFAULT_ACCESS, clock: Clock = COMMON
    ) -> None:
        self._make: Callable[[str], Responder] = lambda name: Responder(
            dialect, fault, replace(access, vhost=name), clock
        )
        self.own = self._make(access.vhost)
        #: by name, also those that were deleted: there may be connections that are being closed
        self._hosts = {access.vhost: self.own}
        #: of connections that have left the broker's own
        self._elsewhere: dict[str, Responder] = {}

    def begin_anew(self) -> None:
        """As when the broker was started: nothing is there."""
        self.own.begin_anew()
        self._hosts = {name: host for name, host in self._hosts.items() if host is self.own}
        self._elsewhere.clear()

    def all(self) -> tuple[Responder, ...]:
        return tuple(self._hosts.values())

    def broker_of(self, connection: str) -> ServedBroker:
        """What the connection sees."""
        return self._of(connection).broker

    def unconfirmed(self, key: ChannelKey) -> int:
        """How many publishes of the channel wait for their confirms?"""
        channel = self.broker_of(key[0]).channels.get(key)
        return len(channel.unconfirmed) if channel is not None else 0

    def brokers(self) -> dict[str, ServedBroker]:
        """By virtual host."""
        return {name: host.broker for name, host in self._hosts.items() if self.own.broker.vhosts.get(name)}

    # ------------------------------------------------------------------------------------------- inputs

    def take(self, event: TraceEvent) -> None:
        """Process a client's frame, or what the operator does."""
        if event.connection == OPERATOR:
            for host in self.all():
                host.take(event)
            self._follow(event)
        else:
            if event.name == "socket.open" and event.connection in self._elsewhere:
                self.end(event.connection)  # a connection of this name that nobody has ended
            self._of(event.connection).take(event)
            if event.name == "connection.open":
                self._lead(event.connection)

    def publish(self, vhost: str, exchange: str, routing_key: str, content: Content) -> None:
        """As `own_publish.publish`, in that virtual host."""
        publish(self._hosts[vhost], vhost, exchange, routing_key, content)

    def end(self, connection: str) -> None:
        """The TCP connection is over: its channels end, and nothing of it is kept."""
        host = self._of(connection)
        self._elsewhere.pop(connection, None)
        host.end(connection)

    def forget_connections(self) -> None:
        """None is left."""
        self._elsewhere.clear()

    def is_foreign(self, connection: str) -> bool:
        """Does the client want another protocol, which the dialect's broker would speak?"""
        return self._of(connection).is_foreign(connection)

    def _of(self, connection: str) -> Responder:
        return self._elsewhere.get(connection, self.own)

    def _lead(self, connection: str) -> None:
        """To its virtual host, if it was let in."""
        own = self.own.broker
        found = own.connections.get(connection)
        if found is None or found.state is not ConnectionState.OPEN or self._hosts[found.vhost] is self.own:
            return
        host = self._elsewhere[connection] = self._hosts[found.vhost]
        host.broker.connections[connection] = own.connections.pop(connection)
        key = (connection, 0)
        if key in own.debtors:
            del own.debtors[key]
            host.broker.debtors[key] = None

    def _follow(self, event: TraceEvent) -> None:
        """Virtual hosts come, and are empty when they have gone."""
        name = event.arguments.get("virtual_host", "")
        if event.name == "operator.add-vhost" and name not in self._hosts:
            self._hosts[name] = self._added(name)
        elif event.name == "operator.delete-vhost" and name in self._hosts:
            host = self._hosts[name]
            host.broker.exchanges = host.fresh().exchanges
            host.broker.publications.clear()

    def _added(self, name: str) -> Responder:
        host = self._make(name)
        own, broker = self.own.broker, host.broker
        broker.users, broker.vhosts, broker.policies = dict(own.users), dict(own.vhosts), dict(own.policies)
        broker.settings, broker.alarm = dict(own.settings), own.alarm
        broker.publications = deque(maxlen=own.publications.maxlen)
        return host

    # ------------------------------------------------------------------------------------ time and outputs

    def has_changed(self) -> None:
        for host in self._hosts.values():
            host.has_changed()

    def wait(self) -> float:
        """Seconds until `tick` has something to do."""
        return min(host.wait() for host in self._hosts.values())

    def tick_now(self) -> None:
        for host in self._hosts.values():
            host.tick_now()

    def next_outputs(
        self, congested: Callable[[str], bool], busy: Callable[[str], bool], held: Callable[[TraceEvent], bool]
    ) -> Iterable[TraceEvent] | None:
        """As `Responder.next_outputs`."""
        for host in self._hosts.values():
            frames = host.next_outputs(congested, busy, held)
            if frames is not None:
                return frames
        return None
