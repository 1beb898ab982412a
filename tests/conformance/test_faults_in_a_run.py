"""Scenarios that break the broker: beside no others, together where the same is done to it, and on a broker that bears
it; what is lost meanwhile is told, and what is broken on purpose is not lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest

from amqpspec.conformance import run
from amqpspec.conformance.language.command_file import CommandFile, parse_command_file
from amqpspec.conformance.run import Runner
from amqpspec.conformance.run_options import RunOptions
from amqpspec.conformance.search.machine import BREAKING
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter, read_trace
from amqpspec.conformance.verdicts.events import Event, SequenceFinished
from amqpspec.conformance.verdicts.judgement import SERVES_ON, RunResult, TargetDescription
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.methods import Fault
from amqpspec.targets.address import Address
from amqpspec.targets.brokers.embedded_again import EmbeddedAgain
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.brokers.faults import FaultInjector
from amqpspec.targets.brokers.health import check_alive
from amqpspec.targets.brokers.single_node import BROKER_FAULTS
from amqpspec.targets.client.carrier import Driver
from amqpspec.targets.client.wire import WireClient
from amqpspec.targets.errors import TargetError, TargetUnreachable

DESCRIPTION = TargetDescription("ours", "MyBroker", "1", "rabbitmq-4.3")
STOPPED = "a.1 queue.declare q durable\nbroker.stop\nbroker.restart\nb.1 basic.get q"
RESTARTED = "a.1 queue.declare q durable\na.1 basic.publish q body=m delivery-mode=2\nbroker.restart\nb.1 basic.get q"
KILLED = "a.1 queue.declare q durable\nbroker.kill\nbroker.restart\nb.1 basic.get q"
OTHER = "a.1 queue.declare q\na.1 basic.get q"


class Noting:
    """An injector that notes what is done. `fails_at`: the first time that this is done, it cannot be."""

    def __init__(self, injector: FaultInjector, fails_at: str = "") -> None:
        self.offered, self.nodes = injector.offered, injector.nodes
        self.done: list[str] = []
        self._injector = injector
        self._fails_at = fails_at

    def inject(self, fault: Fault) -> None:
        self.done.append(fault.name)
        if fault.name == self._fails_at:
            self._fails_at = ""
            raise TargetUnreachable("it does not come back")
        self._injector.inject(fault)

    def address_of(self, node: int) -> Address:
        return self._injector.address_of(node)

    def undo(self) -> None:
        self._injector.undo()


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as entered:
        yield entered


def started(stack: ExitStack, fails_at: str = "") -> tuple[TargetUnderTest, Noting]:
    broker = stack.enter_context(EmbeddedBroker())
    faults = Noting(broker.faults(), fails_at)
    return TargetUnderTest(broker.address, DESCRIPTION, 30.0, broker.operator(), faults=faults), faults


def scenarios(**texts: str) -> list[CommandFile]:
    files = [file for name, text in texts.items() for file in parse_command_file(text, name=name)]
    return [replace(file, requirement="DURABLE-001") for file in files]


class Carried:
    """A run of these scenarios: its result, and the names of sequences in the order in which they were finished."""

    def __init__(
        self,
        directory: Path,
        monkeypatch: pytest.MonkeyPatch,
        target: TargetUnderTest,
        files: list[CommandFile],
        restarts: object = None,
        options: RunOptions | None = None,
    ) -> None:
        self.told: list[str] = []
        self.verdicts: list[Verdict] = []
        monkeypatch.setattr(run, "selected", lambda only, dialect: files)
        asked = options or RunOptions(sequences=0)
        with TraceWriter(directory / "trace.jsonl") as trace:
            self.result: RunResult = Runner(target, trace, asked, [self._listen], restarts).run()  # type: ignore[arg-type]

    def _listen(self, event: Event) -> None:
        if isinstance(event, SequenceFinished):
            self.told.append(event.judgement.sequence.removeprefix("scenario "))
            self.verdicts.append(event.judgement.verdict)


def test_the_same_is_done_once_for_all_that_want_it_and_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack
) -> None:
    target, faults = started(stack)
    files = scenarios(one=STOPPED, two=KILLED, three=RESTARTED, four=STOPPED, other=OTHER)
    carried = Carried(tmp_path, monkeypatch, target, files)
    assert carried.told == ["other", "one", "three", "four", "two"]
    assert carried.verdicts == [Verdict.PASS] * 5
    assert faults.done == ["broker.stop", "broker.restart", "broker.kill", "broker.restart"]


def test_each_has_a_broker_for_itself_where_there_are_others_like_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack
) -> None:
    target, faults = started(stack)
    target = replace(target, own_broker=EmbeddedAgain("embedded"))
    carried = Carried(tmp_path, monkeypatch, target, scenarios(one=STOPPED, two=KILLED))
    assert carried.verdicts == [Verdict.PASS] * 2 and faults.done == []


class Elsewhere:
    """Who starts a target, and another one that bears faults."""

    def __init__(self, stack: ExitStack, fails_at: str = "") -> None:
        self._stack = stack
        self._fails_at = fails_at
        self.faults: list[Noting] = []
        self.starts = 0
        self.driver: Driver = WireClient

    def target(self) -> TargetUnderTest:
        return replace(started(self._stack)[0], faults=None, faults_elsewhere=BROKER_FAULTS)

    def last_lines(self) -> tuple[str, ...]:
        return ()

    def start_again(self) -> TargetUnderTest:
        self.starts += 1
        return self.target()

    def breakable(self) -> tuple[TargetUnderTest, Breakable]:
        other = Breakable(self)
        return other.start_again(), other

    def started(self) -> TargetUnderTest:
        target, faults = started(self._stack, self._fails_at if not self.faults else "")
        self.faults.append(faults)
        return replace(target, driver=self.driver)


class Breakable:
    def __init__(self, elsewhere: Elsewhere) -> None:
        self._elsewhere = elsewhere

    def last_lines(self) -> tuple[str, ...]:
        return ("panic",)

    def start_again(self) -> TargetUnderTest:
        return self._elsewhere.started()


def test_another_one_is_broken_where_the_target_does_not_bear_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack
) -> None:
    elsewhere = Elsewhere(stack)
    files = scenarios(one=STOPPED, two=KILLED, other=OTHER)
    carried = Carried(tmp_path, monkeypatch, elsewhere.target(), files, elsewhere)
    assert carried.verdicts == [Verdict.PASS] * 3
    (faults,) = elsewhere.faults
    assert faults.done == ["broker.stop", "broker.restart", "broker.kill", "broker.restart"]


SEARCH = RunOptions(seed=5, sequences=3, steps=30, search_only=True, themes=(BREAKING,), jobs=4, breaks=True)


@pytest.mark.parametrize("fails_at", ["", "broker.restart"])
def test_a_search_breaks_one_that_others_do_not_use_and_goes_one_by_one(
    fails_at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack
) -> None:
    elsewhere = Elsewhere(stack, fails_at)
    carried = Carried(tmp_path, monkeypatch, elsewhere.target(), [], elsewhere, SEARCH)
    assert sorted(carried.told) == ["search 1", "search 2", "search 3"]
    assert carried.result.lost is None and carried.verdicts == [Verdict.PASS] * 3
    assert len(elsewhere.faults) == (2 if fails_at else 1) and elsewhere.faults[-1].done.count("broker.restart") >= 2
    names = [row["sequence"] for row in read_trace(tmp_path / "trace.jsonl") if row.get("time") and row.get("sequence")]
    assert [name for name, _ in groupby(names)] == ["search 1", "search 2", "search 3"]


def test_none_is_started_that_nobody_breaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack
) -> None:
    elsewhere = Elsewhere(stack)
    Carried(tmp_path, monkeypatch, elsewhere.target(), scenarios(other=OTHER), elsewhere)
    assert elsewhere.faults == []


def test_one_that_is_lost_meanwhile_is_started_again_and_the_scenarios_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack
) -> None:
    """What a scenario breaks by a command is no loss, though nobody is served in between."""
    elsewhere = Elsewhere(stack, fails_at="broker.restart")
    files = scenarios(one=STOPPED, two=STOPPED, three=KILLED)
    carried = Carried(tmp_path, monkeypatch, elsewhere.target(), files, elsewhere)
    assert carried.result.lost is None and elsewhere.starts == 0 and len(elsewhere.faults) == 2
    assert sorted(carried.told) == ["one", "three", "two"] and carried.verdicts == [Verdict.PASS] * 3
    (found,) = carried.result.failures
    assert found.failure.requirement == SERVES_ON and "it does not come back" in found.failure.observed
    assert "none of them does it again" in "".join(found.failure.state)


def test_those_that_went_well_beside_one_that_was_lost_are_not_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack
) -> None:
    elsewhere = Elsewhere(stack)
    refused: list[str] = []

    class Refuses(WireClient):
        def connect(self, name: str, address: Address | None = None, *, timeout: float = 10.0) -> None:
            if name == "z" and not refused:
                refused.append(name)
                raise TargetUnreachable("not now")
            super().connect(name, address, timeout=timeout)

    elsewhere.driver = Refuses
    files = scenarios(one=STOPPED, two=STOPPED, three=STOPPED.replace("b.1", "z.1"))
    carried = Carried(tmp_path, monkeypatch, elsewhere.target(), files, elsewhere)
    assert refused and carried.told == ["one", "two", "three"] and carried.verdicts == [Verdict.PASS] * 3
    assert [each.done.count("broker.restart") for each in elsewhere.faults] == [1, 1]


def test_what_it_did_is_in_the_trace_that_is_judged_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack
) -> None:
    target, _ = started(stack)
    Carried(tmp_path, monkeypatch, target, scenarios(one=STOPPED, two=STOPPED))
    rows = [row for row in read_trace(tmp_path / "trace.jsonl") if row["kind"] == "frame"]
    for name in ("one", "two"):
        own = [row for row in rows if row["sequence"] == f"scenario {name}"]
        done = [row["method"] for row in own if row["connection"] == "broker"]
        assert done == ["broker.stop", "broker.restart"]


@pytest.mark.parametrize("raised", [KeyboardInterrupt, TargetUnreachable])
def test_everything_is_as_it_was_however_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack, raised: type[BaseException]
) -> None:
    target, faults = started(stack)
    inject: Callable[[Fault], None] = faults.inject

    def fails(fault: Fault) -> None:
        if fault.name == "broker.restart":
            raise raised("now")
        inject(fault)

    faults.inject = fails  # type: ignore[method-assign]
    try:
        carried = Carried(tmp_path, monkeypatch, target, scenarios(one=STOPPED))
    except KeyboardInterrupt:
        assert raised is KeyboardInterrupt
    else:
        assert issubclass(raised, TargetError) and carried.result.exit_code == 3
    assert check_alive(target.address)
