"""One way in which a scenario can go: the frames of a simple broker that does all that it owes, and nothing more.

It is made of the model alone, without a broker or a socket; the pages of the requirements show it as a ladder.
"""

from __future__ import annotations

from amqpspec.conformance.explore.position import Position
from amqpspec.conformance.explore.scenario_worlds import is_small
from amqpspec.conformance.explore.steps import (
    SetupFailed,
    answers,
    can_be_sent,
    come_to_rest,
    connect,
    event_for,
    make_ready,
    process_input,
    process_time,
)
from amqpspec.conformance.explore.world import World
from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.command_arguments import LAST_HEADERS
from amqpspec.conformance.language.command_file import CommandFile
from amqpspec.conformance.language.names import REPLY_ADDRESS
from amqpspec.conformance.session.handshake_steps import STEPS
from amqpspec.conformance.verdicts.rung import Kind, Rung
from amqpspec.model.broker.broker import Broker
from amqpspec.model.judging.explanation import Explanation
from amqpspec.model.promises.dialects import DEFAULT_DIALECT, dialect_named
from amqpspec.model.protocol.methods import CLOCK_WAIT, OPERATOR, TraceEvent
from amqpspec.targets.embedded.handshake import DEFAULT_ACCESS

#: What only a session can fill in.
_OF_A_SESSION = (REPLY_ADDRESS, LAST_HEADERS)
#: Characters of one rung.
LONGEST = 160


def example(scenario: CommandFile, dialect: str = "") -> tuple[Rung, ...]:
    """Commands and frames in their order; (): it needs a cluster, a network, large contents, single steps of a
    handshake or what a message brought, which the model does not play by itself. Handshakes, and what opens channels,
    are left out.
    """
    if not is_small(scenario) or any(word in str(each) for each in scenario.commands for word in _OF_A_SESSION):
        return ()
    name = dialect or next(iter(scenario.dialects), DEFAULT_DIALECT.name)
    count = len(scenario.commands)
    world = World(scenario.name or "", scenario.title, name, (), scenario.commands, (1,) * count, count, ordered=True)
    position = Position(
        world, Explanation(Broker(dialect_named(name), DEFAULT_ACCESS.vhost, DEFAULT_ACCESS.user)), (), 0
    )
    try:
        return tuple(rung for command in scenario.commands for rung in _rungs(position, command))
    except SetupFailed:
        return ()


def _rungs(position: Position, command: Command) -> list[Rung]:
    rungs = [Rung(Kind.COMMAND, "", _cut(str(command)))]
    if command.method == CLOCK_WAIT:
        position.now += command.arguments.get("milliseconds", 0) / 1000
        process_time(position)
    elif command.method == STEPS[-1] and not command.as_it_stands:
        return rungs + [_frame(event) for event in connect(position, event_for(position, command))]
    else:
        make_ready(position, command)
        if not can_be_sent(position, command):
            return rungs
        rungs.append(_frame(process_input(position, event_for(position, command))))
    if not command.in_flight:
        rungs += map(_frame, answers(position))
        come_to_rest(position)
        rungs += map(_frame, answers(position))
    return [rung for rung in rungs if rung.place != OPERATOR]


def _frame(event: TraceEvent) -> Rung:
    place, _, said = str(event).partition(" > " if event.sent else " < ")
    return Rung(Kind.SENT if event.sent else Kind.RECEIVED, place, _cut(said))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
