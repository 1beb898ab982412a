"""Of what a quorum queue drops at one time, RabbitMQ up to 4.2.0 dead-letters the latest first: a known defect."""

from __future__ import annotations

from typing import Any

import pytest

from amqpspec.model.broker.dead_letter_headers import chosen
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.promises.versions import RABBITMQ
from tests.model.judging.test_acceptor import ANOTHER, Conversation

QUEUE = 'durable x-queue-type=quorum x-max-length-bytes=4 x-dead-letter-exchange="" x-dead-letter-routing-key=d'
COUNTS: dict[str, Any] = {"message_count": 0, "consumer_count": 0}


def dropped(dialect: str, product: str = RABBITMQ) -> Conversation:
    """4444 has driven 11 and 22 out of q, whose dead letters go to d."""
    talk = Conversation(dialect, product=product).send("a.1 queue.declare d durable")
    talk.see("a.1", "queue.declare-ok", queue="d", **COUNTS)
    talk.send(f"a.1 queue.declare q {QUEUE}").see("a.1", "queue.declare-ok", queue="q", **COUNTS).rest()
    for body in ("11", "22", "4444"):
        talk.send(f"a.1 basic.publish q body={body}").rest()
    return talk


def got(talk: Conversation, tag: int, body: str, left: int) -> Conversation:
    """a.1 gets the dead letter, with the headers that it has to have."""
    letters = talk.acceptor.broker.queues["d"].messages
    content = next(each.content for each in letters if each.content.body == body.encode())
    arguments: dict[str, Any] = {"redelivered": False, "exchange": "", "routing_key": "d", "message_count": left}
    talk.send("a.1 basic.get d")
    return talk.see("a.1", "basic.get-ok", body, delivery_tag=tag, properties=chosen(content.properties), **arguments)


@pytest.mark.parametrize("dialect", ["rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"])
def test_in_their_order_is_right_in_every_version(dialect: str) -> None:
    talk = got(got(dropped(dialect), 1, "11", 1), 2, "22", 0).rest()
    assert talk.acceptor.verdict is Verdict.PASS


@pytest.mark.known_defects
@pytest.mark.parametrize("dialect", ["rabbitmq-3", "rabbitmq-4.0"])
def test_the_latest_first_is_a_known_defect_up_to_4_2_0(dialect: str) -> None:
    talk = got(dropped(dialect), 1, "22", 1)
    assert (talk.failure.requirement, talk.failure.defect) == ("DLX-009", "drops-latest-letter-first")
    assert talk.acceptor.broker.queues["d"].open_by


def test_and_an_unknown_one_from_4_3_on() -> None:
    """Of RabbitMQ itself it is not told from what comes of quorum-bytes-count-properties."""
    failure = got(dropped("rabbitmq-4.3", ANOTHER), 1, "22", 1).failure
    assert (failure.requirement, failure.defect) == ("DLX-009", "")


@pytest.mark.known_defects
@pytest.mark.parametrize("limit", ["x-max-length-bytes=6", "x-max-length=1"])
def test_a_limit_of_the_next_queue_drops_others_by_that(limit: str) -> None:
    """d may hold what it has got of 1 and 22222, and what comes next drives out more, or less."""
    talk = Conversation("rabbitmq-4.0").send(f"a.1 queue.declare d durable {limit}")
    talk.see("a.1", "queue.declare-ok", queue="d", **COUNTS)
    talk.send(f"a.1 queue.declare q {QUEUE.replace('=4', '=6')}").see("a.1", "queue.declare-ok", queue="q", **COUNTS)
    for body in ("1", "22222", "666666"):
        talk.rest().send(f"a.1 basic.publish q body={body}")
    talk.rest().send("a.1 basic.publish q body=777777").rest()
    talk.send("a.1 queue.declare d passive").see(
        "a.1", "queue.declare-ok", queue="d", message_count=5, consumer_count=0
    )
    assert [failure.defect for failure in talk.acceptor.failures] == ["drops-latest-letter-first"]
