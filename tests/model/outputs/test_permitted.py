"""What is permitted is accepted, and the invariants hold: random walks over the commands that the search makes.

Each step of a walk is a command of the search generator, carried out on the model. Where the broker has a choice the
walk draws one, so that what is seen is not only what a simple broker does.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.search.machine import CommandSearch
from amqpspec.conformance.session.plan import Plan
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, ChannelState
from amqpspec.model.broker.copying import copy_broker
from amqpspec.model.broker.fingerprint import fingerprint
from amqpspec.model.broker.owed import Expected, PendingGet
from amqpspec.model.outputs.debts import debts
from amqpspec.model.outputs.observation import observe
from amqpspec.model.outputs.permitted import permitted
from amqpspec.model.promises.dialects import DEFAULT_DIALECT, DIALECTS, dialect_named
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Method, event_of
from amqpspec.model.rules.inputs import process
from amqpspec.targets.embedded.responder import Responder
from tests.handshakes import opening


class Walk:
    """A broker of the model that answers as it likes, and what must always be true of it."""

    def __init__(self, dialect: str) -> None:
        self.plan = Plan(dialect_named(dialect))
        self.broker = self.plan.broker
        #: (queue, body) of everything that was accepted
        self.accepted: Counter[tuple[str, bytes]] = Counter()
        self.tags: dict[int, int] = {}
        self.channels: list[Channel] = []
        self.choices = 0

    def take(self, command: Command) -> None:
        """The broker processes the command; nothing is answered yet."""
        connection, number = command.connection, command.channel
        while not self.plan.connected(connection):
            connection += "x"  # another one in place of what was closed
        self.plan._connection(connection)
        if number and command.method != "channel.open" and not self.plan.usable(connection, number):
            self._input(Method(connection, number, "channel.open", {}, sent=True))
        if number and command.method != "channel.open" and self.plan.channel(connection, number) is None:
            self._input(Method(connection, number, "channel.open", {}, sent=True))
        self._input(
            event_of(connection, number, command.method, dict(command.arguments), sent=True, content=command.content)
        )

    def _input(self, method: Method) -> None:
        process(self.broker, method)
        self.broker.touched.clear()
        self.check()

    def everything_permitted_is_accepted(self) -> list[Method]:
        """Gives the permitted frames, each of which was seen to be accepted in a copy, which it changed."""
        events = list(permitted(self.broker))
        mark = fingerprint(self.broker)
        for event in events[:4]:
            twin = copy_broker(self.broker)
            assert fingerprint(twin) == mark
            assert observe(twin, event) == (), f"{event} is permitted and not accepted"
            assert fingerprint(twin) != mark, f"{event} changes nothing, so it could be sent for ever"
        assert fingerprint(self.broker) == mark
        assert bool(events) == (not self.broker.quiet), "a quiet broker owes nothing, and only a quiet one"
        assert len(list(debts(self.broker))) == len(events)
        return events

    def send(self, method: Method) -> None:
        before = self.broker.channels.get((method.connection, method.channel))
        tag = before.next_tag if before is not None else 0
        assert observe(self.broker, method) == ()
        if method.name in ("basic.deliver", "basic.get-ok"):
            assert before is not None
            assert method.arguments["delivery_tag"] == self.tags.get(id(before), 0) + 1 == tag, "1, 2, 3, …"
            self.tags[id(before)] = tag
            self.channels.append(before)  # keeps its identity from being used again
        self.check()
        if method.name == "channel.close":
            self._input(Method(method.connection, method.channel, "channel.close-ok", {}, sent=True))

    def answer(self, pick: Any) -> None:
        """Send permitted frames, picked ones, until the broker is quiet."""
        for _ in range(10_000):
            methods = self.everything_permitted_is_accepted()
            if not methods:
                return
            self.choices += len(methods) > 1
            self.send(methods[pick(len(methods))])
        raise AssertionError("the broker never comes to rest")

    # ---------------------------------------------------------------------------------------- invariants

    def check(self) -> None:
        broker = self.broker
        places: Counter[int] = Counter()
        for queue in broker.queues.values():
            assert not queue.deleted
            ready = list(queue.messages)
            places.update(map(id, ready))
            assert 0 <= len(queue.unproven) <= len(ready)
            assert 0 <= queue.returned <= len(ready)
            assert len({message.position for message in ready}) == len(ready)
            if queue.type is QueueType.CLASSIC and "x-max-priority" not in queue.arguments:
                assert [m.position for m in ready] == sorted(m.position for m in ready), "the publish order"
            for consumer in queue.consumers:
                assert broker.channels[consumer.channel].consumers.get(consumer.tag) is consumer
            places.update(id(each.message) for each in queue.gone)
        for channel in broker.channels.values():
            self._check_channel(channel)
            held = channel.unacknowledged.values()
            places.update(id(entry.message) for entry in held if entry.queue.type is not QueueType.STREAM)
        for place, times in places.items():
            assert times == 1, f"message {place} is in {times} places"
        self._check_notes()

    def _check_channel(self, channel: Channel) -> None:
        assert list(channel.unacknowledged) == sorted(channel.unacknowledged)
        assert all(0 < tag < channel.next_tag for tag in channel.unacknowledged)
        if channel.state is not ChannelState.OPEN:
            assert not channel.unacknowledged
            assert not channel.consumers
            assert not channel.unconfirmed
        held = Counter(id(e.consumer) for e in channel.unacknowledged.values() if e.consumer is not None)
        for consumer in channel.consumers.values():
            assert consumer.queue.consumers.count(consumer) == 1
            assert consumer.outstanding == held[id(consumer)]
            assert not consumer.prefetch or consumer.outstanding <= consumer.prefetch, "the limit"
            assert not (consumer.no_ack and consumer.outstanding)
        assert list(channel.unconfirmed) == sorted(channel.unconfirmed)
        assert all(0 < number <= channel.published for number in channel.unconfirmed)
        for owed in channel.owed:
            assert isinstance(owed, Expected | PendingGet)

    def _check_notes(self) -> None:
        """`debtors` and `deliverable` are notes of what could be looked up."""
        broker = self.broker
        owing = {c.key for c in broker.channels.values() if c.owed or c.unconfirmed}
        owing |= {(c.name, 0) for c in broker.connections.values() if c.owed}
        assert set(broker.debtors) == owing
        for queue in broker.queues.values():
            room = list(broker.recipients(queue))
            if queue.type is QueueType.STREAM:
                due = any(consumer.latest_offset < len(queue.log) for consumer in room)
            else:
                due = bool(queue.messages and room)
            assert (queue in broker.deliverable) == due


def walk_machine(dialect: str, eager: bool, seen: Counter[str]) -> type[CommandSearch]:
    """The search generator with a walk in place of plan and session; `eager`: all is answered after each command."""

    class Walking(CommandSearch):
        def __init__(self) -> None:
            super().__init__()
            self.walk = Walk(dialect)
            self.plan = self.walk.plan
            self.turn = 0

        def carry_out(self, command: Command) -> None:
            self.walk.take(command)
            self.turn += 1
            if eager or self.turn % 4 == 0:
                self.walk.answer(lambda count: (self.turn * 7 + self.walk.choices) % count)
            else:
                self.walk.everything_permitted_is_accepted()

        def teardown(self) -> None:
            self.walk.answer(lambda count: count - 1)
            seen["sequences"] += 1
            seen["choices"] += self.walk.choices
            seen.update(self.walk.broker.bookkeeping.exercised)

    Walking.dialect = dialect_named(dialect)
    return Walking


#: A walk takes seconds: one of each kind is in the quick tier.
FULL = pytest.mark.full
ONE_QUICKLY = [pytest.param(name, marks=() if name == DEFAULT_DIALECT.name else FULL) for name in sorted(DIALECTS)]


@pytest.mark.parametrize("eager", [True, pytest.param(False, marks=FULL)], ids=["lockstep", "in flight"])
@pytest.mark.parametrize("dialect", ONE_QUICKLY)
def test_walks_of_the_search(dialect: str, eager: bool) -> None:
    seen: Counter[str] = Counter()
    machine = walk_machine(dialect, eager, seen)
    seed(20)(machine)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=15,
            stateful_step_count=30,
            phases=(Phase.generate,),
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert seen["sequences"] >= 15
    assert eager or seen["choices"] >= 10, "the walks must leave the path of the simple broker"
    for requirement in ("PUBLISH-002", "GET-001", "CHAN-007"):
        assert seen[requirement], f"the walks do not touch {requirement}"


#: Commands and how often they are drawn; settling more often than not finds something to settle.
LINES = {
    "a.1 basic.qos 3": 3, "a.1 basic.qos 1": 1, "a.1 basic.qos 2 global": 0.3, "b.1 basic.qos 2": 2,
    "a.1 basic.consume q tag=t{new}": 8, "a.1 basic.consume q": 1, "a.1 basic.consume q tag=u{new} no-ack": 1,
    "a.2 basic.consume q tag=t{new}": 2, "b.1 basic.consume q tag=t{new}": 2,
    "b.1 basic.consume q tag=v{new} nowait": 1, "a.1 basic.consume q tag=t1": 0.3,
    "b.1 basic.consume q tag=e exclusive": 0.3,
    "a.1 basic.cancel t1": 1, "a.1 basic.cancel t2": 1, "a.1 basic.cancel u3 nowait": 1, "b.1 basic.cancel t4": 1,
    "a.1 confirm.select": 1, "c.1 confirm.select": 2,
    "c.1 basic.publish q body=x": 8, "c.1 basic.publish q body=y": 8, "a.1 basic.publish q body=z mandatory": 4,
    "c.1 basic.publish nowhere mandatory": 1, "c.1 basic.publish nowhere": 1,
    "c.1 basic.publish k exchange=amq.direct": 1,
    "a.1 queue.bind q amq.direct routing-key=k": 1, "a.1 queue.unbind q amq.direct routing-key=k": 1,
    "a.1 basic.get q": 2, "b.1 basic.get q no-ack": 1,
    "a.1 basic.ack {tag}": 8, "a.1 basic.ack {tag} multiple": 8, "a.1 basic.nack {tag} requeue": 4,
    "b.1 basic.ack {tag}": 3, "b.1 basic.nack {tag} multiple requeue": 2, "b.1 basic.reject {tag} requeue": 2,
    "a.1 basic.nack 0 multiple requeue": 1, "a.2 basic.ack 0 multiple": 0.3, "a.1 basic.ack 99": 0.3,
    "a.1 basic.recover requeue": 1, "b.1 basic.recover-async requeue": 1, "a.1 basic.recover": 0.3,
    "a.1 channel.close": 0.3, "a.2 channel.close": 1, "b.1 channel.close": 1, "a.1 channel.open": 0.3,
    "b connection.close": 0.3, "c socket.abort": 0.3,
    "c.1 queue.purge q": 1, "c.1 queue.delete q": 0.3, "a.1 queue.delete q if-unused": 0.3,
    "a.1 queue.delete q nowait": 0.3, "c.1 queue.declare q durable passive": 1, "a.1 queue.declare": 1,
    "a.1 queue.declare s exclusive": 1,
    "a.1 channel.flow active": 1, "a.1 basic.qos prefetch-size=1": 0.3, "a.1 tx.select": 0.3,
    "a.1 basic.publish x exchange=nowhere": 0.3,
}  # fmt: skip


def step(walk: Walk, kind: str, line: str, chance: random.Random) -> str:
    """One command on `q`, which is declared again when it is gone. Gives the line as it was carried out."""
    if walk.plan.queue("q") is None:
        walk.take(parse_command(f"d.1 queue.declare q durable x-queue-type={kind}"))
    if "{tag}" in line:
        target = parse_command(line.replace("{tag}", "1"))
        channel = walk.plan.channel(target.connection, target.channel)
        tags = list(channel.unacknowledged) if channel else []
        if not tags and chance.random() < 0.9:
            line = "c.1 basic.publish q body=w"
        line = line.replace("{tag}", str(chance.choice(tags or [1])))
    if ".consume" in line and chance.random() < 0.9:
        walk.take(parse_command(f"{line.split()[0]} basic.qos {chance.randrange(1, 4)}"))
    line = line.replace("{new}", str(len(walk.plan.broker.connections) + walk.plan.broker.stamp % 50))
    walk.take(parse_command(line))
    return line


@pytest.mark.parametrize("kind", [pytest.param("classic", marks=FULL), "quorum", pytest.param("stream", marks=FULL)])
@pytest.mark.parametrize("dialect", ONE_QUICKLY)
def test_walks_over_every_kind_of_command(dialect: str, kind: str) -> None:
    seen: Counter[str] = Counter()
    for number in range(8):
        chance = random.Random(f"{dialect} {kind} {number}")
        walk = Walk(dialect)
        path: list[str] = []
        try:
            for line in chance.choices(list(LINES), list(LINES.values()), k=60):
                path.append(step(walk, kind, line, chance))
                for _ in range(chance.randrange(5)):
                    methods = walk.everything_permitted_is_accepted()
                    walk.choices += len(methods) > 1
                    if methods:
                        path.append(f"    {(method := chance.choice(methods))}")
                        walk.send(method)
            walk.answer(chance.randrange)
        except Exception as error:
            error.add_note("\n".join(path))
            raise
        seen["choices"] += walk.choices
        seen.update(walk.broker.bookkeeping.exercised)
    assert seen["choices"] >= 20
    wanted = ["ACK-001", "CHAN-007", "CONSUME-001", "CHAN-016", "CONSUME-014"]
    if kind != "stream":
        wanted += ["ACK-002", "ACK-013", "ACK-015", "GET-001", "CONSUME-013", "QUEUE-024", "RECOVER-001", "QOS-004"]
    for requirement in wanted:
        assert seen[requirement], f"the walks do not touch {requirement}"


def test_frames_that_are_not_permitted_are_not_accepted() -> None:
    """The other direction, where it can be enumerated: of all deliveries and confirms, only the permitted ones."""
    plan = Plan(dialect_named("rabbitmq-4.3"))
    for line in ("a.1 queue.declare q", "a.1 basic.qos 1", "a.1 basic.consume q tag=t", "a.2 basic.consume q tag=u",
                 "b.1 confirm.select"):  # fmt: skip
        plan.carry_out(parse_command(line))
    for body in ("m1", "m2", "m3"):
        command = parse_command(f"b.1 basic.publish q body={body}")
        process(plan.broker, Method("b", 1, command.method, command.arguments, True, command.content))
    accepted = []
    for number, consumer in ((1, "t"), (2, "u")):
        for tag in (1, 2):
            for body in ("m1", "m2", "m3"):
                for redelivered in (False, True):
                    command = parse_command(f"b.1 basic.publish q body={body}")
                    arguments = {"consumer_tag": consumer, "delivery_tag": tag, "redelivered": redelivered,
                                 "exchange": "", "routing_key": "q"}  # fmt: skip
                    event = Method("a", number, "basic.deliver", arguments, False, command.content)
                    if not observe(copy_broker(plan.broker), event):
                        accepted.append((number, tag, body, redelivered))
    # u has no limit, so any number of messages may be on their way to it; t has room for one
    assert accepted == [
        (1, 1, "m1", False), (1, 1, "m2", False), (1, 1, "m3", False),
        (2, 1, "m1", False), (2, 1, "m2", False),
    ]  # fmt: skip
    assert [str(event) for event in permitted(plan.broker)] == [
        "b.1 < basic.ack delivery-tag=3 multiple=true",
        "b.1 < basic.ack delivery-tag=1",
        "b.1 < basic.ack delivery-tag=2",
        "b.1 < basic.ack delivery-tag=3",
        "a.1 < basic.deliver consumer-tag=t delivery-tag=1 redelivered=false routing-key=q body=m1",
        "a.2 < basic.deliver consumer-tag=u delivery-tag=1 redelivered=false routing-key=q body=m1",
    ]


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_the_embedded_broker_makes_one_of_the_permitted_choices(dialect: str) -> None:
    """The responder of the embedded broker, fed the same inputs, sends what a judge's broker accepts."""
    judge = Broker(dialect_named(dialect))
    responder = Responder(dialect_named(dialect))
    sent = 0

    def give(method: Method) -> None:
        nonlocal sent
        process(judge, method)
        responder.take(method)
        while (frames := responder.next_outputs(lambda connection: False, lambda connection: False)) is not None:
            for answer in frames:
                assert observe(judge, answer) == (), str(answer)
                sent += 1
        assert judge.quiet

    for method in opening("a", dialect_named(dialect)):
        if method.sent:
            give(method)
    give(Method("a", 1, "channel.open", {}, sent=True))
    for line in (
        "a.1 queue.declare q durable x-queue-type=quorum", "a.1 basic.qos 2", "a.1 basic.consume q tag=t",
        "a.1 basic.publish q body=m1", "a.1 basic.publish q body=m2", "a.1 basic.publish q body=m3",
        "a.1 basic.reject 1 requeue", "a.1 basic.ack 3", "a.1 basic.get q", "a.1 basic.recover requeue",
        "a.1 queue.delete q",
    ):  # fmt: skip
        command = parse_command(line)
        give(Method("a", 1, command.method, command.arguments, True, command.content))
    assert sent > 10
