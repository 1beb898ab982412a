"""Who has started what outlives it, such as a container: so that what a killed run has left behind can be found.

It is told by a label. Whoever starts a broker in a container next takes away what belongs to nobody any more. A process
is known by the machine's boot, its namespace, its number and when it began: what cannot be read so is left alone.
"""

from __future__ import annotations

import os
from pathlib import Path

#: Every container and network of ours has this label, with the value 1.
LABEL = "amqpspec"
#: Whose it is.
OWNER = "amqpspec.owner"

_PROC = Path("/proc")
#: Of /proc/PID/stat, counted behind the name of the program: when the process began.
_BEGAN = 19


def labels() -> dict[str, str]:
    """Those of what this process starts."""
    return {LABEL: "1", OWNER: owner()}


def owner() -> str:
    """This process; "": it cannot be known here."""
    place, began = _place(), _began(os.getpid())
    return f"{place} {os.getpid()} {began}" if place and began else ""


def is_gone(owner: str) -> bool:
    """Is that process certainly over?"""
    words = owner.split()
    if len(words) != 4 or not words[2].isdecimal() or " ".join(words[:2]) != _place():
        return False
    pid, began = int(words[2]), words[3]
    return _began(pid) not in ("", began) or not _is_there(pid)


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # it is somebody else's
    return True


def _place() -> str:
    """Where numbers of processes mean what they mean here."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return ""


def _began(pid: int) -> str:
    """When the process began; "": there is none."""
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[_BEGAN]
    except (OSError, IndexError):
        return ""
