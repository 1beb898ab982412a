"""Worlds of a few dozen states, in which a property has something to say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from amqpspec.conformance.explore.exploration import Bounds, Exploration, Explored
from amqpspec.conformance.explore.world import World, parse_world
from amqpspec.model.broker.broker import Broker


def world(setup: Sequence[str], commands: Sequence[str], **more: object) -> World:
    """A world named small."""
    said = {"setup": list(setup), "commands": list(commands), **more}
    return parse_world("\n".join(f"{key} = {_toml(value)}" for key, value in said.items()), Path("small.toml"))[0]


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        return "'" + value + "'"
    return repr(value)


def explored(world: World, states: int = 0, broker: type[Broker] = Broker) -> Explored:
    return Exploration(world, Bounds(states=states, ways=30), broker=broker).explore()


def violated(world: World, states: int = 0, broker: type[Broker] = Broker) -> set[str]:
    """The names of the properties that do not hold."""
    return {each.name for each in explored(world, states, broker).violations}


#: One consumer, who gives back.
GIVEN_BACK = world(
    ["a.1 queue.declare q durable", "a.1 basic.qos 1", "a.1 basic.consume q tag=t"],
    ["2x b.1 basic.publish q", "a.1 basic.nack 1 requeue", "a.1 basic.ack 2"],
)
CONFIRMED = world(
    ["b.1 queue.declare q durable", "b.1 confirm.select"],
    ["2x b.1 basic.publish q", "b.1 basic.publish nowhere mandatory"],
)
GOT = world(
    ["a.1 queue.declare q durable"],
    ["2x b.1 basic.publish q", "2x a.1 basic.get q", "a.1 basic.ack 1", "a.1 queue.purge q"],
    inputs=4,
)
CANCELLED = world(
    ["a.1 queue.declare q durable", "a.1 basic.consume q tag=t"],
    ["b.1 basic.publish q", "a.1 basic.cancel t"],
)
LETTERS = world(
    [
        "a.1 queue.declare q durable x-dead-letter-exchange=\"\" x-dead-letter-routing-key=d",
        "a.1 queue.declare d durable",
        "a.1 basic.consume d tag=t",
        "a.2 basic.qos 1",
    ],
    ["b.1 basic.publish q", "b.1 basic.get q", "b.1 basic.reject 1 requeue=false", "a.1 basic.nack 1 requeue",
     "a.1 basic.cancel t", "a.2 basic.get d"],
    crossing=False,
)  # fmt: skip
ERRORS = world(
    ["a.1 queue.declare q durable", "a.1 basic.consume q tag=t", "a.2 basic.consume q tag=u"],
    ["b.1 basic.publish q", "a.1! basic.ack 9", "a.2! basic.ack 9"],
)
