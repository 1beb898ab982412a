"""Parsing: from a line of the command language (`conformance.language.command`) to a `Command`."""

from __future__ import annotations

import json
import re
from typing import Any

from amqpspec.conformance.language.command import EXPECT, EXPECT_FRAME, EXPECT_NOTHING, EXPECT_READY, Command
from amqpspec.conformance.language.command_arguments import (
    ALIASES,
    ARGUMENTS,
    BIT,
    BODY_METHODS,
    CAPABILITIES,
    CARRY_MESSAGES,
    CONSTANTS,
    EXPECTED,
    FRACTION,
    INTEGER,
    LAST_HEADERS,
    MAX_WAIT,
    NUMBER,
    OCTETS,
    POSITIONAL,
    PROPERTIES,
    TABLE,
    TABLE_METHODS,
    TABLE_NAMES,
    TEXT,
    UNFINISHED,
    WAIT,
    hyphened,
)
from amqpspec.conformance.traces.trace_values import TOO_DEEP, ValueNotRecordable, decode_value
from amqpspec.model.protocol.methods import (
    CONTENT_METHODS,
    FAULTS,
    METHOD_IDS,
    OPERATOR,
    OPERATOR_METHODS,
    OTHER_INPUTS,
    Content,
    Table,
)


class CommandSyntaxError(ValueError):
    """A line is not a command. `column` counts from 1."""

    def __init__(self, message: str, column: int) -> None:
        super().__init__(message)
        self.message = message
        self.column = column


_TOKEN = re.compile(r"""(?P<name>[A-Za-z][\w.-]*=)?(?P<value>"(?:[^"\\]|\\.)*"|[^\s"\[{]\S*|)""")
_TARGET = re.compile(r"([a-z][a-z0-9]*(?:@[1-9])?)(?:\.(\d{1,9}))?(!)?$")
_OCTETS = re.compile(r"([0-9a-fA-F]{2})*")

#: What a trace has where the broker ends the TCP stream.
STREAM_ENDS = "socket.closed"

#: Octets of the largest body that a command may ask for; no RabbitMQ takes more.
MAX_BODY = 512 * 1024 * 1024


def parse_command(line: str) -> Command:
    """Parse one line, without its comment. Raises `CommandSyntaxError` with the column of what is wrong."""
    words = list(_words(line))
    in_flight = bool(words) and words[-1][1:] == ("", "&")
    if in_flight:
        words.pop()
    for column, *word in words:
        if word == ["", "&"]:
            raise CommandSyntaxError("& stands at the end of a line", column)
    if not words:
        raise CommandSyntaxError("a command is missing", 1)
    if words[0][1:] == ("", EXPECT):
        if in_flight:
            raise CommandSyntaxError("a line that expects something is not sent: it has no &", len(line.rstrip()))
        return Command(EXPECT, 0, *_expectation(words[1:], len(line) + 1))
    if words[0][2] in FAULTS:
        words.insert(0, (1, "", OPERATOR))
    column, name, text = words[0]
    target = _TARGET.match(text)
    if name or not target:
        raise CommandSyntaxError(f"{text or name!r:.80} is not a connection or channel such as a or a.1", column)
    if len(words) < 2:
        raise CommandSyntaxError("a method is missing, such as basic.get", len(line) + 1)
    column, name, method = words[1]
    if name or (method not in METHOD_IDS and method not in OTHER_INPUTS):
        raise CommandSyntaxError(f"{method!r} is not a method", column)
    if (target[1] == OPERATOR) is not (method in OPERATOR_METHODS):
        whose = f"of the connection {OPERATOR!r}" if method in OPERATOR_METHODS else "of a client's connection"
        raise CommandSyntaxError(f"{method} is a method {whose}", column)
    channel = int(target[2] or 0)
    if channel > 65535:
        raise CommandSyntaxError(f"channel {channel} is beyond 65535", 1)
    arguments, content = _arguments(method, words[2:])
    return Command(target[1], channel, method, arguments, content, target[3] is not None, in_flight)


def _expectation(words: list[tuple[int, str, str]], end: int) -> tuple[str, Table]:
    """The kind of what is expected, and its arguments. `end`: the column behind the line."""
    if not words:
        raise CommandSyntaxError("what is expected is missing, such as a.1 channel.close", end)
    column, name, text = words[0]
    if not name and text == "nothing":
        if words[1:]:
            raise CommandSyntaxError("nothing follows `expect nothing`", words[1][0])
        return EXPECT_NOTHING, {}
    if not name and text == "ready":
        if len(words) != 3 or words[1][1] or words[2][1]:
            raise CommandSyntaxError("a queue and a number of messages follow `expect ready`, such as q 3", column)
        messages = _value(words[2][2], NUMBER, words[2][0])
        if messages < 0:
            raise CommandSyntaxError(f"{messages} is no number of messages", words[2][0])
        return EXPECT_READY, {"queue": _value(words[1][2], TEXT, words[1][0]), "messages": messages}
    target = _TARGET.match(text)
    if name or not target or target[3]:
        what = f"{text or name!r:.80} is neither `nothing` nor `ready` nor a connection or channel such as a or a.1"
        raise CommandSyntaxError(what, column)
    if len(words) < 2:
        raise CommandSyntaxError("the frame that is expected is missing, such as channel.close", end)
    column, name, method = words[1]
    if name or (method not in METHOD_IDS and method != STREAM_ENDS):
        raise CommandSyntaxError(f"{method!r} is not a method", column)
    known = EXPECTED.get(method, {})
    if method in CARRY_MESSAGES:
        known = {**known, **PROPERTIES, "body": TEXT}
    fields: Table = {}
    for column, name, text in words[2:]:
        key = name.replace("-", "_")
        if key not in known:
            raise CommandSyntaxError(f"{name or text!r} is nothing that a line can expect of {method}", column)
        _put(fields, key, _value(text, known[key], column + len(name) + 1), column)
    return EXPECT_FRAME, {"on": target[0], "frame": method, "fields": fields}


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
            value = line[end : _end_of_json(line, end)]
            end += len(value)
        if line[end : end + 1] == '"' and not value:
            raise CommandSyntaxError("the text has no closing quotation mark", end + 1)
        if end < len(line) and not line[end].isspace():
            raise CommandSyntaxError(f"a blank is missing before {line[end:end + 20]!r}", end + 1)
        words.append((place + 1, (found["name"] or "").rstrip("="), value))
        place = end
    return words


def _end_of_json(line: str, start: int) -> int:
    try:
        return json.JSONDecoder().raw_decode(line, start)[1]
    except json.JSONDecodeError as error:
        raise CommandSyntaxError(f"not JSON: {error.msg}", error.pos + 1) from None
    except RecursionError:
        raise _too_deep(start + 1) from None
    except ValueError:
        raise CommandSyntaxError("a number has too many digits", start + 1) from None


def _too_deep(column: int) -> CommandSyntaxError:
    return CommandSyntaxError(TOO_DEEP, column)


def _arguments(method: str, words: list[tuple[int, str, str]]) -> tuple[Table, Content | None]:
    known = ARGUMENTS.get(method, {})
    aliases = ALIASES.get(method, {})
    free = POSITIONAL.get(method, ())
    arguments: Table = {}
    table: Table = {}
    properties: Table = {}
    body: Table = {}
    unfinished = False
    for column, name, text in words:
        key = aliases.get(name, name.replace("-", "_"))
        bare = aliases.get(text, text.replace("-", "_"))
        at = column + len(name) + 1 if name else column  # where the value begins
        if not name and known.get(bare) == BIT:
            _put(arguments, bare, True, column)
        elif not name and method == "basic.publish" and text == UNFINISHED:
            unfinished = True
        elif not name:
            position = next((each for each in free if each not in arguments), None)
            if position is None:
                raise CommandSyntaxError(f"{text!r} is not an argument of {method}", column)
            arguments[position] = _value(text, known[position], column)
        elif method in TABLE_METHODS and (name.startswith("x-") or name in TABLE_NAMES):
            _put(table, name, _value(text, "any", at), column)
        elif method in TABLE_METHODS and name == "arguments":
            for each, value in _value(text, TABLE, at).items():
                _put(table, each, value, column)
        elif method in BODY_METHODS and name == "body":
            _put(body, name, str(_value(text, TEXT, at)).encode(), column)
        elif method in BODY_METHODS and name == "body-size":
            _put(body, name, _body_size(text, at), column)
        elif method == "basic.publish" and key in PROPERTIES:
            is_last = key == "headers" and text == LAST_HEADERS
            _put(properties, key, text if is_last else _value(text, PROPERTIES[key], at), column)
        elif method == "connection.open" and (name.replace("-", "_") in CAPABILITIES or name in CAPABILITIES):
            _put(table, name if name in CAPABILITIES else key, _value(text, "any", at), column)
        elif key in known:
            _put(arguments, key, _value(text, known[key], at), column)
        else:
            raise CommandSyntaxError(f"{name!r} is not an argument of {method}", column)
    if table:
        arguments["capabilities" if method == "connection.open" else "arguments"] = table
    if method not in CONTENT_METHODS and method not in BODY_METHODS:
        return arguments, None
    if unfinished:
        if body or properties:
            raise CommandSyntaxError(f"what is {UNFINISHED} has no content", words[0][0])
        return arguments, None
    octets: bytes = body.get("body", b"")
    return arguments, Content(properties, octets.ljust(body.get("body-size", 0), b"."))


def _put(mapping: Table, key: str, value: Any, column: int) -> None:
    if key in mapping:
        raise CommandSyntaxError(f"{hyphened(key)} is given twice", column)
    mapping[key] = value


def _body_size(text: str, column: int) -> int:
    size: int = _value(text, NUMBER, column)
    if not 0 <= size <= MAX_BODY:
        raise CommandSyntaxError(f"a body has 0 to {MAX_BODY} octets", column)
    return size


def _value(text: str, kind: str, column: int) -> Any:
    value: Any = text
    if text[:1] in ('"', "[", "{"):
        try:
            value = json.loads(text)
            json.dumps(value, ensure_ascii=False).encode()
            value = decode_value(value)
        except ValueNotRecordable as error:
            raise CommandSyntaxError(str(error), column) from None
        except RecursionError:
            raise _too_deep(column) from None
        except json.JSONDecodeError as error:
            raise CommandSyntaxError(f"{text!r} is not JSON: {error.msg}", column + error.pos) from None
        except UnicodeEncodeError:
            raise CommandSyntaxError(f"{text!r} holds half a character", column) from None
    elif kind == "any" and FRACTION.fullmatch(text):
        value = float(text)
    elif kind not in (TEXT, OCTETS) and text in CONSTANTS:
        value = CONSTANTS[text]
    elif kind not in (TEXT, OCTETS) and INTEGER.fullmatch(text):
        value = int(text)
    expected = {TEXT: str, NUMBER: int, WAIT: int, BIT: bool, TABLE: dict, OCTETS: str}.get(kind)
    if expected is not None and (not isinstance(value, expected) or (expected is int and isinstance(value, bool))):
        raise CommandSyntaxError(f"{text!r:.80} is not a {kind}", column)
    if kind == WAIT and not 0 <= value <= MAX_WAIT:
        raise CommandSyntaxError(f"{text:.80} is not from 0 to {MAX_WAIT} milliseconds (a day)", column)
    if kind == OCTETS and not _OCTETS.fullmatch(value):
        raise CommandSyntaxError(f"{text!r:.80} is not an even number of hexadecimal digits", column)
    return value
