"""Clients that are gone without a word (CONN-021), and channels that are opened before they are closed (CHAN-004)."""

from __future__ import annotations

import pytest

from amqpspec.model.promises.verdict import Verdict
from tests.handshakes import opening
from tests.model.judging.test_acceptor import Conversation

LOCKED = (
    "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'q' in vhost '/'. It could be originally declared"
    " on another connection or the exclusive property value does not match that of the original declaration."
)


def abandoned() -> Conversation:
    """a had a queue of its own, and is gone; b is there."""
    talk = Conversation().send("b.1 basic.qos 1").see("b.1", "basic.qos-ok")
    talk.send("a.1 queue.declare q exclusive")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    return talk.send("a socket.abort")


def ask(talk: Conversation, channel: str) -> Conversation:
    return talk.send(f"{channel} queue.declare q passive")


def closed(talk: Conversation, channel: str, code: int, text: str) -> Conversation:
    talk.see(channel, "channel.close", reply_code=code, reply_text=text[:252] + "..." if len(text) > 255 else text,
             class_id=50, method_id=10)  # fmt: skip
    return talk.send(f"{channel}! channel.close-ok")


def gone(talk: Conversation, channel: str) -> Conversation:
    return closed(ask(talk, channel), channel, 404, "NOT_FOUND - no queue 'q' in vhost '/'")


def locked(talk: Conversation, channel: str) -> Conversation:
    return closed(ask(talk, channel), channel, 405, LOCKED)


def first_blamed(talk: Conversation) -> str:
    return talk.acceptor.failures[0].requirement


def test_its_queue_is_still_there_or_gone() -> None:
    assert gone(abandoned(), "b.1").rest().acceptor.verdict is Verdict.PASS
    still = locked(abandoned(), "b.1")
    assert still.acceptor.verdict is Verdict.PASS
    assert gone(still, "b.2").rest().acceptor.verdict is Verdict.PASS
    assert still.acceptor.exercised["CONN-021"] == 1
    assert still.explanations == 1


def test_what_is_gone_stays_so() -> None:
    assert first_blamed(locked(gone(abandoned(), "b.1"), "b.2")) == "CONN-021"


def test_even_at_rest_nobody_knows_until_it_is_seen() -> None:
    resting = abandoned().rest()
    assert locked(resting.fork(), "b.1").acceptor.verdict is Verdict.PASS
    assert gone(resting, "b.1").acceptor.verdict is Verdict.PASS


def test_in_the_end_it_has_to_go() -> None:
    talk = locked(abandoned(), "b.1")
    talk.acceptor.overdue()
    assert gone(talk.fork(), "b.2").acceptor.verdict is Verdict.PASS
    assert first_blamed(locked(talk, "b.2")) == "CONN-021"


def test_without_such_a_queue_nothing_is_in_doubt() -> None:
    talk = Conversation().send("a.1 queue.declare q durable")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest().send("a socket.abort")
    assert talk.explanations == 1
    assert talk.pending == 0


@pytest.mark.parametrize("works", [True, False])
def test_a_channel_opened_before_close_ok_works_or_breaks(works: bool) -> None:
    talk = Conversation().send("a.1 basic.qos 1").see("a.1", "basic.qos-ok").rest()
    talk.send("a.1 channel.close &", "a.1! channel.open")
    if works:
        talk.see("a.1", "channel.close-ok").see("a.1", "channel.open-ok").send("a.1 basic.qos 1")
        talk.see("a.1", "basic.qos-ok")
    else:
        text = "CHANNEL_ERROR - second 'channel.open' seen"
        talk.see("a", "connection.close", reply_code=504, reply_text=text, class_id=20, method_id=10)
    assert talk.rest().acceptor.verdict is Verdict.PASS
    assert talk.acceptor.exercised["CHAN-004"] > 0


def test_nothing_else_may_become_of_it() -> None:
    talk = Conversation().send("a.1 basic.qos 1").see("a.1", "basic.qos-ok").rest()
    talk.send("a.1 channel.close &", "a.1! channel.open")
    only_closed = talk.fork().see("a.1", "channel.close-ok")
    only_closed.acceptor.overdue()
    assert only_closed.failure.requirement == "CHAN-003"
    both = talk.see("a.1", "channel.close-ok")
    text = "CHANNEL_ERROR - second 'channel.open' seen"
    both.see("a", "connection.close", reply_code=504, reply_text=text, class_id=20, method_id=10)
    assert both.acceptor.verdict is Verdict.FAIL


def test_a_connection_whose_end_was_not_recorded_is_gone_when_its_name_is_used_again() -> None:
    talk = Conversation().send("b.1 queue.declare q")
    talk.see("b.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t").rest()
    for event in opening("a"):
        (talk.acceptor.sent if event.sent else talk.acceptor.received)(event)
    talk.rest().send("b.1 basic.publish q body=m").rest()
    talk.send("b.1 queue.declare q passive")
    talk.see("b.1", "queue.declare-ok", queue="q", message_count=1, consumer_count=0).rest()
    assert talk.acceptor.verdict is Verdict.PASS, talk.acceptor.failures
