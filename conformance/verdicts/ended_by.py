"""Why a sequence says nothing where a failure is the reason: in words, and back from the words to the failure."""

from __future__ import annotations

_LOST = "the target was lost in it: "
_BLOCKED = "blocked by "


def lost_by(identity: str) -> str:
    """The reason of a sequence in which the target ended."""
    return f"{_LOST}{identity}"


def blocked_by(identity: str) -> str:
    """The reason of a sequence that comes under a failure which was seen again and again."""
    return f"{_BLOCKED}{identity}"


def failure_behind(reason: str | None) -> str | None:
    """The identity of the failure that is the reason; None: it is another one."""
    for before in (_LOST, _BLOCKED):
        if reason is not None and reason.startswith(before):
            return reason.removeprefix(before)
    return None
