"""Time stamps decide where a message goes on the headers exchange that it is published to, and on those behind it."""

from __future__ import annotations

import pytest
from amqpspec.model.defects.header_values import TIME_STAMP_DEFECTS

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.plan import Plan
from amqpspec.model.promises.dialects import dialect_named
from tests.model.defects.test_defect_transitions import HOOKS, input_of

MOMENT = '{"$datetime": "2024-02-29T12:00:00+00:00"}'


@pytest.mark.parametrize(("exchange", "applies"), [("e", True), ("alternate", True), ("bound", True), ("other", False)])
def test_a_time_stamp_may_decide_behind_other_exchanges(exchange: str, applies: bool) -> None:
    plan = Plan(dialect_named("rabbitmq-4.0"), HOOKS)
    for line in (
        "a.1 queue.declare q", "a.1 exchange.declare e headers", f'a.1 queue.bind q e arguments={{"at": {MOMENT}}}',
        "a.1 exchange.declare alternate headers alternate-exchange=e",
        "a.1 exchange.declare bound fanout", "a.1 exchange.bind e bound",
        "a.1 exchange.declare other fanout", "a.1 queue.bind q other",
    ):  # fmt: skip
        plan.carry_out(parse_command(line))
    (defect,) = TIME_STAMP_DEFECTS
    publish = input_of(parse_command(f'a.1 basic.publish exchange={exchange} body=m headers={{"at": {MOMENT}}}'))
    before = dict(plan.broker.exchanges)
    assert defect.applies(plan.broker, publish) is applies
    assert plan.broker.exchanges == before
    defect.process(plan.broker, publish)
    assert bool(plan.broker.queues["q"].messages) is not applies
