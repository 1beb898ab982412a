"""The steps that chapters offer to extensions."""

from __future__ import annotations

import sys

import pytest

from amqpspec.model.rules import table
from amqpspec.model.rules.common.steps import Question, Step

pytestmark = pytest.mark.quick


def test_somebody_takes_part_in_each_step() -> None:
    chapters = table.__name__.rpartition(".")[0]
    steps = {
        f"{module.__name__}.{name}": value
        for module in list(sys.modules.values())
        if module.__name__.startswith(f"{chapters}.")
        for name, value in vars(module).items()
        if isinstance(value, Step | Question)
    }
    assert len(steps) > 10
    assert [name for name, step in steps.items() if not step.taking_part] == []


def test_all_take_part_in_a_step_in_their_order() -> None:
    made: Step[list[str]] = Step()
    seen: list[str] = []
    made(seen)
    assert seen == []
    made.taken_by(lambda seen: seen.append("first"), lambda seen: seen.append("second"))
    made(seen)
    assert seen == ["first", "second"]


def test_the_first_answer_counts() -> None:
    refused: Question[[int], bool] = Question()
    assert refused(1) is None
    refused.taken_by(lambda number: None, lambda number: False, lambda number: True)
    assert refused(1) is False
