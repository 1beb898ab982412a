"""The planning broker: a copy of the model that the generator asks what is possible and interesting now.

It carries out every generated command itself, making the choices of a simple broker. The generator looks only here,
never at the target, so that equal seeds make equal commands, whatever the target does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.names import REPLY_ADDRESS
from amqpspec.conformance.session.handshake_steps import STEPS, step
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, ChannelState
from amqpspec.model.broker.connections import Connection, ConnectionState
from amqpspec.model.broker.copying import copy_broker
from amqpspec.model.broker.deadlines import NEVER
from amqpspec.model.broker.internal_events import Input
from amqpspec.model.broker.queues import Queue
from amqpspec.model.broker.reply_addresses import ADDRESS
from amqpspec.model.judging.windows import Window
from amqpspec.model.outputs.observation import observe
from amqpspec.model.outputs.permitted import permitted
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.protocol.methods import OPERATOR, Method, SocketEvent, Table, TraceEvent, event_of
from amqpspec.model.rules.connection.handshake import DUE
from amqpspec.model.rules.extensions.queue_expiry import expire_punctually
from amqpspec.model.rules.inputs import process
from amqpspec.model.rules.internal_events import all_come_about
from amqpspec.targets.address import Address
from amqpspec.targets.client.handshake import recordable

#: The target of a plan.
_NOWHERE = Address("localhost", 5672, "guest", "guest")


class Plan:
    """What the world would look like if the target were the model's own simple broker."""

    def __init__(self, dialect: Dialect) -> None:
        self.broker = Broker(dialect)
        #: seconds that have passed, by the commands alone: nothing else takes time here
        self._now = 1.0
        #: what `$reply-to` stands for (`conformance.language.names`)
        self.reply_address = ""

    @classmethod
    def behind(cls, broker: Broker, under_way: Iterable[Input], now: float) -> Plan:
        """What would come of a command if it were carried out on that broker now, after what is under way to it."""
        plan = cls(broker.dialect)
        plan.broker, plan._now = copy_broker(broker), now
        for each in under_way:
            process(plan.broker, each)
        return plan

    def arms_in_turn(self, commands: Iterable[Command], windows: Sequence[Window]) -> bool:
        """Would one of them do so, if they were carried out one after the other?"""
        ahead = Plan.behind(self.broker, (), self._now)
        for each in commands:
            if ahead.arms(each, windows):
                return True
            ahead.carry_out(each)
        return False

    def carry_out(self, command: Command) -> None:
        """Process the command as a session would send it, and everything that the broker answers."""
        if command.method in STEPS and not command.channel:
            self._take_step(command)
            return
        if command.method == "clock.wait":
            self._now += command.arguments.get("milliseconds", 0) / 1000
        if command.connection == OPERATOR:
            self._process(event_of(OPERATOR, 0, command.method, dict(command.arguments), sent=True))
            return
        connection = self._connection(command.connection)
        if connection.state is not ConnectionState.OPEN:
            return
        if self._opens_channel(command):
            self._process(Method(command.connection, command.channel, "channel.open", {}, sent=True))
        self._process(self.event(command))

    def event(self, command: Command) -> TraceEvent:
        """What is sent for it."""
        event = event_of(
            command.connection,
            command.channel,
            command.method,
            self._with_address(command.arguments),
            sent=True,
            content=command.content,
        )
        return replace(event, time=self._now)

    def comes_under(self, command: Command, rules: Collection[str]) -> bool:
        """Would one of these rules make a difference, or be blamed, were the command carried out now?"""
        kept = self.broker, self._now, self.reply_address
        self.broker = copy_broker(self.broker)
        self.broker.bookkeeping.reason = ""
        self.carry_out(command)
        exercised, blamed = self.broker.bookkeeping.exercised, self.broker.bookkeeping.reason
        self.broker, self._now, self.reply_address = kept
        return blamed in rules or any(exercised[rule] > self.broker.bookkeeping.exercised[rule] for rule in rules)

    def arms(self, command: Command, windows: Iterable[Window]) -> bool:
        """Would a known defect come in by the command, and may spoil something from then on?"""
        own = [window for window in windows if command.method in window.kinds]
        if not own:
            return False
        broker = self.broker
        if self._opens_channel(command):
            self._connection(command.connection)
            broker = copy_broker(broker)
            process(broker, Method(command.connection, command.channel, "channel.open", {}, sent=True))
        return any(window.arms(broker, self.event(command)) is not None for window in own)

    def _opens_channel(self, command: Command) -> bool:
        """Does the command need a channel that is not there? It is opened first."""
        if not command.channel or command.as_it_stands or command.method == "channel.open":
            return False
        return self.channel(command.connection, command.channel) is None

    def _with_address(self, arguments: Table) -> Table:
        address = self.reply_address
        return {name: address if address and value == REPLY_ADDRESS else value for name, value in arguments.items()}

    def channel(self, connection: str, number: int) -> Channel | None:
        return self.broker.channels.get((connection, number))

    def usable(self, connection: str, number: int) -> bool:
        """Open, or not opened yet; and its connection is as well."""
        known = self.broker.connections.get(connection)
        if known is not None and known.state is not ConnectionState.OPEN:
            return False
        channel = self.channel(connection, number)
        return channel is None or channel.state is ChannelState.OPEN

    def connected(self, connection: str) -> bool:
        known = self.broker.connections.get(connection)
        return known is None or known.state is ConnectionState.OPEN

    def queue(self, name: str) -> Queue | None:
        return self.broker.queues.get(name)

    def _take_step(self, command: Command) -> None:
        """A step of a handshake, or all of them, as `Session` makes them."""
        name, method = command.connection, command.method
        is_whole = method == STEPS[-1] and not command.as_it_stands
        makes_anew = is_whole or method == STEPS[0]
        known = self.broker.connections.get(name)
        if known is None or (makes_anew and known.state is ConnectionState.CLOSED):
            self._process(SocketEvent(name, 0, STEPS[0], {}, sent=True))
            due = list(DUE) if is_whole else list(DUE)[: max(STEPS.index(method) - 1, 0)]
            for state in due:
                if self.broker.connections[name].state is state:
                    self._say(name, DUE[state], command.arguments if is_whole else {})
        if not makes_anew:
            self._say(name, method, command.arguments)

    def _say(self, name: str, method: str, wishes: Table) -> None:
        event = step(_NOWHERE, name, self.broker.connections[name].offered, method, wishes)
        self._process(recordable(event, _NOWHERE))

    def _connection(self, name: str) -> Connection:
        connection = self.broker.connections.get(name)
        if connection is None:
            connection = self.broker.connections[name] = Connection(
                name, ConnectionState.OPEN, {"consumer_cancel_notify": True}
            )
        return connection

    def _process(self, event: TraceEvent) -> None:
        event = replace(event, time=self._now)
        process(self.broker, event)
        all_come_about(self.broker)
        self._answer()
        expire_punctually(self.broker, self._now)
        self._answer()
        self.broker.busy_since = NEVER  # all is at rest again: what comes next was not under way before

    def _answer(self) -> None:
        self.broker.touched.clear()
        self.broker.teardowns.clear()
        while (answer := next(permitted(self.broker), None)) is not None:
            if observe(self.broker, replace(answer, time=self._now)):
                return  # it would be the same again, for ever
            told = answer.content.properties.get("reply_to", "") if answer.content is not None else ""
            if told.startswith(ADDRESS):
                self.reply_address = told
            # a session answers closes at once
            if answer.name == "channel.close":
                process(self.broker, Method(answer.connection, answer.channel, "channel.close-ok", {}, sent=True))
