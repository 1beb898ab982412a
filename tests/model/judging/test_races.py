"""Races that the model does not follow: what they may have brought about is undecided."""

from __future__ import annotations

import pytest

from amqpspec.model.promises.verdict import Verdict
from tests.model.judging.test_acceptor import Conversation


def limited(limit: str) -> Conversation:
    """a.1 may hold one message of the classic queue `q`, and holds it."""
    talk = Conversation().send(f"a.1 queue.declare q {limit}")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    talk.send("a.1 basic.qos 1").see("a.1", "basic.qos-ok")
    talk.send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t").rest()
    return talk.send("b.1 basic.publish q body=m1").deliver("a.1", 1, "m1").rest()


def test_an_acknowledgement_may_overtake_a_publish() -> None:
    """The queue drops what it cannot hand out at once: m2, unless it has heard of the acknowledgement before."""
    talk = limited("x-max-length=0").send("a.1 basic.publish q body=m2 &", "a.1 basic.ack 1").deliver("a.1", 2, "m2")
    assert talk.acceptor.failures == []
    assert talk.rest().acceptor.verdict is Verdict.INCONCLUSIVE
    assert "an acknowledgement comes to a classic queue" in str(talk.acceptor.why_undecided)


@pytest.mark.parametrize("settlement", ["basic.reject 1", "basic.nack 1"])
def test_but_what_is_rejected_does_not(settlement: str) -> None:
    talk = limited("x-max-length=0").send("a.1 basic.publish q body=m2 &", f"a.1 {settlement}")
    assert talk.deliver("a.1", 2, "m2").acceptor.verdict is Verdict.FAIL


def test_nor_does_an_acknowledgement_that_comes_later() -> None:
    talk = limited("x-max-length=0").send("a.1 basic.publish q body=m2").rest().send("a.1 basic.ack 1")
    assert talk.deliver("a.1", 2, "m2").acceptor.verdict is Verdict.FAIL


TO_D = 'x-dead-letter-exchange="" x-dead-letter-routing-key=d'
#: instead of a command
COUNT = "count"
TOGETHER = ("a.1 basic.nack 2 multiple",)


def count_in_d(talk: Conversation, number: int) -> Conversation:
    talk.send("a.1 queue.declare d passive")
    return talk.see("a.1", "queue.declare-ok", queue="d", message_count=number, consumer_count=0).rest()


def after_letters(first: str, second: str, *refusals: str) -> Conversation:
    """a.1 refuses two octets of the first queue and six of the second: the latter one of these is left in `d`, which
    has room for seven.
    """
    talk = Conversation()
    queues = {"d": "x-max-length-bytes=7", first: TO_D, second: TO_D}
    for name, arguments in queues.items():
        talk.send(f"a.1 queue.declare {name} {arguments}")
        talk.see("a.1", "queue.declare-ok", queue=name, message_count=0, consumer_count=0)
    for tag, (name, body) in enumerate(((first, "m1"), (second, "m2....")), start=1):
        talk.send(f"a.1 basic.publish {name} body={body}").rest().send(f"a.1 basic.get {name}")
        told = {"delivery_tag": tag, "redelivered": False, "exchange": "", "routing_key": name, "message_count": 0}
        talk.see("a.1", "basic.get-ok", body, **told).rest()
    for line in refusals:
        if line == COUNT:
            count_in_d(talk, 1)
            continue
        talk.send(line)
        if line.startswith("a.1 tx"):
            talk.see("a.1", line.removeprefix("a.1 ") + "-ok").rest()
    return count_in_d(talk.rest(), 1).send("a.1 basic.publish d body=m3").rest()


@pytest.mark.parametrize(
    "refusals",
    [
        TOGETHER,
        ("a.1 tx.select", "a.1 basic.reject 1", "a.1 basic.nack 2", "a.1 tx.commit"),
        ("a.1 basic.nack 1 &", "a.1 basic.reject 2"),
    ],
)
def test_dead_letters_of_two_queues_come_in_either_order(refusals: tuple[str, ...]) -> None:
    assert count_in_d(after_letters("p", "q", *refusals), 1).acceptor.verdict is Verdict.PASS
    talk = count_in_d(after_letters("p", "q", *refusals), 2)
    assert talk.acceptor.failures == []
    assert talk.acceptor.verdict is Verdict.INCONCLUSIVE
    assert "dead letters of different queues" in str(talk.acceptor.why_undecided)


def test_but_not_those_of_one_queue() -> None:
    assert count_in_d(after_letters("q", "q", *TOGETHER), 2).acceptor.verdict is Verdict.FAIL


def test_nor_what_the_second_sends_when_that_of_the_first_is_there() -> None:
    talk = after_letters("p", "q", "a.1 basic.reject 1", COUNT, "a.1 basic.reject 2")
    assert count_in_d(talk, 2).acceptor.verdict is Verdict.FAIL


def declared_while_deleted(*before: str, queue_type: str = "quorum") -> Conversation:
    """a.1 consumes from q, d.1 deletes it, and a.1 declares it again when it has heard of that."""
    talk = Conversation()
    talk.send(f"a.1 queue.declare q durable x-queue-type={queue_type}")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t").rest()
    talk.send(f"d.1 queue.delete q {'' if before else '&'}")
    if before:
        talk.see("d.1", "queue.delete-ok", message_count=0).see("a.1", "basic.cancel", consumer_tag="t", nowait=True)
        talk.rest()
    talk.send(f"a.1 queue.declare q durable x-queue-type={queue_type} x-max-length=1")
    if not before:
        talk.see("a.1", "basic.cancel", consumer_tag="t", nowait=True)
    text = "PRECONDITION_FAILED - inequivalent arg 'x-max-length' for queue 'q' in vhost '/': "
    text += "received the value '1' of type 'long' but current is none"
    return talk.see("a.1", "channel.close", reply_code=406, reply_text=text, class_id=50, method_id=10)


def test_a_declaration_may_find_the_queue_that_ends() -> None:
    talk = declared_while_deleted()
    assert talk.acceptor.failures == []
    talk.see("d.1", "queue.delete-ok", message_count=0)
    assert talk.rest().acceptor.verdict is Verdict.INCONCLUSIVE
    assert "hear of its end before its name is free" in str(talk.acceptor.why_undecided)


def test_but_not_behind_delete_ok() -> None:
    assert declared_while_deleted("delete-ok").acceptor.verdict is Verdict.FAIL
    assert declared_while_deleted(queue_type="classic").acceptor.verdict is Verdict.FAIL


def given_back(second: str) -> Conversation:
    """a.1 holds m1 and m2 of q, which may keep one message, each by a consumer of its own or both by t, and gives them
    back while m3 waits.
    """
    talk = Conversation().send("a.1 queue.declare q x-max-length=1")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    talk.send(f"a.1 basic.qos {1 if second == 'u' else 2}").see("a.1", "basic.qos-ok").rest()
    for tag in dict.fromkeys(("t", second)):
        talk.send(f"a.1 basic.consume q tag={tag}").see("a.1", "basic.consume-ok", consumer_tag=tag).rest()
    talk.send("b.1 basic.publish q body=m1").deliver("a.1", 1, "m1").rest()
    talk.send("b.1 basic.publish q body=m2").deliver("a.1", 2, "m2", consumer=second).rest()
    talk.send("b.1 basic.publish q body=m3").rest()
    return talk.send("a.1 basic.nack 2 multiple requeue").deliver("a.1", 3, "m3")


def test_what_consumers_held_is_given_back_one_consumer_after_the_other() -> None:
    """m1 is driven out by m3, which t is handed; then m2 has room, and goes to u again."""
    talk = given_back("u").deliver("a.1", 4, "m2", redelivered=True, consumer="u")
    assert talk.acceptor.failures == []
    assert talk.rest().acceptor.verdict is Verdict.INCONCLUSIVE
    assert "one consumer after the other" in str(talk.acceptor.why_undecided)


def test_but_what_one_consumer_held_comes_back_together() -> None:
    assert given_back("t").deliver("a.1", 4, "m2", redelivered=True).acceptor.verdict is Verdict.FAIL


def refused_commit(expiration: str) -> Conversation:
    """a.1 holds m1 of q; its commit publishes m3 there, and m2 to a queue that is gone, for which it is refused."""
    talk = Conversation("rabbitmq-4.0")
    for name in ("q", "gone"):
        talk.send(f"a.1 queue.declare {name} durable")
        talk.see("a.1", "queue.declare-ok", queue=name, message_count=0, consumer_count=0).rest()
    talk.send("b.1 basic.publish q body=m1").rest().send("a.1 tx.select").see("a.1", "tx.select-ok").rest()
    talk.send("a.1 basic.get q").got("a.1", 1, "m1", left=0).rest().send("a.1 basic.publish gone body=m2").rest()
    talk.send("a.1 queue.delete gone").see("a.1", "queue.delete-ok", message_count=0).rest()
    talk.send(f"a.1 basic.publish q body=m3 expiration={expiration}").rest().send("a.1 tx.commit")
    text = "PRECONDITION_FAILED - partial tx completion"
    talk.see("a.1", "channel.close", reply_code=406, reply_text=text, class_id=90, method_id=20)
    talk.send("a.1! channel.close-ok", "b.1 queue.declare q passive")
    talk.see("b.1", "queue.declare-ok", queue="q", message_count=1, consumer_count=0)
    talk.acceptor.overdue()
    return talk.rest()


def test_what_a_refused_commit_publishes_may_be_gone_at_once() -> None:
    talk = refused_commit("0")
    assert talk.acceptor.failures == []
    assert talk.acceptor.verdict is Verdict.INCONCLUSIVE
    assert "what a refused commit has published" in str(talk.acceptor.why_undecided)


def test_but_not_what_has_time() -> None:
    assert refused_commit("60000").acceptor.verdict is Verdict.FAIL


@pytest.mark.parametrize("is_early", [True, False])
def test_a_question_may_overtake_the_end_of_a_client_that_is_gone(is_early: bool) -> None:
    """b had the last consumer of the auto-delete queue, which is deleted when the broker has seen that b is gone."""
    talk = Conversation("rabbitmq-4.0").send("b.1 queue.declare q auto-delete")
    talk.see("b.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    talk.send("b.1 basic.consume q tag=t").see("b.1", "basic.consume-ok", consumer_tag="t").rest()
    talk.send("b socket.abort").send("a.1 queue.declare q passive")
    if is_early:
        talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=1)
    else:
        text = "NOT_FOUND - no queue 'q' in vhost '/'"
        talk.see("a.1", "channel.close", reply_code=404, reply_text=text, class_id=50, method_id=10)
    assert talk.acceptor.failures == []
    assert talk.acceptor.verdict is (Verdict.INCONCLUSIVE if is_early else Verdict.PASS)
