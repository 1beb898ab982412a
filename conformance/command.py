"""The command language: one line that a person can read, write and paste in a bug report.

    a.1 basic.consume q1 tag=t prefetch…
    line     = target " " method { " " item } [ " &" ]
    target   = connection [ "." channel ] [ "!" ]
    item     = value | name "=" value | flag

`a.1` is channel 1 of connection a; `a` alone is the connection itself (channel 0). Connections and channels open
themselves at their first use; with `!` the line is sent as it stands, whether the channel is open or not. A line
that ends in `&` is not waited for: the next one is sent at once.

Names are those of the AMQP text, with hyphens. The first values may stand without their names (`POSITIONAL`).
Names that begin with `x-` go into the method's argument table; the names of basic properties set these. A flag is
the name of a bit. Values are numbers, `true`, `false`, words, JSON strings, lists and objects. `#` begins a comment.

Besides the methods of AMQP there are `socket.abort` (end the TCP connection at once) and `connection.open`, which
opens a connection with client capabilities of one's own: `a connection.open consumer-cancel-notify=false`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from model.alphabet import CONTENT_METHODS, METHOD_IDS, Content, Table


#: Arguments whose names may be left out, in order.
POSITIONAL: dict[str, tuple[str, ...]] = {
    "basic.ack": ("delivery_tag",),
    "basic.cancel": ("consumer_tag",),
    "basic.cancel-ok": ("consumer_tag",),
    "basic.consume": ("queue",),
    "basic.get": ("queue",),
    "basic.nack": ("delivery_tag",),
    "basic.publish": ("routing_key",),
    "basic.qos": ("prefetch_count",),
    "basic.reject": ("delivery_tag",),
    "exchange.declare": ("exchange", "type"),
    "exchange.delete": ("exchange",),
    "queue.bind": ("queue", "exchange"),
    "queue.declare": ("queue",),
    "queue.delete": ("queue",),
    "queue.purge": ("queue",),
    "queue.unbind": ("queue", "exchange"),
}

_TEXT, _NUMBER, _BIT = "text", "number", "bit"

#: What a client may say in each method: the argument's name and kind. Other methods are sent without arguments.
ARGUMENTS: dict[str, dict[str, str]] = {
    "channel.flow": {"active": _BIT},
    "channel.close": {"reply_code": _NUMBER, "reply_text": _TEXT, "class_id": _NUMBER, "method_id": _NUMBER},
    "connection.close": {"reply_code": _NUMBER, "reply_text": _TEXT, "class_id": _NUMBER, "method_id": _NUMBER},
    "exchange.declare": {
        "exchange": _TEXT, "type": _TEXT, "passive": _BIT, "durable": _BIT, "auto_delete": _BIT, "internal": _BIT,
        "nowait": _BIT,
    },
    "exchange.delete": {"exchange": _TEXT, "if_unused": _BIT, "nowait": _BIT},
    "queue.declare": {
        "queue": _TEXT, "passive": _BIT, "durable": _BIT, "exclusive": _BIT, "auto_delete": _BIT, "nowait": _BIT,
    },
    "queue.bind": {"queue": _TEXT, "exchange": _TEXT, "routing_key": _TEXT, "nowait": _BIT},
    "queue.unbind": {"queue": _TEXT, "exchange": _TEXT, "routing_key": _TEXT},
    "queue.purge": {"queue": _TEXT, "nowait": _BIT},
    "queue.delete": {"queue": _TEXT, "if_unused": _BIT, "if_empty": _BIT, "nowait": _BIT},
    "basic.qos": {"prefetch_size": _NUMBER, "prefetch_count": _NUMBER, "global_": _BIT},
    "basic.consume": {
        "queue": _TEXT, "consumer_tag": _TEXT, "no_local": _BIT, "no_ack": _BIT, "exclusive": _BIT, "nowait": _BIT,
    },
    "basic.cancel": {"consumer_tag": _TEXT, "nowait": _BIT},
    "basic.cancel-ok": {"consumer_tag": _TEXT},
    "basic.publish": {"exchange": _TEXT, "routing_key": _TEXT, "mandatory": _BIT, "immediate": _BIT},
    "basic.get": {"queue": _TEXT, "no_ack": _BIT},
    "basic.ack": {"delivery_tag": _NUMBER, "multiple": _BIT},
    "basic.nack": {"delivery_tag": _NUMBER, "multiple": _BIT, "requeue": _BIT},
    "basic.reject": {"delivery_tag": _NUMBER, "requeue": _BIT},
    "basic.recover": {"requeue": _BIT},
    "basic.recover-async": {"requeue": _BIT},
    "confirm.select": {"nowait": _BIT},
    "connection.open": {"virtual_host": _TEXT},
}  # fmt: skip

#: Methods with an argument table, into which `x-…` names go.
TABLE_METHODS = frozenset(
    {"exchange.declare", "queue.declare", "queue.bind", "queue.unbind", "basic.consume"}
)

#: Basic properties that a publish may set, and their kinds.
PROPERTIES = {
    "content_type": _TEXT, "content_encoding": _TEXT, "headers": "table", "delivery_mode": _NUMBER,
    "priority": _NUMBER, "correlation_id": _TEXT, "reply_to": _TEXT, "expiration": _TEXT, "message_id": _TEXT,
    "timestamp": _NUMBER, "type": _TEXT, "user_id": _TEXT, "app_id": _TEXT, "cluster_id": _TEXT,
}  # fmt: skip

#: Shorter names that people use.
ALIASES = {
    "basic.ack": {"tag": "delivery_tag"},
    "basic.nack": {"tag": "delivery_tag"},
    "basic.reject": {"tag": "delivery_tag"},
    "basic.consume": {"tag": "consumer_tag"},
    "basic.cancel": {"tag": "consumer_tag"},
    "basic.cancel-ok": {"tag": "consumer_tag"},
    "basic.qos": {"prefetch": "prefetch_count", "global": "global_"},
}

#: Client capabilities that `connection.open` may set.
CAPABILITIES = (
    "publisher_confirms", "exchange_exchange_bindings", "basic.nack", "consumer_cancel_notify", "connection.blocked",
    "authentication_failure_close", "per_consumer_qos",
)  # fmt: skip


class CommandSyntaxError(ValueError):
    """A line is not a command. `column` counts from 1."""

    def __init__(self, message: str, column: int) -> None:
        super().__init__(message)
        self.message = message
        self.column = column


@dataclass(frozen=True, slots=True)
class Command:
    """One client action. `arguments` are named as in `model.alphabet`; `content` is there for publishes only."""

    connection: str
    channel: int
    method: str
    arguments: Table = field(default_factory=dict)
    content: Content | None = None
    #: send it whether the channel is open or not
    as_it_stands: bool = False
    #: do not wait for what it brings about
    in_flight: bool = False

    def __str__(self) -> str:
        return print_command(self)


_TOKEN = re.compile(r"""(?P<name>[A-Za-z][\w.-]*=)?(?P<value>"(?:[^"\\]|\\.)*"|[^\s"\[{]\S*|)""")
_TARGET = re.compile(r"([a-z][a-z0-9]*)(?:\.(\d+))?(!)?$")


def parse_command(line: str) -> Command:
    """Parse one line, without its comment. Raises `CommandSyntaxError` with the column of what is wrong."""
    words = list(_words(line))
    if not words:
        raise CommandSyntaxError("a command is missing", 1)
    in_flight = words[-1][1:] == ("", "&")
    if in_flight:
        words.pop()
    column, name, text = words[0]
    target = _TARGET.match(text)
    if name or not target:
        raise CommandSyntaxError(f"{text or name!r} is not a connection or channel such as a or a.1", column)
    if len(words) < 2:
        raise CommandSyntaxError("a method is missing, such as basic.get", len(line) + 1)
    column, name, method = words[1]
    if name or (method not in METHOD_IDS and method != "socket.abort"):
        raise CommandSyntaxError(f"{method!r} is not a method", column)
    channel = int(target[2] or 0)
    if channel > 65535:
        raise CommandSyntaxError(f"channel {channel} is beyond 65535", 1)
    arguments, content = _arguments(method, words[2:])
    return Command(target[1], channel, method, arguments, content, target[3] is not None, in_flight)


def _words(line: str) -> list[tuple[int, str, str]]:
    """Column, name before "=", and text of the value, of every word up to the comment."""
    words: list[tuple[int, str, str]] = []
    place = 0
    while place < len(line):
        if line[place].isspace():
            place += 1
            continue
        if line[place] == "#":
            break
        found = _TOKEN.match(line, place)
        assert found is not None  # the expression matches the empty text
        end = found.end()
        value = found["value"]
        if line[end : end + 1] in ("[", "{"):
            try:
                _, end = json.JSONDecoder().raw_decode(line, end)
            except json.JSONDecodeError as error:
                raise CommandSyntaxError(f"not JSON: {error.msg}", error.pos + 1) from None
            value = line[found.end() : end]
        if end == place:
            raise CommandSyntaxError(f"cannot read {line[place : place + 20]!r}", place + 1)
        if end < len(line) and not line[end].isspace():
            raise CommandSyntaxError(f"a blank is missing before {line[end:end + 20]!r}", end + 1)
        words.append((place + 1, (found["name"] or "").rstrip("="), value))
        place = end
    return words


def _arguments(method: str, words: list[tuple[int, str, str]]) -> tuple[Table, Content | None]:
    known = ARGUMENTS.get(method, {})
    aliases = ALIASES.get(method, {})
    free = list(POSITIONAL.get(method, ()))
    arguments: Table = {}
    table: Table = {}
    properties: Table = {}
    body: bytes | None = None
    size = 0
    for column, name, text in words:
        key = aliases.get(name, name.replace("-", "_"))
        bare = aliases.get(text, text.replace("-", "_"))
        if not name and known.get(bare) == _BIT:
            arguments[bare] = True
        elif not name:
            if not free:
                raise CommandSyntaxError(f"{text!r} is not an argument of {method}", column)
            position = free.pop(0)
            arguments[position] = _value(text, known[position], column)
        elif name.startswith("x-") and method in TABLE_METHODS:
            table[name] = _value(text, "any", column)
        elif method == "basic.publish" and name == "body":
            body = str(_value(text, _TEXT, column)).encode()
        elif method == "basic.publish" and name == "body-size":
            size = _value(text, _NUMBER, column)
        elif method == "basic.publish" and key in PROPERTIES:
            properties[key] = _value(text, PROPERTIES[key], column)
        elif method == "connection.open" and (name.replace("-", "_") in CAPABILITIES or name in CAPABILITIES):
            table[name if name in CAPABILITIES else key] = _value(text, "any", column)
        elif key in known:
            arguments[key] = _value(text, known[key], column)
            if key in free:
                free.remove(key)
        else:
            raise CommandSyntaxError(f"{name!r} is not an argument of {method}", column)
    if table:
        arguments["capabilities" if method == "connection.open" else "arguments"] = table
    if method not in CONTENT_METHODS:
        return arguments, None
    octets = body or b""
    return arguments, Content(properties, octets.ljust(size, b"."))


def _value(text: str, kind: str, column: int) -> Any:
    if text[:1] in ('"', "[", "{"):
        try:
            value = json.loads(text)
        except json.JSONDecodeError as error:
            raise CommandSyntaxError(f"{text!r} is not JSON: {error.msg}", column + error.pos) from None
    elif text in ("true", "false") and kind != _TEXT:
        value = text == "true"
    elif kind != _TEXT and re.fullmatch(r"-?\d+", text):
        value = int(text)
    else:
        value = text
    expected = {_TEXT: str, _NUMBER: int, _BIT: bool, "table": dict}.get(kind)
    if expected is not None and (not isinstance(value, expected) or (kind == _NUMBER and isinstance(value, bool))):
        raise CommandSyntaxError(f"{text!r} is not a {kind}", column)
    return value


def print_command(command: Command) -> str:
    """The canonical text; `parse_command` of it gives the command back."""
    target = command.connection if command.channel == 0 else f"{command.connection}.{command.channel}"
    words = [target + ("!" if command.as_it_stands else ""), command.method]
    kinds = ARGUMENTS.get(command.method, {})
    positional = POSITIONAL.get(command.method, ())
    leading = True
    for position in positional:
        if position not in command.arguments:
            leading = False
        elif leading and not _could_be_a_flag(command.arguments[position], kinds):
            words.append(_printed(command.arguments[position], kinds[position]))
        else:
            words.append(f"{_hyphened(position)}={_printed(command.arguments[position], kinds[position])}")
    for name, value in command.arguments.items():
        if name in positional or name in ("arguments", "capabilities"):
            continue
        kind = kinds.get(name, "any")
        words.append(_hyphened(name) if value is True else f"{_hyphened(name)}={_printed(value, kind)}")
    for name, value in (command.arguments.get("arguments") or command.arguments.get("capabilities") or {}).items():
        words.append(f"{name}={_printed(value, 'any')}")
    if command.content is not None:
        words.extend(_content_words(command.content))
    if command.in_flight:
        words.append("&")
    return " ".join(words)


def _content_words(content: Content) -> list[str]:
    body = content.body.decode("utf-8", "backslashreplace")
    filled = len(body) - len(body.rstrip("."))
    words = []
    if filled > 40:
        words += [f"body={_printed(body.rstrip('.'), _TEXT)}", f"body-size={len(content.body)}"]
    elif body:
        words.append(f"body={_printed(body, _TEXT)}")
    words += [f"{_hyphened(k)}={_printed(v, PROPERTIES.get(k, 'any'))}" for k, v in content.properties.items()]
    return words


def _hyphened(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def _could_be_a_flag(value: Any, kinds: dict[str, str]) -> bool:
    return isinstance(value, str) and (kinds.get(value.replace("-", "_")) == _BIT or value == "&")


def _printed(value: Any, kind: str) -> str:
    """A value in a form that `_value` reads back: bare where that is unambiguous, else JSON."""
    if isinstance(value, bool) or not isinstance(value, str):
        return json.dumps(value)
    plain = bool(re.fullmatch(r"[^\s\"\[{#=&][^\s\"]*", value)) and "=" not in value
    looks_typed = kind != _TEXT and (value in ("true", "false") or re.fullmatch(r"-?\d+", value) is not None)
    return value if plain and not looks_typed else json.dumps(value)


__all__ = ["Command", "CommandSyntaxError", "parse_command", "print_command"]
