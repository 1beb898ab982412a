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
    assert judgeable(parse_command("a.1 basic.recover-async requeue"), plan).method == "basic.recover"
