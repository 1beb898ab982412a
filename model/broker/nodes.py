"""Nodes of a cluster: which of them take part in what the broker does, and whose clients can be answered.

A connection names its node behind an `@`; without, it is at the first. A node that is down, paused or cut off takes
part in nothing, and neither does anybody while fewer than a majority are left: what their clients send may be processed
when the others are back, and until then nothing is owed to them. A single broker is no cluster: nothing here applies.
"""

from __future__ import annotations

from collections.abc import Collection

#: Nodes that a cluster has, and so members that a quorum queue has.
SIZE = 3

#: Why a queue is open.
OPEN_BY = "node of a cluster that was paused, cut off, or has the queue and is down"

_AT = "@"


def node_of(connection: str) -> int:
    """The node that a connection of that name goes to."""
    number = connection.partition(_AT)[2]
    return int(number) if number.isdecimal() else 1


def has_majority(failed: Collection[int]) -> bool:
    """Are the nodes that have not failed more than half of all?"""
    return 2 * (SIZE - len(failed)) > SIZE


def is_mute(failed: Collection[int], connection: str) -> bool:
    """Need nobody answer there for now?"""
    return bool(failed) and (node_of(connection) in failed or not has_majority(failed))
