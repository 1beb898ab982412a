"""How late the broker was is measured where a time was up: as a span, and in the explanation that holds at the end."""

from __future__ import annotations

from typing import Any, Self

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.model.broker.deadlines import LATE_SECONDS, NEVER, Deadline
from amqpspec.model.broker.measurement import Due, Measurement
from amqpspec.model.defects.known_defects import acceptor_for
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.methods import Content, Method, event_of
from tests.handshakes import opening

CANCEL = Method("a", 1, "basic.cancel", {"consumer_tag": "t", "nowait": True}, sent=False, time=2.6)


def test_a_span_of_the_beginning_makes_a_span_of_lateness() -> None:
    measured = Due("TIMEOUT-031", Deadline(0.5, since=2.0, by=2.05)).measured(CANCEL)
    assert (measured.requirement, measured.method, measured.time) == ("TIMEOUT-031", "basic.cancel", 2.6)
    assert (measured.nominal, measured.tick) == (0.5, 0.0)
    assert [measured.least, measured.most] == pytest.approx([0.05, 0.1])
    assert measured.is_expected


@pytest.mark.parametrize(("since", "least"), [(2.0, 0.0), (2.2, -0.1)])
def test_where_the_beginning_is_not_known_it_may_have_been_up_just_now(since: float, least: float) -> None:
    measured = Due("TIMEOUT-031", Deadline(0.5, since, NEVER)).measured(CANCEL)
    assert [measured.least, measured.most] == pytest.approx([least, 2.1 - since])


@pytest.mark.parametrize(
    ("least", "most", "tick", "is_expected"),
    [
        (-0.2, 0.1, 0.0, True),
        (0.9 * LATE_SECONDS, 3.0, 0.0, True),
        (1.1 * LATE_SECONDS, 3.0, 0.0, False),
        (1.1 * LATE_SECONDS, 3.0, 0.5, True),
        (-0.2, -0.1, 0.0, False),
        (-0.01, -0.005, 0.0, True),
    ],
)
def test_it_is_expected_unless_all_of_the_span_is_outside(
    least: float, most: float, tick: float, is_expected: bool
) -> None:
    assert Measurement("", "", 0.0, 1.0, least, most, tick).is_expected is is_expected


class Timed:
    """A client and a broker at given times. Replies come a hundredth of a second after what they answer."""

    def __init__(self, dialect: str, queue: str, tick: int = 60_000) -> None:
        self.acceptor = acceptor_for(dialect_named(dialect))
        for method in opening("a", self.acceptor.dialect):
            (self.acceptor.sent if method.sent else self.acceptor.received)(method)
        self.send(0.05, f"broker operator.configure consumer-timeout=500 channel-tick-interval={tick}")
        self.ask(0.1, "a.1 channel.open", "channel.open-ok")
        self.ask(0.2, f"a.1 queue.declare q {queue}", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
        self.ask(0.3, "a.1 basic.consume q consumer-tag=t", "basic.consume-ok", consumer_tag="t")

    def send(self, time: float, line: str) -> Self:
        command = parse_command(line)
        key = (command.connection, command.channel)
        arguments = dict(command.arguments)
        self.acceptor.sent(event_of(*key, command.method, arguments, sent=True, time=time, content=command.content))
        return self

    def came(self, time: float, method: str, body: str = "", **arguments: Any) -> Self:
        content = Content({}, body.encode()) if body else None
        self.acceptor.received(Method("a", 1, method, arguments, sent=False, time=time, content=content))
        self.acceptor.quiescent()
        return self

    def ask(self, time: float, line: str, method: str, **arguments: Any) -> Self:
        return self.send(time, line).came(time + 0.01, method, **arguments)

    def deliver(self, sent: float, came: float, tag: int) -> Self:
        self.send(sent, f"a.1 basic.publish q body=m{tag}")
        arguments = {"redelivered": False, "exchange": "", "routing_key": "q"}
        return self.came(came, "basic.deliver", f"m{tag}", consumer_tag="t", delivery_tag=tag, **arguments)

    def close(self, time: float, milliseconds: int) -> Self:
        text = (
            f"PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. Timeout value used: {milliseconds}"
            " ms. This timeout value can be configured, see consumers doc guide to learn more"
        )
        return self.came(time, "channel.close", reply_code=406, reply_text=text, class_id=0, method_id=0)

    @property
    def measured(self) -> list[tuple[str, str, float, float]]:
        assert self.acceptor.verdict is Verdict.PASS, (self.acceptor.failures, self.acceptor.reason)
        return [(m.requirement, m.method, round(m.least, 3), round(m.most, 3)) for m in self.acceptor.measurements]


QUORUM = "durable x-queue-type=quorum x-consumer-timeout=500"


def test_the_clock_begins_between_the_publish_and_the_delivery() -> None:
    run = Timed("rabbitmq-4.3", QUORUM).deliver(1.0, 1.02, 1).came(1.55, "basic.cancel", consumer_tag="t", nowait=True)
    assert run.measured == [("TIMEOUT-031", "basic.cancel", 0.03, 0.05)]


def test_it_is_measured_once_also_where_explanations_part() -> None:
    run = Timed("rabbitmq-4.3", QUORUM).deliver(1.0, 1.02, 1)
    run.acceptor.overlapping = True
    run.send(1.54, "a.1 basic.publish q body=m2")
    run.acceptor.overlapping = False
    run.send(1.54, "a.2 channel.open")
    run.acceptor.received(Method("a", 1, "basic.cancel", {"consumer_tag": "t", "nowait": True}, False, None, 1.55))
    assert len(run.acceptor.measurements) == 1


def test_nothing_is_measured_as_long_as_nothing_is_seen() -> None:
    run = Timed("rabbitmq-4.3", QUORUM).deliver(1.0, 1.02, 1).send(1.55, "broker clock.wait 1")
    assert run.measured == []


def test_what_comes_too_early_is_a_failure_and_no_measurement() -> None:
    run = Timed("rabbitmq-4.3", QUORUM).deliver(1.0, 1.02, 1).came(1.3, "basic.cancel", consumer_tag="t", nowait=True)
    assert run.acceptor.verdict is Verdict.FAIL and not run.acceptor.measurements


def test_a_channel_is_measured_with_its_tick() -> None:
    run = Timed("rabbitmq-4.0", "durable", tick=200).deliver(1.0, 1.02, 1).close(1.65, 500)
    assert run.measured == [("TIMEOUT-002", "channel.close", 0.13, 0.15)]
    assert [measured.tick for measured in run.acceptor.measurements] == [0.2]


def test_a_delivery_is_not_looked_at_before_it_is_the_oldest() -> None:
    run = Timed("rabbitmq-4.0", "durable", tick=2000).deliver(1.0, 1.02, 1).deliver(1.2, 1.22, 2)
    run.send(2.0, "a.1 basic.ack 1")
    run.acceptor.quiescent()
    assert run.close(2.1, 500).measured == [("TIMEOUT-002", "channel.close", 0.0, 0.1)]
