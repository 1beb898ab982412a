"""What the operator of the broker has set up: users and policies."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Policy:
    """What the operator said of a queue from outside."""

    queue: str
    virtual_host: str = "/"
    #: of several that match, the highest one holds
    priority: int = 0
    #: milliseconds; None: it says nothing of that
    consumer_timeout: int | None = None


@dataclass(frozen=True, slots=True)
class User:
    """Somebody whom the operator made. Users that the broker had already may do everything, for all that is known."""

    name: str
    password: str
    #: by virtual host: patterns of the names that this user may configure, write and read; none: no access to it
    permissions: dict[str, tuple[str, str, str]] = field(default_factory=dict)
