"""Connections of a run that the broker still has open when the run is over, where an operator can count them.

The suite has closed all of its own by then. A broker that keeps one has not heard of its end, or does not let it go:
each run leaves some, until there is no room for more.
"""

from __future__ import annotations

import threading
import time

from amqpspec.targets.brokers.operator import CountsConnections, Operator
from amqpspec.targets.errors import TargetError

#: Seconds that a broker may take to let a connection go whose TCP connection has ended, and between two looks.
PATIENCE, PAUSE = 5.0, 0.2


def counted(operator: Operator | None) -> int | None:
    """How many connections there are; None: nobody can tell."""
    if not isinstance(operator, CountsConnections):
        return None
    try:
        return operator.connections()
    except TargetError:
        return None


def left_open(operator: Operator | None, before: int | None) -> int:
    """How many there are more than `before` the run. A broker that lets them go has some seconds for it."""
    until = time.monotonic() + PATIENCE
    while before is not None and (now := counted(operator)) is not None and now > before:
        if time.monotonic() >= until:
            return now - before
        threading.Event().wait(PAUSE)
    return 0
