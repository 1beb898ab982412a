"""Names on the broker: each sequence's queues and exchanges carry a random prefix, so that runs do not meet.

Commands and reports show names without it.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.command_arguments import LAST_HEADERS
from amqpspec.model.promises.verdict import Failure
from amqpspec.model.protocol.methods import OPERATOR, Content

_PREFIX = re.compile(r"amqpspec-[0-9a-f]{10}-")
#: What a command says for the address of direct replies that the last request carried.
REPLY_ADDRESS = "$reply-to"
_NAME_ARGUMENTS = ("queue", "exchange", "source", "destination")
_TABLE_ARGUMENTS = ("x-dead-letter-exchange", "alternate-exchange")
#: Names a queue where the dead-letter exchange is the default exchange.
_DEAD_LETTER_KEY = "x-dead-letter-routing-key"
#: Headers that name further routing keys (PUBLISH-011).
_KEY_HEADERS = ("CC", "BCC")
#: The header that says where a message was dead-lettered, and those that say it of the first and the last time.
_DEATHS = "x-death"
_FIRST_AND_LAST = ("x-first-death", "x-last-death")
#: Whom and what the operator makes for a sequence.
_MADE_BY_THE_OPERATOR = ("user", "virtual_host", "policy")
#: Permissions are patterns of names.
_PATTERNS = ("configure", "write", "read")


def new_prefix() -> str:
    return f"amqpspec-{secrets.token_hex(5)}-"


def _prefixed(name: Any, prefix: str) -> Any:
    return prefix + name if isinstance(name, str) and name and not name.startswith("amq.") else name


def on_the_broker(
    command: Command, prefix: str, reply_address: str = "", last_headers: Mapping[str, Any] | str | None = None
) -> Command:
    """The command as it is sent: names of queues and exchanges carry the prefix, and so do those of virtual hosts and
    users, so that `/` and the user of the address are the only ones of them that any sequence shares with others.

    With the default exchange the routing key is a queue's name. A permission that begins with ^ is about such names.
    `$reply-to`, wherever it stands, is `reply_address`, the latest address of direct replies that a message carried.
    `headers=$last` is `last_headers`, those of the latest message that has come.
    """
    arguments = _with_address(command.arguments, reply_address)
    for key in _NAME_ARGUMENTS:
        if key in arguments:
            arguments[key] = _prefixed(arguments[key], prefix)
    content = _with_headers(command.content, prefix, reply_address, last_headers)
    if command.method == "basic.publish" and not arguments.get("exchange"):
        arguments["routing_key"] = _prefixed(arguments.get("routing_key", ""), prefix)
        content = _with_prefixed_keys(content, prefix)
    elif command.connection == OPERATOR or command.method in ("connection.open", "connection.start-ok"):
        for key in _MADE_BY_THE_OPERATOR:
            if key in arguments and arguments[key] != "/":
                arguments[key] = _prefixed(arguments[key], prefix)
        for key in _PATTERNS:
            if arguments.get(key, "").startswith("^"):
                arguments[key] = "^" + prefix + arguments[key][1:]
    if arguments.get("dead_letter_exchange"):
        arguments["dead_letter_exchange"] = _prefixed(arguments["dead_letter_exchange"], prefix)
    elif "dead_letter_routing_key" in arguments:
        arguments["dead_letter_routing_key"] = _prefixed(arguments["dead_letter_routing_key"], prefix)
    table = arguments.get("arguments")
    if table and any(key in table for key in (*_TABLE_ARGUMENTS, _DEAD_LETTER_KEY)):
        names = _TABLE_ARGUMENTS if table.get("x-dead-letter-exchange") else (*_TABLE_ARGUMENTS, _DEAD_LETTER_KEY)
        arguments["arguments"] = {
            key: _prefixed(value, prefix) if key in names and isinstance(value, str) else value
            for key, value in table.items()
        }
    return replace(command, arguments=arguments, content=content)


def _with_address(value: Any, address: str) -> Any:
    """The same with the address wherever its word stands."""
    if isinstance(value, dict):
        return {name: _with_address(item, address) for name, item in value.items()}
    if isinstance(value, list):
        return [_with_address(item, address) for item in value]
    return address if address and isinstance(value, str) and value == REPLY_ADDRESS else value


def _with_headers(
    content: Content | None, prefix: str, address: str, last: Mapping[str, Any] | str | None
) -> Content | None:
    """The content as it is sent, but for further routing keys."""
    if content is None:
        return None
    properties = _with_address(content.properties, address)
    if properties.get("headers") == LAST_HEADERS:
        properties = {name: value for name, value in properties.items() if name != "headers" or last}
        properties |= {"headers": last} if last else {}
    elif isinstance(headers := properties.get("headers"), dict):
        properties["headers"] = _with_prefixed_deaths(headers, prefix)
    return replace(content, properties=properties)


def _with_prefixed_deaths(headers: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Headers that say where a message was dead-lettered, as somebody has written them: they name queues."""
    changed = dict(headers)
    if isinstance(deaths := headers.get(_DEATHS), list):
        changed[_DEATHS] = [_prefixed_death(each, prefix) if isinstance(each, dict) else each for each in deaths]
    for name in _FIRST_AND_LAST:
        for what in ("queue", "exchange"):
            if (key := f"{name}-{what}") in headers:
                changed[key] = _prefixed(headers[key], prefix)
    return changed


def _prefixed_death(death: dict[str, Any], prefix: str) -> dict[str, Any]:
    changed = dict(death)
    for name in ("queue", "exchange"):
        if name in death:
            changed[name] = _prefixed(death[name], prefix)
    if death.get("exchange") == "" and isinstance(keys := death.get("routing-keys"), list):
        changed["routing-keys"] = [_prefixed(each, prefix) for each in keys]
    return changed


def _with_prefixed_keys(content: Content | None, prefix: str) -> Content | None:
    """With the default exchange further routing keys are queue names as well."""
    headers = content.properties.get("headers") if content is not None else None
    if content is None or not isinstance(headers, dict):
        return content
    if not any(isinstance(headers.get(key), list) for key in _KEY_HEADERS):
        return content
    changed = {
        key: [_prefixed(each, prefix) for each in value] if key in _KEY_HEADERS and isinstance(value, list) else value
        for key, value in headers.items()
    }
    return replace(content, properties={**content.properties, "headers": changed})


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
