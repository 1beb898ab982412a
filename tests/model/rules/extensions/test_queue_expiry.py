"""x-expires (QUEUE-027): certain to be there, certain to be gone, and in between either."""

from __future__ import annotations

from typing import Any, Self

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.internal_events import QueueExpiry
from amqpspec.model.broker.queues import Consumer, Queue
from amqpspec.model.defects.known_defects import acceptor_for
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.methods import ClockWait, Method, event_of
from amqpspec.model.rules.extensions.queue_expiry import expiries
from tests.handshakes import opening

#: Milliseconds that the queue of these tests lives unused.
LIFETIME = 1000


class Timed:
    """A client and a broker at given times. Replies come a hundredth of a second after what they answer."""

    def __init__(self, kind: str = "classic") -> None:
        self.acceptor = acceptor_for(dialect_named("rabbitmq-4.3"))
        for method in opening("a", self.acceptor.dialect):
            (self.acceptor.sent if method.sent else self.acceptor.received)(method)
        self.ask(0.1, "a.1 channel.open", "channel.open-ok")
        line = f"a.1 queue.declare q durable x-queue-type={kind} x-expires={LIFETIME}"
        self.ask(1.0, line, "queue.declare-ok", queue="q", message_count=0, consumer_count=0)

    def ask(self, time: float, line: str, method: str, took: float = 0.01, **arguments: Any) -> Self:
        command = parse_command(line)
        key = (command.connection, command.channel)
        self.acceptor.sent(event_of(*key, command.method, dict(command.arguments), sent=True, time=time))
        return self.see(time + took, key, method, **arguments)

    def see(self, time: float, key: tuple[str, int], method: str, **arguments: Any) -> Self:
        self.acceptor.received(event_of(*key, method, arguments, sent=False, time=time))
        if method == "channel.close":
            self.acceptor.sent(Method(*key, "channel.close-ok", {}, sent=True, time=time))
        self.acceptor.quiescent()
        return self

    def wait(self, until: float) -> Self:
        self.acceptor.sent(ClockWait("broker", 0, "clock.wait", {}, sent=True, time=until))
        self.acceptor.quiescent()
        return self

    def there(self, time: float) -> Self:
        """The broker says that the queue is there."""
        line = "a.1 queue.declare q passive"
        return self.ask(time, line, "queue.declare-ok", queue="q", message_count=0, consumer_count=0)

    def gone(self, time: float, took: float = 0.01) -> Self:
        text = "NOT_FOUND - no queue 'q' in vhost '/'"
        close = {"reply_code": 404, "reply_text": text, "class_id": 50, "method_id": 10}
        return self.ask(time, "a.1 queue.declare q passive", "channel.close", took, **close)

    @property
    def blamed(self) -> str:
        if not self.acceptor.failures:
            assert self.acceptor.verdict is Verdict.PASS
            return ""
        return self.acceptor.failures[0].requirement


def test_it_is_there_for_a_good_part_of_its_time() -> None:
    assert Timed().there(1.3).blamed == ""
    assert Timed().there(1.3).acceptor.exercised["QUEUE-027"] == 1
    assert Timed().gone(1.3).blamed == "QUEUE-027"


@pytest.mark.parametrize(("took", "blamed"), [(0.1, "QUEUE-027"), (0.9, "")])
def test_a_question_may_be_read_late(took: float, blamed: str) -> None:
    assert Timed().gone(1.3, took).blamed == blamed


@pytest.mark.parametrize("time", [1.6, 1.95, 2.05, 2.9])
def test_about_its_time_it_may_be_there_or_gone(time: float) -> None:
    assert Timed().there(time).blamed == ""
    assert Timed().gone(time).blamed == ""
    assert Timed().wait(time).gone(time + 0.1).blamed == ""


def test_a_quorum_queue_counts_nothing_while_it_goes() -> None:
    """Its process is gone before it is."""
    line, numbers = "a.1 queue.declare q passive", {"queue": "q", "consumer_count": 0}

    def filled() -> Timed:
        timed = Timed("quorum")
        command = parse_command("a.1 basic.publish q body=m")
        timed.acceptor.sent(Method("a", 1, command.method, dict(command.arguments), sent=True, time=1.1,
                                  content=command.content))  # fmt: skip
        return timed.ask(1.2, line, "queue.declare-ok", message_count=1, **numbers)

    counted = filled().ask(5.0, line, "queue.declare-ok", message_count=0, **numbers)
    assert counted.blamed == ""
    assert counted.gone(5.1).blamed == ""
    assert filled().ask(1.3, line, "queue.declare-ok", message_count=0, **numbers).blamed


def test_some_time_after_that_it_is_gone() -> None:
    assert Timed().gone(3.5).blamed == ""
    assert Timed().gone(3.5).acceptor.exercised["QUEUE-027"] == 1
    assert Timed().there(3.5).blamed == "QUEUE-027"
    assert Timed().wait(2.5).there(3.5).blamed == "QUEUE-027"


def test_to_be_asked_for_is_a_use_of_a_classic_queue() -> None:
    assert Timed().there(1.9).there(2.3).blamed == ""
    assert Timed().there(1.9).gone(2.3).blamed == "QUEUE-027"
    assert Timed().there(1.9).there(3.5).blamed == ""
    assert Timed().there(1.9).there(4.5).blamed == "QUEUE-027"


def test_what_is_gone_does_not_come_back() -> None:
    reopened = Timed().gone(2.1).ask(2.2, "a.1 channel.open", "channel.open-ok")
    assert reopened.gone(2.3).blamed == ""
    reopened = Timed().gone(2.1).ask(2.2, "a.1 channel.open", "channel.open-ok")
    assert reopened.there(2.3).blamed != ""


def test_a_consumer_keeps_it() -> None:
    def consuming() -> Timed:
        return Timed().ask(1.1, "a.1 basic.consume q tag=t", "basic.consume-ok", consumer_tag="t")

    line = "a.1 queue.declare q passive"
    stays = consuming().ask(60.0, line, "queue.declare-ok", queue="q", message_count=0, consumer_count=1)
    assert stays.blamed == ""
    assert stays.ask(61.0, "a.1 basic.cancel t", "basic.cancel-ok", consumer_tag="t").there(61.3).blamed == ""
    assert consuming().gone(60.0).blamed == "QUEUE-027"
    assert stays.gone(64.0).blamed == ""


def test_a_get_is_a_use_and_quorum_queues_are_looked_at_now_and_then() -> None:
    assert Timed("quorum").ask(1.4, "a.1 basic.get q", "basic.get-empty").there(1.7).blamed == ""
    assert Timed("quorum").there(7.5).blamed == ""
    assert Timed("quorum").gone(4.0).blamed == ""
    assert Timed("quorum").gone(8.5).blamed == ""
    assert Timed("quorum").there(8.5).blamed == "QUEUE-027"


@pytest.mark.parametrize(
    ("kind", "rests", "is_right"), [("quorum", False, True), ("quorum", True, False), ("classic", False, False)]
)
def test_a_quorum_queue_answers_while_its_end_is_under_way(kind: str, rests: bool, is_right: bool) -> None:
    """Who deletes it does not ask whether it has been used since its tick."""
    timed = Timed(kind)
    timed.acceptor.sent(event_of("a", 1, "basic.get", {"queue": "q"}, sent=True, time=2.3))
    timed.acceptor.received(event_of("a", 1, "basic.get-empty", {}, sent=False, time=2.35))
    if rests:
        timed.acceptor.quiescent()
    assert (timed.gone(2.36).blamed == "") is is_right


def test_a_queue_with_a_consumer_that_timed_out_says_nothing_of_others() -> None:
    """That one may still be there, when the other must be gone."""
    broker = Broker(dialect_named("rabbitmq-4.3"))
    channel = broker.channel("a", 1)
    for name in ("p", "q"):
        queue = Queue(name, arguments={"x-expires": LIFETIME})
        broker.queues[name], broker.expiring[name] = queue, None
    broker.queues["p"].uses = 1
    late = Consumer("t", channel.key, broker.queues["p"], no_ack=False, prefetch=0, timed_out=1)
    broker.queues["p"].consumers.append(late)
    expiries(broker, 1000.0, is_certain=True)
    assert list(broker.queues) == ["p"]
    assert [(type(event), event.queue) for event in broker.internal_events] == [(QueueExpiry, "p")]
