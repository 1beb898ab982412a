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
the name of a bit. Values are numbers, `true`, `false`, `null`, words, JSON strings, lists and objects. `#` begins a
comment.

Besides the methods of AMQP there is what else the alphabet has (`model.protocol.methods`): the life of sockets, single
frames, the operator's doings on the connection `broker`, and faults, whose lines begin with their name: `broker.kill`,
`network.cut node=2`. In a cluster a connection may name its node: `a@2.1 basic.get q`. `connection.open` opens a
connection as a client does, from the TCP connection on, with wishes of one's own: `a connection.open
consumer-cancel-notify=false frame-max=4095 user=nobody`; `a! connection.open` is that method alone. A publish that is
`unfinished` is its method frame alone, and the keys of an argument table that have no `x-` go by
`arguments={"key": "value"}`. Values that JSON has not are written as in traces (`conformance.traces.trace_values`):
`{"$datetime": "2024-02-29T12:00:00+00:00"}`. `$reply-to`, wherever it stands, is the latest address of direct replies
that a message has carried, and `headers=$last` those that the latest message came with: it is sent again.

A line that begins with `expect` sends nothing. It says what the broker is to have done after the last command:

    expect a.1 channel.close reply-code=403     this frame came on that channel; what is not said of it is left open
    expect nothing                              no frame came, but for answers to the suite's own questions
    expect ready q 3                            so many messages are ready in the queue

`*` in a text stands for any text. Lines that expect frames of one channel expect them in that order.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from amqpspec.conformance.language.command_arguments import (
    ARGUMENTS,
    BIT,
    CONSTANTS,
    EXPECTED,
    FRACTION,
    INTEGER,
    OCTETS,
    POSITIONAL,
    PROPERTIES,
    TABLE,
    TABLE_NAMES,
    TEXT,
    UNFINISHED,
    hyphened,
)
from amqpspec.conformance.traces.trace_values import encode_value
from amqpspec.model.protocol.methods import FAULTS, Content, Table

#: Stands where other lines have a connection, and the three kinds of such lines.
EXPECT = "expect"
EXPECT_FRAME, EXPECT_NOTHING, EXPECT_READY = "expect.frame", "expect.nothing", "expect.ready"

_TABLE_NAME = re.compile(r"x-[\w.-]*")


@dataclass(frozen=True, slots=True)
class Command:
    """One client action. `arguments` are named as in `model.protocol.methods`; only publishes have `content`."""

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


def print_command(command: Command) -> str:
    """The canonical text; `parse_command` of it gives the command back."""
    if command.connection == EXPECT:
        return _print_expectation(command.method, command.arguments)
    target = command.connection if command.channel == 0 else f"{command.connection}.{command.channel}"
    words = [target + ("!" if command.as_it_stands else "")] if command.method not in FAULTS else []
    words.append(command.method)
    kinds = ARGUMENTS.get(command.method, {})
    positional = POSITIONAL.get(command.method, ())
    leading = True
    for position in positional:
        if position not in command.arguments:
            leading = False
        elif leading and not _could_be_a_flag(command.arguments[position], kinds):
            words.append(_printed(command.arguments[position], kinds[position]))
        else:
            words.append(f"{hyphened(position)}={_printed(command.arguments[position], kinds[position])}")
    for name, value in command.arguments.items():
        if name in positional or name in ("arguments", "capabilities"):
            continue
        kind = kinds.get(name, "any")
        words.append(hyphened(name) if value is True else f"{hyphened(name)}={_printed(value, kind)}")
    words.extend(_table_words(command))
    if command.content is not None:
        words.extend(_content_words(command.content))
    elif command.method == "basic.publish":
        words.append(UNFINISHED)
    if command.in_flight:
        words.append("&")
    return " ".join(words)


def _print_expectation(kind: str, said: Table) -> str:
    if kind == EXPECT_NOTHING:
        return f"{EXPECT} nothing"
    if kind == EXPECT_READY:
        return f"{EXPECT} ready {_printed(said['queue'], TEXT)} {said['messages']}"
    kinds = {**EXPECTED.get(said["frame"], {}), **PROPERTIES}
    words = [f"{hyphened(name)}={_printed(value, kinds.get(name, TEXT))}" for name, value in said["fields"].items()]
    return " ".join([EXPECT, said["on"], said["frame"], *words])


def _table_words(command: Command) -> list[str]:
    capabilities = command.arguments.get("capabilities") or {}
    words = [f"{name}={_printed(value, 'any')}" for name, value in capabilities.items()]
    others: Table = {}
    for name, value in (command.arguments.get("arguments") or {}).items():
        if _TABLE_NAME.fullmatch(name) or name in TABLE_NAMES:
            words.append(f"{name}={_printed(value, 'any')}")
        else:
            others[name] = value
    return [*words, f"arguments={_printed(others, TABLE)}"] if others else words


def _content_words(content: Content) -> list[str]:
    body, stripped = content.body, content.body.rstrip(b".")
    words = []
    if len(body) - len(stripped) > 40:
        words += [f"body={_printed(_text(stripped), TEXT)}", f"body-size={len(body)}"]
    elif body:
        words.append(f"body={_printed(_text(body), TEXT)}")
    words += [f"{hyphened(k)}={_printed(v, PROPERTIES.get(k, 'any'))}" for k, v in content.properties.items()]
    return words


def _text(body: bytes) -> str:
    return body.decode("utf-8", "backslashreplace")


def _could_be_a_flag(value: Any, kinds: dict[str, str]) -> bool:
    return isinstance(value, str) and (kinds.get(value.replace("-", "_")) == BIT or value in ("&", UNFINISHED))


def _printed(value: Any, kind: str) -> str:
    """A value in a form that `parse_command` reads back: bare where that is unambiguous, else JSON."""
    if isinstance(value, bool) or not isinstance(value, str):
        return json.dumps(encode_value(value))
    plain = bool(re.fullmatch(r"[^\s\"\[{#=&][^\s\"]*", value)) and "=" not in value
    looks_typed = value in CONSTANTS or INTEGER.fullmatch(value) or FRACTION.fullmatch(value)
    return value if plain and not (kind not in (TEXT, OCTETS) and looks_typed) else json.dumps(value)
