"""Inputs of which it is told that they make no dead letters make none; most of what a barrier sends is of this kind."""

from __future__ import annotations

import pytest
from amqpspec.model.defects.no_dead_letters import makes_no_dead_letters

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.plan import Plan
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.copying import copy_broker
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.rules.inputs import process
from tests.model.defects.test_defect_transitions import input_of

#: A queue with a limit whose dead letters go to `s`; somebody holds a message of it on b.1.
SITUATION = (
    "a.1 queue.declare plain", "a.1 queue.declare s durable x-queue-type=stream",
    "a.1 queue.declare q durable x-queue-type=quorum x-max-length=2"
    " x-dead-letter-exchange= x-dead-letter-routing-key=s",
    *(f"a.1 basic.publish q body=m{place}" for place in range(3)), "b.1 basic.get q", "a.1 basic.publish q body=m4",
    "b.1 queue.declare w",
)  # fmt: skip

NONE = (
    "a.1 basic.qos 3", "b.1 basic.qos 3 global", "a.1 queue.declare q passive", "b.1 queue.declare q passive",
    "a.1 basic.get q", "b.1 basic.get plain", "a.1 basic.publish plain body=x", "b.1 basic.publish plain body=x",
    "a.1 basic.publish nobody body=x mandatory", "a.1 queue.declare missing passive", "a.2 channel.open",
)  # fmt: skip
PERHAPS = (
    "a.1 basic.publish q body=x", "b.1 basic.publish plain body=x exchange=amq.fanout", "b.1 queue.declare v passive",
    "b.1 basic.publish plain body=x expiration=soon", "b.1 basic.nack 1 requeue", "b.1 basic.reject 1",
    "b.1 channel.close", "b.1 basic.qos 1 prefetch-size=9", "b.1 basic.get s", "b.2 basic.qos 1",
)  # fmt: skip


def situation() -> Broker:
    plan = Plan(dialect_named("rabbitmq-3"))
    for line in SITUATION:
        plan.carry_out(parse_command(line))
    return plan.broker


def letters(broker: Broker) -> int:
    """How many dead letters there are, all of which come to the stream."""
    return len(broker.queues["s"].log)


@pytest.mark.parametrize("line", NONE)
def test_it_makes_none(line: str) -> None:
    broker = situation()
    event = input_of(parse_command(line))
    assert makes_no_dead_letters(broker, event)
    behind = copy_broker(broker)
    process(behind, event)
    assert letters(behind) == letters(broker)


@pytest.mark.parametrize("line", PERHAPS)
def test_it_takes_more_to_tell(line: str) -> None:
    assert not makes_no_dead_letters(situation(), input_of(parse_command(line)))


def test_what_has_no_room_makes_one() -> None:
    broker = situation()
    before = letters(broker)
    process(broker, input_of(parse_command("a.1 basic.publish q body=x")))
    assert letters(broker) != before
