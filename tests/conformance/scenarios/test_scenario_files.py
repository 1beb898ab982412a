"""The scenarios that come with the suite: what they are for, and that the model's own broker passes them.

Each is run with a session, as `amqpspec run` does, on the embedded broker in every dialect that it holds in, and has to
make its requirement count there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from amqpspec.conformance.language.command_file import CommandFile
from amqpspec.conformance.scenarios import scenario_files
from amqpspec.conformance.scenarios.scenario_files import CHAPTERS, DIRECTORY, all_scenarios, selected, sequence_name
from amqpspec.conformance.session.nodes import node_of
from amqpspec.conformance.session.session import Session
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter
from amqpspec.conformance.verdicts.blame import IN_THE_TEXT
from amqpspec.conformance.verdicts.judgement import SequenceJudgement, TargetDescription
from amqpspec.model.promises.dialects import DIALECTS, dialect_named
from amqpspec.model.promises.registry import applies, requirements
from amqpspec.model.promises.verdict import Verdict
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.clock import FastForwardClock

#: Areas of which every entry has a scenario, but for the ones named here with the reason.
WHOLE_AREAS = (
    "ack", "binding", "cancel", "capabilities", "channel", "cluster", "confirm", "connection", "consume",
    "consumer-priority", "direct-reply", "dlx", "durability", "exchange", "get", "overflow", "permission",
    "publish-routing", "qos", "queue", "quorum", "recover", "sac", "stream", "timeout", "ttl", "tx",
)  # fmt: skip

_OF_EXCHANGES = "some begin with exchange.bind, which the bare text does not have"
_ANSWERS_FIRST = "the embedded broker answers tx.commit before it reads on"

#: (requirement, dialect): scenarios that show nothing there although the entry holds in the dialect, and why.
SHOWS_NOTHING: dict[tuple[str, str], str] = {
    ("CANCEL-018", "rabbitmq-4.0"): "is free there, and the embedded broker does what 4.0.5 does",
    ("EXCHANGE-001", "amqp-0-9-1"): _OF_EXCHANGES,
    ("EXCHANGE-007", "amqp-0-9-1"): _OF_EXCHANGES,
    ("PUBLISH-001", "amqp-0-9-1"): "begins with confirm.select, which the bare text does not have",
    ("PUBLISH-015", "amqp-0-9-1"): "begins with confirm.select, which the bare text does not have",
    ("PUBLISH-016", "amqp-0-9-1"): "begins with confirm.select, which the bare text does not have",
    ("TX-010", "rabbitmq-3"): _ANSWERS_FIRST,
    ("TX-010", "rabbitmq-4.0"): _ANSWERS_FIRST,
    ("TX-010", "rabbitmq-4.3"): _ANSWERS_FIRST,
}


def test_a_scenario_is_where_it_is_looked_for() -> None:
    for path in sorted(DIRECTORY.rglob("*.amqp")):
        for scenario in (each for each in all_scenarios() if each.name == path.stem):
            # ID.amqp, and ID-words.amqp where one sequence cannot show all of it
            id = scenario.requirement or ""
            assert path.stem == id or path.stem.startswith(f"{id}-"), path
            entry = requirements().get(id)
            assert entry is not None, f"{path}: no such requirement"
            assert path.parent.parent == DIRECTORY
            assert entry.area.startswith(path.parent.name), f"{path} is in another chapter"
            assert scenario.title.endswith("."), f"{path} needs a title that is a sentence"


def test_chapters_are_run_in_their_order() -> None:
    assert {path.parent.name for path in DIRECTORY.rglob("*.amqp")} == set(CHAPTERS)
    requirement_order = [scenario.requirement or "" for scenario in all_scenarios()]
    assert requirement_order.index("PUBLISH-001") < requirement_order.index("QUEUE-001")
    assert requirement_order.index("QUEUE-001") < requirement_order.index("CANCEL-001")


def test_names_are_unique_and_every_file_is_read() -> None:
    names = [sequence_name(scenario) for scenario in all_scenarios()]
    assert len(names) == len(set(names))
    assert {scenario.name for scenario in all_scenarios()} == {path.stem for path in DIRECTORY.rglob("*.amqp")}
    strays = [path for path in DIRECTORY.rglob("*") if path.is_file() and path.suffix not in (".amqp", ".py", ".pyc")]
    assert strays == []


def test_queue_types_are_those_of_the_requirement() -> None:
    for scenario in all_scenarios():
        entry = requirements()[scenario.requirement or ""]
        if scenario.queue_type is not None and entry.queue_types != ("any",):
            assert scenario.queue_type in entry.queue_types, scenario.name


@pytest.mark.parametrize("area", WHOLE_AREAS)
def test_every_entry_of_the_core_areas_has_a_scenario(area: str) -> None:
    entries = {id for id, entry in requirements().items() if entry.area == area}
    have = {scenario.requirement for scenario in all_scenarios()} & entries
    assert entries - have == set()


@pytest.mark.parametrize(
    ("prefixes", "expected"),
    [
        (["QOS-003"], {"QOS-003"}),
        (["qos-003", " ACK-001 "], {"QOS-003", "ACK-001"}),
        (["TIMEOUT-999"], set()),
    ],
)
def test_selection(prefixes: list[str], expected: set[str]) -> None:
    assert {scenario.requirement for scenario in selected(prefixes, "rabbitmq-4.3")} == expected


def test_selection_by_dialect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ack").mkdir()
    (tmp_path / "ack" / "ACK-001.amqp").write_text("@requirement ACK-001\na.1 basic.qos 1\n")
    (tmp_path / "ack" / "ACK-017.amqp").write_text(
        "@requirement ACK-017\n@queue-types classic quorum\n@dialects rabbitmq-4.0 rabbitmq-4.3\na.1 basic.qos 1\n"
    )
    monkeypatch.setattr(scenario_files, "DIRECTORY", tmp_path)
    scenario_files._of_the_suite.cache_clear()
    try:
        names = {dialect: [sequence_name(each) for each in selected([], dialect)] for dialect in DIALECTS}
    finally:
        scenario_files._of_the_suite.cache_clear()
    everywhere = ["scenario ACK-001"]
    newer = [*everywhere, "scenario ACK-017 classic", "scenario ACK-017 quorum"]
    assert names == {
        "amqp-0-9-1": everywhere, "rabbitmq-3": everywhere, "rabbitmq-4.0": newer, "rabbitmq-4.3": newer
    }  # fmt: skip


# --------------------------------------------------------------------------------------------- running them


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scenarios")


#: What is run once for a dialect, one worker looks at.
IN_EACH_DIALECT = pytest.mark.parametrize(
    "dialect", [pytest.param(name, marks=pytest.mark.together(f"scenarios, {name}")) for name in sorted(DIALECTS)]
)


@dataclass(frozen=True)
class Run:
    """`outcomes`: by sequence name. `left`: queues and exchanges that the broker has at the end, and had not before."""

    outcomes: dict[str, tuple[CommandFile, SequenceJudgement]]
    left: list[str]


def _tries(scenario: CommandFile) -> int:
    """What is sent without waiting may not be under way together, where the machine is busy with something else."""
    return 3 if any(command.in_flight for command in scenario.commands) else 1


def _is_for_one_node(scenario: CommandFile) -> bool:
    return all(node_of(each.connection) == 1 for each in scenario.commands)


@cache
def run_all(dialect: str, directory: Path) -> Run:
    """Every scenario of the dialect on one embedded broker. What they wait for, they skip."""
    clock = FastForwardClock()
    with (
        EmbeddedBroker(dialect_named(dialect), clock=clock) as broker,
        TraceWriter(directory / f"{dialect}.jsonl") as trace,
    ):
        description = TargetDescription("embedded", "amqpspec", "0", dialect)
        target = TargetUnderTest(
            broker.address, description, deadline=30.0, operator=broker.operator(), clock=clock, faults=broker.faults()
        )

        def carry_out(scenario: CommandFile, tries: int) -> SequenceJudgement:
            name, commands = sequence_name(scenario), scenario.commands
            with Session(target, trace, name, requirement=scenario.requirement, planned=commands) as session:
                for command in scenario.commands:
                    session.run(command)
            judgement = session.finish()
            missed = judgement.verdict is Verdict.PASS and not judgement.exercised.get(scenario.requirement or "")
            return carry_out(scenario, tries - 1) if missed and tries > 1 else judgement

        # the last ones change what others go by
        scenarios = sorted(filter(_is_for_one_node, selected([], dialect)), key=lambda each: each.alone)
        outcomes = {sequence_name(each): (each, carry_out(each, _tries(each))) for each in scenarios}
        model = broker.responder.own.broker
        exchanges = [name for name in model.exchanges if name and not name.startswith("amq.")]
        return Run(outcomes, [*model.queues, *exchanges])


def expected_to_count(dialect: str, directory: Path) -> Iterator[tuple[CommandFile, SequenceJudgement]]:
    for scenario, judgement in run_all(dialect, directory).outcomes.values():
        entry = requirements()[scenario.requirement or ""]
        if applies(entry, dialect, scenario.queue_type):
            yield scenario, judgement


@IN_EACH_DIALECT
def test_the_embedded_broker_passes_every_scenario(dialect: str, directory: Path) -> None:
    outcomes = run_all(dialect, directory).outcomes
    assert len(outcomes) > 100
    wrong = {
        name: judgement.failures or judgement.reason
        for name, (_, judgement) in outcomes.items()
        if judgement.verdict is not Verdict.PASS
    }
    assert wrong == {}


def said_alike(requirement: str) -> list[str]:
    """It, and what has the same as a rule of its own, for which a scenario may have been written."""
    return [requirement, *(own for own, other in IN_THE_TEXT.items() if other == requirement)]


@IN_EACH_DIALECT
def test_every_scenario_makes_its_requirement_count(dialect: str, directory: Path) -> None:
    nothing = {
        (scenario.requirement, dialect)
        for scenario, judgement in expected_to_count(dialect, directory)
        if not any(judgement.exercised.get(id) for id in said_alike(scenario.requirement or ""))
    }
    assert nothing == {key for key in SHOWS_NOTHING if key[1] == dialect}


@IN_EACH_DIALECT
def test_what_is_counted_is_registered(dialect: str, directory: Path) -> None:
    counted = {id for _, judgement in run_all(dialect, directory).outcomes.values() for id in judgement.exercised}
    assert len(counted) > 80
    assert counted - set(requirements()) == set()


@IN_EACH_DIALECT
def test_nothing_is_left_on_the_broker(dialect: str, directory: Path) -> None:
    """Every queue and exchange that a scenario declares is deleted again, errors and lost connections or not."""
    assert run_all(dialect, directory).left == []
