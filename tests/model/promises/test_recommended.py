"""What the text only recommends is told apart by the requirement and by what was seen."""

from __future__ import annotations

import pytest

from amqpspec.model.promises.recommended import recommendation
from amqpspec.model.promises.verdict import Failure, Shape
from tests.model.judging.test_acceptor import Conversation

RETURN = Failure("PUBLISH-007", Shape.MISSING, "basic.return", "c", "nothing", (), ())
WRONG_RETURN = Failure("PUBLISH-007", Shape.WRONG_ARGUMENT, "basic.return exchange", "c", "o", (), ())

TEXT = "amqp-0-9-1"


@pytest.mark.parametrize(
    ("dialect", "is_recommended"),
    [(TEXT, True), (f"{TEXT}+basic.nack;immediate=refused", True), ("rabbitmq-4.3", False)],
)
def test_it_is_so_where_a_broker_is_held_to_the_text(dialect: str, is_recommended: bool) -> None:
    sentence = recommendation(RETURN, dialect)
    assert (sentence is not None) is is_recommended
    assert sentence is None or "SHOULD" in sentence


def test_what_is_done_and_done_wrongly_breaks_a_promise() -> None:
    assert recommendation(WRONG_RETURN, TEXT) is None


def came_again(given_back: str, redelivered: bool = False, seen: bool = True) -> Failure:
    """The failure of a message that is fetched once more; `seen`: it was before."""
    talk = Conversation(TEXT).send("a.1 queue.declare q durable")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send("a.1 basic.publish q body=m1").rest()
    if seen:
        talk.send("a.1 basic.get q").got("a.1", 1, "m1", 0).rest()
        talk.send(given_back)
        if "recover" in given_back:
            talk.see("a.1", "basic.recover-ok")
        talk.rest()
    talk.send("a.1 basic.get q").got("a.1", 2 if seen else 1, "m1", 0, redelivered=redelivered)
    (failure,) = talk.acceptor.failures
    return failure


def test_that_a_message_was_delivered_before_should_be_told() -> None:
    failure = came_again("a.1 basic.reject 1 requeue")
    assert failure.identity == "ACK-015|wrong argument|basic.get-ok redelivered"
    assert "SHOULD" in (recommendation(failure, TEXT) or "")


def test_of_what_basic_recover_brings_back_it_must_be() -> None:
    failure = came_again("a.1 basic.recover requeue")
    assert failure.identity == "RECOVER-001|wrong argument|basic.get-ok redelivered"
    assert recommendation(failure, TEXT) is None


def test_that_it_was_delivered_must_not_be_told_of_one_that_never_was() -> None:
    failure = came_again("", redelivered=True, seen=False)
    assert failure.requirement == "ACK-015"
    assert recommendation(failure, TEXT) is None
