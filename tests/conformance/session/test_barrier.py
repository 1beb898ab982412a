"""A barrier asks what its judge has it ask: with answers that are constants, the requests are those that follow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.barrier import complete_barrier
from amqpspec.conformance.session.conversation import Conversation
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.broker.connections import ConnectionState
from amqpspec.model.judging.questions import KnownConnection, Questions
from amqpspec.model.protocol.methods import ChannelKey, Method
from tests.conformance.session.in_process import NOWHERE, InProcess

A1: ChannelKey = ("a", 1)
B1: ChannelKey = ("b", 1)
SERVICE: ChannelKey = ("a", 2000)


class Constants:
    """`Questions` whose answers are given: what is not given is none, or no."""

    finished = False
    patience = 0.0

    def __init__(self, **answers: Any) -> None:
        self._answers = answers
        self._counted = dict(answers.get("counted_after", {}))

    def owes(self) -> bool:
        return False

    def connection(self, name: str) -> KnownConnection | None:
        return next((each for each in self.connections() if each.name == name), None)

    def connections(self) -> list[KnownConnection]:
        return [
            KnownConnection(name, ConnectionState.OPEN, {}, False, answers=True, has_channels_to_spare=True)
            for name in ("a", "b")
        ]

    def was_opened(self, channel: ChannelKey) -> bool:
        return self.is_open(channel)

    def declared_as(self, queue: str) -> dict[str, bool]:
        return {}

    def may_be_open(self, channel: ChannelKey) -> bool:
        return self.is_open(channel) or channel in self._answers.get("perhaps_open", ())

    def is_open(self, channel: ChannelKey) -> bool:
        return channel in self._answers.get("open", (A1, B1))

    def flush(self, channel: ChannelKey, exchange: str) -> Method:
        return Method(*channel, "basic.qos", {"prefetch_count": 0}, sent=True)

    def unprocessed(self) -> list[ChannelKey]:
        return list(self._answers.get("unprocessed", ()))

    def served_elsewhere(self) -> list[ChannelKey]:
        return list(self._answers.get("served_elsewhere", ()))

    def touched(self) -> list[tuple[ChannelKey, str]]:
        return list(self._answers.get("touched", ()))

    def consuming(self, queue: str) -> list[ChannelKey]:
        return list(self._answers.get("consuming", {}).get(queue, ()))

    def may_get(self, channel: ChannelKey, queue: str) -> bool:
        return queue in self._answers.get("empty", ())

    def who_may_ask(self, queue: str, by_any: bool = False) -> list[str]:
        return ["a"]

    def is_to_be_counted(self, queue: str) -> bool:
        return queue in self._counted

    def is_as_counted(self, queue: str) -> bool:
        self._counted[queue] -= 1
        return bool(self._counted[queue] == 0)

    def at_rest(self) -> list[str]:
        return list(self._answers.get("at_rest", ()))

    def unproven(self) -> list[str]:
        return []

    def unproven_elsewhere(self) -> list[str]:
        return list(self._answers.get("unproven_elsewhere", ()))

    def perhaps_expired(self) -> list[str]:
        return list(self._answers.get("perhaps_expired", ()))

    def is_doubtful(self) -> bool:
        return False

    def left_behind(self) -> str | None:
        return None

    def is_deleting_itself(self, queue: str) -> bool:
        return queue in self._answers.get("deleting_itself", ())


class StandIn:
    """A judge that answers from constants, and keeps what it is shown."""

    def __init__(self, **answers: Any) -> None:
        self.questions: Questions = Constants(**answers)
        self.marks: list[str] = []
        self.sent: list[str] = []

    def event(self, method: Method) -> None:
        if method.sent and not method.name.startswith("socket."):
            words = [f"{method.connection}.{method.channel}", method.name, method.arguments.get("queue", "")]
            self.sent.append(" ".join(filter(None, words)))

    def mark(self, mark: str) -> None:
        self.marks.append(mark)


@pytest.fixture
def trace(tmp_path: Path) -> Iterator[TraceWriter]:
    with TraceWriter(tmp_path / "trace.jsonl") as writer:
        yield writer


class Mute(InProcess):
    """Takes whatever is sent, and says nothing."""

    def _say(self, method: Method) -> None:
        self._observe(method)


def barrier(
    trace: TraceWriter, *lines: str, deadline: float = 1.0, consumed: Iterable[ChannelKey] = (), **answers: Any
) -> StandIn:
    judge = StandIn(**answers)
    description = TargetDescription("nothing", "", "", "rabbitmq-4.3")
    target = TargetUnderTest(NOWHERE, description, deadline, driver=Mute)
    conversation = Conversation(target, trace, "s", judge)
    for name in ("a", "b"):
        conversation.connect(name)
    for channel in consumed:
        conversation.send(Method(*channel, "basic.consume", {}, sent=True))
    commands: list[Command] = list(map(parse_command, lines))
    complete_barrier(conversation, commands)
    return judge


def test_where_nothing_was_touched_the_channel_is_flushed(trace: TraceWriter) -> None:
    judge = barrier(trace, "a.1 basic.qos 1")
    assert judge.marks == ["barrier", "quiescent"]
    assert judge.sent == ["a.1 basic.qos"]


def test_several_commands_can_have_one_barrier(trace: TraceWriter) -> None:
    judge = barrier(trace, "a.1 basic.qos 1", "b.1 queue.bind q x nowait", "a.1 basic.qos 2")
    assert judge.sent == ["b.1 basic.qos", "a.1 basic.qos"], "that of b.1 has been answered"


def test_what_is_empty_is_got_and_what_is_not_is_counted(trace: TraceWriter) -> None:
    judge = barrier(
        trace, "a.1 basic.ack 1", touched=[(A1, "q"), (A1, "r")], empty=("q",), counted_after={"r": 2},
        open=(A1, B1, SERVICE), consuming={"r": [B1]},
    )  # fmt: skip
    assert judge.sent == [
        "a.1 basic.get q",
        "a.2000 queue.declare r",
        "a.2000 queue.declare r",
        "b.1 basic.qos",
    ], "a.1 has answered, and was never a channel to which anything comes unasked"
    assert judge.marks == ["barrier", "quiescent"]


def test_behind_an_answer_a_channel_with_consumers_is_flushed(trace: TraceWriter) -> None:
    judge = barrier(trace, "a.1 basic.ack 1", touched=[(A1, "q")], empty=("q",), consumed=[A1])
    assert judge.sent == ["a.1 basic.consume", "a.1 basic.get q", "a.1 basic.qos"]


def test_numbers_that_never_come_right_are_overdue(trace: TraceWriter) -> None:
    judge = barrier(
        trace, "a.1 basic.ack 1", deadline=0.0, touched=[(A1, "r")], counted_after={"r": 1000}, open=(A1, SERVICE),
        unproven_elsewhere=("s",),
    )  # fmt: skip
    assert judge.marks == ["barrier", "overdue", "quiescent"]
    assert judge.sent[:2] == ["a.2000 queue.declare s", "a.2000 queue.declare r"]
    assert judge.sent[-2:] == ["a.2000 queue.declare s", "a.1 basic.qos"]


def test_the_order_of_the_questions(trace: TraceWriter) -> None:
    judge = barrier(
        trace, "a.2 queue.delete q", touched=[(("a", 2), "q")], open=(A1, B1, SERVICE), unprocessed=[B1],
        deleting_itself=("q",), unproven_elsewhere=("r",), perhaps_expired=("s",), served_elsewhere=[A1],
    )  # fmt: skip
    assert judge.sent == [
        "b.1 basic.qos",
        "a.2000 queue.declare r",
        "a.2000 queue.declare q",
        "a.2000 queue.declare s",
        "a.1 basic.qos",
        "a.2000 basic.qos",
    ], "the channel of the command has ended: its connection is asked on the service channel"


def test_a_channel_that_may_be_open_is_asked_itself(trace: TraceWriter) -> None:
    judge = barrier(trace, "a.1 basic.cancel-ok t", open=(SERVICE,), perhaps_open=(A1,))
    assert judge.sent == ["a.1 basic.qos"], "the answer of another channel says nothing of what this one refuses"


def test_whether_a_channel_has_ended_is_known_before_another_is_asked(trace: TraceWriter) -> None:
    """What is asked on another channel may overtake the error, by which a queue is deleted or not."""
    judge = barrier(
        trace, "a.1 basic.cancel-ok t", open=(SERVICE,), perhaps_open=(A1,), unprocessed=[A1], unproven_elsewhere=("q",)
    )
    assert judge.sent == ["a.1 basic.qos", "a.2000 queue.declare q"]
