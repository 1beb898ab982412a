"""Mutants: sequences of the corpus in which frames were dropped, doubled, moved, altered, cut off, or come from others.

A mutant is made by its seed and number alone. Each of its frames could have been sent, by some broker or client, and by
the codec; nothing else of it need make sense.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amqpspec.conformance.traces.trace import TraceRow, read_trace, sequences
from tests.corpus.expectations import recordings

#: One mutation more with that chance.
_MORE = 0.4
_NAMES = ("", "q1", "q2", "amq.direct", "amq.rabbitmq.reply-to", "none such", "é", "x" * 127, "amq.ctag-1", "\n")
_NUMBERS = (0, 1, 2, 3, 7, 255, 65535)
#: Headers and properties that rules look at.
_HEADERS: tuple[tuple[str, Any], ...] = (
    ("x-death", []), ("x-death", [{}]), ("x-death", "none"), ("x-death", [{"count": 1, "queue": "q1"}]),
    ("x-death", None),
    ("x-death", [{"count": "1", "reason": 1, "queue": None, "exchange": 7, "routing-keys": "k"}]),
    ("x-delivery-count", 1), ("x-delivery-count", "1"), ("x-delivery-count", -1), ("x-acquired-count", 2),
    ("x-acquired-count", None), ("x-first-death-queue", 1), ("x-first-death-reason", []),
    ("x-last-death-reason", "expired"),
    ("x-stream-offset", 0), ("x-stream-offset", "first"), ("x-stream-offset", 10**15), ("CC", ["q2"]), ("CC", "q2"),
    ("BCC", [1]), ("x-opt-rabbitmq-received-time", 1), ("x-message-ttl", "1"),
)  # fmt: skip
_PROPERTIES: tuple[tuple[str, Any], ...] = (
    ("expiration", "0"), ("expiration", "none"), ("expiration", "5"), ("priority", 0), ("priority", 255),
    ("headers", {}),
    ("reply_to", "amq.rabbitmq.reply-to"), ("reply_to", "amq.rabbitmq.reply-to.x"), ("user_id", "nobody"),
    ("delivery_mode", 7), ("message_id", ""), ("timestamp", 0),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutant:
    """The rows of a sequence, and what was done to it, one word for each mutation."""

    number: int
    of: str
    rows: list[TraceRow]
    done: tuple[str, ...]


class Mutants:
    """Of some recordings; all of the corpus if none are given."""

    def __init__(self, files: Iterable[Path] = ()) -> None:
        self._sequences: list[tuple[str, list[TraceRow]]] = []
        for file in files or recordings():
            self._sequences += [(file.stem, rows) for rows in sequences(read_trace(file))]

    def __len__(self) -> int:
        return len(self._sequences)

    def made(self, seed: int, number: int) -> Mutant:
        chance = random.Random(f"{seed} {number}")
        file, original = chance.choice(self._sequences)
        rows = list(original)
        done = []
        while True:
            name = chance.choice(_WEIGHED)
            _MUTATIONS[name](rows, chance, self._sequences)
            done.append(name)
            if chance.random() > _MORE:
                return Mutant(number, f"{file}: {original[0]['sequence']}", rows, tuple(done))


def _frame(rows: Sequence[TraceRow], chance: random.Random, *, after: int = 1) -> int | None:
    """The place of a frame, mostly of one that was received. None: there is none."""
    frames = [place for place in range(after, len(rows)) if rows[place]["kind"] == "frame"]
    received = [place for place in frames if rows[place]["direction"] == "received"]
    return chance.choice(received if received and chance.random() < 0.85 else frames) if frames else None


def _drop(rows: list[TraceRow], chance: random.Random, _: _All) -> None:
    if (place := _frame(rows, chance)) is not None:
        del rows[place]


def _double(rows: list[TraceRow], chance: random.Random, _: _All) -> None:
    if (place := _frame(rows, chance)) is not None:
        rows.insert(place + 1 if chance.random() < 0.5 else _somewhere(rows, chance), rows[place])


def _move(rows: list[TraceRow], chance: random.Random, _: _All) -> None:
    if (place := _frame(rows, chance)) is not None:
        row = rows.pop(place)
        near = min(max(place + chance.choice((-3, -2, -1, 1, 2, 3)), 1), len(rows))
        rows.insert(near if chance.random() < 0.6 else _somewhere(rows, chance), row)


def _crossing(rows: list[TraceRow], chance: random.Random, _: _All) -> None:
    """Nothing says for a while that all is at rest, and what came in that time comes some time later."""
    if len(rows) < 4:
        return
    start = _somewhere(rows, chance)
    span = rows[start : start + chance.randrange(5, 60)]
    marks = [row for row in span if row["kind"] != "mark"]
    for _ in range(chance.randrange(4)):
        received = [place for place, row in enumerate(marks) if row.get("direction") == "received"]
        if received:
            row = marks.pop(chance.choice(received))
            marks.insert(chance.randrange(len(marks) + 1), row)
    rows[start : start + len(span)] = marks


def _swap(rows: list[TraceRow], chance: random.Random, _: _All) -> None:
    one, other = _frame(rows, chance), _frame(rows, chance)
    if one is not None and other is not None:
        rows[one], rows[other] = rows[other], rows[one]


def _cut(rows: list[TraceRow], chance: random.Random, _: _All) -> None:
    del rows[_somewhere(rows, chance) :]


def _cut_connection(rows: list[TraceRow], chance: random.Random, _: _All) -> None:
    """The connection ends there, with or without a word."""
    place = _frame(rows, chance)
    if place is None:
        return
    name = rows[place]["connection"]
    end = TraceRow(**{**rows[place], "channel": 0, "direction": "received", "method": "socket.closed", "arguments": {}})
    for key in ("properties", "body", "body_base64", "body_size", "body_sha256"):
        end.pop(key, None)  # type: ignore[misc]
    others = [row for row in rows[place:] if row.get("connection") != name]
    rows[place:] = [end, *others] if chance.random() < 0.7 else others


def _other_place(rows: list[TraceRow], chance: random.Random, _: _All) -> None:
    """The same frame on another connection or channel."""
    if (place := _frame(rows, chance)) is not None:
        names = sorted({row["connection"] for row in rows if row["kind"] == "frame"})
        channels = sorted({row["channel"] for row in rows if row["kind"] == "frame"} | {0, 9})
        row = {**rows[place], "channel": chance.choice(channels)}
        if chance.random() < 0.5:
            row["connection"] = chance.choice([*names, "zz"])
        rows[place] = TraceRow(**row)  # type: ignore[typeddict-item]


def _other_time(rows: list[TraceRow], chance: random.Random, _: _All) -> None:
    if (place := _frame(rows, chance)) is not None:
        by = chance.choice((-1.0, -0.01, 0.01, 0.2, 1.0, 10.0, 100.0))
        for later in range(place, place + 1 if chance.random() < 0.3 else len(rows)):
            if "time" in rows[later]:
                rows[later] = TraceRow(**{**rows[later], "time": max(rows[later]["time"] + by, 0.0)})  # type: ignore[typeddict-item]


def _argument(rows: list[TraceRow], chance: random.Random, _: _All) -> None:
    """One argument of a frame has another value of the same kind, often one that is elsewhere in the sequence."""
    place = _frame(rows, chance)
    if place is None or not rows[place]["arguments"]:
        return
    arguments = dict(rows[place]["arguments"])
    name = chance.choice(sorted(arguments))
    same = [
        row["arguments"][name]
        for row in rows
        if row["kind"] == "frame" and type(row["arguments"].get(name)) is type(arguments[name])
    ]
    if name in ("payload", "octets"):
        arguments[name] = chance.choice(("", "00", "ce", "0001ffff"))
    else:
        arguments[name] = chance.choice(same) if chance.random() < 0.5 else _altered(arguments[name], chance)
    rows[place] = TraceRow(**{**rows[place], "arguments": arguments})  # type: ignore[typeddict-item]


def _content(rows: list[TraceRow], chance: random.Random, _: _All) -> None:
    """A message has another body or other properties."""
    carrying = [place for place, row in enumerate(rows) if row["kind"] == "frame" and "body" in row]
    if not carrying:
        return
    place, other = chance.choice(carrying), rows[chance.choice(carrying)]
    row: dict[str, Any] = dict(rows[place])
    what = chance.randrange(5)
    if what == 0 and "body" in other:
        for key in ("body_base64", "body_size", "body_sha256"):
            row.pop(key, None)
        row["body"] = other["body"] if chance.random() < 0.6 else chance.choice(("", "none such", "m1", "m2"))
    elif what == 1:
        row["properties"] = dict(other.get("properties", {}))
    elif what == 2:
        properties = dict(row.get("properties", {}))
        if properties and chance.random() < 0.5:
            del properties[chance.choice(sorted(properties))]
        else:
            name, value = chance.choice(_PROPERTIES)
            properties[name] = value
        row["properties"] = properties
    else:
        properties = dict(row.get("properties", {}))
        headers = dict(properties.get("headers", {}))
        if headers and chance.random() < 0.5:
            name = chance.choice(sorted(headers))
            headers[name] = _altered(headers[name], chance)
        else:
            name, value = chance.choice(_HEADERS)
            headers[name] = value
        properties["headers"] = headers
        row["properties"] = properties
    rows[place] = TraceRow(**row)  # type: ignore[typeddict-item]


def _foreign(rows: list[TraceRow], chance: random.Random, all_of_them: _All) -> None:
    """A frame of another recording, on a connection and mostly a channel of this one."""
    _, others = chance.choice(all_of_them)
    place, here = _frame(others, chance), _frame(rows, chance)
    if place is not None and here is not None:
        row = {**others[place], "sequence": rows[0]["sequence"], "connection": rows[here]["connection"]}
        if row["channel"] and chance.random() < 0.8:
            row["channel"] = rows[here]["channel"]
        row["time"] = rows[here]["time"]
        rows.insert(here + chance.randrange(2), TraceRow(**row))  # type: ignore[typeddict-item]


def _joined(rows: list[TraceRow], chance: random.Random, all_of_them: _All) -> None:
    """What follows there is the rest of another recording."""
    _, others = chance.choice(all_of_them)
    here, there = _somewhere(rows, chance), _somewhere(others, chance)
    name = rows[0]["sequence"]
    rows[here:] = [TraceRow(**{**row, "sequence": name}) for row in others[there:]]  # type: ignore[typeddict-item]


def _other_dialect(rows: list[TraceRow], chance: random.Random, all_of_them: _All) -> None:
    """It is judged by what another broker promises."""
    start = chance.choice(all_of_them)[1][0]
    rows[0] = TraceRow(**{**rows[0], **{key: start[key] for key in ("dialect", "product", "version")}})  # type: ignore[typeddict-item,literal-required]


def _somewhere(rows: Sequence[TraceRow], chance: random.Random) -> int:
    return chance.randrange(1, len(rows) + 1)


def _altered(value: Any, chance: random.Random) -> Any:
    """Another value of the same type, one that fits into the same field."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return max(value + chance.choice((-2, -1, 1, 2)), 0) if chance.random() < 0.5 else chance.choice(_NUMBERS)
    if isinstance(value, str):
        if value.isascii() and value and chance.random() < 0.3:
            return value[:-1]
        return chance.choice(_NAMES)
    if isinstance(value, dict):
        changed = dict(value)
        if changed and chance.random() < 0.7:
            name = chance.choice(sorted(changed))
            if chance.random() < 0.5:
                del changed[name]
            else:
                changed[name] = _altered(changed[name], chance) if chance.random() < 0.6 else chance.choice(_HEADERS)[1]
        else:
            name, changed_value = chance.choice(_HEADERS)
            changed[name] = changed_value
        return changed
    if isinstance(value, list):
        if not value or chance.random() < 0.3:
            return [*value, *value[:1]] if chance.random() < 0.5 else []
        place = chance.randrange(len(value))
        return [*value[:place], _altered(value[place], chance), *value[place + 1 :]]
    return value


_All = Sequence[tuple[str, list[TraceRow]]]
_Mutation = Callable[[list[TraceRow], random.Random, _All], None]
#: By name, with how often each is done.
_MUTATIONS: dict[str, _Mutation] = {
    "crossing": _crossing, "drop": _drop, "double": _double, "move": _move, "swap": _swap, "cut": _cut,
    "cut-connection": _cut_connection, "place": _other_place, "time": _other_time, "argument": _argument,
    "content": _content, "foreign": _foreign, "join": _joined, "dialect": _other_dialect,
}  # fmt: skip
_WEIGHTS = {
    "crossing": 6, "drop": 3, "double": 3, "move": 3, "argument": 6, "content": 4, "foreign": 3, "place": 2,
    "cut-connection": 2,
}  # fmt: skip
_WEIGHED = [name for name in _MUTATIONS for _ in range(_WEIGHTS.get(name, 1))]
