"""Messages whose time is up (area TTL): certain to be there, certain to be gone, and in between either."""

from __future__ import annotations

from typing import Any, Self

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.model.defects.known_defects import acceptor_for
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.methods import Content, Method, event_of
from tests.handshakes import opening


class Timed:
    """A client and a broker at given times. Replies come a hundredth of a second after what they answer."""

    def __init__(self, *publishes: str, arguments: str = "") -> None:
        self.acceptor = acceptor_for(dialect_named("rabbitmq-4.3"))
        for method in opening("a", self.acceptor.dialect):
            (self.acceptor.sent if method.sent else self.acceptor.received)(method)
        self.ask(0.1, "a.1 channel.open", "channel.open-ok")
        line = f"a.1 queue.declare q {arguments}"
        self.ask(0.2, line, "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
        for number, properties in enumerate(publishes, start=1):
            self.send(1.0, f"a.1 basic.publish q body=m{number} {properties}")
        self.count(1.01, len(publishes))

    def send(self, time: float, line: str) -> Self:
        command = parse_command(line)
        key = (command.connection, command.channel)
        arguments = dict(command.arguments)
        self.acceptor.sent(event_of(*key, command.method, arguments, sent=True, time=time, content=command.content))
        return self

    def ask(self, time: float, line: str, method: str, **arguments: Any) -> Self:
        self.send(time, line)
        self.acceptor.received(Method("a", 1, method, arguments, sent=False, time=time + 0.01))
        self.acceptor.quiescent()
        return self

    def count(self, time: float, number: int) -> Self:
        line = "a.1 queue.declare q passive"
        return self.ask(time, line, "queue.declare-ok", queue="q", message_count=number, consumer_count=0)

    @property
    def blamed(self) -> str:
        if not self.acceptor.failures:
            assert self.acceptor.verdict is Verdict.PASS, self.acceptor.reason
            return ""
        return self.acceptor.failures[0].requirement


SECOND = "expiration=1000"


def test_it_is_there_before_its_time_and_gone_behind_it() -> None:
    assert Timed(SECOND).count(1.9, 1).blamed == ""
    assert Timed(SECOND).count(1.9, 0).blamed == "TTL-001"
    assert Timed(SECOND).count(3.5, 0).blamed == ""
    assert Timed(SECOND).count(3.5, 1).blamed == "TTL-001"


@pytest.mark.parametrize("number", [0, 1])
def test_about_its_time_both_are_right(number: int) -> None:
    assert Timed(SECOND).count(2.0, number).blamed == ""
    assert Timed(SECOND).count(2.9, number).count(3.5, 0).blamed == ""


def test_what_is_gone_does_not_come_back() -> None:
    assert Timed(SECOND).count(2.1, 0).count(2.2, 1).blamed != ""


def test_the_shorter_time_holds() -> None:
    queue = "x-message-ttl=1000"
    assert Timed("expiration=60000", arguments=queue).count(3.5, 1).blamed == "TTL-002"
    assert Timed(SECOND, arguments="x-message-ttl=60000").count(3.5, 0).blamed == ""
    assert Timed(SECOND, arguments="x-message-ttl=60000").count(1.5, 0).blamed == "TTL-002"


def test_they_expire_in_order_and_ten_are_not_too_many() -> None:
    ten = Timed(*[SECOND] * 10)
    for number in range(10, -1, -1):
        ten.count(2.1 + (10 - number) / 100, number)
    assert ten.blamed == ""
    assert ten.acceptor.exercised["TTL-001"] == 10


def slowly_replaced() -> Timed:
    """On a busy machine the second message goes while the third one comes: at each count there is one."""
    timed = Timed("expiration=600", arguments="durable x-queue-type=quorum")
    timed.send(1.3, "a.1 basic.publish q body=m2 expiration=600").count(1.4, 2)
    timed.send(1.8, "a.1 basic.publish q body=m3 expiration=60000")
    return timed


def test_what_is_long_over_is_not_what_is_counted() -> None:
    timed = slowly_replaced()
    timed.send(1.8, "a.2 channel.open")
    timed.acceptor.received(Method("a", 2, "channel.open-ok", {}, sent=False, time=1.805))
    for time in (1.81, 2.1, 2.6, 4.5):
        timed.send(time, "a.2 queue.declare q passive")
        counted = {"queue": "q", "message_count": 1, "consumer_count": 0}
        timed.acceptor.received(Method("a", 2, "queue.declare-ok", counted, sent=False, time=time + 0.05))
    timed.acceptor.overdue()
    assert timed.blamed == ""
    assert [message.content.body for message in timed.acceptor.broker.queues["q"].messages] == [b"m3"]


def test_behind_one_that_lives_on_they_are_counted() -> None:
    assert Timed("", SECOND).count(5.0, 2).blamed == ""
    assert Timed("", SECOND).count(5.0, 1).blamed == "TTL-003"
    assert Timed("", SECOND).count(5.0, 2).acceptor.exercised["TTL-003"] == 1


@pytest.mark.parametrize("overflow", ["reject-publish", "drop-head"])
def test_a_letter_may_have_come_when_there_was_no_room_for_it(overflow: str) -> None:
    """m2 expires while s is full of m1, or after the get: only the one explains that nothing comes of it."""
    timed = Timed(arguments='x-message-ttl=0 x-dead-letter-exchange="" x-dead-letter-routing-key=s')
    line = f"a.1 queue.declare s x-max-length=1 x-overflow={overflow}"
    timed.ask(0.3, line, "queue.declare-ok", queue="s", message_count=0, consumer_count=0)

    def letters(time: float, number: int) -> None:
        counts = {"queue": "s", "message_count": number, "consumer_count": 0}
        timed.count(time, 0).ask(time + 0.02, "a.1 queue.declare s passive", "queue.declare-ok", **counts)

    for number in (1, 2):
        timed.send(number, f"a.1 basic.publish q body=m{number}")
        letters(number + 0.02, 1)
    purged = {"message_count": 1}
    timed.ask(2.1, "a.1 queue.purge s", "queue.purge-ok", **purged)
    letters(2.12, 0)
    timed.count(3.5, 0)
    assert timed.blamed == ""


def test_an_answer_that_takes_its_time_may_come_from_behind_the_end() -> None:
    slow = Timed(SECOND).send(1.2, "a.1 queue.declare q passive")
    arguments = {"queue": "q", "message_count": 0, "consumer_count": 0}
    slow.acceptor.received(Method("a", 1, "queue.declare-ok", arguments, sent=False, time=2.5))
    slow.acceptor.quiescent()
    assert slow.blamed == ""


@pytest.mark.parametrize(("queue_type", "requirement"), [("quorum", "TTL-005"), ("classic", "OVERFLOW-002")])
def test_what_comes_back_too_late_and_is_too_much_goes_by_what_its_queue_looks_at_first(
    queue_type: str, requirement: str
) -> None:
    timed = Timed(SECOND, arguments=f"durable x-queue-type={queue_type} x-max-length=1")
    got = {"delivery_tag": 1, "redelivered": False, "exchange": "", "routing_key": "q", "message_count": 0}
    content = Content({"expiration": "1000"}, b"m1")
    timed.send(1.1, "a.1 basic.get q")
    timed.acceptor.received(Method("a", 1, "basic.get-ok", got, sent=False, time=1.11, content=content))
    timed.send(1.2, "a.1 basic.publish q body=m2").count(1.3, 1)
    timed.send(3.5, "a.1 basic.nack 1 requeue").count(3.6, 1)
    assert timed.blamed == ""
    assert timed.acceptor.broker.queues["q"].gone[-1].requirement == requirement


@pytest.mark.parametrize("limit", ["x-max-length=1", "x-max-length-bytes=2"])
@pytest.mark.parametrize(("properties", "back"), [(SECOND, 1), ("", 2)])
def test_a_quorum_queue_has_channels_refuse_by_what_has_not_expired_when_it_comes_back(
    limit: str, properties: str, back: int
) -> None:
    timed = Timed(properties, arguments=f"durable x-queue-type=quorum {limit} x-overflow=reject-publish")
    got = {"delivery_tag": 1, "redelivered": False, "exchange": "", "routing_key": "q", "message_count": 0}
    content = Content({"expiration": "1000"} if properties else {}, b"m1")
    timed.send(1.1, "a.1 basic.get q")
    timed.acceptor.received(Method("a", 1, "basic.get-ok", got, sent=False, time=1.11, content=content))
    timed.send(1.2, "a.1 basic.publish q body=m2").count(1.3, 1)
    timed.send(3.5, "a.1 basic.nack 1 requeue").count(3.6, back)
    timed.send(3.7, "a.1 basic.publish q body=m3").count(3.8, 2)
    assert timed.blamed == "", "m3 is taken beside m2 alone, and refused beside m1 and m2"


def test_a_get_does_not_expire_what_came_after_it() -> None:
    """What expires behind the message that is got goes with it; nothing does of what crossed the get."""
    timed = Timed("", "expiration=0", "expiration=0")
    acceptor = timed.acceptor
    acceptor.sent(event_of("a", 2, "channel.open", {}, sent=True, time=1.2))
    acceptor.received(Method("a", 2, "channel.open-ok", {}, sent=False, time=1.21))
    acceptor.sent(event_of("a", 2, "confirm.select", {}, sent=True, time=1.22))
    acceptor.received(Method("a", 2, "confirm.select-ok", {}, sent=False, time=1.23))
    acceptor.quiescent()
    timed.send(1.30, "a.2 basic.publish q body=m4").send(1.31, "a.2 basic.publish q body=m5")
    timed.send(1.32, "a.1 basic.get q")
    acceptor.received(Method("a", 2, "basic.ack", {"delivery_tag": 2, "multiple": True}, sent=False, time=1.325))

    def got(tag: int, body: bytes, count: int, time: float) -> None:
        arguments = {
            "delivery_tag": tag, "redelivered": False, "exchange": "", "routing_key": "q", "message_count": count,
        }  # fmt: skip
        acceptor.received(Method("a", 1, "basic.get-ok", arguments, sent=False, content=Content({}, body), time=time))

    got(1, b"m1", 0, 1.33)  # m2 and m3 went with it, and m4 and m5 had not come
    acceptor.quiescent()
    timed.send(1.4, "a.1 basic.get q")
    got(2, b"m4", 1, 1.41)
    acceptor.quiescent()
    assert timed.blamed == ""
    timed.send(1.5, "a.1 basic.get q")
    got(3, b"m2", 0, 1.51)
    assert timed.blamed != "", "it went with m1"
