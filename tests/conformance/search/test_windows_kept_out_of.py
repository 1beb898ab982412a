"""In nine of ten sequences the search comes into no window of a known defect (`amqpspec.model.judging.windows`)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.session.plan import Plan
from amqpspec.model.defects.known_defects import followed
from amqpspec.model.promises.dialects import dialect_named
from tests.conformance.search.test_search_distribution import sequences


def arms_one(commands: Sequence[Command], dialect: str) -> bool:
    """Does one of the commands arm a window?"""
    plan = Plan(dialect_named(dialect))
    for command in commands:
        if plan.arms(command, followed(dialect).windows):
            return True
        plan.carry_out(command)
    return False


@pytest.mark.parametrize("dialect", ["rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"])
def test_one_of_ten_sequences_may_come_into_windows(dialect: str) -> None:
    # those of the seeds 7 to 9 are made for `test_search_distribution.py` as well
    made = [each for seed in (7, 8, 9) for each in sequences(seed, dialect)]
    share = sum(arms_one(commands, dialect) for commands in made) / len(made)
    assert 0.02 <= share <= 0.12


def test_a_command_is_asked_about_before_it_is_carried_out() -> None:
    plan = Plan(dialect_named("rabbitmq-4.3"))
    windows = followed("rabbitmq-4.3").windows
    declare = Command("a", 1, "queue.declare", {"queue": "q", "arguments": {"x-max-priority": 2}})
    assert plan.arms(declare, windows), "though its channel is opened only then"
    assert plan.channel("a", 1) is None and not plan.broker.queues
    assert not plan.arms(Command("a", 1, "queue.declare", {"queue": "q", "arguments": {}}), windows)
    assert not plan.arms(declare, followed("amqp-0-9-1").windows)
