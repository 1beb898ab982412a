"""Faults among commands: which of them break the broker for everybody, and which a single connection."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from amqpspec.conformance.language.command import Command
from amqpspec.model.protocol.methods import FAULTS

_DOWN = ("broker.stop", "broker.kill", "broker.pause")
_UP = ("broker.resume", "broker.restart")


def of_broker(commands: Iterable[Command]) -> list[Command]:
    """Those that everybody meets."""
    return [each for each in commands if each.method in FAULTS and not _is_of_connection(each)]


def breaks_broker(commands: Iterable[Command]) -> bool:
    return bool(of_broker(commands))


def broken_connections(commands: Iterable[Command]) -> frozenset[str]:
    """Connections between which and their node the network fails."""
    return frozenset(str(each.arguments["connection"]) for each in commands if _is_of_connection(each))


def as_done(commands: Iterable[Command]) -> list[Command]:
    """The same as they are carried out: a single broker that is started again and is not down is stopped first."""
    done: list[Command] = []
    is_down = False
    for each in of_broker(commands):
        if each.method == "broker.restart" and "node" not in each.arguments and not is_down:
            done.append(replace(each, method="broker.stop"))
        done.append(each)
        is_down = each.method in ("broker.stop", "broker.kill") or (is_down and each.method != "broker.restart")
    return done


def is_left_broken(commands: Iterable[Command], at: int | None = None) -> bool:
    """Need a fresh connection not be served after these, as the broker, or a node of it, is down or paused? `at`: a
    connection to that node.
    """
    state: dict[int | None, bool] = {}
    for each in commands:
        node = each.arguments.get("node")
        if each.method in _DOWN:
            state[node] = True
        elif each.method in _UP and node is None:
            state.clear()
        elif each.method in _UP:
            state.pop(node, None)
    return bool(state) if at is None else None in state or at in state


def _is_of_connection(command: Command) -> bool:
    return command.method in FAULTS and "connection" in command.arguments
