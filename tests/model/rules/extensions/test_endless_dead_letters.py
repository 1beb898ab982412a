"""Dead letters that go round by themselves, with a history that hides it, come to an end (DLX-008)."""

from __future__ import annotations

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.plan import Plan
from amqpspec.model.promises.dialects import dialect_named

FORGED = '{"x-death": [{"count": 3, "reason": "rejected", "queue": "other", "exchange": "", "routing-keys": ["k"]}]}'


@pytest.mark.parametrize("dialect", ["rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"])
def test_a_rejection_in_a_forged_history_does_not_make_a_cycle_endless(dialect: str) -> None:
    plan = Plan(dialect_named(dialect))
    for line in (
        "a.1 exchange.declare letters fanout",
        "a.1 queue.declare q durable x-max-length=0 x-overflow=drop-head x-dead-letter-exchange=letters",
        "a.1 queue.declare r durable x-queue-type=quorum x-max-length=0 x-overflow=drop-head"
        ' x-dead-letter-exchange="" x-dead-letter-routing-key=q',
        "a.1 queue.bind r letters",
        f"a.1 basic.publish q body=m headers={FORGED}",
    ):
        plan.carry_out(parse_command(line))
    assert [len(queue.messages) for queue in plan.broker.queues.values()] == [0, 0]
