"""The embedded broker in a process of its own, so that it does not share an interpreter with those who judge it.

The two processes talk by a pipe: what the operator wants goes there, what came of it comes back. The broker ends with
whoever started it.
"""

from __future__ import annotations

import multiprocessing
import signal
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, Literal, Self

from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.protocol.methods import TraceEvent
from amqpspec.targets.address import Address
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker, EmbeddedBrokerFailure, embedded
from amqpspec.targets.brokers.embedded_operator import EmbeddedOperator
from amqpspec.targets.brokers.faults import FaultInjector
from amqpspec.targets.brokers.operator import Operator
from amqpspec.targets.brokers.single_node import BROKER_FAULTS, SingleNode
from amqpspec.targets.errors import TargetError, TargetUnreachable

#: What is done to the broker as a `Node` (`targets.brokers.single_node`).
NodeAction = Literal["stop", "kill", "pause", "resume", "start_again"]
#: What the broker's process is asked: to do this to the broker, or to process this event of the operator's, about the
#: client of that port; None: to end. The answer is None, or the error that there was.
Question = tuple[TraceEvent | NodeAction, int | None] | None
_GONE = "the process of the embedded broker has ended"
#: Seconds. A broker that has not answered by then never will.
LONGEST_ANSWER = 30.0


def can_be_apart() -> bool:
    """May this process have others? A daemonic one of `multiprocessing` may not."""
    return not multiprocessing.current_process().daemon


class EmbeddedBrokerProcess:
    """Context manager: the `EmbeddedBroker` that the `target` means, speaking that dialect if it says nothing of it.

    Raises at the end `EmbeddedBrokerFailure` if it broke down or does not answer, unless something else is raised.
    """

    def __init__(self, target: str = "embedded", dialect: Dialect | None = None) -> None:
        self._of = target, dialect.name if dialect is not None else ""
        self._one_at_a_time = threading.Lock()
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None
        self._address: Address | None = None

    @property
    def address(self) -> Address:
        """Where it listens. Raises `RuntimeError` before it does."""
        if self._address is None:
            raise RuntimeError("the embedded broker does not listen yet")
        return self._address

    def __enter__(self) -> Self:
        context: Any = _context()
        self._pipe, other_end = context.Pipe()
        arguments = (other_end, *self._of)
        self._process = context.Process(target=_serve_undisturbed, args=arguments, name="embedded broker", daemon=True)
        self._process.start()
        other_end.close()
        self._address = self._received()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends all connections. Raises `EmbeddedBrokerFailure` if it broke down or does not answer, unless something
        else is raised.
        """
        try:
            self._asked(None)
        except EmbeddedBrokerFailure:
            if error is None:
                raise
        except TargetError:
            pass  # its process has been ended from outside, which was noticed where it mattered
        finally:
            if self._process is not None:
                self._process.join(LONGEST_ANSWER)
                self._process.kill()
                self._process.join()

    def operator(self) -> Operator:
        """Who operates it while it serves."""
        return EmbeddedOperator(self._give)

    def faults(self) -> FaultInjector:
        """Who stops it and starts it again."""
        return SingleNode(_NodeElsewhere(self), BROKER_FAULTS)

    def _give(self, event: TraceEvent, port: int | None = None) -> None:
        self._asked((event, port))

    def have_done(self, what: NodeAction) -> None:
        """Raises `TargetError`."""
        self._asked((what, None))

    def _asked(self, question: Question) -> None:
        with self._one_at_a_time:
            try:
                self._open_pipe.send(question)
            except OSError:
                raise TargetUnreachable(_GONE) from None
            self._received()

    def _received(self) -> Any:
        """What came back, raised if it is a `TargetError`. A broker that does not answer is ended."""
        try:
            if not self._open_pipe.poll(LONGEST_ANSWER):
                if self._process is not None:
                    self._process.kill()
                raise EmbeddedBrokerFailure(f"the embedded broker had not answered after {LONGEST_ANSWER:g} s")
            answer = self._open_pipe.recv()
        except (EOFError, OSError):
            raise TargetUnreachable(_GONE) from None
        if isinstance(answer, TargetError):
            raise answer
        return answer

    @property
    def _open_pipe(self) -> Connection:
        if self._pipe is None:
            raise RuntimeError("the embedded broker is not started yet")
        return self._pipe


class _NodeElsewhere:
    """A `Node` whose broker is in a process of its own."""

    def __init__(self, broker: EmbeddedBrokerProcess) -> None:
        self._broker = broker

    @property
    def address(self) -> Address:
        return self._broker.address

    def stop(self) -> None:
        self._broker.have_done("stop")

    def kill(self) -> None:
        self._broker.have_done("kill")

    def pause(self) -> None:
        self._broker.have_done("pause")

    def resume(self) -> None:
        self._broker.have_done("resume")

    def start_again(self) -> None:
        self._broker.have_done("start_again")


def _context() -> BaseContext:
    """Made from a process that has loaded what it needs, where there is such (`conformance.workers`)."""
    forking = "forkserver" in multiprocessing.get_all_start_methods()
    return multiprocessing.get_context("forkserver" if forking else "spawn")


def _serve_undisturbed(pipe: Connection, target: str, dialect: str) -> None:
    # what is interrupted at the terminal is the run, which ends the broker after everything else
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    serve(pipe, target, dialect)


def serve(pipe: Connection, target: str, dialect: str) -> None:
    """The broker's side of the pipe: it tells its address, answers questions, and tells at the end how it ended.

    `dialect`: the name of one; "": the target says which.
    """
    with suppress(EOFError, ConnectionError):  # whoever started it is gone
        try:
            with embedded(target, dialect_named(dialect) if dialect else None) as broker:
                pipe.send(broker.address)
                while (question := pipe.recv()) is not None:
                    pipe.send(_answer(broker, *question))
        except TargetError as error:
            pipe.send(error)
        else:
            pipe.send(None)


def _answer(broker: EmbeddedBroker, event: TraceEvent | NodeAction, port: int | None) -> TargetError | None:
    try:
        if isinstance(event, TraceEvent):
            broker.give(event, port)
        else:
            getattr(broker.node, event)()
    except TargetError as error:
        return error
    return None
