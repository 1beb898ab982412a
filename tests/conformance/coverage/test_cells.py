"""Which situations commands meet, by the model alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

from amqpspec.conformance.coverage.cells import Cell, all_cells, cells_of
from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.scenarios.scenario_files import selected
from amqpspec.conformance.search.round import make_round
from amqpspec.conformance.search.seldom import SeldomActions
from amqpspec.conformance.session.plan import Plan
from amqpspec.model.promises.dialects import DIALECTS, dialect_named
from amqpspec.model.promises.dialects.extensions import EXTENSIONS, text_with

NEWEST = "rabbitmq-4.3"
#: A product that is not RabbitMQ, and has all features that there are.
ALL = text_with(EXTENSIONS).name


def met(commands: Iterable[Command], dialect: str = NEWEST) -> list[tuple[Cell, ...]]:
    """By each command."""
    plan, found = Plan(dialect_named(dialect)), []
    for command in commands:
        found.append(tuple(cells_of(plan.broker, plan.event(command))))
        plan.carry_out(command)
    return found


def columns(*lines: str, dialect: str = NEWEST) -> set[str]:
    """Of the last command."""
    return {cell.column for cell in met(map(parse_command, lines), dialect)[-1]}


HELD = ("a.1 queue.declare q durable", "a.1 basic.publish q body=m1", "a.1 basic.publish q body=m2", "a.1 basic.get q")


def test_what_a_channel_has_out_and_how_it_came() -> None:
    assert {"nothing out", "something ready", "no consumer"} <= columns(*HELD)
    assert {"one out", "by get", "something ready"} <= columns(*HELD, "a.1 basic.ack 1")
    both = columns(*HELD, "a.1 basic.consume q tag=t", "a.1 basic.recover requeue")
    assert {"several out", "by both", "one here", "empty", "no limit", "classic", "plain"} <= both
    again = columns(*HELD, "a.1 basic.recover requeue", "a.1 basic.qos 1")
    assert {"nothing out", "after a recover"} <= again and "by get" not in again
    assert "out on another channel" in columns(*HELD, "b.1 channel.open", "b.1 basic.get q")


def test_consumers_limits_and_modes() -> None:
    limited = ("a.1 queue.declare q", "a.1 basic.qos 1", "a.1 basic.consume q tag=t", "a.1 basic.publish q body=m1")
    assert "limit with room" in columns(*limited)
    assert {"limit used up", "one here"} <= columns(*limited, "a.1 basic.publish q body=m2")
    assert "another limit since" in columns(*limited, "a.1 basic.qos 0", "a.1 basic.consume q tag=u")
    assert "here and elsewhere" in columns(*limited, "b.1 basic.consume q tag=u", "a.1 queue.purge q")
    shared = ("a.1 queue.declare q", "a.1 basic.qos 1 global", "a.1 basic.consume q tag=t")
    assert "shared limit with room" in columns(*shared, "a.1 basic.cancel t", dialect="rabbitmq-4.0")
    active = ("a.1 queue.declare q x-single-active-consumer=true", "a.1 basic.consume q tag=t")
    assert {"active alone", "single active consumer"} <= columns(*active, "a.1 basic.consume q tag=u")
    assert "active and waiting" in columns(*active, "a.1 basic.consume q tag=u", "a.1 basic.consume q tag=v")
    full = ("a.1 queue.declare q x-max-length=1", "a.1 confirm.select", "a.1 basic.publish q body=m1")
    assert {"full", "confirms"} <= columns(*full, "a.1 basic.publish q body=m2")


def test_the_rows_are_methods_with_their_arguments() -> None:
    rows = {
        "a.1 basic.nack 1 multiple": "basic.nack no requeue, multiple",
        "a.1 basic.recover requeue=false": "basic.recover no requeue",
        "a.1 basic.qos 0": "basic.qos 0",
        "a.1 basic.publish p priority=9 body=m": "basic.publish of a priority above the maximum",
        "a.1 queue.declare p passive": "queue.declare passive",
        "a.1 basic.consume p exclusive": "basic.consume exclusive",
    }
    for line, row in rows.items():
        commands = map(parse_command, ("a.1 queue.declare p durable x-max-priority=4", line))
        assert {cell.row for cell in met(commands)[-1]} == {row}


def test_what_is_closed_or_no_method_of_the_table_meets_nothing() -> None:
    closed = ("a.1 queue.declare q", "a.1 queue.declare missing passive", "a.1 basic.get q")
    assert met(map(parse_command, closed))[-1] == ()
    assert met([parse_command("a.1 exchange.declare x direct")]) == [()]


def test_the_table_of_another_product_has_what_its_features_are() -> None:
    def shown(dialect: str) -> set[str]:
        return {part for cell in all_cells([dialect_named(dialect)]) for part in (cell.row, cell.column)}

    ones_own = {"active alone", "priorities", "stream", "full", "basic.consume replies", "basic.publish of a priority"}
    assert ones_own <= shown(ALL) and "quorum" not in shown(ALL)
    assert ones_own.isdisjoint(shown("amqp-0-9-1"))
    assert ones_own & shown("amqp-0-9-1+x-max-length") == {"full"}


@pytest.mark.parametrize("dialect", [*DIALECTS, ALL])
def test_what_is_met_is_in_the_table(dialect: str) -> None:
    law = dialect_named(dialect)
    table = list(all_cells([law]))
    assert len(table) == len(set(table)) > 600
    found = Counter(cell for made in make_round(law, 1, 0) for cells in met(made.commands, dialect) for cell in cells)
    assert len(found) > 100 and set(found) <= set(table)


#: Cells that the issue of a broker's developer named, and chance left out; in the dialect whose brokers have them.
NAMED = [
    ("rabbitmq-4.3", "RECOVER", "basic.recover no requeue", "by both"),
    ("rabbitmq-4.3", "RECOVER", "basic.recover no requeue", "several out"),
    ("amqp-0-9-1", "RECOVER", "basic.recover no requeue", "by consumer"),
    ("rabbitmq-4.3", "QOS", "basic.qos n", "after a recover"),
    ("rabbitmq-4.0", "QOS", "basic.qos n, global", "after a recover"),
    ("rabbitmq-4.3", "SAC", "basic.consume to be acknowledged", "active alone"),
    ("rabbitmq-4.3", "SAC", "basic.recover requeue", "active and waiting"),
    ("rabbitmq-4.3", "QOS", "basic.qos 0", "one here"),
    ("rabbitmq-4.3", "QOS", "basic.qos 0, global", "one here"),
    ("rabbitmq-4.3", "QOS", "basic.consume to be acknowledged", "another limit since"),
    ("rabbitmq-4.3", "PRIORITY", "basic.publish of a priority above the maximum", "elsewhere"),
    ("rabbitmq-4.3", "REPLY", "basic.publish to an address of replies", "replies under one tag"),
    ("rabbitmq-4.3", "REPLY", "basic.publish to an address of replies", "replies under two tags"),
    (ALL, "RECOVER", "basic.recover no requeue", "by both"),
    (ALL, "QOS", "basic.qos n", "after a recover"),
    (ALL, "SAC", "basic.consume to be acknowledged", "active alone"),
    (ALL, "QOS", "basic.qos 0", "one here"),
    (ALL, "PRIORITY", "basic.publish of a priority above the maximum", "elsewhere"),
    (ALL, "REPLY", "basic.publish to an address of replies", "replies under one tag"),
]


@pytest.mark.parametrize(("dialect", "area", "row", "column"), NAMED)
def test_scenarios_meet_what_chance_leaves_out(dialect: str, area: str, row: str, column: str) -> None:
    found = (
        (cell.row, cell.column)
        for scenario in selected([area], dialect)
        for cells in met(scenario.commands, dialect)
        for cell in cells
    )
    assert (row, column) in found


def test_the_search_prefers_what_its_round_has_met_least(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same action that takes any of its commands meets less."""
    law = dialect_named(NEWEST)

    def number_met() -> int:
        made = [each for number in range(8) for each in make_round(law, 1, number, themes=("traffic", "consumers"))]
        return len({cell for each in made for cells in met(each.commands) for cell in cells})

    preferring = number_met()
    monkeypatch.setattr(SeldomActions, "_gain", lambda self, command: 0.0)
    assert preferring > number_met()
