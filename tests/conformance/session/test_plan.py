"""The plan: a model of its own, that makes a simple broker's choices."""

from __future__ import annotations

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.plan import Plan
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.dialects.rabbitmq_4_3 import RABBITMQ_4_3


def test_the_tag_that_the_broker_chooses_is_not_one_that_the_client_has_taken() -> None:
    """Two consumers of one tag would leave nothing to do that the model accepts."""
    plan = Plan(RABBITMQ_4_3)
    chosen = "amq.ctag-0000000000000000000001"
    for line in ("a.1 queue.declare q", "a.1 basic.qos 1", f"a.1 basic.consume q tag={chosen}", "a.1 basic.consume q"):
        plan.carry_out(parse_command(line))
    for body in ("m1", "m2", "m3"):
        plan.carry_out(parse_command(f"a.1 basic.publish q body={body}"))
    channel = plan.broker.channels["a", 1]
    assert [consumer.outstanding for consumer in channel.consumers.values()] == [1, 1]


def test_what_would_come_under_a_rule_is_asked_without_doing_it() -> None:
    plan = Plan(dialect_named("amqp-0-9-1"))
    for line in ("a.1 queue.declare q", "a.1 basic.publish q body=m1", "a.1 basic.get q"):
        plan.carry_out(parse_command(line))
    for line, rule in (("a.1 basic.reject 1", "ACK-013"), ("a.1 basic.ack 7", "ACK-006")):
        assert plan.comes_under(parse_command(line), {rule})
        assert not plan.comes_under(parse_command("a.1 basic.ack 1"), {rule})
    channel = plan.channel("a", 1)
    assert channel is not None and list(channel.unacknowledged) == [1]
