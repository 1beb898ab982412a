"""A run in several processes tells the story that it tells in one."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing import forkserver
from pathlib import Path
from types import SimpleNamespace

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.run import Runner
from amqpspec.conformance.run_options import RunOptions
from amqpspec.conformance.scenarios.scenario_files import all_scenarios
from amqpspec.conformance.session.command_sequence import CommandSequence, Place
from amqpspec.conformance.session.patience import ENOUGH_ANSWERS, MANY_IN_VAIN, Patience
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter, read_trace, sequences
from amqpspec.conformance.verdicts.events import Event, SequenceFinished, SequenceStarted
from amqpspec.conformance.verdicts.judgement import RunResult, TargetDescription
from amqpspec.conformance.workers import AHEAD, Round, SeveralProcesses, WorkerLost, begin_loading, workers_for
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.methods import TraceEvent
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.client.wire import WireClient
from amqpspec.targets.clock import FastForwardClock
from amqpspec.targets.errors import TargetError
from tests.planted import WHAT, BreakingClient

DESCRIPTION = TargetDescription("embedded", "amqpspec", "0", "rabbitmq-4.3")


def under_test(broker: EmbeddedBroker) -> TargetUnderTest:
    return TargetUnderTest(broker.address, DESCRIPTION, operator=broker.operator())


def run(directory: Path, jobs: int) -> tuple[RunResult, list[Event]]:
    told: list[Event] = []
    options = RunOptions(
        only=("ACK-00", "PERMISSION-001"), seed=4, sequences=12, steps=5, jobs=jobs, shrinking_time=0.0
    )
    with EmbeddedBroker() as broker, TraceWriter(directory / "trace.jsonl") as trace:
        result = Runner(under_test(broker), trace, options, [told.append]).run()
    return result, told


def test_the_story_is_the_same(tmp_path: Path) -> None:
    alone, told_alone = run(tmp_path / "one", 1)
    together, told_together = run(tmp_path / "two", 2)
    assert (alone.sequences, alone.exit_code, alone.failures) == (together.sequences, 0, ())

    def story(told: list[Event]) -> list[tuple[str, Verdict]]:
        return [
            (each.judgement.sequence, each.judgement.verdict) for each in told if isinstance(each, SequenceFinished)
        ]

    assert story(told_alone) == story(told_together)
    begun = {each.sequence for each in told_together if isinstance(each, SequenceStarted)}
    assert begun == {name for name, _ in story(told_alone)}
    assert commands_in(tmp_path / "one") == commands_in(tmp_path / "two"), "and no row is torn"


def commands_in(directory: Path) -> dict[str, list[str]]:
    recorded = sequences(read_trace(directory))
    return {rows[0]["sequence"]: [row["text"] for row in rows if row["kind"] == "command"] for rows in recorded}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with EmbeddedBroker() as broker, TraceWriter(tmp_path / "trace.jsonl") as trace:
        yield Place(under_test(broker), trace)


def sequence(name: str, *lines: str) -> CommandSequence:
    return CommandSequence(name, tuple(map(parse_command, lines)))


def test_what_the_operator_takes_part_in_stays_where_the_operator_is(place: Place) -> None:
    scenario = next(each for each in all_scenarios() if each.name.startswith("PERMISSION-002"))
    with SeveralProcesses(place, RunOptions(jobs=2), lambda: False) as workers:
        (outcome,) = workers.carried_out([CommandSequence("operated", scenario.commands)])
    assert outcome.judgement.verdict is Verdict.PASS


def test_a_failure_knows_after_how_many_commands_it_showed(tmp_path: Path) -> None:
    with EmbeddedBroker(fault="ack-acks-nothing") as broker, TraceWriter(tmp_path / "trace.jsonl") as trace:
        outcome = Place(under_test(broker), trace).carry_out(
            sequence(
                "one", "a.1 queue.declare q", "a.1 basic.publish q body=m", "a.1 basic.get q", "a.1 basic.ack 1",
                "a.1 basic.ack 1", "a.1 queue.declare r",
            )
        )  # fmt: skip
    failure = outcome.judgement.failures[0]
    assert [str(each) for each in outcome.commands_until(failure.identity)][-1] == "a.1 basic.ack 1"


class Late(WireClient):
    """As if every answer took a second."""

    def receive(self, timeout: float) -> TraceEvent | None:
        return None if 0 < timeout < 1 else super().receive(timeout)


def test_a_slow_sequence_is_waited_for_as_long_as_was_said_at_first(place: Place) -> None:
    patience = Patience(place.target.deadline)
    for _ in range(ENOUGH_ANSWERS):
        patience.waited(0.001)
    for _ in range(MANY_IN_VAIN):
        patience.waited_in_vain()
    late = replace(place, target=replace(place.target, driver=Late), patience=patience)
    plain = sequence("plain", "a.1 queue.declare q")
    overdue = [late.carry_out(each).overdue for each in (plain, replace(plain, name="slow", slow=True))]
    assert overdue[0] > 0
    assert overdue[1] == 0


def test_nothing_is_begun_once_it_is_enough(place: Place) -> None:
    taken: list[str] = []
    handed_out: list[str] = []

    def many() -> Iterator[CommandSequence]:
        for number in range(4 * AHEAD):
            handed_out.append(f"s{number}")
            yield sequence(f"s{number}", "a.1 queue.declare q")

    with SeveralProcesses(place, RunOptions(jobs=2), lambda: bool(taken)) as workers:
        for outcome in workers.carried_out(many()):
            taken.append(outcome.sequence.name)
    assert len(handed_out) <= 2 * AHEAD + 2
    assert 1 <= len(taken) <= len(handed_out)
    assert taken == handed_out[: len(taken)], "what had been begun is taken"


def test_a_target_that_is_lost_ends_the_run(tmp_path: Path) -> None:
    with EmbeddedBroker() as broker:
        target = TargetUnderTest(broker.address, DESCRIPTION)
    with (
        TraceWriter(tmp_path / "trace.jsonl") as trace,
        SeveralProcesses(Place(target, trace), RunOptions(jobs=2), lambda: False) as workers,
        pytest.raises(TargetError),
    ):
        list(workers.carried_out([sequence("lost", "a.1 queue.declare q")]))


def test_what_nobody_has_carried_out_when_a_run_is_ended_has_not_begun(place: Place) -> None:
    many = [sequence(f"s{number}", "a.1 queue.declare q", "broker clock.wait 50") for number in range(40)]
    carried_out: list[str] = []
    with pytest.raises(TargetError):  # noqa: SIM117
        with SeveralProcesses(place, RunOptions(jobs=2), lambda: False) as workers:
            for outcome in workers.carried_out(many):
                carried_out.append(outcome.sequence.name)
                raise TargetError("lost")
    assert "s39" in workers.not_begun
    assert not set(carried_out) & set(workers.not_begun)


def test_a_worker_that_is_ended_from_outside_is_told_of_in_a_line(place: Place) -> None:
    with pytest.raises(WorkerLost, match="ended from outside"):  # noqa: SIM117
        with SeveralProcesses(place, RunOptions(jobs=2), lambda: False) as workers:
            for _ in workers.carried_out(sequence(f"s{number}", "a.1 queue.declare q") for number in range(50)):
                for worker in multiprocessing.active_children():
                    worker.kill()


def test_and_one_that_is_ended_while_it_has_nothing_to_do(place: Place) -> None:
    with pytest.raises(WorkerLost, match="ended from outside"):  # noqa: SIM117
        with SeveralProcesses(place, RunOptions(jobs=1), lambda: False) as workers:
            list(workers.carried_out([sequence("s", "a.1 queue.declare q")]))
            for worker in multiprocessing.active_children():
                worker.kill()
                worker.join()
            for number in range(50):  # until the pool has noticed
                list(workers.made([Round(number, 9)]))


def test_an_interruption_deletes_what_was_made(tmp_path: Path) -> None:
    with EmbeddedBroker() as broker, TraceWriter(tmp_path / "trace.jsonl") as trace:
        with pytest.raises(KeyboardInterrupt):  # noqa: SIM117
            with SeveralProcesses(Place(under_test(broker), trace), RunOptions(jobs=2), lambda: False) as workers:
                (made,) = workers.made([Round(number, 9) for number in range(4)])
                for _ in workers.carried_out(sequence for each in made for sequence, _ in each):
                    raise KeyboardInterrupt
        assert not broker.responder.own.broker.queues
    assert multiprocessing.active_children() == []


def test_who_skips_the_time_stays_in_the_broker_s_process(tmp_path: Path) -> None:
    clock = FastForwardClock()
    with EmbeddedBroker(clock=clock) as broker, TraceWriter(tmp_path / "trace.jsonl") as trace:
        target = TargetUnderTest(broker.address, DESCRIPTION, clock=clock)
        workers = workers_for(Place(target, trace), RunOptions(jobs=4), lambda: False)
    assert not isinstance(workers, SeveralProcesses)


@pytest.mark.parametrize("daemon", [False, True])
def test_nothing_is_loaded_where_there_can_be_no_workers(daemon: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[bool] = []
    monkeypatch.setattr(forkserver, "ensure_running", lambda: begun.append(True))
    monkeypatch.setattr(multiprocessing, "current_process", lambda: SimpleNamespace(daemon=daemon))
    begin_loading()
    assert bool(begun) is not daemon


def test_an_error_of_the_suite_in_a_worker_costs_one_sequence(place: Place) -> None:
    breaking = replace(place, target=replace(place.target, driver=BreakingClient))
    asked = [
        sequence("one", "a.1 queue.declare q"),
        sequence("two", "a.1 queue.declare q", "a.1 basic.recover", "a.1 queue.purge q"),
        sequence("three", "a.1 queue.declare q"),
    ]
    with SeveralProcesses(breaking, RunOptions(jobs=2), lambda: False) as workers:
        judged = {each.sequence.name: each.judgement for each in workers.carried_out(asked)}
    assert [judged[name].verdict for name in ("one", "two", "three")] == [
        Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.PASS,
    ]  # fmt: skip
    error = judged["two"].suite_error
    assert error is not None and WHAT in error and "planted.py:" in error


def test_a_worker_that_cannot_begin_says_why(place: Place) -> None:
    """What it is given cannot be used, so that each sequence of it is undecided."""
    with SeveralProcesses(place, RunOptions(jobs=1, pace=None), lambda: False) as workers:  # type: ignore[arg-type]
        (outcome,) = workers.carried_out([sequence("one", "a.1 queue.declare q")])
    assert outcome.judgement.suite_error is not None and outcome.judgement.verdict is Verdict.INCONCLUSIVE


def test_what_cannot_be_sent_back_costs_its_sequence(place: Place) -> None:
    with SeveralProcesses(place, RunOptions(jobs=1), lambda: False) as workers:
        unsendable = replace(sequence("one", "a.1 queue.declare q"), repeats=lambda: None)  # type: ignore[arg-type]
        outcomes = list(workers.carried_out([unsendable, sequence("two", "a.1 queue.declare q")]))
    assert [each.judgement.verdict for each in outcomes] == [Verdict.INCONCLUSIVE, Verdict.PASS]
