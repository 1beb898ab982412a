"""What cannot be run on a target: not applicable, with the reason, in the result and in no sequence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from amqpspec.conformance.language.command_file import CommandFile, parse_command_file
from amqpspec.conformance.run import Runner
from amqpspec.conformance.run_options import RunOptions
from amqpspec.conformance.scenarios.applicability import (
    NO_OPERATOR,
    applicable,
    cannot_be_broken,
    left_out_of_search,
    needs_operator,
    not_applicable,
    obstacle,
)
from amqpspec.conformance.scenarios.scenario_files import selected
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter
from amqpspec.conformance.verdicts.judgement import RequirementVerdict, RunResult, TargetDescription
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.methods import FAULTS
from amqpspec.targets.brokers.embedded_again import EmbeddedAgain
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.brokers.single_node import BROKER_FAULTS
from amqpspec.targets.drivers.library import Library

#: Requirements that nobody can show without the operator of the broker.
OPERATORS = {
    "CANCEL-018", "CAP-003", "CAP-004", "CONN-009", "CONN-023", "DURABLE-017",
    "PERMISSION-001", "PERMISSION-002", "PERMISSION-003",
    "TIMEOUT-007", "TIMEOUT-025", "TIMEOUT-026", "TIMEOUT-028", *(f"POLICY-{number:03}" for number in range(1, 15)),
}  # fmt: skip


def scenario(*lines: str) -> CommandFile:
    return parse_command_file("\n".join(("@requirement ACK-001", *lines)))[0]


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running:
        yield running


def under_test(broker: EmbeddedBroker, operated: bool, dialect: str = "rabbitmq-4.3") -> TargetUnderTest:
    description = TargetDescription("embedded", "amqpspec", "0", dialect)
    operator, faults = (broker.operator(), broker.faults()) if operated else (None, None)
    return TargetUnderTest(broker.address, description, 2.0, operator, faults=faults)


def run(target: TargetUnderTest, directory: Path, *only: str) -> RunResult:
    with TraceWriter(directory / "trace.jsonl") as trace:
        return Runner(target, trace, RunOptions(only, sequences=0)).run()


def verdict(result: RunResult, requirement: str) -> RequirementVerdict:
    (found,) = (each for each in result.requirements if each.id == requirement)
    return found


def test_the_operator_is_needed_for_what_only_he_can_do() -> None:
    assert needs_operator(scenario("a.1 basic.qos 1", "broker operator.set-alarm").commands)
    assert not needs_operator(scenario("a.1 basic.qos 1", "broker clock.wait 10").commands)


def test_what_needs_him_is_left_out_where_there_is_none(broker: EmbeddedBroker) -> None:
    without, operated = under_test(broker, False), under_test(broker, True)
    files = [scenario("a.1 basic.qos 1"), scenario("broker operator.set-alarm")]
    assert obstacle(files[1], without) == NO_OPERATOR
    assert applicable(files, without) == files[:1]
    assert applicable(files, operated) == files


def test_only_requirements_without_any_scenario_left_are_not_applicable(broker: EmbeddedBroker) -> None:
    one_node = not_applicable(under_test(broker, True))
    needing_more = {id for id, reason in one_node.items() if reason == "needs node 2, which this target does not have"}
    assert one_node.keys() == needing_more
    assert "CANCEL-017" in needing_more and {id[:7] for id in needing_more} == {"CANCEL-", "CLUSTER"}
    reasons = not_applicable(under_test(broker, False))
    assert {id for id, reason in reasons.items() if reason == NO_OPERATOR} == OPERATORS
    left = {each.requirement for each in applicable(selected([], "rabbitmq-4.3"), under_test(broker, False))}
    assert not left & OPERATORS


def test_the_verdict_is_not_applicable_with_the_reason(broker: EmbeddedBroker, tmp_path: Path) -> None:
    result = run(under_test(broker, False), tmp_path, "PERMISSION-001", "GET-002")
    left_out = RequirementVerdict("PERMISSION-001", Verdict.NOT_APPLICABLE, 0, NO_OPERATOR)
    assert verdict(result, "PERMISSION-001") == left_out
    assert verdict(result, "GET-002").verdict is Verdict.PASS
    assert result.sequences > 0 and result.exit_code == 0


def test_with_an_operator_they_are_run(broker: EmbeddedBroker, tmp_path: Path) -> None:
    result = run(under_test(broker, True), tmp_path, "PERMISSION", "CONN-023", "CAP-004")
    assert {id: verdict(result, id).verdict for id in ("PERMISSION-001", "CONN-023", "CAP-004")} == {
        "PERMISSION-001": Verdict.PASS, "CONN-023": Verdict.PASS, "CAP-004": Verdict.PASS
    }  # fmt: skip


# ------------------------------------------------------------------------------------------------------- faults


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("broker.kill", "needs broker.kill, which this target does not offer"),
        ("network.cut node=1", "needs network.cut, which this target does not offer"),
        ("network.cut connection=a", None),
    ],
)
def test_faults_that_nobody_offers_are_not_applicable_but_those_of_connections(
    broker: EmbeddedBroker, line: str, reason: str | None
) -> None:
    assert obstacle(scenario(line), under_test(broker, operated=False)) == reason


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("broker.kill", None),
        ("broker.kill node=2", "needs node 2, which this target does not have"),
        ("queue.transfer-leader q node=1", "needs queue.transfer-leader, which this target does not offer"),
    ],
)
def test_what_is_offered_is_applicable_to_the_nodes_that_there_are(
    broker: EmbeddedBroker, line: str, reason: str | None
) -> None:
    assert obstacle(scenario(line), under_test(broker, operated=True)) == reason


def test_faults_that_are_done_to_another_one_are_applicable(broker: EmbeddedBroker) -> None:
    target = replace(under_test(broker, operated=False), faults_elsewhere=("broker.kill",))
    assert obstacle(scenario("broker.kill"), target) is None
    assert obstacle(scenario("broker.pause"), target) == "needs broker.pause, which this target does not offer"


def test_faults_are_not_done_to_the_connections_of_a_library(broker: EmbeddedBroker) -> None:
    library = Library("pika", "1")
    target = replace(under_test(broker, operated=True), library=library)
    for line in ("broker.kill", "network.cut connection=a"):
        assert obstacle(scenario(line), target) == "faults are not done to connections of pika"


def test_a_search_leaves_faults_out_where_others_meet_them(broker: EmbeddedBroker) -> None:
    target = under_test(broker, operated=True)
    assert left_out_of_search(target) == FAULTS
    assert left_out_of_search(target, breaks=True) == frozenset()
    assert left_out_of_search(replace(target, own_broker=EmbeddedAgain("embedded"))) == frozenset()


def test_what_a_search_cannot_break(broker: EmbeddedBroker) -> None:
    target = replace(under_test(broker, operated=True), faults=broker.faults())
    assert cannot_be_broken(target) == ""
    assert cannot_be_broken(replace(target, faults=None, faults_elsewhere=BROKER_FAULTS)) == ""
    assert cannot_be_broken(replace(target, faults=None)) == "this target does not offer broker.kill"
    cluster = SimpleNamespace(offered=BROKER_FAULTS, nodes=(1, 2, 3))
    assert "this is a cluster" in cannot_be_broken(replace(target, faults=cluster))  # type: ignore[arg-type]
    library = replace(target, library=Library("pika", "1"))
    assert cannot_be_broken(library) == "faults are not done to connections of pika"
