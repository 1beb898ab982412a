"""Deliveries that were under way when their channel ended (area CHAN): they are seen until its end is."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.promises.versions import RABBITMQ
from amqpspec.model.protocol.field_types import Int64
from tests.model.judging.test_acceptor import ANOTHER, Conversation, declared
from tests.model.rules.extensions.test_streams import Reading


def closing(options: str = "") -> Conversation:
    """m1 is on its way to t, whose channel is closed; u, on another one, takes what is left."""
    talk = declared()
    talk.send(f"a.1 basic.consume q tag=t x-priority=1{options}").see("a.1", "basic.consume-ok", consumer_tag="t")
    talk.send("a.2 basic.consume q tag=u").see("a.2", "basic.consume-ok", consumer_tag="u").rest()
    return talk.send("b.1 basic.publish q body=m1 &").send("a.1 channel.close")


def passes(talk: Conversation) -> bool:
    return talk.rest().acceptor.verdict is Verdict.PASS


def test_the_delivery_may_be_overtaken_by_the_next_one_of_the_message() -> None:
    talk = closing().deliver("a.2", 1, "m1", redelivered=True, consumer="u").deliver("a.1", 1, "m1")
    assert passes(talk.see("a.1", "channel.close-ok"))


def test_it_may_come_in_its_order_or_not_at_all() -> None:
    in_order = closing().deliver("a.1", 1, "m1").deliver("a.2", 1, "m1", redelivered=True, consumer="u")
    assert passes(in_order.see("a.1", "channel.close-ok"))
    for redelivered in (False, True):
        unseen = closing().deliver("a.2", 1, "m1", redelivered=redelivered, consumer="u")
        assert passes(unseen.see("a.1", "channel.close-ok"))


def test_not_behind_the_end() -> None:
    talk = closing().deliver("a.2", 1, "m1", redelivered=True, consumer="u").see("a.1", "channel.close-ok")
    assert talk.deliver("a.1", 1, "m1").failure.requirement == "CHAN-016"


def test_not_of_what_went_to_another_one_first() -> None:
    talk = closing().deliver("a.2", 1, "m1", consumer="u").deliver("a.1", 1, "m1")
    assert talk.acceptor.failures


def test_not_twice_and_not_with_another_tag() -> None:
    talk = closing().deliver("a.2", 1, "m1", redelivered=True, consumer="u")
    assert talk.fork().deliver("a.1", 1, "m1").deliver("a.1", 2, "m1").acceptor.failures
    assert talk.deliver("a.1", 2, "m1").failure.requirement == "CONSUME-014"


@pytest.mark.parametrize("elsewhere", [False, True])
def test_without_acknowledgement_it_is_nobody_elses(elsewhere: bool) -> None:
    """What the channel held is with u before the last message for t is seen."""
    talk = declared()
    talk.send("b.1 basic.publish q body=m0").rest()
    talk.send("a.1 basic.get q").got("a.1", 1, "m0", 0).rest()
    talk.send("a.1 basic.consume q tag=t no-ack x-priority=1").see("a.1", "basic.consume-ok", consumer_tag="t")
    talk.send("a.2 basic.consume q tag=u").see("a.2", "basic.consume-ok", consumer_tag="u").rest()
    talk.send("b.1 basic.publish q body=m1 &").send("a.1 channel.close")
    talk.deliver("a.2", 1, "m0", redelivered=True, consumer="u")
    if elsewhere:
        talk.deliver("a.2", 2, "m1", redelivered=True, consumer="u")
    talk.deliver("a.1", 2, "m1")
    if elsewhere:
        assert talk.acceptor.failures
    else:
        assert passes(talk.see("a.1", "channel.close-ok"))


def failing_consume(product: str = RABBITMQ) -> Conversation:
    """A basic.consume is under way when the next method on its channel fails; u, on another one, takes what is left."""
    talk = declared(product=product)
    talk.send("b.1 basic.publish q body=m1").rest()
    talk.send("a.1 basic.consume q tag=t &", "a.1 basic.ack 1")
    return talk.see("a.1", "basic.consume-ok", consumer_tag="t").see(
        "a.1", "channel.close",
        reply_code=406, reply_text="PRECONDITION_FAILED - unknown delivery tag 1", class_id=60, method_id=80,
    )  # fmt: skip


@pytest.mark.known_defects
def test_behind_the_close_for_an_error_it_is_a_known_failure() -> None:
    talk = failing_consume().deliver("a.1", 1, "m1")
    assert (talk.failure.requirement, talk.failure.defect) == ("CHAN-005", "delivers-behind-channel-close")
    assert talk.acceptor.finished


def test_behind_the_close_nothing_else_comes() -> None:
    assert failing_consume(ANOTHER).deliver("a.1", 1, "m2").failure.requirement == "CHAN-016"
    assert failing_consume().deliver("a.1", 1, "m1", consumer="u").failure.defect == ""
    assert failing_consume().send("a.1 channel.close-ok").rest().deliver("a.1", 1, "m1").failure.defect == ""


def ending_with_a_letter(dialect: str, *ending: str) -> Conversation:
    """The end of a channel makes a classic queue drop m1 to a quorum queue, which the channel consumes from as well."""
    talk = (
        Conversation(dialect)
        .send(
            'a.1 queue.declare q x-max-length=1 x-dead-letter-exchange="" x-dead-letter-routing-key=r',
        )
        .see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    )
    talk.send("a.1 queue.declare r durable x-queue-type=quorum")
    talk.see("a.1", "queue.declare-ok", queue="r", message_count=0, consumer_count=0)
    for queue in "qr":
        talk.send(f"a.1 basic.consume {queue} tag={queue}").see("a.1", "basic.consume-ok", consumer_tag=queue)
    for tag in (1, 2):
        talk.send(f"a.1 basic.publish q body=m{tag}").deliver("a.1", tag, f"m{tag}", consumer="q").rest()
    return talk.send(*ending)


def letter(count: int) -> dict[str, object]:
    death = {
        "reason": "maxlen", "queue": "q", "count": Int64(1), "exchange": "", "routing-keys": ["q"],
        "time": datetime(2026, 1, 1, tzinfo=UTC),
    }  # fmt: skip
    told = {f"x-{which}-death-{name}": death[name] for which in ("first", "last") for name in _TOLD}
    return {"headers": {"x-death": [death], **told, **({"x-delivery-count": Int64(count)} if count else {})}}


_TOLD = ("reason", "queue", "exchange")


@pytest.mark.known_defects
@pytest.mark.parametrize("is_behind", [True, False])
def test_a_dead_letter_of_the_end_itself_goes_to_a_consumer_on_a_quorum_queue(is_behind: bool) -> None:
    talk = ending_with_a_letter("rabbitmq-4.0", "a.1 basic.publish k exchange=missing body=m3").see(
        "a.1", "channel.close", reply_code=404, class_id=60, method_id=40,
        reply_text="NOT_FOUND - no exchange 'missing' in vhost '/'",
    )  # fmt: skip
    if is_behind:
        talk.see(
            "a.1", "basic.deliver", "m1", properties=letter(0),
            consumer_tag="r", delivery_tag=3, exchange="", routing_key="r",
        )  # fmt: skip
        assert talk.failure.defect == "delivers-behind-channel-close"
    talk.send("b.1 basic.get r")
    talk.see(
        "b.1", "basic.get-ok", "m1", properties=letter(1),
        delivery_tag=1, redelivered=True, exchange="", routing_key="r", message_count=0,
    )  # fmt: skip
    assert len(talk.rest().acceptor.failures) == int(is_behind)


def test_of_many_messages_that_need_no_acknowledgement_the_first_ones_are_gone() -> None:
    """Else what may have come about doubles with each message."""
    talk = declared("quorum").send("a.1 queue.declare r x-max-length=0 x-overflow=reject-publish")
    talk.see("a.1", "queue.declare-ok", queue="r", message_count=0, consumer_count=0)
    talk.send("a.1 basic.consume q tag=t no-ack").see("a.1", "basic.consume-ok", consumer_tag="t").rest()
    talk.send("a.1 tx.select").see("a.1", "tx.select-ok")
    talk.send(*(f"a.1 basic.publish q body=m{number}" for number in range(20)), "a.1 basic.publish r body=refused")
    talk.send("a.1 tx.commit")
    for number in range(20):
        talk.deliver("a.1", number + 1, f"m{number}")
        assert talk.explanations <= 40
    talk.see(
        "a.1", "channel.close",
        reply_code=406, reply_text="PRECONDITION_FAILED - partial tx completion", class_id=90, method_id=20,
    )  # fmt: skip
    assert passes(talk)


@pytest.mark.parametrize("holds", [False, True])
def test_what_comes_back_to_a_full_queue_was_handed_over_before(holds: bool) -> None:
    """A commit that one queue refuses: what another one hands over does not count there, until it comes back."""
    talk = Conversation().send("a.1 queue.declare q durable x-queue-type=quorum x-max-length=1")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    talk.send("a.1 queue.declare r x-max-length=0 x-overflow=reject-publish")
    talk.see("a.1", "queue.declare-ok", queue="r", message_count=0, consumer_count=0)
    talk.send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t").rest()
    if holds:
        talk.send("b.1 basic.publish q body=m0").deliver("a.1", 1, "m0").rest()
    talk.send("a.1 tx.select").see("a.1", "tx.select-ok").rest()
    for queue, body in (("q", "m1"), ("r", "m2"), ("q", "m3")):
        talk.send(f"a.1 basic.publish {queue} body={body}").rest()
    talk.send("a.1 tx.commit").deliver("a.1", 1 + holds, "m1").see(
        "a.1", "channel.close",
        reply_code=406, reply_text="PRECONDITION_FAILED - partial tx completion", class_id=90, method_id=20,
    )  # fmt: skip
    assert passes(talk)
    talk.send("b.1 queue.declare q passive")
    talk.see("b.1", "queue.declare-ok", queue="q", message_count=1, consumer_count=0)
    assert passes(talk)


LIMITED = 'durable x-max-length=1 x-dead-letter-exchange="" x-dead-letter-routing-key=q'


@pytest.mark.parametrize("order", [("r", "q"), ("q", "r")])
def test_what_one_classic_queue_gives_up_at_the_end_goes_to_a_consumer_on_another_that_has_not_heard_of_it(
    order: tuple[str, str],
) -> None:
    """Whichever of the two the channel has consumed from first."""
    talk = Conversation("rabbitmq-4.3")
    for name, options in (("q", "durable"), ("r", LIMITED)):
        talk.send(f"a.1 queue.declare {name} {options}")
        talk.see("a.1", "queue.declare-ok", queue=name, message_count=0, consumer_count=0).rest()
    talk.send("b.1 basic.qos 1").see("b.1", "basic.qos-ok").rest()
    for name in order:
        talk.send(f"b.1 basic.consume {name} tag={name}").see("b.1", "basic.consume-ok", consumer_tag=name).rest()
    content = {"consumer_tag": "r", "delivery_tag": 1, "redelivered": False, "exchange": "", "routing_key": "r"}
    talk.send("a.1 basic.publish r body=m1").see("b.1", "basic.deliver", "m1", **content).rest()
    talk.send("a.1 basic.publish r body=m2").rest()
    talk.send("b.1 channel.close reply-code=200 reply-text=done")
    (lost,) = talk.acceptor.broker.channels["b", 1].lost
    assert (lost.consumer.tag, lost.message.deaths[0]["reason"]) == ("q", "maxlen")
    talk.see("b.1", "channel.close-ok")
    assert not talk.acceptor.failures


@pytest.mark.parametrize("messages", [1, 100])
def test_each_message_of_a_deleted_queue_may_be_under_way_to_its_consumer(messages: int) -> None:
    talk = declared().send(*[f"a.1 basic.publish q body={number}" for number in range(messages)]).rest()
    talk.send("b.1 basic.consume q tag=t").see("b.1", "basic.consume-ok", consumer_tag="t")
    talk.send("a.1 queue.delete q").see("a.1", "queue.delete-ok", message_count=messages)
    talk.deliver("b.1", 1, "0", consumer="t")
    assert not talk.acceptor.failures


def test_none_comes_before_consume_ok() -> None:
    """The channel breaks its connection before the queue has answered: what it was to be handed nobody sees."""
    talk = declared()
    talk.send("b.1 basic.publish q body=m1").rest()
    talk.send("a.1 basic.consume q tag=t &").send("a.1 basic.publish q immediate=true body=m2 &")
    assert talk.fork().see("a.1", "basic.consume-ok", consumer_tag="t").deliver("a.1", 1, "m1").acceptor.failures == []
    assert talk.deliver("a.1", 1, "m1").acceptor.failures


def test_of_a_stream_no_more_than_the_limit_comes_before_the_end() -> None:
    talk = Reading("rabbitmq-4.3", 2, published=3).consume().send("a.1 channel.close").read(1, 0).read(2, 1)
    assert passes(talk.fork().see("a.1", "channel.close-ok"))
    assert talk.read(3, 2).failure.requirement == "STREAM-006"
