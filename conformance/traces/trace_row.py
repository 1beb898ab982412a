"""One row of a trace: its keys, how a frame becomes a row and a row a frame, and what is not a row.

In memory a row is the object that JSON made of the line, with the tags of `conformance.traces.trace_values`
already undone. It is a plain dict because offline judging spends much of its time here.

Credentials never enter a trace: frames come with those of the target masked (`targets.client.handshake.recordable`),
and `without_credentials` cuts the user part of URLs from texts.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, Literal, TypedDict, get_args

from amqpspec.conformance.traces.json_text import line_of
from amqpspec.conformance.traces.trace_values import encode_value, is_plain
from amqpspec.model.broker.measurement import Measurement
from amqpspec.model.protocol.methods import EMPTY_CONTENT, OTHER_EVENTS, Content, Method, TraceEvent

#: Longer bodies are kept as size and digest.
MAX_BODY = 64 * 1024
#: No body is rebuilt longer than this: the largest message that any RabbitMQ accepts.
MAX_STAND_IN = 512 * 1024 * 1024

#: Characters of a digest of commands that are kept.
DIGEST = 24

#: The `mode` of what nobody arranged: it is judged in the open world (`model.open_world`).
OPEN = "open"

_URL_USER = re.compile(r"(?<=://)\S*@")


#: A barrier begins; a barrier is complete; the deadline for what is owed has passed.
Mark = Literal["barrier", "quiescent", "overdue"]


class TraceRow(TypedDict, total=False):
    """One row. `kind` and `sequence` are always there; docs/trace-format.md lists the keys of each kind."""

    kind: Literal["start", "command", "frame", "mark", "measurement", "end"]
    sequence: str
    time: float
    # start
    target: str
    product: str
    version: str
    dialect: str
    mode: str
    virtual_host: str
    user: str | None
    requirement: str | None
    seed: int | None
    repeats: str | None
    planned: str | None
    driver: str
    # command
    text: str
    # frame
    connection: str
    channel: int
    direction: Literal["sent", "received"]
    method: str
    arguments: dict[str, Any]
    properties: dict[str, Any]
    body: str
    body_base64: str
    body_size: int
    body_sha256: str
    # mark
    mark: Mark
    waited: float
    # measurement, with requirement and method
    nominal: float
    least: float
    most: float
    tick: float
    # end
    verdict: str
    failures: list[dict[str, Any]]
    exercised: dict[str, int]
    reason: str | None


class TraceError(Exception):
    """A trace cannot be read or written; the message names file, line and column where there are any."""


def event_row(sequence: str, event: TraceEvent, longest_body: int = MAX_BODY) -> TraceRow:
    """The row of a frame. It shares the frame's tables. Of longer bodies it has size and digest."""
    row = TraceRow(
        kind="frame",
        sequence=sequence,
        time=event.time,
        connection=event.connection,
        channel=event.channel,
        direction="sent" if event.sent else "received",
        method=event.name,
        arguments=event.arguments,
    )
    if event.content is not None:
        if event.content.properties:
            row["properties"] = dict(event.content.properties)
        put_body(row, event.content.body, longest_body)
    return row


def measurement_row(sequence: str, measurement: Measurement) -> TraceRow:
    """The row that says how late the broker was with something."""
    return TraceRow(
        kind="measurement",
        sequence=sequence,
        time=measurement.time,
        requirement=measurement.requirement,
        method=measurement.method,
        nominal=measurement.nominal,
        least=measurement.least,
        most=measurement.most,
        tick=measurement.tick,
    )


def put_body(row: TraceRow, body: bytes, longest: int = MAX_BODY) -> None:
    """Writes a body into a row: as text where it is text, else as base64, or as a digest if it is longer than that."""
    if len(body) > longest:
        row["body_size"] = len(body)
        row["body_sha256"] = sha256(body).hexdigest()
        return
    try:
        row["body"] = body.decode("utf-8")
    except UnicodeDecodeError:
        row["body_base64"] = b64encode(body).decode("ascii")


def row_event(row: TraceRow) -> TraceEvent:
    """The frame of a row of kind "frame".

    The body of a message that was recorded as a digest is a stand-in: of the same length, if that is 64
    octets or more, and equal exactly to the stand-ins of equal bodies, which is all that judging asks of a body.
    """
    body = row.get("body")
    if body is not None:
        properties = row.get("properties")
        if properties is None and not body:
            content: Content | None = EMPTY_CONTENT
        else:
            content = Content(properties or {}, body.encode("utf-8", "surrogatepass"))
    elif "body_base64" in row:
        content = Content(row.get("properties", {}), b64decode(row["body_base64"]))
    elif "body_size" in row:
        content = Content(row.get("properties", {}), stand_in(row["body_size"], row["body_sha256"]))
    else:
        content = None
    name = row["method"]
    return OTHER_EVENTS.get(name, Method)(
        row["connection"], row["channel"], name, row["arguments"], row["direction"] == "sent", content, row["time"]
    )


def stand_in(size: int, digest: str) -> bytes:
    """What stands for a body of which size and digest are known."""
    return digest.encode("utf-8").ljust(min(size, MAX_STAND_IN), b".")


def row_line(row: TraceRow) -> bytes:
    """The line of a row, with its line end. Raises `ValueNotRecordable`."""
    written: dict[str, Any] = dict(row)
    for key in ("arguments", "properties"):
        if key in written and not is_plain(written[key]):
            # The keys of the outer table may begin with "$" as well, so it is encoded as a whole.
            written[key] = encode_value(written[key])
    return line_of(written)


def digest_of(commands: Iterable[str]) -> str:
    """Of the texts of commands: equal for equal ones."""
    digest = sha256()
    for text in commands:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()[:DIGEST]


def without_credentials(text: str) -> str:
    """`text` without the user and password of any URL in it."""
    return _URL_USER.sub("", text)


_NUMBER = (float, int)
_TEXT = (str,)
_OBJECT = (dict,)
_TEXT_OR_NULL = (str, type(None))

#: For each kind of row: the keys that must be there, and the types that JSON gives them.
_KEYS: Mapping[str, Mapping[str, tuple[type, ...]]] = {
    "start": {
        "sequence": _TEXT, "target": _TEXT, "product": _TEXT, "version": _TEXT, "dialect": _TEXT,
        "mode": _TEXT, "requirement": _TEXT_OR_NULL, "seed": (int, type(None)),
    },
    "command": {"sequence": _TEXT, "text": _TEXT, "time": _NUMBER},
    "frame": {
        "sequence": _TEXT, "time": _NUMBER, "connection": _TEXT, "channel": (int,), "direction": _TEXT,
        "method": _TEXT, "arguments": _OBJECT,
    },
    "mark": {"sequence": _TEXT, "time": _NUMBER, "mark": _TEXT},
    "measurement": {
        "sequence": _TEXT, "time": _NUMBER, "requirement": _TEXT, "method": _TEXT, "nominal": _NUMBER,
        "least": _NUMBER, "most": _NUMBER, "tick": _NUMBER,
    },
    "end": {"sequence": _TEXT, "verdict": _TEXT, "failures": (list,), "exercised": _OBJECT,
            "reason": _TEXT_OR_NULL},
}  # fmt: skip
#: Keys that may be there.
_OPTIONAL: Mapping[str, tuple[type, ...]] = {
    "properties": _OBJECT, "body": _TEXT, "body_base64": _TEXT, "body_size": (int,), "body_sha256": _TEXT,
    "waited": _NUMBER, "virtual_host": _TEXT, "user": _TEXT_OR_NULL, "repeats": _TEXT_OR_NULL,
    "planned": _TEXT_OR_NULL, "driver": _TEXT,
}  # fmt: skip
#: Keys of which only some values have a meaning.
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "direction": ("sent", "received"),
    "mark": get_args(Mark),
}
_NONE: dict[str, Any] = {}
_DIRECTIONS = _CHOICES["direction"]
_MARKS = _CHOICES["mark"]


def row_problem(row: Any) -> tuple[str, str] | None:
    """What is wrong with a row: the key concerned, and a sentence; None if nothing. Unknown keys are fine."""
    # The usual cases, frames, marks and commands in order, are told from the rest by as few steps as possible.
    try:
        kind = row["kind"]
        if kind == "mark" or kind == "command":
            if (
                len(row) == 4
                and type(row["sequence"]) is str
                and type(row["time"]) in _NUMBER
                and (row["mark"] in _MARKS if kind == "mark" else type(row["text"]) is str)
            ):
                return None
        elif (
            kind == "frame"
            and type(row["sequence"]) is str
            and type(row["time"]) in _NUMBER
            and type(row["connection"]) is str
            and type(row["channel"]) is int
            and row["direction"] in _DIRECTIONS
            and type(row["method"]) is str
            and type(row["arguments"]) is dict
            and (
                len(row) == 8
                or (type(row.get("body")) is str and (len(row) == 9 or (len(row) == 10 and "properties" in row)))
            )
            and type(row.get("properties", _NONE)) is dict
        ):
            return None
    except (KeyError, TypeError, IndexError):
        pass
    return _slow_row_problem(row)


def _slow_row_problem(row: Any) -> tuple[str, str] | None:
    if type(row) is not dict:
        return "", "a row must be a JSON object"
    kind = row.get("kind")
    if kind is None:
        return "kind", 'the key "kind" is missing'
    if type(kind) is not str or kind not in _KEYS:
        return "kind", f"unknown kind of row {kind!r:.60}"
    for key, types in _KEYS[kind].items():
        if key not in row:
            return key, f'the key "{key}" is missing in a row of kind "{kind}"'
        if type(row[key]) not in types:
            return key, f'"{key}" has a value of a wrong type'
    for key, types in _OPTIONAL.items():
        if key in row and type(row[key]) not in types:
            return key, f'"{key}" has a value of a wrong type'
    for key, choices in _CHOICES.items():
        if key in row and row[key] not in choices:
            return key, f'"{key}" must be one of {", ".join(choices)}'
    return _body_problem(row)


def _body_problem(row: dict[str, Any]) -> tuple[str, str] | None:
    if ("body_size" in row) != ("body_sha256" in row):
        return "body_size", '"body_size" and "body_sha256" only make sense together'
    if row.get("body_size", 0) < 0:
        return "body_size", '"body_size" is negative'
    if "body_base64" in row:
        try:
            b64decode(row["body_base64"], validate=True)
        except ValueError:
            return "body_base64", '"body_base64" is not base64'
    return None
