"""Deliveries that nobody sees count: a message may have had enough of them when its consumers' connection is gone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from amqpspec.model.broker.internal_events import DeliveryLimitExcess
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.field_types import Int64
from amqpspec.model.rules.basic.unseen import drop_over_limit
from tests.model.judging.test_acceptor import Conversation


def torn(talk: Conversation, limit: int, *options: str) -> Conversation:
    """A message was with one of two consumers when their connection closed: the other may have got it after that."""
    talk.send(f"b.1 queue.declare q durable x-queue-type=quorum x-delivery-limit={limit} {' '.join(options)}")
    talk.see("b.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    for channel in ("a.1", "a.2"):
        talk.send(f"{channel} basic.consume q tag=t").see(channel, "basic.consume-ok", consumer_tag="t").rest()
    talk.send("b.1 basic.publish q body=m1").deliver("a.1", 1, "m1").rest()
    return talk.send("a connection.close reply-code=200 reply-text=done").see("a", "connection.close-ok")


def counted(talk: Conversation, messages: int, queue: str = "q") -> Conversation:
    talk.send(f"b.1 queue.declare {queue} passive")
    return talk.see("b.1", "queue.declare-ok", queue=queue, message_count=messages, consumer_count=0)


@pytest.mark.parametrize("messages", [0, 1])
def test_beyond_the_limit_the_message_is_there_or_gone(messages: int) -> None:
    talk = counted(torn(Conversation(), 1), messages)
    talk.acceptor.overdue()
    assert talk.rest().acceptor.verdict is Verdict.PASS
    counted(talk, messages).rest()
    assert talk.acceptor.verdict is Verdict.PASS
    assert counted(talk, 1 - messages).acceptor.verdict is Verdict.FAIL, "it does not come back, nor go later"


def test_within_the_limit_the_message_is_there() -> None:
    talk = counted(torn(Conversation(), 2), 0)
    talk.acceptor.overdue()
    assert talk.acceptor.verdict is Verdict.FAIL


def test_what_was_given_up_may_be_a_dead_letter() -> None:
    talk = Conversation().send("b.1 queue.declare dead durable")
    talk.see("b.1", "queue.declare-ok", queue="dead", message_count=0, consumer_count=0).rest()
    torn(talk, 1, 'x-dead-letter-exchange=""', "x-dead-letter-routing-key=dead")
    moved = counted(counted(talk, 0), 1, "dead")
    moved.acceptor.overdue()
    assert moved.rest().acceptor.verdict is Verdict.PASS
    assert counted(moved, 1).acceptor.verdict is Verdict.FAIL, "it is in one of the two"


def test_what_is_recalled_and_confirmed_may_be_away_all_the_same() -> None:
    """The confirm says that the message was in its queue, not that it is back; its consumer is counted as long."""
    talk = Conversation().send("a.1 queue.declare q durable x-queue-type=quorum")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t").rest()
    talk.send("a.1 confirm.select").see("a.1", "confirm.select-ok").rest()
    talk.send("a.1 basic.publish q body=m1 &", "a.1 basic.publish q body=m2 &", "a.1 basic.cancel t")
    talk.see("a.1", "basic.cancel-ok", consumer_tag="t").confirm("a.1", 2, multiple=True)
    talk.send("b.1 queue.declare q passive")
    talk.see("b.1", "queue.declare-ok", queue="q", message_count=1, consumer_count=1)
    unreturned = talk.fork()
    unreturned.acceptor.overdue()
    assert unreturned.acceptor.verdict is Verdict.FAIL, "it has to come back"
    counted(talk, 2).acceptor.overdue()
    assert talk.rest().acceptor.verdict is Verdict.PASS


@pytest.mark.known_defects
def test_who_waits_to_become_active_is_not_taken_for_one_that_is_counted_yet() -> None:
    """A cancelled consumer settles what it holds: the queue may count it once more, and once again."""
    talk = Conversation().send("e.1 queue.declare q durable x-queue-type=quorum x-single-active-consumer=true")
    talk.see("e.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    for channel in ("a.1", "b.1", "c.1", "d.1"):
        talk.send(f"{channel} basic.consume q tag=t").see(channel, "basic.consume-ok", consumer_tag="t").rest()
    for channel, body in (("a.1", "m1"), ("b.1", "m2")):
        talk.send(f"e.1 basic.publish q body={body}").deliver(channel, 1, body).rest()
        talk.send(f"{channel} basic.cancel t").see(channel, "basic.cancel-ok", consumer_tag="t").rest()
    talk.send("a.1 basic.ack 1")
    for count in (3, 3, 2):
        talk.send("e.1 queue.declare q passive")
        talk.see("e.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=count)
    assert {failure.defect for failure in talk.acceptor.failures} <= {"quorum-consumer-count"}


def closing(first: str, second: str) -> Conversation:
    """a.1 has two consumers with a limit of one each; it closes while two messages are under way; b.1 stays."""
    talk = Conversation().send("b.1 queue.declare q durable x-queue-type=quorum")
    talk.see("b.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send("a.1 basic.qos 1").see("a.1", "basic.qos-ok").rest()
    for tag, options in (("s", first), ("t", second)):
        talk.send(f"a.1 basic.consume q tag={tag} {options}").see("a.1", "basic.consume-ok", consumer_tag=tag).rest()
    talk.send("c.1 basic.publish q body=m1 &", "c.1 basic.publish q body=m2 &", "c.1 basic.publish q body=m3 &")
    talk.send("a.1 channel.close").see("a.1", "channel.close-ok").rest()
    return talk.send("b.1 basic.consume q tag=u").see("b.1", "basic.consume-ok", consumer_tag="u")


def handed_on(talk: Conversation, tag: int, body: str, times: int = 1) -> Conversation:
    """It has been delivered before, so many times."""
    properties = {"headers": {"x-delivery-count": Int64(times), "x-acquired-count": Int64(times)}}
    return talk.see(
        "b.1", "basic.deliver", body,
        consumer_tag="u", delivery_tag=tag, redelivered=True, exchange="", routing_key="q", properties=properties,
    )  # fmt: skip


@pytest.mark.parametrize(("first", "second"), [("", ""), ("", "x-priority=1"), ("x-priority=1", "")])
def test_each_consumer_of_a_channel_that_closes_may_have_got_one(first: str, second: str) -> None:
    talk = closing(first, second)
    for tag, body in ((1, "m1"), (2, "m2")):
        handed_on(talk, tag, body)
    assert talk.acceptor.verdict is not Verdict.FAIL
    third = handed_on(talk.fork(), 3, "m3").acceptor
    assert third.failures[0].requirement == "ACK-015", "neither of them had room for it"
    assert talk.deliver("b.1", 3, "m3", consumer="u").rest().acceptor.verdict is Verdict.PASS


def test_a_message_is_with_one_consumer_of_a_channel_that_closes() -> None:
    assert handed_on(closing("", ""), 1, "m1", times=2).failure.requirement == "QUORUM-001"


@pytest.mark.parametrize("no_ack", [True, False])
def test_what_a_dying_channel_takes_without_acknowledging_is_gone(no_ack: bool) -> None:
    """a.2 holds m1 when connection a is lost; it may be handed to t of a.1, which is lost a moment later."""
    talk = Conversation().send("b.1 queue.declare q durable")
    talk.see("b.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send("b.1 basic.publish q body=m1").rest().send("a.2 basic.get q").got("a.2", 1, "m1", 0).rest()
    talk.send(f"a.1 basic.consume q tag=t{' no-ack' if no_ack else ''}")
    talk.see("a.1", "basic.consume-ok", consumer_tag="t").rest().send("a socket.abort")
    there = talk.fork().send("b.1 basic.get q").got("b.1", 1, "m1", 0, redelivered=True)
    assert not there.rest().acceptor.failures
    gone = talk.send("b.1 basic.get q").see("b.1", "basic.get-empty").rest()
    gone.send("b.1 queue.declare q passive")
    gone.see("b.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    gone.acceptor.overdue()
    assert bool(gone.acceptor.failures) is not no_ack


def left_empty() -> Conversation:
    """4.0: a.1 has given back what it held, and a.2, which is next, does not become active; b.1 waits as well."""
    options = "durable x-queue-type=quorum x-single-active-consumer=true"
    talk = Conversation("rabbitmq-4.0").send(f"c.1 queue.declare q {options}")
    talk.see("c.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t").rest()
    talk.send("c.1 basic.publish q body=m1").deliver("a.1", 1, "m1").rest()
    for channel in ("a.2", "b.1"):
        talk.send(f"{channel} basic.consume q tag=u x-priority=1")
        talk.see(channel, "basic.consume-ok", consumer_tag="u").rest()
    talk.send("a.1 basic.nack 1 requeue").rest()
    assert talk.failure.defect == "return-activates-nobody"
    return talk


def closed() -> Conversation:
    return left_empty().send("a connection.close reply-code=200 reply-text=done").see("a", "connection.close-ok")


def one_after_another() -> Conversation:
    talk = left_empty().send("a.1 channel.close &", "a.2 channel.close")
    return talk.see("a.1", "channel.close-ok").see("a.2", "channel.close-ok")


def cancelled() -> Conversation:
    talk = left_empty().send("a.1 basic.cancel t &", "a.2 basic.cancel u")
    return talk.see("a.1", "basic.cancel-ok", consumer_tag="t").see("a.2", "basic.cancel-ok", consumer_tag="u")


@pytest.mark.known_defects
@pytest.mark.parametrize("end", [closed, one_after_another, cancelled])
@pytest.mark.parametrize("times", [1, 2])
def test_who_becomes_active_where_nobody_was_may_end_before_anybody_sees_it(
    end: Callable[[], Conversation], times: int
) -> None:
    talk = end().see(
        "b.1", "basic.deliver", "m1", consumer_tag="u", delivery_tag=1, redelivered=True, exchange="", routing_key="q",
        properties={"headers": {"x-delivery-count": Int64(times)}},
    )  # fmt: skip
    defects = [failure.defect for failure in talk.rest().acceptor.failures]
    assert defects == ["return-activates-nobody"]


def test_what_is_given_up_needs_no_channel() -> None:
    explanations = torn(Conversation(), 1).rest().acceptor.explanations
    broker, event = next(
        (each.broker, event)
        for each in explanations
        for event in (*each.broker.internal_events, *each.pending)
        if isinstance(event, DeliveryLimitExcess)
    )
    broker.channels.clear()  # the connections that are left have opened none
    drop_over_limit(broker, event)
    assert not broker.queues["q"].messages


@pytest.mark.parametrize("dialect", ["rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"])
@pytest.mark.parametrize("is_limited", [True, False])
def test_what_a_limited_consumer_without_acknowledgements_has_no_room_for_is_with_the_next(
    dialect: str, is_limited: bool
) -> None:
    """A quorum queue knows the limit of its channel, and hears of room again only when a delivery has been sent."""
    talk = Conversation(dialect).send("b.1 queue.declare q durable x-queue-type=quorum")
    talk.see("b.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send("a.2 basic.consume q tag=low").see("a.2", "basic.consume-ok", consumer_tag="low").rest()
    if is_limited:
        talk.send("a.1 basic.qos 1").see("a.1", "basic.qos-ok").rest()
    talk.send("a.1 basic.consume q tag=high no-ack x-priority=10")
    talk.see("a.1", "basic.consume-ok", consumer_tag="high").rest()
    talk.send("b.1 basic.publish q body=m1").send("b.1 basic.publish q body=m2")
    talk.send("a.2 channel.close reply-code=200 reply-text=done").see("a.2", "channel.close-ok")
    talk.deliver("a.1", 1, "m1", consumer="high")
    counts = dict.fromkeys(["x-delivery-count", *(["x-acquired-count"] if dialect == "rabbitmq-4.3" else [])], Int64(1))
    talk.see(
        "a.1", "basic.deliver", "m2", consumer_tag="high", delivery_tag=2, redelivered=True, exchange="",
        routing_key="q", properties={"headers": counts},
    )  # fmt: skip
    assert (talk.acceptor.verdict is Verdict.PASS) == is_limited
