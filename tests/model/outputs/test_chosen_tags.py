"""A consumer with nowait and no tag of the client's: its first delivery tells the tag that the broker has chosen."""

from __future__ import annotations

import pytest

from tests.model.judging.test_acceptor import Conversation, declared


def consuming(dialect: str) -> Conversation:
    talk = declared(dialect=dialect).send("a.1 basic.consume q nowait").rest()
    return talk.send("b.1 basic.publish q body=m1", "b.1 basic.publish q body=m2")


@pytest.mark.parametrize(
    ("dialect", "tag"), [("rabbitmq-4.3", "amq.ctag-0123"), ("amqp-0-9-1", "amq.ctag-0123"), ("amqp-0-9-1", "sgen 1")]
)
def test_the_first_delivery_tells_it(dialect: str, tag: str) -> None:
    talk = consuming(dialect).deliver("a.1", 1, "m1", consumer=tag)
    other = talk.fork().deliver("a.1", 2, "m2", consumer="another")
    assert [each.requirement for each in other.acceptor.failures] == ["CANCEL-001"]
    assert talk.deliver("a.1", 2, "m2", consumer=tag).rest().acceptor.failures == []


def test_rabbitmq_has_a_form_for_it() -> None:
    talk = consuming("rabbitmq-4.3").deliver("a.1", 1, "m1", consumer="sgen 1")
    assert talk.failure.requirement == "CANCEL-001"


@pytest.mark.parametrize("dialect", ["rabbitmq-4.3", "amqp-0-9-1"])
def test_it_is_not_that_of_a_consumer_that_was_cancelled(dialect: str) -> None:
    talk = declared(dialect=dialect).send("a.1 basic.consume q tag=amq.ctag-t")
    talk.see("a.1", "basic.consume-ok", consumer_tag="amq.ctag-t").rest()
    talk.send("a.1 basic.cancel amq.ctag-t").see("a.1", "basic.cancel-ok", consumer_tag="amq.ctag-t").rest()
    talk.send("a.1 basic.consume q nowait").rest()
    talk.send("b.1 basic.publish q body=m1").deliver("a.1", 1, "m1", consumer="amq.ctag-t")
    assert talk.failure.requirement == "CANCEL-001"
