"""A broker that was started for the run, and ends in the middle of it, is started again; who ended it is told."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from amqpspec.command_line import main
from amqpspec.conformance import losses
from amqpspec.conformance.failures.shrinking_time import WHOLE_RUN
from amqpspec.conformance.losses import ENOUGH, ENOUGH_TO_AVOID, NEAR, THE_END, Losses
from amqpspec.conformance.run import Runner
from amqpspec.conformance.run_options import RunOptions
from amqpspec.conformance.run_record import RunRecord
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter, read_trace
from amqpspec.conformance.verdicts.events import Event, SequenceFinished, ShrinkingStarted
from amqpspec.conformance.verdicts.judgement import SERVES_ON, Extent, RunResult, SequenceJudgement, TargetDescription
from amqpspec.model.promises.verdict import Failure, Shape, Verdict
from amqpspec.model.protocol.methods import TraceEvent
from amqpspec.reports.html import render_html
from amqpspec.reports.junit import render_junit
from amqpspec.targets.address import Address
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.client.wire import WireClient
from amqpspec.targets.embedded.hooks import Fault
from amqpspec.targets.errors import TargetUnreachable
from tests.conformance.part_ends import part_ends

ROOT = Path(__file__).parents[2]
DESCRIPTION = TargetDescription("ours", "MyBroker", "1", "rabbitmq-4.3")


class Broker:
    """It is ended when a client sends what `ends_it` says."""

    def __init__(
        self,
        stack: ExitStack,
        ends_it: Callable[[TraceEvent], bool],
        most: int = 100,
        fault: str | Fault | None = None,
    ) -> None:
        self.starts = 0
        self._fault = fault
        self._stack = stack
        self._ends_it = ends_it
        self._most = most

    def last_lines(self) -> tuple[str, ...]:
        return ("panic: index out of range",)

    def start_again(self) -> TargetUnderTest:
        self.starts += 1
        if self.starts > self._most:
            raise TargetUnreachable("it does not start")
        broker = self._stack.enter_context(EmbeddedBroker(fault=self._fault))
        ends_it = self._ends_it

        class Ends(WireClient):
            def send(self, event: TraceEvent, more: bool = False) -> None:
                if ends_it(event):
                    broker.__exit__(None, None, None)
                super().send(event, more)

        return TargetUnderTest(broker.address, DESCRIPTION, deadline=0.3, driver=Ends)


def a_run(
    directory: Path,
    ends_it: Callable[[TraceEvent], bool],
    *only: str,
    sequences: int = 0,
    most: int = 100,
    before: float | None = None,
    can_start_it: bool = True,
) -> tuple[RunResult, Broker, list[str]]:
    told: list[str] = []

    def listen(event: Event) -> None:
        if isinstance(event, SequenceFinished):
            told.append(event.judgement.sequence)

    with ExitStack() as stack, TraceWriter(directory / "trace.jsonl") as trace:
        broker = Broker(stack, ends_it, most)
        options = RunOptions(only, 3, sequences, steps=8, gives_up=before is not None, before=before or 0.0)
        result = Runner(broker.start_again(), trace, options, [listen], broker if can_start_it else None).run()
    return result, broker, told


def is_sent(method: str) -> Callable[[TraceEvent], bool]:
    return lambda event: event.name == method


def test_a_loss_of_a_broker_that_somebody_else_started_ends_the_run_and_is_told_all_the_same(tmp_path: Path) -> None:
    result, _, _ = a_run(tmp_path, is_sent("basic.recover"), "ACK-003", "RECOVER-003", can_start_it=False)
    assert result.lost is not None and result.exit_code == 3
    assert [found.failure.identity for found in result.failures] == [f"{SERVES_ON}|missing frame|an answer"]
    verdicts = {each.id: each.verdict for each in result.requirements}
    assert verdicts[SERVES_ON] is Verdict.FAIL
    assert "one by one" not in "".join(result.failures[0].failure.state)


def test_what_was_over_when_the_target_was_lost_counts_whoever_has_carried_it_out(tmp_path: Path) -> None:
    """Scenarios that wait are carried out beside the others, and taken after them."""
    trace = tmp_path / "trace.jsonl"

    def ends_it(event: TraceEvent) -> bool:
        if event.name != "basic.recover":
            return False
        until = time.monotonic() + 30
        while not re.search(rb'"end","sequence":"scenario TTL-001', trace.read_bytes()) and time.monotonic() < until:
            time.sleep(0.01)
        return True

    result, _, told = a_run(tmp_path, ends_it, "TTL-001", "RECOVER-003", can_start_it=False)
    assert result.lost is not None
    assert any(name.startswith("scenario TTL-001") for name in told)
    assert len(told) == len(set(told))


def test_the_run_goes_on_and_names_the_sequence(tmp_path: Path) -> None:
    """One scenario of these has a basic.recover-async."""
    result, broker, told = a_run(tmp_path, is_sent("basic.recover-async"), "ACK-003", "RECOVER-003", "GET-006")
    assert result.lost is None
    assert broker.starts == 3, "begun, and twice again: behind the loss, and behind the proof"
    (found,) = result.failures
    assert found.failure.identity == f"{SERVES_ON}|missing frame|an answer behind basic.recover-async"
    assert found.sequence == "scenario RECOVER-003"
    assert found.commands[-1] == found.failure.command and "basic.recover-async" in found.failure.command
    assert "the last lines of its log:\npanic: index out of range" in "\n".join(found.failure.state)
    verdicts = {each.id: each for each in result.requirements}
    assert verdicts[SERVES_ON].verdict is Verdict.FAIL
    assert verdicts["RECOVER-003"].verdict is Verdict.INCONCLUSIVE and found.failure.identity in str(
        verdicts["RECOVER-003"].reason
    )
    assert verdicts["ACK-003"].verdict is Verdict.PASS and verdicts["GET-006"].verdict is Verdict.PASS
    assert result.exit_code == 1
    assert len(told) == len(set(told)), "each sequence is counted once"
    assert sum(row["kind"] == "end" for row in read_trace(tmp_path)) == len(told) + 1, "one was carried out twice"
    assert "an answer behind basic.recover-async" in render_junit(result)
    assert "index out of range" in render_html(result)


def test_a_loss_that_no_sequence_repeats_says_what_was_under_way(tmp_path: Path) -> None:
    times: list[TraceEvent] = []

    def once(event: TraceEvent) -> bool:
        if event.name == "basic.recover" and not times:
            times.append(event)
            return True
        return False

    result, broker, _ = a_run(tmp_path, once, "RECOVER-003")
    (found,) = result.failures
    assert found.failure.identity == f"{SERVES_ON}|missing frame|an answer"
    assert found.flaky and broker.starts == 2
    assert "under way: scenario RECOVER-003" in found.failure.state[0]
    assert {each.id: each.verdict for each in result.requirements}["RECOVER-003"] is Verdict.PASS


def test_where_it_was_lost_the_search_begins_nothing_once_the_time_is_up(tmp_path: Path) -> None:
    lost, _, _ = a_run(tmp_path / "a", is_sent("basic.recover"), "RECOVER-003", sequences=3, before=WHOLE_RUN)
    assert (lost.lost, lost.search_extent) == (None, Extent(not_begun=3))
    sound, _, _ = a_run(tmp_path / "b", lambda event: False, "RECOVER-003", sequences=3, before=WHOLE_RUN)
    assert (sound.search_extent.sequences, sound.search_extent.not_begun) == (3, 0)


def test_the_third_loss_by_one_cause_ends_the_run(tmp_path: Path) -> None:
    """No other broker is left to look at where nothing can be got."""
    result, _, told = a_run(tmp_path, is_sent("basic.get"), "GET")
    assert result.lost is not None and "lost by the same cause" in result.lost
    assert result.exit_code == 3
    (found,) = result.failures
    assert found.sequences == ENOUGH
    assert len(told) == len(set(told)), "it was not begun again and again"


def test_a_broker_of_which_a_part_ended_is_started_again(tmp_path: Path) -> None:
    """It answers, and serves nobody any more: what it refuses from then on is no failure."""
    with ExitStack() as stack, TraceWriter(tmp_path / "trace.jsonl") as trace:
        broker = Broker(stack, lambda _: False, fault=part_ends("basic.recover-async"))
        options = RunOptions(("RECOVER-003", "ACK-003", "GET-006", "QUEUE-001"), 3, 0)
        result = Runner(broker.start_again(), trace, options, [], broker).run()
    assert result.lost is None and broker.starts == 3
    (found,) = result.failures
    assert found.failure.identity == f"{SERVES_ON}|missing frame|an answer behind basic.recover-async"
    assert "serves no fresh connection any more: queue.declare" in found.failure.observed
    passed = {each.id for each in result.requirements if each.verdict is Verdict.PASS}
    assert {"ACK-003", "GET-006", "QUEUE-001"} <= passed


def test_a_run_most_of_which_goes_into_losses_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By different causes: none of them comes often."""
    monkeypatch.setattr(losses, "MOST_TIME", 0.0)
    monkeypatch.setattr(losses, "MOST_OF_THE_RUN", 0.0)
    result, broker, _ = a_run(tmp_path, is_sent("basic.recover-async"), "ACK-003", "RECOVER-003", "GET-006")
    assert result.lost is not None and "lost once" in result.lost and "most of the run" in result.lost
    assert broker.starts == 3 and len(result.failures) == 1 and result.exit_code == 3


def test_time_behind_losses_ends_a_run_where_it_is_most_of_it() -> None:
    seen = losses.Losses()
    with seen.timed():
        pass
    assert 0 < seen.time < losses.MOST_TIME
    seen.raise_if_too_long(took=0.0)


def test_losses_far_from_each_other_end_no_run() -> None:
    losses = Losses()
    for over in (0, NEAR - 1, NEAR, NEAR + 1):
        failure = losses.note("gone", (), None, over=over)
        assert losses.is_enough(failure) is (over == NEAR + 1), "three within so few sequences"


def test_a_loss_behind_all_commands_blames_none_of_them(tmp_path: Path) -> None:
    """The suite closes connections and deletes queues then."""
    result, _, _ = a_run(tmp_path, is_sent("connection.close"), "RECOVER")
    found = {each.failure.detail: each for each in result.failures}[f"an answer behind {THE_END}"]
    assert found.failure.command == "" and found.commands and found.sequence


def test_a_target_that_is_lost_while_failures_are_made_short_has_been_seen_all_the_same(tmp_path: Path) -> None:
    shrinking: list[Event] = []

    def listen(event: Event) -> None:
        if isinstance(event, ShrinkingStarted):
            shrinking.append(event)

    with ExitStack() as stack, TraceWriter(tmp_path / "trace.jsonl") as trace:
        broker = Broker(
            stack, lambda event: bool(shrinking) and event.name == "queue.declare", fault="ack-acks-nothing"
        )
        result = Runner(broker.start_again(), trace, RunOptions(("ACK", "RECOVER"), 3, 0), [listen], broker).run()
    assert result.lost is None and result.exit_code == 1
    failed = {found.failure.requirement: found for found in result.failures}
    assert {SERVES_ON, "ACK-001"} <= failed.keys()
    assert failed["ACK-001"].cut_short and failed["ACK-001"].commands
    assert broker.starts == 1 + ENOUGH <= len(result.failures)


def test_what_ended_it_twice_is_left_out(tmp_path: Path) -> None:
    """So all else is seen: the search as well, which would have it in most of its sequences."""
    result, _, _ = a_run(tmp_path, is_sent("basic.recover"), "RECOVER", "ACK-003", sequences=18)
    assert result.lost is None
    (found,) = result.failures
    assert found.failure.identity == f"{SERVES_ON}|missing frame|an answer behind basic.recover"
    assert found.sequences == ENOUGH_TO_AVOID
    assert ("scenario RECOVER-005 quorum", f"blocked by {found.failure.identity}") in result.undecided
    assert result.search_extent.sequences == 18
    rows = read_trace(tmp_path)
    searched = [row for row in rows if row["kind"] == "command" and row["sequence"].startswith("search")]
    assert searched and all(row["text"].split()[1] != "basic.recover" for row in searched)


def test_the_search_goes_on_where_it_was(tmp_path: Path) -> None:
    sound, _, told_sound = a_run(tmp_path / "sound", lambda _: False, "GET-006", sequences=12)
    publishes: list[TraceEvent] = []

    def twentieth_publish(event: TraceEvent) -> bool:
        if event.name == "basic.publish":
            publishes.append(event)
        return len(publishes) == 20 and event is publishes[-1]

    result, broker, told = a_run(tmp_path / "ends", twentieth_publish, "GET-006", sequences=12)
    assert broker.starts == 2
    assert told == told_sound and sound.sequences == result.sequences == len(told)
    assert [each.failure.requirement for each in result.failures] == [SERVES_ON]


def test_who_does_not_start_again_is_lost(tmp_path: Path) -> None:
    result, _, _ = a_run(tmp_path, is_sent("basic.recover"), "RECOVER-003", most=1)
    assert result.lost is not None and "it does not start" in result.lost
    assert ([found.failure.requirement for found in result.failures], result.exit_code) == ([SERVES_ON], 3)


BROKER = """#!{python}
import os, sys
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.embedded.responder import Responder

taken = Responder.take

def take(self, event):
    if event.name == "basic.recover":
        print("panic: recover, said to be", "s3cret", flush=True)
        os._exit(2)
    taken(self, event)

Responder.take = take
EmbeddedBroker(port=int(sys.argv[1]), user="tester", password="s3cret").serve_forever()
"""


def test_a_process_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    program = tmp_path / "mybroker"
    program.write_text(BROKER.format(python=sys.executable), encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / "broker.toml").write_text(
        'address = "amqp://tester:s3cret@127.0.0.1:{port}/"\nstart = ["./mybroker", "{port}"]\n', encoding="utf-8"
    )
    command = ["run", "broker.toml", "--only", "RECOVER-003", "--only", "GET-006", "--sequences", "0", "--jobs", "3"]
    assert main([*command, "--junit", "junit.xml"]) == 1
    report = json.loads((tmp_path / "amqpspec-out" / "report.json").read_text(encoding="utf-8"))
    assert report["lost"] is None
    (failure,) = report["failures"]
    assert failure["identity"] == f"{SERVES_ON}|missing frame|an answer behind basic.recover"
    assert any(re.match("panic: recover, said to be", line) for line in failure["state"])
    out = capsys.readouterr()
    for text in (json.dumps(report), out.out, out.err, (tmp_path / "junit.xml").read_text(encoding="utf-8")):
        assert "s3cret" not in text
    assert SERVES_ON in out.out


def test_a_loss_that_nothing_does_again_stands_behind_what_was_seen_again() -> None:
    """In the result of a run, and so in `report.json`: it is the gravest all the same."""
    target = TargetUnderTest(Address("h"), DESCRIPTION)
    words = Failure("CHAN-008", Shape.WRONG_ARGUMENT, "channel.close reply-text", "a.1 x", "seen", (), ())
    for is_tried, order in ((True, ["CHAN-008", SERVES_ON]), (False, [SERVES_ON, "CHAN-008"])):
        record = RunRecord(target, RunOptions(), (), lambda *_: ())
        record.count_judged(SequenceJudgement("s", "t", DESCRIPTION.dialect, None, Verdict.FAIL, (words,), {}, None, 1))
        record.losses.note("it is gone", (), None, under_way=["s"], is_tried=is_tried)
        result = record.result(target, 1.0, None, frozenset())
        assert [found.failure.requirement for found in result.failures] == order
        assert result.failures[order.index(SERVES_ON)].not_seen_again is is_tried
