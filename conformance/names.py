"""Names on the broker: each sequence's queues and exchanges carry a random prefix, so that runs do not meet.

Commands and reports show names without it.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import replace
from typing import Any

from conformance.command import Command
from model.verdict import Failure

_PREFIX = re.compile(r"amqpspec-[0-9a-f]{10}-")
_NAME_ARGUMENTS = ("queue", "exchange")
_TABLE_ARGUMENTS = ("x-dead-letter-exchange", "x-dead-letter-routing-key")


def new_prefix() -> str:
    return f"amqpspec-{secrets.token_hex(5)}-"


def _prefixed(name: Any, prefix: str) -> Any:
    return prefix + name if isinstance(name, str) and name and not name.startswith("amq.") else name


def on_the_broker(command: Command, prefix: str) -> Command:
    """The command as it is sent: names of queues and exchanges carry the prefix.

    With the default exchange the routing key is a queue's name.
    """
    arguments = dict(command.arguments)
    for key in _NAME_ARGUMENTS:
        if key in arguments:
            arguments[key] = _prefixed(arguments[key], prefix)
    if command.method == "basic.publish" and not arguments.get("exchange"):
        arguments["routing_key"] = _prefixed(arguments.get("routing_key", ""), prefix)
    table = arguments.get("arguments")
    if table and any(key in table for key in _TABLE_ARGUMENTS):
        arguments["arguments"] = {
            key: _prefixed(value, prefix) if key in _TABLE_ARGUMENTS and isinstance(value, str) else value
            for key, value in table.items()
        }
    return replace(command, arguments=arguments)


def plain(text: str) -> str:
    """`text` without any prefix."""
    return _PREFIX.sub("", text)


def plain_failure(failure: Failure) -> Failure:
    return replace(
        failure,
        detail=plain(failure.detail),
        observed=plain(failure.observed),
        allowed=tuple(map(plain, failure.allowed)),
        state=tuple(map(plain, failure.state)),
    )
