"""Scenarios that wait run beside the others, and those that want to be alone run alone."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from amqpspec.conformance import run
from amqpspec.conformance.language.command_file import CommandFile, parse_command_file
from amqpspec.conformance.run import Runner
from amqpspec.conformance.run_options import RunOptions
from amqpspec.conformance.session.side_by_side import under_way
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter, read_trace, sequences
from amqpspec.conformance.verdicts.events import Event, SequenceFinished, SequenceStarted
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.verdict import Verdict
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.clock import COMMON, FastForwardClock
from amqpspec.targets.errors import TargetUnreachable

WAITS = "@requirement QUEUE-001\n@waits\na.1 queue.declare q\nbroker clock.wait 300\na.1 queue.declare q passive\n"
PLAIN = "@requirement QUEUE-001\na.1 queue.declare q\n"
ALONE = "@requirement QUEUE-001\n@alone\na.1 queue.declare q\n"


def scenarios() -> list[CommandFile]:
    texts = {"waits-1": WAITS, "waits-2": WAITS, "plain": PLAIN, "alone": ALONE, "plain-2": PLAIN}
    return [file for name, text in texts.items() for file in parse_command_file(text, name=name)]


def test_waiting_ones_overlap_and_lonely_ones_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "selected", lambda *_: scenarios())
    told: list[Event] = []
    with EmbeddedBroker() as broker, TraceWriter(tmp_path / "trace.jsonl") as trace:
        target = TargetUnderTest(broker.address, TargetDescription("embedded", "amqpspec", "0", "rabbitmq-4.3"))
        result = Runner(target, trace, RunOptions(sequences=0), [told.append]).run()
    assert result.sequences == 5
    assert result.failures == ()
    names = [
        ("begin", event.sequence) if isinstance(event, SequenceStarted) else ("end", event.judgement.sequence)
        for event in told
        if isinstance(event, SequenceStarted | SequenceFinished)
    ]
    order = {name: place for place, name in enumerate(names)}
    for waiting in ("scenario waits-1", "scenario waits-2"):
        for plain in ("scenario plain", "scenario plain-2"):
            assert order["begin", waiting] < order["end", plain] < order["end", waiting]
    assert names[-2:] == [("begin", "scenario alone"), ("end", "scenario alone")]
    verdicts = {rows[-1]["sequence"]: rows[-1]["verdict"] for rows in sequences(read_trace(tmp_path / "trace.jsonl"))}
    assert set(verdicts.values()) == {str(Verdict.PASS)}, "rows of sequences that overlap do not tear each other"
    assert len(verdicts) == 5


def test_what_a_thread_raises_reaches_the_run_and_stops_what_has_not_begun() -> None:
    begun = threading.Semaphore(0)
    release = threading.Event()

    def carry_out(scenario: CommandFile) -> object:
        begun.release()
        release.wait(60)
        raise TargetUnreachable(scenario.name)

    many = scenarios()[:1] * 40
    with pytest.raises(TargetUnreachable, match="waits-1"):  # noqa: SIM117
        with under_way(many, carry_out, COMMON) as waiting:  # type: ignore[arg-type]
            assert begun.acquire(timeout=60)
            release.set()
            next(waiting)


def test_who_skips_the_time_does_so_one_after_another() -> None:
    """They go by one clock: what one skips, another that waits for something at the moment would have missed."""
    running: set[int] = set()
    most: list[int] = []

    def carry_out(scenario: CommandFile) -> object:
        running.add(id(scenario))
        most.append(len(running))
        running.discard(id(scenario))
        return scenario

    with under_way(scenarios()[:2], carry_out, FastForwardClock()) as waiting:  # type: ignore[arg-type]
        assert most == [1, 1]
        assert [scenario.name for scenario in waiting] == ["waits-1", "waits-2"]  # type: ignore[attr-defined]
