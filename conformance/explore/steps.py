"""What may happen next in a world: each step with the position behind it.

Clients send commands, and answer a close that they have seen. The broker sends each frame that it may send of those
that the world can form, processes an input in each way that is right, and does by itself what it has put down. When it
is quiet, a barrier may show so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from amqpspec.conformance.explore.formable import formable
from amqpspec.conformance.explore.position import Position, Step
from amqpspec.conformance.explore.world import World
from amqpspec.conformance.language.command import Command
from amqpspec.conformance.session.handshake_steps import STEPS, step
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import ChannelState
from amqpspec.model.broker.connections import ConnectionState
from amqpspec.model.broker.owed import Expected
from amqpspec.model.judging.explanation import Explanation
from amqpspec.model.judging.pending_inputs import next_inputs
from amqpspec.model.outputs.mismatch import Mismatches
from amqpspec.model.outputs.observation import observe
from amqpspec.model.outputs.permitted import permitted
from amqpspec.model.outputs.turns import turns_come_to_rest
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.protocol.methods import CLOCK_WAIT, OPERATOR, Method, SocketEvent, TraceEvent, event_of
from amqpspec.model.rules.connection.handshake import DUE
from amqpspec.model.rules.extensions.message_expiry import fronts_were_seen, messages_are_at_rest
from amqpspec.model.rules.extensions.queue_expiry import uses_are_over
from amqpspec.targets.address import Address
from amqpspec.targets.client.handshake import recordable
from amqpspec.targets.embedded.handshake import DEFAULT_ACCESS

#: Nobody connects to it.
_NOWHERE = Address("localhost", 5672, "guest", "guest")
#: What settles the delivery of a tag.
_SETTLES = ("basic.ack", "basic.nack", "basic.reject")
#: Most frames that a broker answers one command of a setup with.
_MOST_ANSWERS = 1000


class SetupFailed(Exception):
    """The setup of a world cannot be carried out; the message says where."""


# ------------------------------------------------------------------------------------------------ the beginning


def first_position(world: World, broker: type[Broker] = Broker) -> tuple[Position, list[TraceEvent | None]]:
    """The position behind the setup, at rest, and the frames that led to it; None stands where all was at rest. Raises
    `SetupFailed`.
    """
    explanation = Explanation(broker(dialect_named(world.dialect), DEFAULT_ACCESS.vhost, DEFAULT_ACCESS.user))
    position = Position(world, explanation, world.times, world.inputs)
    frames: list[TraceEvent | None] = []
    for command in world.setup:
        frames += make_ready(position, command)
        if not command.method.startswith("connection.open"):
            frames.append(process_input(position, event_for(position, command)))
        frames += answers(position)
        come_to_rest(position)
        frames.append(None)
    for command in world.commands:
        if command.connection != OPERATOR:
            frames += make_ready(position, command)
            come_to_rest(position)
            frames.append(None)
    return position, frames


def make_ready(position: Position, command: Command) -> list[TraceEvent]:
    """Open the connection and the channel of the command, as a session does."""
    frames: list[TraceEvent] = []
    name, number = command.connection, command.channel
    if name == OPERATOR:
        return frames
    if name not in position.broker.connections:
        frames += connect(position, event_for(position, command))
    opens = number and not command.as_it_stands and command.method != "channel.open"
    if opens and position.broker.channels.get((name, number)) is None:
        frames.append(process_input(position, Method(name, number, "channel.open", {}, sent=True)))
        frames += answers(position)
    return frames


def connect(position: Position, event: TraceEvent) -> list[TraceEvent]:
    """Open the connection that the input is of, in place of one of its name that is over."""
    name = event.connection
    position.broker.connections.pop(name, None)
    wishes = event.arguments if event.name == STEPS[-1] else {}
    frames = [process_input(position, SocketEvent(name, 0, "socket.open", {}, sent=True))]
    for method in DUE.values():
        frames += answers(position)
        offered = position.broker.connections[name].offered
        event = recordable(step(_NOWHERE, name, offered, method, wishes), _NOWHERE)
        frames.append(process_input(position, event))
    return frames + answers(position)


def answers(position: Position) -> list[TraceEvent]:
    """What a simple broker sends until it is quiet; a close is answered. Raises `SetupFailed`."""
    frames: list[TraceEvent] = []
    for _ in range(_MOST_ANSWERS):
        _do_by_itself(position)
        event = next(permitted(position.broker), None)
        if event is None:
            return frames
        event = replace(event, time=position.now)
        if wrong := send(position, event):
            raise SetupFailed(f"{position.world.name}: {event} is permitted and not accepted: {wrong[0].detail}")
        frames.append(event)
        frames += [process_input(position, each) for each in close_oks(position)]
    raise SetupFailed(f"{position.world.name}: the broker never comes to rest")


def _do_by_itself(position: Position) -> None:
    while (index := next(_internal(position), None)) is not None:
        position.explanation.process_pending(index)


# ---------------------------------------------------------------------------------------------------- one step


def event_for(position: Position, command: Command) -> TraceEvent:
    """The input that the command is."""
    event = event_of(
        command.connection, command.channel, command.method, dict(command.arguments), sent=True, content=command.content
    )
    return replace(event, time=position.now)


def process_input(position: Position, event: TraceEvent) -> TraceEvent:
    """The broker processes the input; gives it as it went over the wire."""
    event = replace(event, time=position.now)
    explanation = position.explanation
    explanation.time_passes(position.now)
    explanation.pending.append(event)
    explanation.process_pending(len(explanation.pending) - 1)
    _look_at_time(position)
    return event


def send(position: Position, event: TraceEvent) -> Mismatches:
    """The broker sends the frame: what is wrong with that. If anything is, the position is of no use any more."""
    explanation = position.explanation
    wrong = observe(explanation.broker, event)
    if not wrong:
        fronts_were_seen(explanation.broker, position.now)
        explanation.expect_internal_events()
        _look_at_time(position)
    return wrong


def come_to_rest(position: Position) -> None:
    """A barrier shows that nothing is under way, as `Acceptor.quiescent` has it."""
    broker = position.broker
    if position.world.has_time:
        position.explanation.time_passes(position.now)  # what a barrier sends comes after what is certain by then
        broker.looked_ahead_until = position.now  # as by the answers to a barrier
    for _, queue in broker.touched:
        queue.at_rest = queue.next_position
        queue.handed_out = 0
    broker.come_to_rest()
    turns_come_to_rest(broker)
    uses_are_over(broker, position.now)
    messages_are_at_rest(broker, position.now)


def close_oks(position: Position) -> Iterator[Method]:
    """The answers to closes that the client has seen, and has not answered."""
    for channel in position.broker.channels.values():
        if channel.state is ChannelState.CLOSING and not _is_owed(channel.owed, "channel.close"):
            connection = position.broker.connections.get(channel.connection)
            if connection is not None and connection.state is ConnectionState.OPEN:
                yield Method(channel.connection, channel.number, "channel.close-ok", {}, sent=True)
    for connection in position.broker.connections.values():
        if connection.state is ConnectionState.CLOSING and not connection.owed:
            yield Method(connection.name, 0, "connection.close-ok", {}, sent=True)


def _is_owed(owed: Iterable[object], method: str) -> bool:
    return any(isinstance(each, Expected) and each.method == method for each in owed)


def _internal(position: Position) -> Iterator[int]:
    """Places of what the broker may do by itself next."""
    return next_inputs(position.explanation.pending)


# ----------------------------------------------------------------------------------------------------- all steps


def next_steps(position: Position) -> Iterator[tuple[Step, Position]]:
    """All that may happen next, the broker's own doing first. The position is not changed."""
    yield from broker_steps(position)
    is_quiet = position.is_quiet
    if position.world.ordered and not is_quiet and _is_not_waited_for(position):
        yield from command_steps(position)
        return
    if is_quiet:
        rested = position.fork()
        come_to_rest(rested)
        if rested.state_key() != position.state_key():
            yield Step("rest", "(at rest)"), rested
            if not position.world.crossing:
                return
    elif not position.world.crossing:
        return
    closes = list(close_oks(position))
    for event in closes:
        yield from _processed(position, "close-ok", event, position.left, position.inputs_left)
    if closes and not position.world.crossing:
        return
    yield from command_steps(position)


def broker_steps(position: Position) -> Iterator[tuple[Step, Position]]:
    """What the broker may do next without any further input."""
    for index in _internal(position):
        event = position.explanation.pending[index]
        for number, other in enumerate(position.explanation.alternatives(event)):
            further = replace(position, explanation=other)
            yield Step("internal", f"({event}, in another way {number})"), further
        further = position.fork()
        further.explanation.process_pending(index)
        yield Step("internal", f"({event})"), further
    tried: Position | None = None
    for event in formable(position):
        if tried is None:
            tried = position.fork()
            tried.explanation.note_observation(position.now)
        if tried.explanation.is_at_no_time(event):
            continue
        wrong = send(tried, event)
        if wrong and all(each.fatal for each in wrong):
            tried.broker.bookkeeping.exercised.clear()  # it is as it was else (`observe`), and serves for the next one
            continue
        if not wrong:
            yield Step("output", str(event), (event,)), tried
        tried = None


def _is_not_waited_for(position: Position) -> bool:
    """Was the latest command sent so that the next one follows at once?"""
    place = len(position.world.commands) - position.inputs_left
    return place > 0 and position.world.commands[place - 1].in_flight


def command_steps(position: Position) -> Iterator[tuple[Step, Position]]:
    if not position.inputs_left:
        return
    if position.world.ordered:
        yield from _next_in_order(position)
        return
    for place, times in enumerate(position.left):
        command = position.world.command(place, position.published + 1)
        if not times or not can_be_sent(position, command):
            continue
        left = (*position.left[:place], times - 1, *position.left[place + 1 :])
        further = replace(position, published=position.published + 1) if command.method == "basic.publish" else position
        if command.method == CLOCK_WAIT:
            yield _waited(further, command, left)
        else:
            event = event_for(position, command)
            yield from _processed(further, "input", event, left, position.inputs_left - 1, str(command))


def _next_in_order(position: Position) -> Iterator[tuple[Step, Position]]:
    """The next command that can be sent; connections and channels open themselves, as in a session."""
    commands = position.world.commands
    for place in range(len(commands) - position.inputs_left, len(commands)):
        command = commands[place]
        ready = position.fork()
        frames = tuple(make_ready(ready, command))
        inputs_left = len(commands) - place - 1
        if command.method == CLOCK_WAIT:
            ready.inputs_left = inputs_left + 1
            yield _waited(ready, command, ready.left)
        elif command.method == STEPS[-1] and frames:
            ready.inputs_left = inputs_left
            yield Step("input", str(command), frames), ready
        elif can_be_sent(ready, command):
            text, event = str(command), event_for(ready, command)
            for step, further in _processed(ready, "input", event, ready.left, inputs_left, text):
                yield replace(step, frames=(*frames, *step.frames)), further
        else:
            continue
        return


def _waited(position: Position, command: Command, left: tuple[int, ...]) -> tuple[Step, Position]:
    further = position.fork()
    further.left, further.inputs_left = left, position.inputs_left - 1
    further.now += command.arguments.get("milliseconds", 0) / 1000
    process_time(further)
    return Step("wait", str(command), (event_for(further, command),)), further


def process_time(position: Position) -> None:
    """The time of the position is there."""
    position.explanation.time_passes(position.now)
    position.broker.client_idle_until = position.now
    _look_at_time(position)


def _look_at_time(position: Position) -> None:
    """What may come about by now is under way."""
    if position.world.has_time:
        position.explanation.note_observation(position.now)


def can_be_sent(position: Position, command: Command) -> bool:
    """Is the connection there, and the channel open as far as the client knows? A tag is settled that there was."""
    broker = position.broker
    if command.connection == OPERATOR:
        return True
    connection = broker.connections.get(command.connection)
    if connection is None or connection.state is not ConnectionState.OPEN:
        is_over = connection is None or connection.state is ConnectionState.CLOSED
        return is_over and command.method == "connection.open"
    if command.method == "connection.open" and not command.as_it_stands:
        return False
    if not command.channel or command.as_it_stands:
        return True
    channel = broker.channels.get((command.connection, command.channel))
    if command.method == "channel.open":
        return channel is None or channel.state is ChannelState.CLOSED
    if channel is None or channel.state is ChannelState.CLOSED:
        return False
    if channel.state is ChannelState.CLOSING and not _is_owed(channel.owed, "channel.close"):
        return False
    if command.method in _SETTLES and (tag := command.arguments.get("delivery_tag", 0)):
        return bool(tag < channel.next_tag)
    return True


def _processed(
    position: Position, kind: str, event: TraceEvent, left: tuple[int, ...], inputs_left: int, text: str = ""
) -> Iterator[tuple[Step, Position]]:
    """The input processed in each way that is right."""
    text = text or str(event)
    event = replace(event, time=position.now)
    if event.name == "connection.open":
        further = position.fork()
        further.left, further.inputs_left = left, inputs_left
        yield Step(kind, text, tuple(connect(further, event))), further
        return
    for number, other in enumerate(position.explanation.alternatives(event)):
        further = replace(position, explanation=other, left=left, inputs_left=inputs_left)
        yield Step(kind, f"{text} # in another way {number}", (event,)), further
    further = position.fork()
    further.left, further.inputs_left = left, inputs_left
    process_input(further, event)
    yield Step(kind, text, (event,)), further
