"""What lines of a command file expect of the broker (`conformance.language.command`), against what has come.

A line speaks of what came since the last command that was sent. It is decided when the next line is read, as what is
waited for may come till then. A line that holds outranks the model: what that has against the same frame, or against
the silence that was expected, is overruled.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from amqpspec.conformance.language.command import EXPECT, EXPECT_NOTHING, EXPECT_READY, Command
from amqpspec.conformance.language.command_arguments import hyphened
from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.language.names import plain
from amqpspec.model.promises.verdict import Failure, Shape
from amqpspec.model.protocol.methods import ChannelKey, TraceEvent

#: What an expectation comes under that stands in a file without a requirement.
NO_REQUIREMENT = "EXPECTED"
#: What belongs to the life of connections and channels, and comes without a command of its own.
_OF_CONNECTIONS = frozenset(
    {"connection.start", "connection.secure", "connection.tune", "connection.open-ok", "connection.close-ok",
     "channel.open-ok", "channel.close-ok"}
)  # fmt: skip
#: What asks for an answer, when the suite itself asks.
_QUESTIONS = frozenset(
    {"channel.open", "basic.get", "queue.declare", "exchange.declare", "basic.qos", "channel.flow", "queue.bind"}
)


def is_expectation(text: str) -> bool:
    """Is that line of a trace one that expects something?"""
    return text.startswith(f"{EXPECT} ")


@dataclass(slots=True)
class _Frame:
    """`is_answer`: to a question that the suite has asked by itself."""

    event: TraceEvent
    is_answer: bool


class Expectations:
    """Fed the commands and frames of one sequence, in their order. `requirement`: what it was written for."""

    def __init__(self, requirement: str | None) -> None:
        self._requirement = requirement or NO_REQUIREMENT
        self.failures: list[Failure] = []
        #: lines that hold, and lines that were read
        self.held = 0
        self.read = 0
        #: identities of failures by the model that a line outranks
        self.overruled: set[str] = set()
        #: the line that is not decided yet; the last command, and its method and channel as long as it is not sent
        self._open: Command | None = None
        self._command = ""
        self._to_be_sent: tuple[ChannelKey, str] | None = None
        self._frames: list[_Frame] = []
        #: questions without an answer by channel: the method, and whether the suite asks it by itself
        self._asked: dict[ChannelKey, deque[tuple[str, bool]]] = {}
        #: by channel: frames before that are taken by lines above
        self._taken: dict[ChannelKey, int] = {}
        #: what the model has against frames, by their place; what it has against silence
        self._against: dict[int, list[str]] = {}
        self._against_silence: list[str] = []

    def command(self, text: str) -> None:
        self.decide()
        if is_expectation(text):
            self._open = parse_command(text)
            self.read += 1
            return
        self._command = text
        self._frames.clear()
        self._taken.clear()
        self._against.clear()
        self._against_silence.clear()
        target, _, rest = text.partition(" ")
        name, _, channel = target.rstrip("!").partition(".")
        self._to_be_sent = ((name, int(channel) if channel.isdecimal() else 0), rest.partition(" ")[0])

    def take(self, event: TraceEvent | None, against: Sequence[Failure]) -> None:
        """A frame, or silence, and what the model has against it."""
        if event is not None:
            self._event(event)
        identities = [each.identity for each in against]
        if event is not None and not event.sent:
            self._against[len(self._frames) - 1] = identities
        else:
            self._against_silence += identities

    def _event(self, event: TraceEvent) -> None:
        channel = (event.connection, event.channel)
        if event.sent:
            is_own = (channel, event.name) != self._to_be_sent
            self._to_be_sent = self._to_be_sent if is_own else None
            if event.name in _QUESTIONS and not event.arguments.get("nowait"):
                self._asked.setdefault(channel, deque()).append((event.name, is_own))
        else:
            self._frames.append(_Frame(event, self._is_answer(channel, event.name)))

    def _is_answer(self, channel: ChannelKey, name: str) -> bool:
        asked = self._asked.get(channel)
        if not asked:
            return False
        question, is_own = asked[0]
        if name == "channel.close":
            asked.clear()
            return is_own
        if name.removesuffix("-ok") != question and (name, question) != ("basic.get-empty", "basic.get"):
            return False
        asked.popleft()
        return is_own

    @property
    def is_met(self) -> bool:
        """Does the line hold that was read last, by what has come so far?"""
        return self._open is not None and self._difference(self._open) is None

    def decide(self) -> None:
        """Decide the line that is open: nothing more comes that it speaks of."""
        line, self._open = self._open, None
        if line is None:
            return
        failure = self._difference(line)
        if failure is None:
            self.held += 1
            self._outrank(line)
        elif all(failure.identity != other.identity for other in self.failures):
            self.failures.append(failure)

    def _outrank(self, line: Command) -> None:
        if line.method == EXPECT_NOTHING:
            self.overruled.update(self._against_silence)
        elif line.method != EXPECT_READY and (place := self._place(line)) is not None:
            self._taken[_channel(line)] = place + 1
            self.overruled.update(self._against.get(place, ()))

    # ------------------------------------------------------------------------------------------ one line

    def _difference(self, line: Command) -> Failure | None:
        if line.method == EXPECT_NOTHING:
            came = [each.event for each in self._frames if self._is_of_broker(each)]
            return self._failure(Shape.UNEXPECTED, came[0].name, came[0], "nothing") if came else None
        if line.method == EXPECT_READY:
            return self._difference_of_count(line)
        if self._place(line) is not None:
            return None
        said, allowed = line.arguments, str(line).partition(" ")[2]
        alike = next((each for _, each in self._left(line) if each.name == said["frame"]), None)
        if alike is None:
            return self._failure(Shape.MISSING, said["frame"], None, allowed)
        wrong = next(name for name, value in said["fields"].items() if not _fits(value, _value(alike, name)))
        return self._failure(Shape.WRONG_ARGUMENT, f"{alike.name} {hyphened(wrong)}", alike, allowed)

    def _difference_of_count(self, line: Command) -> Failure | None:
        queue, messages = line.arguments["queue"], line.arguments["messages"]
        counts = [each.event for each in self._frames if each.event.name == "queue.declare-ok"]
        told = next((each for each in reversed(counts) if plain(str(each.arguments.get("queue"))) == queue), None)
        if told is not None and told.arguments.get("message_count") == messages:
            return None
        return self._failure(Shape.WRONG_ARGUMENT, "messages ready", told, f"{messages} messages ready in {queue}")

    def _is_of_broker(self, frame: _Frame) -> bool:
        return not frame.is_answer and frame.event.name not in _OF_CONNECTIONS

    def _place(self, line: Command) -> int | None:
        """Where the frame is that the line speaks of."""
        said = line.arguments
        for place, event in self._left(line):
            if event.name == said["frame"] and all(_fits(v, _value(event, name)) for name, v in said["fields"].items()):
                return place
        return None

    def _left(self, line: Command) -> list[tuple[int, TraceEvent]]:
        """The frames of the line's channel that no line above has taken or passed."""
        channel = _channel(line)
        return [
            (place, each.event)
            for place, each in enumerate(self._frames)
            if place >= self._taken.get(channel, 0)
            and not each.is_answer
            and (each.event.connection, each.event.channel) == channel
        ]

    def _failure(self, shape: Shape, detail: str, observed: TraceEvent | None, allowed: str) -> Failure:
        seen = "nothing" if observed is None else plain(str(observed))
        return Failure(self._requirement, shape, detail, self._command, seen, (f"expected: {allowed}",), ())


def _channel(line: Command) -> ChannelKey:
    name, _, channel = line.arguments["on"].partition(".")
    return name, int(channel or 0)


def _value(event: TraceEvent, name: str) -> Any:
    if name in event.arguments:
        value = event.arguments[name]
        return plain(value) if isinstance(value, str) else value
    content = getattr(event, "content", None)
    if content is None:
        return None
    if name == "body":
        return content.body.decode("utf-8", "backslashreplace")
    return content.properties.get(name)


def _fits(expected: Any, value: Any) -> bool:
    """`*` stands for any text; of a table only the entries that are named are looked at."""
    if isinstance(expected, dict) and isinstance(value, dict):
        return all(name in value and _fits(each, value[name]) for name, each in expected.items())
    if isinstance(expected, str) and isinstance(value, str):
        return re.fullmatch(".*".join(map(re.escape, expected.split("*"))), value, re.DOTALL) is not None
    return type(expected) is type(value) and bool(expected == value)
