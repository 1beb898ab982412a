"""Connections that a broker keeps after a run are told where an operator can count them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from amqpspec.conformance import connections_left
from amqpspec.conformance.connections_left import counted, left_open
from amqpspec.conformance.session.declared import Declared
from amqpspec.model.protocol.methods import Method, OperatorAction
from amqpspec.reports.json_report import render_json
from amqpspec.reports.overview import whole_lines
from amqpspec.targets.brokers.command_operator import COUNT_CONNECTIONS, CommandOperator
from amqpspec.targets.brokers.operator import PeerOf
from amqpspec.targets.brokers.rabbitmqctl_operator import RabbitmqctlOperator
from amqpspec.targets.errors import OperatorError
from tests.reports.made_up import result


class _Counts:
    """An operator who counts what it is told to; the last number for ever."""

    def __init__(self, *numbers: int | None) -> None:
        self._numbers = list(numbers)

    def carry_out(self, actions: Sequence[OperatorAction], peer_of: PeerOf) -> None:
        raise NotImplementedError

    def undo(self, actions: Sequence[OperatorAction]) -> None:
        raise NotImplementedError

    def connections(self) -> int | None:
        return self._numbers.pop(0) if len(self._numbers) > 1 else self._numbers[0]


@pytest.mark.parametrize(
    ("numbers", "before", "left"),
    [((2,), 2, 0), ((5, 3, 2), 2, 0), ((5,), 2, 3), ((1,), 2, 0), ((5,), None, 0), ((None,), 2, 0)],
)
def test_a_broker_has_some_time_to_let_them_go(
    numbers: tuple[int | None, ...], before: int | None, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections_left, "PATIENCE", 0.05)
    monkeypatch.setattr(connections_left, "PAUSE", 0.01)
    assert left_open(_Counts(*numbers), before) == left


def test_nobody_can_tell_where_there_is_no_operator() -> None:
    assert counted(None) is None


def test_they_are_told() -> None:
    run = replace(result(failures=False, undecided=False), connections_left=2)
    assert "Ended by this run, and still open on the broker's side: 2 connections" in whole_lines(run)
    assert json.loads(render_json(run))["connections_left"] == 2


def test_a_command_counts_them(tmp_path: Path) -> None:
    def operator(program: str) -> CommandOperator:
        return CommandOperator({COUNT_CONNECTIONS: (sys.executable, "-c", program)}, 5672, tmp_path, {})

    assert operator("print(7)").connections() == 7
    assert CommandOperator({}, 5672, tmp_path, {}).connections() is None
    with pytest.raises(OperatorError, match=re.escape("'many' is not a number")):
        operator("print('many')").connections()
    assert counted(operator("print('many')")) is None


@pytest.mark.parametrize(("answer", "number"), [("{amqpspec_connections,3}\n", 3), ("{error,undef}", None)])
def test_rabbitmq_is_asked_on_its_node(answer: str, number: int | None) -> None:
    assert RabbitmqctlOperator(lambda expression: answer).connections() == number


def test_what_the_broker_never_answered_is_not_taken_to_be_there() -> None:
    declared = Declared()
    for name in ("q", "r"):
        declared.sent(Method("a", 1, "queue.declare", {"queue": name}, sent=True))
    declared.received(Method("a", 1, "queue.declare-ok", {"queue": "q"}, sent=False))
    assert list(declared.unanswered) == [("queue", "r")]
