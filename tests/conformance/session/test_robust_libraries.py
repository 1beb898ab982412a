"""A library that makes anew by itself what was lost: it is on the wire, and only what nobody asked for is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from amqpspec.conformance.traces.trace import read_trace
from amqpspec.conformance.verdicts.library import LibraryJudge
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.methods import Content, Method
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.drivers.aio_pika_robust import AioPikaRobustCarrier, AioPikaRobustChannel, AioPikaRobustClient
from amqpspec.targets.drivers.application import asked
from tests.conformance.session.libraries import judged

_CONSUMES = ("a.1 queue.declare q", "a.1 basic.qos 3", "a.1 basic.consume q tag=t")
_CONFIRMS = ("a.1 queue.declare q", "a.1 confirm.select", "a.1 basic.publish q body=m1")
_IS_LOST = ("a socket.abort", "a connection.open")
_IS_USED = ("b.1 basic.publish q body=m1", "a.1 basic.ack 1")


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker("rabbitmq-4.3") as serving:
        yield serving


def _on_the_wire(folder: Path, connection: str) -> list[str]:
    """What was sent for good on channels of the connection, by the application and by the library itself."""
    rows = [row for row in read_trace(folder / "trace.jsonl") if row.get("connection") == connection]
    return [row["method"] for row in rows if row["direction"] == "sent" and row.get("channel")]


_MADE_ANEW = ["channel.open", "basic.qos", "queue.declare", "basic.consume"]


@pytest.mark.parametrize(
    ("commands", "anew"),
    [
        ((*_CONSUMES, *_IS_LOST, *_IS_USED), _MADE_ANEW),
        ((*_CONSUMES, "a.1 basic.ack 77", *_IS_USED), ["channel.close-ok", *_MADE_ANEW]),
        ((*_CONSUMES, "a.1 basic.ack 77", "a.1 channel.open", *_IS_USED), ["channel.close-ok", *_MADE_ANEW]),
        (
            (*_CONSUMES, "b.1 queue.delete q", "a.1 basic.qos 2", *_IS_USED),
            ["channel.open", "queue.declare", "channel.close", "basic.consume", "basic.qos"],
        ),
        (
            ("a.1 exchange.declare e fanout", _CONSUMES[0], "a.1 queue.bind q e", *_IS_LOST),
            ["channel.open", "basic.qos", "exchange.declare", "queue.declare", "queue.bind"],
        ),
        ((*_CONFIRMS, *_IS_LOST, _CONFIRMS[-1]), ["channel.open", "confirm.select", "basic.qos", "basic.publish"]),
        (
            (*_CONFIRMS, "a.1 basic.ack 77", "a.1 channel.close", "a.1 channel.open", _CONFIRMS[-1]),
            ["channel.close-ok", "channel.open", "confirm.select", "channel.close", "channel.open", "basic.publish"],
        ),
    ],
)
def test_what_was_lost_is_made_anew_and_blamed_on_nobody(
    broker: EmbeddedBroker, tmp_path: Path, commands: tuple[str, ...], anew: list[str]
) -> None:
    said = judged(broker, tmp_path, commands, AioPikaRobustCarrier)
    assert said.failures == () and said.verdict is Verdict.PASS
    sent = iter(_on_the_wire(tmp_path, "a")[1:])
    assert all(method in sent for method in anew), "in this order, with what a barrier sends in between"


@pytest.mark.parametrize(
    "commands",
    [
        ("a.1 queue.declare q", "a connection.close", "a connection.open", "a.1 queue.declare q"),
        (*_CONSUMES, "a.1 basic.cancel t", *_IS_LOST, "a.1 basic.publish q body=m1", "a.1 basic.get q"),
        # it cannot be made anew: the queue is another one
        (*_CONSUMES, "b.1 queue.delete q", "b.1 queue.declare q durable", *_IS_USED[:1], "a.1 basic.qos 2"),
        ("a.1 queue.declare q", "b.1 queue.delete q", "b.1 queue.declare q durable", *_IS_LOST, "b.1 basic.qos 2"),
    ],
)
def test_what_is_not_made_anew_is_blamed_on_nobody(
    broker: EmbeddedBroker, tmp_path: Path, commands: tuple[str, ...]
) -> None:
    said = judged(broker, tmp_path, commands, AioPikaRobustCarrier)
    assert said.failures == () and said.verdict is Verdict.PASS


class ForgetsNoConsumer(AioPikaRobustChannel):
    async def _stop(self, said: dict[str, Any]) -> bool:
        return False


class AcknowledgesTwice(AioPikaRobustChannel):
    async def _received(self, message: Any) -> None:
        await super()._received(message)
        await message.ack()


class LosesAReturn(AioPikaRobustChannel):
    def _returned(self, message: Any) -> None:
        pass


class ShowsTwice(AioPikaRobustChannel):
    async def _received(self, message: Any) -> None:
        await super()._received(message)
        await super()._received(message)


class TakesACancelForAClose(AioPikaRobustChannel):
    def _cancelled(self, frame: Any) -> None:
        self._shows(self._number, "channel.close", {"reply_code": 404, "reply_text": ""})


class StartsAnother(AioPikaRobustChannel):
    async def _start(self, said: dict[str, Any]) -> bool:
        queue = self._queues[said["queue"]]
        await super()._start(said)
        await queue.consume(self._received, consumer_tag="mine")
        return True


@pytest.mark.parametrize(
    ("channel", "commands", "rule", "detail"),
    [
        (
            ForgetsNoConsumer, (*_CONSUMES, "a.1 basic.cancel t", *_IS_LOST), "LIBRARY-SENT",
            "basic.consume that was not asked for",
        ),
        (StartsAnother, _CONSUMES, "LIBRARY-SENT", "basic.consume that was not asked for"),
        (AcknowledgesTwice, (*_CONSUMES, *_IS_USED[:1]), "LIBRARY-SENT", "basic.ack that was not asked for"),
        (
            LosesAReturn, ("a.1 confirm.select", "a.1 basic.publish nowhere body=m1 mandatory"), "LIBRARY-RETURN",
            "basic.return that has come",
        ),
        (ShowsTwice, (*_CONSUMES, *_IS_LOST, *_IS_USED[:1]), "LIBRARY-DELIVERY", "basic.deliver shown twice"),
        (
            TakesACancelForAClose, (*_CONSUMES, "b.1 queue.delete q"), "LIBRARY-CLOSE",
            "channel.close shown as it did not come",
        ),
    ],
)  # fmt: skip
def test_a_fault_of_a_robust_library_is_told(
    broker: EmbeddedBroker, tmp_path: Path, channel: Any, commands: tuple[str, ...], rule: str, detail: str
) -> None:
    client: Any = type("Client", (AioPikaRobustClient,), {"makes_robust_channel": channel})
    carrier = type("Carrier", (AioPikaRobustCarrier,), {"makes_client": client})
    said = judged(broker, tmp_path, commands, carrier)
    assert (rule, detail) in {(each.requirement, each.detail) for each in said.failures}
    assert all(each.requirement.startswith("LIBRARY-") for each in said.failures)


@pytest.mark.parametrize(("is_robust", "rules"), [(True, []), (False, ["LIBRARY-SENT"])])
def test_only_a_robust_library_may_send_something_again(is_robust: bool, rules: list[str]) -> None:
    judge = LibraryJudge(is_robust)
    arguments = {"queue": "q", "consumer_tag": "t"}
    judge.event(asked("a", 1, "basic.consume", arguments, None))
    for _ in range(2):
        judge.event(Method("a", 1, "basic.consume", arguments, sent=True))
    assert [each.requirement for each in judge.failures] == rules


def test_what_it_makes_anew_is_not_taken_for_what_it_is_asked_for() -> None:
    """The limits of a channel that is opened go out when the application has asked for others already."""
    judge = LibraryJudge(is_robust=True)
    judge.event(asked("a", 1, "basic.qos", {"prefetch_count": 3}, None))
    for many in (0, 3):
        judge.event(Method("a", 1, "basic.qos", {"prefetch_count": many}, sent=True))
    assert judge.failures == [] and judge.exercised == {"LIBRARY-SENT": 1}


def test_a_publish_is_never_sent_again() -> None:
    judge = LibraryJudge(is_robust=True)
    place, content = {"exchange": "", "routing_key": "q"}, Content({}, b"m")
    judge.event(asked("a", 1, "basic.publish", place, content))
    for _ in range(2):
        judge.event(Method("a", 1, "basic.publish", place, sent=True, content=content))
    assert [each.detail for each in judge.failures] == ["basic.publish that was not asked for"]
