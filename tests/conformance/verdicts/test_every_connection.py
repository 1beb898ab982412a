"""What is the same on every connection is judged in the scenarios that are about it, and nowhere else in a run."""

from __future__ import annotations

import pytest

from amqpspec.conformance.scenarios.scenario_files import all_scenarios
from amqpspec.conformance.traces.trace_row import TraceRow
from amqpspec.conformance.verdicts.every_connection import REQUIREMENTS, is_judged_elsewhere
from amqpspec.model.promises.verdict import Failure, Shape

PROPERTIES = Failure("CONN-025", Shape.WRONG_ARGUMENT, "connection.start server-properties", "", "", (), ())


def start(**values: object) -> TraceRow:
    row: TraceRow = {"kind": "start", "sequence": "s", "seed": 1}
    row.update(values)  # type: ignore[typeddict-item]
    return row


def test_another_sequence_of_the_run_leaves_it_to_its_own_scenario() -> None:
    assert is_judged_elsewhere(start(), PROPERTIES)
    assert is_judged_elsewhere(start(requirement="ACK-001"), PROPERTIES)
    assert not is_judged_elsewhere(start(requirement="CONN-025"), PROPERTIES)


@pytest.mark.parametrize("of_no_run", [{"seed": None}, {"repeats": "scenario CONN-025"}])
def test_what_belongs_to_no_run_is_judged_whole(of_no_run: dict[str, object]) -> None:
    assert not is_judged_elsewhere(start(**of_no_run), PROPERTIES)


def test_other_failures_stay() -> None:
    missing = Failure("CONN-001", Shape.MISSING, "connection.start", "", "", (), ())
    assert not is_judged_elsewhere(start(), missing)


def test_each_has_a_scenario_of_its_own() -> None:
    assert {scenario.requirement for scenario in all_scenarios()} >= REQUIREMENTS
