"""What is the same on every connection, and so is judged once in a run: in the scenarios that are about it.

What a broker says of itself in connection.start, and what it offers in connection.tune, is no news from the second
connection on: every other sequence of a run would fail by it, and its verdict would say nothing.
"""

from __future__ import annotations

from amqpspec.conformance.traces.trace_row import TraceRow
from amqpspec.model.promises.verdict import Failure, Shape

#: The requirements about that; each has a scenario of its own.
REQUIREMENTS = frozenset({"CAP-001", "CONN-001", "CONN-010", "CONN-025"})
#: What a failure's detail begins with.
_DETAILS = ("connection.start ", "connection.tune ", "not advertised")


def is_judged_elsewhere(start: TraceRow, failure: Failure) -> bool:
    """Is that failure another sequence's of the run?

    `start`: the sequence's first row. One that belongs to no run, or that repeats others for a failure, has it all.
    """
    if failure.requirement not in REQUIREMENTS or failure.shape is not Shape.WRONG_ARGUMENT:
        return False
    if start.get("seed") is None or start.get("repeats") is not None:
        return False
    return failure.requirement != start.get("requirement") and failure.detail.startswith(_DETAILS)
