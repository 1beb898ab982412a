"""What the operator of the broker has set up: users and policies."""

from __future__ import annotations

from dataclasses import dataclass, field

from amqpspec.model.protocol.methods import Table

#: What a policy may say of a queue, by the names in actions: numbers, and texts. In its definition they have hyphens,
#: and in an argument table `x-` stands before that.
POLICY_NUMBERS = ("consumer_timeout", "max_length", "max_length_bytes", "message_ttl", "expires", "delivery_limit")
POLICY_TEXTS = ("overflow", "dead_letter_exchange", "dead_letter_routing_key", "ha_mode")
POLICY_KEYS = {name: name.replace("_", "-") for name in (*POLICY_NUMBERS, *POLICY_TEXTS)}


def definition_of(arguments: Table) -> Table:
    """What the policy says that an action of these arguments sets."""
    return {key: arguments[name] for name, key in POLICY_KEYS.items() if arguments.get(name) is not None}


@dataclass(frozen=True, slots=True)
class Policy:
    """What the operator said of a queue from outside."""

    queue: str
    virtual_host: str = "/"
    #: of several that match, the highest one holds
    priority: int = 0
    #: what it says, by the names of the arguments of a queue that say the same
    definition: Table = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class User:
    """Somebody whom the operator made. Users that the broker had already may do everything, for all that is known."""

    name: str
    password: str
    #: by virtual host: patterns of the names that this user may configure, write and read; none: no access to it
    permissions: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    #: the broker was started again since then
    survived: bool = False
