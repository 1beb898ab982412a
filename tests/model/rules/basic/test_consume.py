"""Which refusal of basic.consume comes, where more than one is due."""

from __future__ import annotations

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.plan import Plan
from amqpspec.model.broker.broker import Broker
from amqpspec.model.promises.dialects import dialect_named


def after(dialect: str, *lines: str) -> Broker:
    plan = Plan(dialect_named(dialect))
    for line in lines:
        plan.carry_out(parse_command(line))
    return plan.broker


@pytest.mark.parametrize("dialect", ["rabbitmq-3", "rabbitmq-4.0"])
def test_a_limit_of_the_channel_is_refused_before_a_second_consumer_of_a_quorum_queue(dialect: str) -> None:
    """rabbit_quorum_queue:consume asks for the limit first. Seen on RabbitMQ 3.10 and 4.0."""
    both = (
        "a.1 queue.declare q durable x-queue-type=quorum", "b.1 basic.consume q tag=t", "a.1 basic.qos 4 global",
        "a.1 basic.consume q tag=u exclusive",
    )  # fmt: skip
    assert "QOS-012" in after(dialect, *both).bookkeeping.exercised
    alone = after(dialect, *(line for line in both if "qos" not in line)).bookkeeping.exercised
    assert "CONSUME-008" in alone and "QOS-012" not in alone
