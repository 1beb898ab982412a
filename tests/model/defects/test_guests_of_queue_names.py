"""Guests that know queues by name: what they remember, what they forget at rest, and when they are asked."""

from __future__ import annotations

import pytest
from amqpspec.model.defects.consumers_of_ended_queues import untold_of
from amqpspec.model.defects.delivery_numbers import NumbersMemory, number_of
from amqpspec.model.defects.exclusive_queues import ExclusiveQueuesMemory
from amqpspec.model.defects.transitions import HOOKS

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.plan import Plan
from amqpspec.model.broker.copying import copy_broker
from amqpspec.model.defects import consumers_of_ended_queues, delivery_numbers, queue_types_by_name
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.rules.inputs import process
from tests.model.defects.test_defect_transitions import input_of


def planned(*lines: str, dialect: str = "rabbitmq-4.0") -> Plan:
    plan = Plan(dialect_named(dialect), HOOKS)
    for line in lines:
        plan.carry_out(parse_command(line))
    return plan


def numbers(plan: Plan) -> NumbersMemory:
    memory = plan.broker.remembered(delivery_numbers.NAME)
    assert isinstance(memory, NumbersMemory)
    return memory


@pytest.mark.parametrize(("kind", "expected"), [("", [1, 2]), ("x-queue-type=quorum durable", [0, 0])])
def test_a_delivery_has_the_number_by_which_its_queue_knows_it(kind: str, expected: list[int]) -> None:
    """A classic queue counts what it takes in, a quorum queue what it hands to each: every basic.get is one more."""
    plan = planned(
        f"a.1 queue.declare q {kind}", *(f"a.1 basic.publish q body=m{place}" for place in range(3)),
        "a.1 basic.get q no-ack", "a.1 basic.get q", "b.1 basic.get q",
    )  # fmt: skip
    held = [(key, tag) for key, channel in plan.broker.channels.items() for tag in channel.unacknowledged]
    assert [number_of(plan.broker, plan.broker.channels[key], tag) for key, tag in held] == expected


def test_what_is_handed_on_at_once_has_no_number() -> None:
    """To a consumer that does not acknowledge, by a classic queue (rabbit_amqqueue_process:attempt_delivery)."""
    plan = planned(
        "a.1 queue.declare q", "a.1 basic.consume q tag=t no-ack", "a.1 basic.publish q body=m1", "a.1 basic.cancel t",
        "a.1 basic.publish q body=m2", "a.1 basic.get q",
    )  # fmt: skip
    channel = plan.broker.channels["a", 1]
    assert number_of(plan.broker, channel, 2) == 0


def test_numbers_of_what_is_gone_are_forgotten_at_rest() -> None:
    plan = planned("a.1 queue.declare q")
    for place in range(200):
        plan.carry_out(parse_command(f"a.1 basic.publish q body=m{place}"))
        plan.carry_out(parse_command("a.1 basic.get q"))
        plan.carry_out(parse_command(f"a.1 basic.ack {place + 1}" if place else "a.1 basic.recover requeue"))
    plan.broker.come_to_rest()
    [known] = numbers(plan).classic.values()
    held = plan.broker.channels["a", 1].unacknowledged
    assert len(known.numbers) <= 2 * len(plan.broker.queues["q"].messages) + 64
    assert set(numbers(plan).deliveries["a", 1]) == set(held)
    plan.carry_out(parse_command("a.1 queue.delete q"))
    plan.broker.come_to_rest()
    assert not numbers(plan).classic


def test_consumers_that_are_gone_are_forgotten_at_rest() -> None:
    plan = planned(
        "a.1 queue.declare q durable x-queue-type=quorum", "a.1 basic.consume q tag=t", "a.1 basic.consume q tag=u",
        "a.1 basic.publish q body=m1", "a.1 basic.publish q body=m2", "a.1 basic.cancel t",
    )  # fmt: skip
    plan.broker.come_to_rest()
    assert {consumer.tag for consumer in numbers(plan).handed} <= {"u"}


def test_settlements_are_asked_about_only_when_something_of_a_deleted_queue_is_out() -> None:
    plan = planned("a.1 queue.declare q", "a.1 basic.publish q body=m1", "b.1 queue.declare other")
    plan.carry_out(parse_command("b.1 queue.delete other"))
    assert delivery_numbers.NAME not in plan.broker.armed
    plan.carry_out(parse_command("a.1 basic.get q"))
    assert delivery_numbers.NAME not in plan.broker.armed
    plan.carry_out(parse_command("b.1 queue.delete q"))
    assert delivery_numbers.NAME in plan.broker.armed


@pytest.mark.parametrize(("after", "is_armed"), [("", False), ("x-queue-type=quorum", True)])
@pytest.mark.parametrize("use", [
    ("a.1 basic.get q",), ("a.1 tx.select", "a.1 basic.publish q body=m1"), ("a.1 basic.get other",),
])  # fmt: skip
def test_queue_types_are_asked_about_when_a_name_has_another_one(
    use: tuple[str, ...], after: str, is_armed: bool
) -> None:
    """Where a channel knows it, or has published to it in a transaction that is not committed."""
    plan = planned("b.1 queue.declare q durable", "b.1 queue.declare other durable", *use)
    plan.carry_out(parse_command("b.1 queue.delete q"))
    plan.carry_out(parse_command(f"b.1 queue.declare q durable {after}"))
    assert (queue_types_by_name.NAME in plan.broker.armed) is (is_armed and "other" not in use[0])


def test_what_a_closed_connection_left_behind_is_forgotten_at_rest() -> None:
    plan = planned("a.1 queue.declare q exclusive", "b.1 queue.declare other exclusive", dialect="rabbitmq-4.3")
    memory = plan.broker.remembered("exclusive queues")
    assert isinstance(memory, ExclusiveQueuesMemory)
    plan.carry_out(parse_command("b.1 queue.delete other"))
    assert not memory.left_behind
    plan.carry_out(parse_command("a.0 connection.close"))
    assert list(memory.left_behind) == ["q"]
    assert "exclusive queues" in plan.broker.armed
    plan.broker.latest = plan.broker.now + 0.5
    plan.broker.come_to_rest()
    assert list(memory.left_behind) == ["q"]
    plan.broker.latest = plan.broker.now + 2.0
    plan.broker.come_to_rest()
    assert not memory.left_behind


def test_who_is_not_told_of_the_end_of_its_consumer_is_remembered_until_the_tag_is_cancelled() -> None:
    plan = planned("a.1 queue.declare q durable x-queue-type=quorum", "a.1 basic.consume q tag=t", dialect="rabbitmq-3")
    plan.broker.connections["a"].capabilities = {}
    plan.carry_out(parse_command("b.1 queue.delete q"))
    assert consumers_of_ended_queues.NAME in plan.broker.armed
    other = copy_broker(plan.broker)
    assert list(untold_of(other, other.channels["a", 1])) == ["t"]
    process(plan.broker, input_of(parse_command("a.1 basic.cancel t")))
    assert not untold_of(plan.broker, plan.broker.channels["a", 1])
    assert list(untold_of(other, other.channels["a", 1])) == ["t"], "a copy is one of its own"
