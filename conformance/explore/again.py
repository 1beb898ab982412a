"""Going a way again: to the position behind it, with copies as the exploration makes them, or with none."""

from __future__ import annotations

from collections.abc import Iterable

from amqpspec.conformance.explore.forgetting import forget_blame
from amqpspec.conformance.explore.position import Position, Step
from amqpspec.conformance.explore.steps import (
    come_to_rest,
    first_position,
    next_steps,
    process_input,
    process_time,
    send,
)
from amqpspec.conformance.explore.world import World
from amqpspec.model.broker.broker import Broker

#: What the text of a step holds that was processed in another way than the usual one.
IN_ANOTHER_WAY = "in another way"


def with_copies(world: World, path: Iterable[Step], broker: type[Broker] = Broker) -> Position:
    """The position behind that way from the first one."""
    position, _ = first_position(world, broker)
    for step in path:
        position = next(further for each, further in next_steps(position) if each.text == step.text)
    return position


def without_copies(
    world: World, path: Iterable[Step], broker: type[Broker] = Broker, *, is_forgetful: bool = False
) -> Position | None:
    """The same state, of which no copy was made on the way. None: a step was made in another way, which takes one.

    `is_forgetful`: all that only words failures is forgotten after each step.
    """
    position, _ = first_position(world, broker)
    for step in path:
        if IN_ANOTHER_WAY in step.text:
            return None
        _make(position, step)
        if is_forgetful:
            forget_blame(position.broker)
    return position


def _make(position: Position, step: Step) -> None:
    explanation = position.explanation
    if step.kind == "rest":
        come_to_rest(position)
    elif step.kind == "internal":
        texts = [f"({each})" for each in explanation.pending]
        explanation.process_pending(texts.index(step.text))
    elif step.kind == "wait":
        position.now = step.frames[0].time
        process_time(position)
    elif step.kind == "output":
        explanation.note_observation(position.now)
        send(position, step.frames[0])
    else:
        for event in step.frames:
            if not event.sent:
                send(position, event)
                continue
            if event.name == "socket.open":
                position.broker.connections.pop(event.connection, None)
            process_input(position, event)
