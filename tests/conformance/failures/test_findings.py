"""What a run remembers of a failure: the shortest commands, and how often they show it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import monotonic
from types import SimpleNamespace

import pytest

from amqpspec.conformance.failures.findings import REPEATS, Findings
from amqpspec.conformance.failures.shrink import Shrunk
from amqpspec.conformance.failures.shrinking_time import (
    FIRST_SHRINKING_TIME,
    GENEROUS,
    LEAST_OF_LONG_RUN,
    LEAST_SHRINKING_TIME,
    MOST_SHRINKING_TIME,
    WHOLE_RUN,
    ShrinkingTime,
)
from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.verdicts.events import Event, FailureShrunk, Listener, ShrinkingStarted
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.verdict import Failure, Shape
from amqpspec.targets.errors import TargetUnreachable
from tests.patience import patience

DIALECT = "rabbitmq-4.3"
FAILURE = Failure("QUEUE-008", Shape.MISSING, "queue.purge-ok", "a.1 queue.purge q", "nothing", ("a",), ("b",))
COMMANDS = [parse_command(line) for line in ("a.1 queue.declare q", "a.1 basic.get q", "a.1 queue.purge q")]
Shows = Callable[[list[str]], bool]
#: Shares are of the time that is left when they are given.
NEARLY = 0.05


def findings(shows: Shows, shrinking_time: float | None = 60.0) -> tuple[Findings, list[Event], list[list[str]]]:
    """Findings about a target that fails whenever `shows` says so; what is told; the commands of each run."""
    told: list[Event] = []
    runs: list[list[str]] = []

    def run_again(name: str, repeats: str, commands: Sequence[Command]) -> Sequence[Failure]:
        assert (name, repeats) == (f"shrinking search 7 {len(runs) + 1}", "search 7"), "each is a sequence of its own"
        runs.append(list(map(str, commands)))
        return [FAILURE] if shows(runs[-1]) else []

    subject = Findings(dialect_named(DIALECT), shrinking_time, run_again, [told.append])
    subject.note(FAILURE, "search 7", COMMANDS)
    return subject, told, runs


def shrunk(told: list[Event]) -> FailureShrunk:
    (event,) = (each for each in told if isinstance(each, FailureShrunk))
    assert isinstance(event, FailureShrunk)
    return event


def test_of_several_sequences_that_show_a_failure_the_one_of_fewest_commands_is_shrunk() -> None:
    subject, _, runs = findings(lambda lines: "a.1 queue.purge q" in lines)
    subject.note(FAILURE, "search 7", [*COMMANDS, *COMMANDS])
    assert len(subject.found[FAILURE.identity].commands) == len(COMMANDS)
    subject.note(FAILURE, "search 7", COMMANDS[1:])
    assert len(subject.found[FAILURE.identity].commands) == len(COMMANDS) - 1
    subject.shrink_all()
    assert max(map(len, runs)) < len(COMMANDS)


def test_the_commands_of_a_scenario_count_before_those_of_the_search() -> None:
    subject, _, _ = findings(lambda lines: True)
    for sequence, commands in (("scenario ACK-001", [*COMMANDS, *COMMANDS]), ("search 8", COMMANDS[:1])):
        subject.note(FAILURE, sequence, commands)
        assert subject.found[FAILURE.identity].sequence == "scenario ACK-001"
    subject.note(FAILURE, "scenario ACK-002", COMMANDS)
    assert subject.found[FAILURE.identity].sequence == "scenario ACK-002"


def test_the_shortest_commands_are_remembered_and_told() -> None:
    subject, told, runs = findings(lambda lines: "a.1 queue.purge q" in lines)
    subject.shrink_all()
    assert isinstance(told[0], ShrinkingStarted)
    assert (told[0].number, told[0].of) == (1, 1)
    found = shrunk(told).found
    assert found.commands == ("a.1 queue.purge q",)
    assert found.rate == (REPEATS, REPEATS)
    assert not found.cut_short
    assert runs[-REPEATS:] == [["a.1 queue.purge q"]] * REPEATS
    assert subject.found == {FAILURE.identity: found}


def test_what_shows_only_now_and_then_keeps_the_commands_that_do() -> None:
    """It never shows again once it has been shrunk, nor does the whole: the rate says so."""
    left = [True]
    subject, told, _ = findings(lambda lines: bool(left) and left.pop())
    subject.shrink_all()
    assert shrunk(told).found.commands == tuple(map(str, COMMANDS))
    assert shrunk(told).found.rate == (0, REPEATS)


def test_without_time_nothing_is_run() -> None:
    subject, told, runs = findings(lambda lines: True, shrinking_time=0.0)
    subject.shrink_all()
    assert runs == []
    assert len(told) == 1, "nothing begins, so nothing is said of how long it may take"
    assert shrunk(told).found.commands == tuple(map(str, COMMANDS))
    assert shrunk(told).found.rate is None
    assert shrunk(told).found.cut_short, "it may be longer than it has to be, and says so"


def test_a_target_that_is_lost_meanwhile_loses_no_failure() -> None:
    def gone(lines: list[str]) -> bool:
        raise TargetUnreachable("gone")

    subject, told, _ = findings(gone)
    with pytest.raises(TargetUnreachable):
        subject.shrink_all()
    assert shrunk(told).found.commands == tuple(map(str, COMMANDS))
    assert list(subject.found) == [FAILURE.identity]


def test_the_gravest_is_shrunk_first_and_has_the_largest_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    words, lost = (
        Failure(requirement, shape, detail, "", "o", (), ())
        for requirement, shape, detail in (
            ("CHAN-008", Shape.WRONG_ARGUMENT, "channel.close reply-text"),
            ("PUBLISH-002", Shape.MISSING, "basic.deliver"),
        )
    )
    shares: list[float] = []

    def shrink(commands: Sequence[Command], shows: object, dialect: object, time_limit: float) -> Shrunk:
        shares.append(time_limit)
        return Shrunk(tuple(commands), cut_short=False)

    monkeypatch.setattr("amqpspec.conformance.failures.findings.shrink", shrink)
    told: list[Event] = []

    def run_again(name: str, repeats: str, commands: Sequence[Command]) -> Sequence[Failure]:
        return FAILURE, words, lost

    subject = Findings(dialect_named(DIALECT), 9.0, run_again, [told.append], at_once=1)
    for each in (words, FAILURE, lost):
        subject.note(each, "search 7", COMMANDS)
    subject.shrink_all()
    shown = [event.found.failure for event in told if isinstance(event, FailureShrunk)]
    assert [each.identity for each in shown] == [each.identity for each in (lost, FAILURE, words)]
    assert shares[0] == pytest.approx(9.0 * 2 / 4, rel=NEARLY)
    assert all(share > 9.0 / 4 for share in shares), "each has time of its own"


def of_queue(name: str) -> tuple[Failure, list[Command]]:
    lines = (f"a.1 queue.declare {name}", f"a.1 queue.purge {name}")
    return replace(FAILURE, detail=f"purge of {name}"), [parse_command(line) for line in lines]


def side_by_side(
    run: Callable[[list[str]], bool],
    *names: str,
    first: Sequence[str] = (),
    at_once: int = 3,
    listener: Listener = lambda event: None,
) -> tuple[Findings, list[Event], list[Failure]]:
    """Findings about a target that does not purge queues of these names, with what is told, and the failures. `run`:
    does the target go wrong with these commands? `first`: commands that each of the sequences begins with.
    """
    told: list[Event] = []
    failures = {name: of_queue(name)[0] for name in names}

    def run_again(name: str, repeats: str, commands: Sequence[Command]) -> Sequence[Failure]:
        lines = list(map(str, commands))
        return [failures[each] for each in names if f"a.1 queue.purge {each}" in lines and run(lines)]

    subject = Findings(dialect_named(DIALECT), 60.0, run_again, [told.append, listener], at_once=at_once)
    for name in names:
        subject.note(failures[name], f"search {name}", [*map(parse_command, first), *of_queue(name)[1]])
    return subject, told, list(failures.values())


def test_several_failures_are_shrunk_side_by_side_and_told_in_their_order() -> None:
    everybody = threading.Barrier(3)

    def run(lines: list[str]) -> bool:
        everybody.wait(patience(10))  # who were alone would wait in vain
        return True

    subject, told, failures = side_by_side(run, "q", "r", "s")
    subject.shrink_all()
    shown = [event.found for event in told if isinstance(event, FailureShrunk)]
    assert [each.failure for each in shown] == failures
    assert [each.commands for each in shown] == [(f"a.1 queue.purge {name}",) for name in "qrs"]
    started = [event for event in told if isinstance(event, ShrinkingStarted)]
    assert sorted(event.number for event in started) == [1, 2, 3]


@pytest.mark.parametrize("change", [
    "broker operator.configure consumer_timeout=1000", "a.1 exchange.delete amq.fanout"
])  # fmt: skip
def test_commands_that_change_the_broker_as_a_whole_run_beside_no_others(change: str) -> None:
    def run(lines: list[str]) -> bool:
        assert threading.current_thread() is threading.main_thread()
        return True

    subject, told, _ = side_by_side(run, "q", "r", "s", first=(change, "broker clock.wait 2000"))
    subject.shrink_all()
    assert [event.found.cut_short for event in told if isinstance(event, FailureShrunk)] == [False] * 3


def test_after_a_loss_those_that_were_under_way_are_shrunk_one_by_one() -> None:
    """One by one it shows what it is that the target does not survive. It comes last."""
    together = threading.Barrier(3)
    lost: list[str] = []

    def run(lines: list[str]) -> bool:
        if not lost:
            together.wait(patience(10))
            lost.append("once")
        if "a.1 queue.purge q" in lines:
            lost.append("q")
            raise TargetUnreachable("gone")
        return True

    subject, told, failures = side_by_side(run, "q", "r", "s")
    for _ in range(2):
        with pytest.raises(TargetUnreachable):
            subject.shrink_all()
    subject.shrink_all()
    assert lost.count("q") == 2
    shown = {event.found.failure.detail: event.found for event in told if isinstance(event, FailureShrunk)}
    assert shown.keys() == {failure.detail for failure in failures}
    assert {detail for detail, found in shown.items() if found.cut_short} == {"purge of q"}


def test_what_was_shrunk_when_the_target_was_lost_stays_as_short_as_it_is() -> None:
    is_shrunk = threading.Event()

    def run(lines: list[str]) -> bool:
        if "a.1 queue.purge q" in lines:
            assert is_shrunk.wait(patience(10))
            raise TargetUnreachable("gone")
        return True

    def third_begins(event: Event) -> None:
        if isinstance(event, ShrinkingStarted) and event.number == 3:
            is_shrunk.set()  # r is done, as only two are shrunk at one time

    subject, told, _ = side_by_side(run, "q", "r", "s", at_once=2, listener=third_begins)
    with pytest.raises(TargetUnreachable):
        subject.shrink_all()
    subject.leave_the_rest()
    shown = {event.found.failure.detail: event.found for event in told if isinstance(event, FailureShrunk)}
    assert shown["purge of r"].commands == ("a.1 queue.purge r",)
    assert shown["purge of r"].rate == (REPEATS, REPEATS)
    assert shown["purge of q"].cut_short


def test_an_interruption_ends_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    runs: list[str] = []

    def run(lines: list[str]) -> bool:
        if "a.1 queue.purge q" not in lines:
            runs.append(lines[-1] if ended.wait(patience(10)) else "nobody ended it")
        return True

    class Ending(ShrinkingTime):
        def end(self, by: BaseException) -> None:
            super().end(by)
            ended.set()

    def interrupt(event: Event) -> None:
        if isinstance(event, FailureShrunk):
            raise KeyboardInterrupt

    monkeypatch.setattr("amqpspec.conformance.failures.findings.ShrinkingTime", Ending)
    subject, _, failures = side_by_side(run, *"qrstuv", at_once=2, listener=interrupt)
    with pytest.raises(KeyboardInterrupt):
        subject.shrink_all()
    assert len(runs) == len(set(runs)), "no other commands are tried"
    assert set(runs) <= {"a.1 queue.purge r", "a.1 queue.purge s"}, "no other failure is begun"
    assert {found.failure.detail for found in subject.found.values()} == {failure.detail for failure in failures}


def test_those_that_are_shrunk_one_by_one_have_time_of_their_own() -> None:
    time = ShrinkingTime(together=12, alone=2, at_once=6, deadline=monotonic() + 100)
    shares = [time.begin() for _ in range(time.of)]
    assert [number for number, _ in shares] == list(range(1, 15))
    assert shares[0][1] == pytest.approx(100 * GENEROUS / (2 + 2 + 1), rel=NEARLY)
    assert shares[6][1] == pytest.approx(100 * GENEROUS / (1 + 2 + 1), rel=NEARLY)
    assert shares[12][1] == pytest.approx(100 * GENEROUS / (2 + 1), rel=NEARLY)
    assert shares[13][1] == pytest.approx(100, rel=NEARLY)


@pytest.mark.parametrize(("took", "seconds"), [
    (0.0, LEAST_SHRINKING_TIME), (25.0, 25.0), (100.0, MOST_SHRINKING_TIME), (WHOLE_RUN - 15.0, 15.0),
    (1000.0, LEAST_OF_LONG_RUN)
])  # fmt: skip
def test_shrinking_takes_as_long_as_the_run_did_where_nobody_has_said(
    took: float, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares: list[float] = []

    def shrink(commands: Sequence[Command], shows: object, dialect: object, time_limit: float) -> Shrunk:
        shares.append(time_limit)
        return Shrunk(tuple(commands), cut_short=True)

    monkeypatch.setattr("amqpspec.conformance.failures.findings.shrink", shrink)
    monkeypatch.setattr("amqpspec.conformance.failures.findings.SHRINKING_TIME", float("inf"))
    monkeypatch.setattr("amqpspec.conformance.failures.findings.FIRST", 0)
    subject, told, _ = findings(lambda lines: True, shrinking_time=None)
    subject.shrink_all(took)
    assert shares == [pytest.approx(seconds, rel=NEARLY)]
    assert shrunk(told).found.cut_short


@pytest.mark.parametrize(("said", "first"), [(None, 3), (60.0, 0)])
def test_the_first_few_are_shrunk_to_the_end(
    said: float | None, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever that leaves for the others. Who says how long it may take has the say."""
    shares: dict[str, float] = {}

    def shrink(commands: Sequence[Command], shows: object, dialect: object, time_limit: float) -> Shrunk:
        shares[str(commands[-1])] = time_limit
        return Shrunk(tuple(commands), cut_short=False)

    monkeypatch.setattr("amqpspec.conformance.failures.findings.shrink", shrink)
    subject, _, _ = side_by_side(lambda lines: True, *"qrstuv", at_once=1)
    subject._shrinking_time = said
    subject.shrink_all(1000.0)
    assert [time == FIRST_SHRINKING_TIME for time in shares.values()] == [True] * first + [False] * (6 - first)


def test_the_others_do_not_begin_before_the_first_few_are_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the others do to a broker, such as end it, is not to reach what a reader sees first."""
    begun: list[str] = []
    other_began = threading.Event()

    def shrink(commands: Sequence[Command], shows: object, dialect: object, time_limit: float) -> Shrunk:
        if time_limit == FIRST_SHRINKING_TIME:
            begun.append("too early" if other_began.wait(0.1) else "first")
        else:
            other_began.set()
        return Shrunk(tuple(commands), cut_short=False)

    monkeypatch.setattr("amqpspec.conformance.failures.findings.shrink", shrink)
    subject, _, _ = side_by_side(lambda lines: True, *"qrstuv", at_once=6)
    subject._shrinking_time = None
    subject.shrink_all(1000.0)
    assert begun == ["first"] * 3


@pytest.mark.parametrize(("time_left", "rate"), [(True, (3, 3)), (False, None)])
def test_commands_that_never_showed_it_again_are_not_reported(
    time_left: bool, rate: tuple[int, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was shrunk has shown it once, by chance."""
    now = [0.0]

    def shrink(*_: object) -> Shrunk:
        now[0] = 0.0 if time_left else 1000.0
        return Shrunk(tuple(COMMANDS[:1]), False)

    monkeypatch.setattr("amqpspec.conformance.failures.findings.shrink", shrink)
    for module in ("findings", "shrinking_time"):
        clock = SimpleNamespace(monotonic=lambda: now[0])
        monkeypatch.setattr(f"amqpspec.conformance.failures.{module}.time", clock)
    subject, told, _ = findings(lambda lines: len(lines) == len(COMMANDS))
    subject.shrink_all()
    found = shrunk(told).found
    assert (found.commands, found.rate) == (tuple(map(str, COMMANDS)), rate)


def test_a_failure_that_shows_in_several_sequences_is_shrunk_once() -> None:
    subject, told, _ = findings(lambda lines: "a.1 queue.purge q" in lines)
    subject.note(FAILURE, "search 8", COMMANDS)
    subject.shrink_all()
    assert shrunk(told).found.sequence == "search 7"


KNOWN = Failure(
    "QUEUE-026", Shape.WRONG_ARGUMENT, "queue.declare-ok", "", "o", (), (), defect="quorum-consumer-count"
)


@pytest.mark.parametrize(("failure", "accepted"), [(KNOWN, None), (FAILURE, lambda failure: failure == FAILURE)])
def test_what_is_known_or_accepted_is_not_shrunk(
    failure: Failure, accepted: Callable[[Failure], bool] | None
) -> None:
    told: list[Event] = []

    def run_again(name: str, repeats: str, commands: Sequence[Command]) -> Sequence[Failure]:
        raise AssertionError("its shortest sequence is on file")

    subject = Findings(dialect_named(DIALECT), 60.0, run_again, [told.append], accepted=accepted)
    subject.note(failure, "search 7", COMMANDS)
    subject.shrink_all()
    assert not shrunk(told).found.cut_short
