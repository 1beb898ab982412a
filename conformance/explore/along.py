"""Ways through a world, given to everybody else who knows the rules.

What the model permits on the way the judge accepts, and so does the judge of the open world, who knows less. The
embedded broker is given the commands of the way, one after the other; what it does is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from amqpspec.conformance.explore.position import Step
from amqpspec.conformance.explore.world import World
from amqpspec.model.broker.connections import ConnectionState
from amqpspec.model.judging.acceptor import Acceptor, lawful_acceptor
from amqpspec.model.open_world.judge import OpenJudge
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.methods import CLOCK_WAIT, FAULTS, OPERATOR, Method, TraceEvent
from amqpspec.targets.clock import Clock
from amqpspec.targets.embedded.handshake import DEFAULT_ACCESS
from amqpspec.targets.embedded.responder import Responder

#: States of connections on which a client sends nothing more.
_OVER = (ConnectionState.CLOSING, ConnectionState.CLOSED)
#: Most frames that a broker answers one command with: one that goes wrong may go on for ever.
_MOST_ANSWERS = 200

#: The frames that led to the first position; None where all was at rest.
Setup = Sequence[TraceEvent | None]
#: Looks at a way, and gives what is wrong, in a sentence each.
Looks = Callable[[World, Setup, Sequence[Step]], Iterator[str]]


def judged(world: World, setup: Setup, path: Sequence[Step]) -> Iterator[str]:
    """What the judge has against it."""
    acceptor = _after(world, setup)
    for step in path:
        acceptor.overlapping = world.crossing
        for event in step.frames:
            (acceptor.sent if event.sent else acceptor.received)(event)
        if step.kind == "rest":
            acceptor.quiescent()
    if acceptor.verdict is Verdict.FAIL:
        failure = acceptor.failures[0]
        yield f"the judge does not accept it: {failure.requirement}, {failure.shape}, {failure.detail}"


def _acceptor(world: World) -> Acceptor:
    access = DEFAULT_ACCESS
    return lawful_acceptor(dialect_named(world.dialect), virtual_host=access.vhost, own_user=access.user)


def _after(world: World, setup: Setup) -> Acceptor:
    acceptor = _acceptor(world)
    for event in setup:
        if event is None:
            acceptor.quiescent()
        else:
            (acceptor.sent if event.sent else acceptor.received)(event)
    return acceptor


def judged_open(world: World, setup: Setup, path: Sequence[Step]) -> Iterator[str]:
    """What the judge of the open world has against it."""
    judge = OpenJudge(dialect_named(world.dialect))
    for event in setup:
        if event is not None:
            judge.event(event)
    for step in path:
        for event in step.frames:
            judge.event(event)
    if judge.findings.failures:
        failure = judge.findings.failures[0]
        yield f"the open world does not accept it: {failure.requirement}, {failure.shape}, {failure.detail}"


class _Moment(Clock):
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.time = 1.0

    def now(self) -> float:
        return self.time


def served(world: World, setup: Setup, path: Sequence[Step]) -> Iterator[str]:
    """What the judge has against what the embedded broker does with the same commands."""
    inputs = [each for each in setup if each is not None and each.sent]
    inputs += [event for step in path if step.kind in ("input", "wait") for event in step.frames if event.sent]
    if any(each.name in FAULTS for each in inputs):
        return
    clock = _Moment()
    responder = Responder(dialect_named(world.dialect), clock=clock)
    acceptor = _acceptor(world)
    for event in inputs:
        if acceptor.finished:
            break
        clock.time = max(clock.time, event.time)
        connection = responder.broker.connections.get(event.connection)
        is_of_nobody = event.connection == OPERATOR or event.name == "socket.open"
        if not is_of_nobody and (connection is None or connection.state in _OVER):
            continue
        acceptor.sent(event)
        if event.name == CLOCK_WAIT:
            _tick(responder, clock)
        else:
            responder.take(replace(event, time=0.0))  # it has a clock of its own
        _take_answers(responder, acceptor, clock)
        acceptor.quiescent()
    if acceptor.verdict is Verdict.FAIL:
        failure = acceptor.failures[0]
        yield f"the embedded broker does what is not right: {failure.requirement}, {failure.shape}, {failure.detail}"


def _tick(responder: Responder, clock: _Moment) -> None:
    """All that is due comes about, and what is due because of that."""
    for _ in range(_MOST_ANSWERS):
        responder.tick_now()
        if responder.due() > clock.time:
            return


def _take_answers(responder: Responder, acceptor: Acceptor, clock: _Moment) -> None:
    for _ in range(_MOST_ANSWERS):
        events = responder.next_outputs(_nobody, _nobody)
        if events is None:
            return
        for event in events:
            acceptor.received(replace(event, time=clock.time))
            for answer in _answers(event):
                acceptor.sent(replace(answer, time=clock.time))
                responder.take(answer)


def _answers(event: TraceEvent) -> Iterable[TraceEvent]:
    if event.name in ("channel.close", "connection.close"):
        yield Method(event.connection, event.channel, f"{event.name}-ok", {}, sent=True)


def _nobody(connection: str) -> bool:
    return False
