"""What a client sends while messages may expire elsewhere is processed once, in one order."""

from __future__ import annotations

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import ChannelState, Unacknowledged
from amqpspec.model.broker.internal_events import Input, MessageExpiry, QueueExpiry
from amqpspec.model.broker.queues import Message
from amqpspec.model.judging.explanation import Explanation
from amqpspec.model.judging.independence import is_before_publishes, is_independent
from amqpspec.model.judging.merging import Seen
from amqpspec.model.outputs.observation import observe
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.methods import Content, event_of
from tests.model.judging.test_acceptor import Conversation, consuming
from tests.model.timed_client import Timed

EXPIRING = "x-message-ttl=1000"


def with_another_queue(arguments: str) -> Broker:
    client = Timed(arguments)
    numbers = {"message_count": 0, "consumer_count": 0}
    client.ask(0.1, "b.1 queue.declare other", "queue.declare-ok", queue="other", **numbers)
    return client.acceptor.broker


def sent(line: str) -> Input:
    command = parse_command(line)
    arguments = dict(command.arguments)
    return event_of(command.connection, command.channel, command.method, arguments, sent=True, content=command.content)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a.1 basic.qos 5", True),
        ("a.1 basic.qos 5 global", False),
        ("a.1 basic.qos 5 prefetch-size=1", False),
        ("a.2 basic.qos 5", False),
        ("a.1 channel.close-ok", False),
        ("a.1 queue.declare other passive", True),
        ("a.1 queue.declare missing passive", False),
        ("a.1 queue.declare q passive", False),
        ("a.1 queue.declare other", False),
        ("a.1 basic.get other", True),
        ("a.1 basic.get q", False),
        ("a.1 basic.publish other body=m", False),
        ("a.1 queue.purge other", False),
    ],
)
def test_it_is_known_of_what_neither_changes_nor_asks_the_queue(line: str, expected: bool) -> None:
    broker = with_another_queue(EXPIRING)
    assert is_independent(broker, sent(line), [MessageExpiry("q", 0)]) is expected
    assert not is_independent(broker, sent(line), [QueueExpiry("q", 0)]), "a queue that goes takes more with it"


@pytest.mark.parametrize(("exchange", "expected"), [("amq.fanout", False), ("missing", True)])
def test_it_is_not_where_the_message_goes_on_to_another_queue(exchange: str, expected: bool) -> None:
    broker = with_another_queue(f"{EXPIRING} x-dead-letter-exchange={exchange}")
    assert is_independent(broker, sent("a.1 basic.get other"), [MessageExpiry("q", 0)]) is expected
    assert is_independent(broker, sent("a.1 basic.qos 5"), [MessageExpiry("q", 0)]), "no queue hears of that"


def test_what_may_have_expired_costs_an_answer_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Timed(EXPIRING)
    for number in range(6):
        client.send(0.2, f"a.1 basic.publish q body=m{number}")
    client.ask(0.2, "b.1 queue.declare q passive", "queue.declare-ok", queue="q", message_count=6, consumer_count=0)
    client.send(1.25, "b.1 basic.qos 5")
    assert any(isinstance(each, MessageExpiry) for each in client.acceptor.explanations[0].pending)
    forks: list[Explanation] = []
    fork = Explanation.fork
    monkeypatch.setattr(Explanation, "fork", lambda each: forks.append(each) or fork(each))
    client.see(1.26, "basic.qos-ok", on="b").ask(1.27, "b.1 basic.qos 5", "basic.qos-ok")
    assert not client.acceptor.failures and not forks


def test_what_may_be_refused_may_bring_back_what_its_channel_holds() -> None:
    broker = with_another_queue(EXPIRING)
    line, expiry = sent("a.1 queue.declare other passive"), [MessageExpiry("q", 0)]
    assert is_independent(broker, line, expiry)
    channel = broker.channels[("a", 1)]
    channel.unacknowledged[1] = Unacknowledged(Message(Content(), "", "q", 0), broker.queues["q"], None)
    assert not is_independent(broker, line, expiry)
    channel.state = ChannelState.CLOSING
    assert is_independent(broker, sent("a.1 channel.close-ok"), expiry)


def in_flight(count: int = 6, more: str = "") -> Conversation:
    """Publishes that the broker need not have processed, to a queue with one consumer, and another input."""
    publishes = [f"b.1 basic.publish q mandatory body=m{number} &" for number in range(count)]
    return consuming(prefetch=0).send(*publishes, *([f"{more} &"] if more else []))


def test_what_comes_of_a_burst_costs_a_copy_a_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    """A delivery comes before the publishes that are pending, or behind them: the same comes of it."""
    conversation = in_flight()
    forks: list[Explanation] = []
    fork = Explanation.fork
    monkeypatch.setattr(Explanation, "fork", lambda each: forks.append(each) or fork(each))
    for number in range(6):
        conversation.deliver("a.1", number + 1, f"m{number}")
    conversation.confirm("b.1", 6, multiple=True).rest()
    assert conversation.acceptor.verdict is Verdict.PASS
    assert len(forks) <= 2 * 6


@pytest.mark.parametrize(
    ("more", "expected"),
    [("", True), ("b.1 basic.publish q body=n priority=3", False), ("c.1 basic.publish q body=n", False),
     ("b.1 queue.purge q", False), ("a.1 basic.publish q body=n", False)],
)  # fmt: skip
def test_a_delivery_is_looked_at_once_where_only_publishes_of_one_channel_follow(more: str, expected: bool) -> None:
    explanation = in_flight(count=2, more=more).acceptor.explanations[0]
    explanation.process_pending(0)
    arguments = {"consumer_tag": "t", "delivery_tag": 1, "redelivered": False, "exchange": "", "routing_key": "q"}
    delivery = event_of("a", 1, "basic.deliver", arguments, sent=False, content=Content({}, b"m0"))
    assert is_before_publishes(explanation.broker, explanation.pending, delivery) is expected
    if expected:
        before, behind = explanation.fork(), explanation.fork()
        assert not observe(before.broker, delivery)
        before.process_pending(0)
        behind.process_pending(0)
        assert not observe(behind.broker, delivery)
        assert Seen(before).is_like(Seen(behind))
