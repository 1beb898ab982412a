"""What nobody could judge in the text is left out of a search, and all else stays."""

from __future__ import annotations

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.search.left_open import judgeable
from amqpspec.conformance.session.plan import Plan
from amqpspec.model.promises.dialects import dialect_named


@pytest.fixture
def plan() -> Plan:
    made = Plan(dialect_named("amqp-0-9-1"))
    for line in ("a.1 exchange.declare e topic durable", "a.1 queue.declare q durable auto-delete"):
        made.carry_out(parse_command(line))
    return made


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("a.1 exchange.declare e nope", "a.1 exchange.declare e topic"),
        ("a.1 exchange.declare other nope", "a.1 exchange.declare other nope"),
        ("a.1 queue.declare q passive", "a.1 queue.declare q passive durable auto-delete"),
        ("a.1 queue.declare other passive", "a.1 queue.declare other passive"),
        ("a.1 queue.bind q e x-match=any-with-x x-k=1", "a.1 queue.bind q e x-match=any x-k=1"),
        ("a.1 queue.bind q e x-match=all", "a.1 queue.bind q e x-match=all"),
        ("a.1 exchange.declare other fanout internal auto-delete", "a.1 exchange.declare other fanout"),
        ("a.1 basic.publish q body=m user-id=nobody", "a.1 basic.publish q body=m"),
        ("a.1 basic.publish q body=m user-id=guest", "a.1 basic.publish q body=m user-id=guest"),
        ('a.1 basic.publish q headers={"CC": ["l"], "k": 1}', 'a.1 basic.publish q headers={"k": 1}'),
        ("a.1 basic.publish q priority=9 content-type=t", "a.1 basic.publish q content-type=t"),
        ("a.1 basic.recover-async requeue", "a.1 basic.recover-async requeue"),
        ("a.1 channel.close-ok", "a.1 channel.close reply-code=200 reply-text=done"),
        ("a.1 basic.nack 0", "a.1 basic.nack 0 multiple"),
        ("a.1 basic.nack 2", "a.1 basic.nack 2"),
    ],
)
def test_what_is_left(plan: Plan, line: str, left: str) -> None:
    assert judgeable(parse_command(line), plan) == parse_command(left)


def test_the_old_way_to_recover_is_left_to_who_has_it() -> None:
    plan = Plan(dialect_named("amqp-0-9-1;recover-async=refused"))
    left = judgeable(parse_command("a.1 basic.recover-async requeue"), plan)
    assert left == parse_command("a.1 basic.recover requeue")


FEATURES = "x-message-ttl+x-max-length+direct_reply_to+CC+publisher_confirms"


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("a.1 queue.declare r x-message-ttl=800 x-queue-type=quorum", "a.1 queue.declare r x-message-ttl=800"),
        ("a.1 queue.declare r x-max-length=2 x-max-priority=4", "a.1 queue.declare r x-max-length=2"),
        ("a.1 queue.declare r x-max-length=0", "a.1 queue.declare r"),
        ('a.1 basic.publish q headers={"CC": ["l"], "BCC": ["k"]}', 'a.1 basic.publish q headers={"CC": ["l"]}'),
        ("a.1 basic.publish q reply-to=amq.rabbitmq.reply-to", "a.1 basic.publish q"),
        ("b.1 basic.publish q reply-to=amq.rabbitmq.reply-to", "b.1 basic.publish q reply-to=amq.rabbitmq.reply-to"),
        ("a.1 basic.consume amq.rabbitmq.reply-to", "a.1 basic.consume amq.rabbitmq.reply-to no-ack"),
    ],
)
def test_what_is_left_of_features_is_what_works(line: str, left: str) -> None:
    plan = Plan(dialect_named(f"amqp-0-9-1+{FEATURES}"))
    plan.carry_out(parse_command("b.1 basic.consume amq.rabbitmq.reply-to no-ack tag=replies"))
    assert judgeable(parse_command(line), plan) == parse_command(left)


def test_nobody_asks_for_transactions_and_confirms_of_one_channel() -> None:
    plan = Plan(dialect_named(f"amqp-0-9-1+{FEATURES}"))
    plan.carry_out(parse_command("a.1 confirm.select"))
    plan.carry_out(parse_command("a.2 tx.select"))
    assert judgeable(parse_command("a.1 tx.select"), plan) is None
    assert judgeable(parse_command("a.2 confirm.select"), plan) is None
    assert judgeable(parse_command("a.2 tx.select"), plan) == parse_command("a.2 tx.select")
