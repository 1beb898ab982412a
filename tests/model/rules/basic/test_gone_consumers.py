"""Messages and a consumer that is gone: while the queue counts it, or nobody has told its client, it may have some."""

from __future__ import annotations

import pytest

from amqpspec.model.broker.internal_events import ConnectionTeardown
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.methods import EMPTY_CONTENT, Method
from amqpspec.model.rules.inputs import process
from tests.model.judging.test_acceptor import Conversation, declared


def counted(talk: Conversation, messages: int, consumers: int) -> Conversation:
    talk.send("b.1 queue.declare q passive")
    return talk.see("b.1", "queue.declare-ok", queue="q", message_count=messages, consumer_count=consumers)


def left_with_a_message() -> Conversation:
    """m1 is acknowledged and its channel closed at once: m2 may be handed to it in between."""
    talk = declared("quorum").send("a.2 basic.qos 1").see("a.2", "basic.qos-ok")
    talk.send("a.2 basic.consume q tag=t").see("a.2", "basic.consume-ok", consumer_tag="t").rest()
    talk.send("b.1 basic.publish q body=m1").deliver("a.2", 1, "m1").send("b.1 basic.publish q body=m2")
    counted(talk, 1, 1).rest()
    return talk.send("a.2 basic.ack 1 &").send("a.2 channel.close").see("a.2", "channel.close-ok")


def test_a_message_that_was_counted_may_go_to_a_consumer_that_is_still_counted() -> None:
    talk = counted(counted(counted(left_with_a_message(), 1, 1), 0, 1), 1, 0)
    talk.acceptor.overdue()
    assert talk.rest().acceptor.verdict is Verdict.PASS


def test_when_the_consumer_is_not_counted_any_more_the_message_is_there_for_good() -> None:
    talk = counted(counted(left_with_a_message(), 1, 0), 0, 0)
    assert talk.acceptor.verdict is Verdict.FAIL


def test_a_message_that_is_counted_is_not_lost_as_the_consumer_is_counted_still() -> None:
    """Seen of dispatchd: a consumer outlives its channel."""
    talk = counted(left_with_a_message(), 1, 1)
    talk.acceptor.overdue()
    assert talk.failure.identity == "QUEUE-001|missing frame|consumers gone"
    missing = counted(left_with_a_message(), 0, 1)
    missing.acceptor.overdue()
    assert missing.failure.detail == "messages ready"


@pytest.mark.parametrize("kind", ["classic", "quorum", "stream"])
def test_who_is_not_told_of_the_end_of_a_queue_may_be_handed_what_was_under_way(kind: str) -> None:
    talk = declared(kind).send("b.1 basic.qos 5").see("b.1", "basic.qos-ok")
    talk.acceptor.broker.connections["b"].capabilities = {}
    talk.send("b.1 basic.consume q tag=t").see("b.1", "basic.consume-ok", consumer_tag="t").rest()
    talk.send("c.1 basic.publish q body=m1 &", "c.1 basic.publish q body=m2 &", "a.1 queue.delete q")
    talk.see("a.1", "queue.delete-ok", message_count=0)

    def handed(talk: Conversation, tag: int) -> Conversation:
        in_stream = {"headers": {"x-stream-offset": tag - 1}, "delivery_mode": 1}
        return talk.see(
            "b.1", "basic.deliver", f"m{tag}", properties=in_stream if kind == "stream" else {},
            consumer_tag="t", delivery_tag=tag, redelivered=False, exchange="", routing_key="q",
        )  # fmt: skip

    assert handed(handed(talk.fork(), 1), 2).rest().acceptor.verdict is Verdict.PASS
    late = handed(handed(talk, 1).rest(), 2)
    assert late.failure.requirement == "CANCEL-007", "not when the broker is at rest"


@pytest.mark.parametrize("several", [1, 3])
def test_a_channel_that_has_broken_its_connection_breaks_it_once(several: int) -> None:
    """Whatever was sent on it after the error is ignored: one close is owed, and the other channels end once."""
    broker = declared().send("a.2 basic.qos 1").see("a.2", "basic.qos-ok").rest().acceptor.broker
    process(broker, Method("a", 1, "basic.publish", {"routing_key": "q", "immediate": True}, True, EMPTY_CONTENT))
    for _ in range(several):
        process(broker, Method("a", 1, "basic.publish", {"routing_key": "q"}, True, EMPTY_CONTENT))
    assert len(broker.connections["a"].owed) == 1
    assert broker.teardowns == [ConnectionTeardown("a")]


@pytest.mark.known_defects
@pytest.mark.parametrize(("counts", "explained"), [((2, 2, 1), True), ((2, 9), False)])
def test_a_holder_that_is_gone_is_counted_until_it_is_not(counts: tuple[int, ...], explained: bool) -> None:
    """Of a single-active-consumer queue, which does not count those who wait (quorum-consumer-count)."""
    talk = Conversation().send("b.1 queue.declare q durable x-queue-type=quorum x-single-active-consumer=true")
    counted(talk.see("b.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0), 0, 0)
    talk.send("a.2 basic.consume q tag=t").see("a.2", "basic.consume-ok", consumer_tag="t").rest()
    talk.send("b.1 basic.publish q body=m1").deliver("a.2", 1, "m1").rest()
    talk.send("a.2 basic.cancel t").see("a.2", "basic.cancel-ok", consumer_tag="t").rest()
    for tag in ("u", "v", "w"):
        talk.send(f"c.1 basic.consume q tag={tag}").see("c.1", "basic.consume-ok", consumer_tag=tag).rest()
    talk.send("a.2 channel.close").see("a.2", "channel.close-ok")
    for count in counts:
        counted(talk, 0, count)
    assert all(failure.defect == "quorum-consumer-count" for failure in talk.acceptor.failures) is explained
