"""Progress that is true: what is done of how much, how long it took, how long it will take."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from amqpspec.conformance.verdicts.events import Event, FailureShrunk, RunStarted, SequenceFinished, ShrinkingStarted
from amqpspec.conformance.verdicts.judgement import FoundFailure, SequenceJudgement
from amqpspec.model.promises.verdict import Verdict
from amqpspec.reports.progress import PlainProgress, Progress
from tests.reports.made_up import ACK, DEFECTIVE, TARGET

PASSED = SequenceJudgement("s", "", "rabbitmq-4.3", None, Verdict.PASS, (), {}, None, 1)
STARTED = RunStarted(TARGET, 1, "lockstep", 40)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_what_is_to_go_is_told_once_enough_is_done() -> None:
    clock = Clock()
    progress = Progress(clock)
    progress(STARTED)
    for number in range(30):
        assert (progress.to_go is None) is (number < 20)
        clock.now += 3
        progress(SequenceFinished(PASSED))
    assert progress.times() == "1:30, about 0:30 to go"


def test_a_log_has_a_line_now_and_then_and_none_is_wrapped() -> None:
    clock = Clock()
    text = io.StringIO()
    plain = PlainProgress(Console(file=text, width=40), clock, pause=10.0)
    events: list[Event] = [STARTED]
    events += [SequenceFinished(replace(PASSED, verdict=Verdict.FAIL, failures=(ACK,)))] * 2
    events += [SequenceFinished(PASSED)] * 38
    events.append(FailureShrunk(FoundFailure(ACK, "s")))
    for event in events:
        plain(event)
        clock.now += 1
    first, *lines = text.getvalue().splitlines()
    assert first == "RabbitMQ 4.3.6 at docker:rabbitmq-4.3: 40 sequences"
    assert len(lines) == 4
    assert lines[0] == "10 of 40 done, 2 failed; 0:10"
    assert lines[-1] == "40 of 40 done, 2 failed; 0:40"


def test_what_the_gate_accepts_has_not_failed() -> None:
    progress = Progress(Clock(), fails=lambda failure: failure is ACK)
    for failure in (ACK, DEFECTIVE, DEFECTIVE):
        progress(SequenceFinished(replace(PASSED, verdict=Verdict.FAIL, failures=(failure,))))
    assert (progress.done, progress.failing) == (3, 1)


def test_shrinking_says_what_runs_and_what_is_to_go() -> None:
    clock = Clock()
    text = io.StringIO()
    plain = PlainProgress(Console(file=text, width=40), clock, pause=10.0)
    events: list[Event] = [STARTED, SequenceFinished(PASSED)]
    events += [ShrinkingStarted("ACK-003", 1, 3, 60.0), ShrinkingStarted("QOS-001", 2, 3, 58.0)]
    for event in events:
        plain(event)
        clock.now += 1
    clock.now += 20
    plain(ShrinkingStarted("QOS-002", 3, 3, 38.0))
    assert text.getvalue().splitlines()[1:] == [
        "1 of 40 done, 0 failed; 0:02, shrinking ACK-003, 1 of 3, at most 1:00 to go",
        "1 of 40 done, 0 failed; 0:24, shrinking QOS-002, 3 of 3, at most 0:38 to go",
    ]


def test_what_may_be_left_of_shrinking_runs_down() -> None:
    clock = Clock()
    progress = Progress(clock)
    progress(STARTED)
    progress(ShrinkingStarted("ACK-003", 1, 3, 60.0))
    clock.now += 25
    assert progress.times() == "0:25, shrinking ACK-003, 1 of 3, at most 0:35 to go"
