"""What a barrier has to ask about while messages may have expired."""

from __future__ import annotations

from tests.model.judging.test_acceptor import Conversation


def published(*declared: str) -> Conversation:
    """A message without any time is in q, or it has expired and is a dead letter in r."""
    talk = Conversation()
    talk.send("a.1 queue.declare r durable").see(
        "a.1", "queue.declare-ok", queue="r", message_count=0, consumer_count=0
    )
    for line in declared:
        talk.send(line).see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    return talk.rest().send("a.1 basic.publish q body=m")


def count(talk: Conversation, queue: str, messages: int) -> Conversation:
    talk.send(f"a.2 queue.declare {queue} passive")
    return talk.see("a.2", "queue.declare-ok", queue=queue, message_count=messages, consumer_count=0)


WITH_LETTERS = 'a.1 queue.declare q durable x-message-ttl=0 x-dead-letter-exchange="" x-dead-letter-routing-key=r'
WITHOUT = "a.1 queue.declare q durable x-message-ttl=0"


def test_a_queue_that_is_empty_again_tells_nothing_of_the_letter() -> None:
    talk = count(published(WITH_LETTERS), "q", 0)
    assert not talk.acceptor.failures
    assert talk.acceptor.may_be_proven("q")
    assert "r" in talk.acceptor.unproven_queues()


def test_where_the_letter_is_counted_everything_is_proven() -> None:
    talk = count(count(published(WITH_LETTERS), "q", 0), "r", 1)
    assert not talk.acceptor.failures
    assert talk.acceptor.unproven_queues() == []


def test_without_a_letter_nothing_need_be_asked() -> None:
    assert count(published(WITHOUT), "q", 0).acceptor.unproven_queues() == []


def test_a_message_that_lives_has_to_be_seen() -> None:
    talk = published("a.1 queue.declare q durable")
    assert talk.acceptor.unproven_queues() == ["q"]
    assert not talk.acceptor.may_be_proven("q")


def test_a_get_may_be_too_early_for_what_is_confirmed_behind_it() -> None:
    """Confirm and get-empty come on two connections, in any order."""
    talk = Conversation()
    talk.send("a.1 queue.declare q durable").see(
        "a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0
    )
    talk.send("a.1 confirm.select").see("a.1", "confirm.select-ok").rest()
    talk.send("a.1 basic.publish q body=m &", "b.1 basic.get q")
    talk.confirm("a.1", 1).see("b.1", "basic.get-empty")
    assert not talk.acceptor.failures


def test_a_get_behind_the_confirm_has_to_find_it() -> None:
    talk = Conversation()
    talk.send("a.1 queue.declare q durable").see(
        "a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0
    )
    talk.send("a.1 confirm.select").see("a.1", "confirm.select-ok").rest()
    talk.send("a.1 basic.publish q body=m &").confirm("a.1", 1)
    talk.send("b.1 basic.get q").see("b.1", "basic.get-empty")
    assert talk.failure.requirement == "PUBLISH-002"
