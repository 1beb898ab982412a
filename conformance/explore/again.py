"""Going a way again: to the position behind it, with copies at each step as the exploration makes them, or with none."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import fields
from typing import Any

from amqpspec.conformance.explore.beside import told
from amqpspec.conformance.explore.position import Position, Step
from amqpspec.conformance.explore.steps import (
    answer_step,
    come_to_rest,
    first_position,
    next_steps,
    process_input,
    process_time,
    send,
)
from amqpspec.conformance.explore.world import World
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.field_kinds import is_compared
from amqpspec.model.broker.queues import Queue


def behind(world: World, path: Iterable[Step], broker: type[Broker] = Broker) -> Position:
    """The position behind that way from the first one."""
    position, _ = first_position(world, broker)
    for step in path:
        position = next(further for each, further in next_steps(position) if each.text == step.text)
    return position
