"""A broker that nacks what no queue has refused: which rule that breaks goes by where the message went."""

from __future__ import annotations

import pytest

from tests.model.judging.test_acceptor import Conversation

TEXT = "amqp-0-9-1+basic.nack+publisher_confirms"
RETURNED = {"reply_code": 312, "reply_text": "NO_ROUTE", "exchange": "", "routing_key": "nowhere"}
DETAIL = "basic.nack of a message that no queue refused"


def selected(dialect: str = TEXT) -> Conversation:
    talk = Conversation(dialect).send("a.1 queue.declare q durable")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    return talk.send("a.1 confirm.select").see("a.1", "confirm.select-ok").rest()


def nack(talk: Conversation) -> Conversation:
    return talk.see("a.1", "basic.nack", delivery_tag=1, multiple=True, requeue=True)


def test_behind_its_return_a_mandatory_message_is_acked_by_rabbitmq() -> None:
    talk = selected("rabbitmq-4.3").send("a.1 basic.publish nowhere mandatory body=m1")
    nack(talk.see("a.1", "basic.return", "m1", **RETURNED)).rest()
    assert talk.failure.identity == f"CONFIRM-008|unexpected frame|{DETAIL}"


@pytest.mark.parametrize("is_before", [True, False])
def test_another_product_may_nack_it_before_its_return_or_behind(is_before: bool) -> None:
    talk = selected().send("a.1 basic.publish nowhere mandatory body=m1")
    if is_before:
        nack(talk).see("a.1", "basic.return", "m1", **RETURNED).rest()
    else:
        nack(talk.see("a.1", "basic.return", "m1", **RETURNED)).rest()
    assert talk.acceptor.failures == []


def test_of_what_a_queue_took_it_is_another_rule() -> None:
    talk = nack(selected().send("a.1 basic.publish q mandatory body=m1"))
    assert talk.failure.identity == f"CONFIRM-011|unexpected frame|{DETAIL}"


def test_an_ack_ahead_of_the_return_is_told_as_before() -> None:
    talk = selected().send("a.1 basic.publish nowhere mandatory body=m1").confirm("a.1", 1)
    assert talk.failure.identity == "CONFIRM-009|unexpected frame|basic.ack before basic.return"
