"""Shrinking a list of commands: the shortest one found that still shows the same failure.

A delivery tag means another delivery as soon as an earlier command is left out. So tags are remembered by the message
that they stood for, and looked up again, with the help of the planning broker, in every shorter list.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from conformance.command import Command
from conformance.plan import Plan
from model.dialects import Dialect

#: Does running these commands show the failure that is looked for?
Shows = Callable[[Sequence[Command]], bool]

#: A command, and the body of the message that its delivery tag stands for, if it does for any.
_Meant = tuple[Command, bytes | None]


def shrink(commands: Sequence[Command], shows: Shows, dialect: Dialect, time_limit: float) -> tuple[Command, ...]:
    """Leave out commands, many at a time and then one by one, as long as the failure still shows.

    Ends when no single command can be left out, or after `time_limit` seconds with the best so far. `commands`
    themselves must show it; they are given back where nothing shorter does.
    """
    deadline = time.monotonic() + time_limit
    best = _meant(commands, dialect)
    shortest = tuple(commands)
    size = max(len(best) // 2, 1)
    while time.monotonic() < deadline:
        shorter = False
        place = len(best)
        while place > 0 and time.monotonic() < deadline:
            start = max(place - size, 0)
            candidate = best[:start] + best[place:]
            written = _written(candidate, dialect)
            if written and shows(written):
                best, shortest = candidate, written
                shorter = True
            place = start
        if size > 1:
            size //= 2
        elif not shorter:
            break
    return shortest


def _meant(commands: Sequence[Command], dialect: Dialect) -> list[_Meant]:
    """Each command with the message that its delivery tag stands for."""
    plan = Plan(dialect)
    result: list[_Meant] = []
    for command in commands:
        body = None
        channel = plan.channel(command.connection, command.channel)
        if channel is not None and "delivery_tag" in command.arguments:
            entry = channel.unacknowledged.get(command.arguments["delivery_tag"])
            body = entry.message.content.body if entry is not None else None
        result.append((command, body))
        plan.carry_out(command)
    return result


def _written(meant: Sequence[_Meant], dialect: Dialect) -> tuple[Command, ...]:
    """The commands, with the tags that the messages have in this list."""
    plan = Plan(dialect)
    result = []
    for command, body in meant:
        channel = plan.channel(command.connection, command.channel)
        if body is not None and channel is not None:
            for tag, entry in channel.unacknowledged.items():
                if entry.message.content.body == body:
                    command = replace(command, arguments={**command.arguments, "delivery_tag": tag})
                    break
        result.append(command)
        plan.carry_out(command)
    return tuple(result)
