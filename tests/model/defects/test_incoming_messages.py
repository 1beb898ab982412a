"""Inputs that are told to bring nothing bring nothing, and most of what a barrier sends is told to."""

from __future__ import annotations

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.search.plan import Plan
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.copying import copy_broker
from amqpspec.model.broker.dead_letter_headers import EXCHANGE
from amqpspec.model.defects.incoming_messages import brings_none_to_dead_lettering_queue
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.rules.inputs import process
from tests.model.defects.test_defect_transitions import input_of

#: A queue with a limit whose dead letters go to `s`; somebody holds a message of it on b.1.
SITUATION = (
    "a.1 queue.declare plain", "a.1 queue.declare s durable x-queue-type=stream",
    "a.1 queue.declare q durable x-queue-type=quorum x-max-length=2"
    " x-dead-letter-exchange= x-dead-letter-routing-key=s",
    *(f"a.1 basic.publish q body=m{place}" for place in range(3)), "b.1 basic.get q", "b.1 queue.declare w",
)  # fmt: skip

NOTHING = (
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


def held(broker: Broker) -> list[tuple[str, int]]:
    """How much there is in queues that make dead letters, and of dead letters in the stream."""
    found = [(queue.name, queue.next_position) for queue in broker.queues.values() if EXCHANGE in queue.arguments]
    return [*found, ("s", len(broker.queues["s"].log))]


@pytest.mark.parametrize("line", NOTHING)
def test_it_brings_nothing(line: str) -> None:
    broker = situation()
    event = input_of(parse_command(line))
    assert brings_none_to_dead_lettering_queue(broker, event)
    behind = copy_broker(broker)
    process(behind, event)
    assert held(behind) == held(broker)


@pytest.mark.parametrize("line", PERHAPS)
def test_it_takes_more_to_tell(line: str) -> None:
    assert not brings_none_to_dead_lettering_queue(situation(), input_of(parse_command(line)))


def test_some_of_them_bring_something() -> None:
    broker = situation()
    before = held(broker)
    process(broker, input_of(parse_command("a.1 basic.publish q body=x")))
    assert held(broker) != before
