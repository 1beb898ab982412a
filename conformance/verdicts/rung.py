"""One rung of the ladder of frames that shows a failure (`conformance.failures.ladder`)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a rung is."""

    COMMAND = "command"
    SENT = "sent"
    RECEIVED = "received"
    #: a frame that is not allowed
    WRONG = "wrong"
    #: a frame that did not come
    MISSING = "missing"
    #: rungs that are left out
    GAP = "gap"


@dataclass(frozen=True, slots=True)
class Rung:
    """A command, a frame, or one that did not come. `place`: connection and channel, such as "a.1"; "": none."""

    kind: Kind
    place: str
    text: str
