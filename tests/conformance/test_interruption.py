"""A signal ends what is under way, also where the exception that it raised was lost."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from amqpspec.conformance.interruption import (
    Terminated,
    ended_by_signals,
    raise_if_interrupted,
    undisturbed,
    was_interrupted,
)
from amqpspec.conformance.run import Runner
from amqpspec.conformance.run_options import RunOptions
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter
from amqpspec.conformance.verdicts.events import Event, RunFinished, SequenceFinished
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker

KINDS = pytest.mark.parametrize(
    ("number", "raised"), [(signal.SIGTERM, Terminated), (signal.SIGINT, KeyboardInterrupt)]
)


@pytest.fixture(autouse=True)
def _sigint_is_heard() -> Iterator[None]:
    """Whoever started the tests in the background of a shell has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@KINDS
def test_a_signal_ends_the_block(number: signal.Signals, raised: type[KeyboardInterrupt]) -> None:
    before = signal.getsignal(number)
    with pytest.raises(raised), ended_by_signals():
        os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before
    assert not was_interrupted()


@KINDS
def test_what_is_lost_is_raised_again(number: signal.Signals, raised: type[KeyboardInterrupt]) -> None:
    with ended_by_signals():
        raise_if_interrupted()
        with suppress(KeyboardInterrupt):
            os.kill(os.getpid(), number)
        assert was_interrupted()
        with pytest.raises(raised):
            raise_if_interrupted()
    raise_if_interrupted()


class _Raising:
    """Python loses what is raised when the object ends, and tells `sys.unraisablehook` of it."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error

    def __del__(self) -> None:
        if self.error is not None:
            raise self.error
        os.kill(os.getpid(), signal.SIGTERM)


def test_a_user_reads_nothing_of_an_exception_that_a_signal_raised_and_python_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[type[BaseException]] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda lost: told.append(lost.exc_type))
    with ended_by_signals():
        _Raising(ValueError())
        _Raising(None)
        assert was_interrupted()
    _Raising(KeyError())
    assert told == [ValueError, KeyError]


@pytest.mark.timeout(30)
def test_what_comes_in_a_short_block_is_raised_at_its_end() -> None:
    done = False
    over = threading.Event()
    other = threading.Thread(target=over.wait)  # the system may give a signal to any thread
    other.start()
    try:
        with pytest.raises(Terminated), ended_by_signals(), undisturbed():
            assert other.ident is not None
            signal.pthread_kill(other.ident, signal.SIGTERM)
            while not was_interrupted():
                # Python hears of it when the first thread has let others run
                over.wait(0.01)
            done = True
    finally:
        over.set()
        other.join()
    assert done


@pytest.mark.timeout(30)
@KINDS
def test_a_lock_of_the_library_is_let_go_whatever_comes_when_it_is_taken(
    number: signal.Signals, raised: type[KeyboardInterrupt]
) -> None:
    """Python looks for signals behind the call that takes it, in a function of the library."""
    done: list[str] = []
    kill = partial(os.kill, os.getpid(), number)
    lock = SimpleNamespace(acquire=None, release=None, __enter__=kill, __exit__=lambda *error: done.append("let go"))
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(raised), ended_by_signals(), threading.Condition(lock):  # type: ignore[arg-type]
        done.append("taken")
        threading.Event().wait(20)
    assert done == ["taken", "let go"]
    assert signal.getsignal(signal.SIGALRM) is before


@pytest.mark.timeout(30)
def test_who_waits_in_the_library_is_interrupted_at_once() -> None:
    waits = (
        threading.Event().wait, queue.Queue[int]().get, Future[int]().result,
        partial(subprocess.run, ["sleep", "20"]), partial(subprocess.run, ["sleep", "20"], capture_output=True),
        partial(subprocess.run, ["sleep", "20"], stdout=subprocess.PIPE),
    )  # fmt: skip
    for wait in waits:
        with pytest.raises(Terminated), ended_by_signals():
            begins = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGTERM))
            begins.start()
            wait()
        begins.join()


def test_a_timer_of_somebody_else_goes_on() -> None:
    rung = threading.Event()
    handler = signal.signal(signal.SIGALRM, lambda number, frame: rung.set())
    timer = signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        lock = SimpleNamespace(acquire=None, release=None, __enter__=partial(signal.raise_signal, signal.SIGTERM))
        lock.__exit__ = lambda *error: None
        with pytest.raises(Terminated), ended_by_signals(), threading.Condition(lock):  # type: ignore[arg-type]
            threading.Event().wait(20)
        assert rung.wait(20)
    finally:
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, *timer)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_ends_though_the_exception_was_lost(tmp_path: Path, jobs: int) -> None:
    told: list[Event] = []

    def listen(event: Event) -> None:
        told.append(event)
        if isinstance(event, SequenceFinished) and not was_interrupted():
            with suppress(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGTERM)

    description = TargetDescription("embedded", "amqpspec", "0", "rabbitmq-4.3")
    options = RunOptions(only=("ACK-00",), seed=4, sequences=12, steps=5, jobs=jobs)
    with EmbeddedBroker() as broker, TraceWriter(tmp_path / "trace.jsonl") as trace, ended_by_signals():
        with pytest.raises(Terminated):
            Runner(TargetUnderTest(broker.address, description), trace, options, [listen]).run()
        assert not broker.responder.own.broker.queues
    finished = told[-1]
    assert isinstance(finished, RunFinished)
    assert finished.result.lost == "interrupted after 1 sequences"
    assert sum(isinstance(each, SequenceFinished) for each in told) == 1
