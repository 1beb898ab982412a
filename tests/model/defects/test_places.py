"""The law offers its guests no place where none of them is, and who sleeps misses nothing."""

from __future__ import annotations

from functools import reduce

import pytest
from amqpspec.model.broker.hooks import Hooks, arm
from amqpspec.model.defects.transitions import GUESTS, HOOKS

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.plan import Plan
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.fingerprint import fingerprint
from amqpspec.model.defects import channel_limiter, resumed_consumers
from amqpspec.model.promises.dialects import dialect_named

AWAKE = reduce(Hooks.with_awake, (guest.name for guest in GUESTS), Hooks(GUESTS))

#: A bit of all that guests look at: limits, tags that are used again, active consumers, streams, times, deletions.
COMMANDS = (
    "a.1 queue.declare q", "a.1 queue.declare w durable x-queue-type=quorum x-max-length=2 x-delivery-limit=2",
    "a.1 queue.declare s durable x-queue-type=stream", "a.1 queue.declare p x-max-priority=3",
    "b.1 queue.declare v durable x-queue-type=quorum x-single-active-consumer=true",
    *(f"b.1 basic.publish {queue} body=m{place}" for queue in "qwsvp" for place in range(4)),
    "b.1 basic.publish p body=first priority=2 expiration=60000",
    "a.2 basic.qos 1", "a.2 basic.consume w consumer-tag=t", "a.2 basic.cancel t",
    "a.2 basic.consume w consumer-tag=t x-priority=2", "a.2 basic.nack 1 requeue", "a.2 basic.ack 0 multiple",
    "a.3 basic.qos 2 global", "a.3 basic.consume q consumer-tag=t", "a.3 basic.get q", "a.3 basic.qos 3",
    "a.3 basic.ack 1", "a.3 basic.consume p consumer-tag=u", "a.3 basic.get p no-ack", "a.3 basic.cancel u",
    "a.4 basic.qos 2", "a.4 basic.consume s consumer-tag=t x-stream-offset=first", "a.4 basic.ack 1",
    "b.2 basic.qos 1", "b.2 basic.consume v consumer-tag=t", "b.3 basic.consume v consumer-tag=u x-priority=1",
    "b.2 basic.reject 1 requeue", "b.2 basic.cancel t", "b.4 tx.select", "b.4 basic.publish w body=t", "b.4 tx.commit",
    "b.5 basic.consume q consumer-tag=x exclusive", "b.5 channel.close", "b.1 queue.delete v", "b.1 queue.delete q",
    "b.1 queue.declare q durable x-queue-type=quorum", "b.1 queue.delete w", "a.3 channel.close", "a connection.close",
)  # fmt: skip


def test_there_is_a_guest_at_each_place() -> None:
    places = set(vars(Hooks())) - {"guests", "awake", "_at", "_others"}
    assert len(places) > 40
    assert {place for place in places if not getattr(AWAKE, place)} == set()


def test_a_guest_wakes_when_it_is_armed_or_remembers_something() -> None:
    broker = Broker(dialect_named("rabbitmq-4.3"), hooks=HOOKS)
    assert not broker.hooks.rests
    assert not broker.hooks.has_channel_limit
    broker.remembered(resumed_consumers.NAME)
    arm(broker, channel_limiter.NAME)
    assert broker.hooks.rests
    assert broker.hooks.has_channel_limit
    assert not HOOKS.rests


@pytest.mark.parametrize("dialect", ["rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"])
def test_who_sleeps_misses_nothing(dialect: str) -> None:
    """Told of everything from the beginning, the guests remember the same."""
    usual, awake = (Plan(dialect_named(dialect), hooks) for hooks in (HOOKS, AWAKE))
    held: set[str] = set()
    for line in COMMANDS:
        for plan in (usual, awake):
            plan.carry_out(parse_command(line))
        assert fingerprint(usual.broker) == fingerprint(awake.broker), line
        assert usual.broker.armed == awake.broker.armed
        held.update(awake.broker.memories.held())
    assert len(held) > 5


def test_hooks_are_found_by_others_only_once_they_are_whole() -> None:
    """Sequences that are carried out in several threads share them."""

    class Found(dict[frozenset[str], Hooks]):
        def __setitem__(self, awake: frozenset[str], hooks: Hooks) -> None:
            assert vars(Hooks()).keys() <= vars(hooks).keys()
            super().__setitem__(awake, hooks)

    hooks = Hooks(GUESTS)
    hooks._others = Found(hooks._others)
    assert hooks.with_awake(next(iter(GUESTS)).name).awake
