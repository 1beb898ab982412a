"""Dead letters that come to a queue in which nothing has any time to live."""

from __future__ import annotations

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.plan import Plan
from amqpspec.model.promises.dialects import dialect_named


@pytest.mark.parametrize("dialect", ["rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"])
def test_each_expires_before_the_next_comes_unless_it_is_too_much_by_itself(dialect: str) -> None:
    """rabbit_amqqueue_process:deliver_or_enqueue: first the limit, then the time. Seen on 3.10, 4.0, 4.3."""
    plan = Plan(dialect_named(dialect))
    for line in (
        'a.1 queue.declare q1 exclusive x-max-length-bytes=12 x-dead-letter-exchange="" x-dead-letter-routing-key=q2',
        'a.1 queue.declare q2 exclusive x-max-length-bytes=10 x-dead-letter-exchange="" x-dead-letter-routing-key=q3'
        " x-message-ttl=0",
        "a.1 queue.declare q3 exclusive", "a.1 basic.publish q1 body=m6", "a.1 basic.publish q1 body=m7......",
        "a.1 basic.publish q1 body=m8............................",
    ):  # fmt: skip
        plan.carry_out(parse_command(line))
    letters = [each.content for each in plan.broker.queues["q3"].messages]
    reasons = [each.properties["headers"]["x-death"][0]["reason"] for each in letters]
    assert [each.body[:2] for each in letters] == [b"m6", b"m7", b"m8"]
    assert reasons == ["expired", "expired", "maxlen"]
