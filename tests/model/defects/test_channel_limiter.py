"""The limiter of a channel, a process beside it: what crosses what it says."""

from __future__ import annotations

import pytest

from tests.model.judging.test_acceptor import Conversation, declared


def _at_its_limit() -> Conversation:
    """a.1 has a limit of 1 for the channel, holds m1, and its consumer u, without acknowledgements, waits."""
    talk = declared(dialect="rabbitmq-4.0").send("a.1 queue.declare r")
    talk.see("a.1", "queue.declare-ok", queue="r", message_count=0, consumer_count=0)
    talk.send("a.1 basic.qos 1 global").see("a.1", "basic.qos-ok")
    talk.send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t")
    talk.send("a.1 basic.consume r tag=u no-ack").see("a.1", "basic.consume-ok", consumer_tag="u").rest()
    talk.send("b.1 basic.publish q body=m1").deliver("a.1", 1, "m1").rest()
    return talk.send("b.1 basic.publish r body=r1", "b.1 basic.publish q body=m2").rest()


@pytest.mark.known_defects
@pytest.mark.parametrize("crosses", [True, False])
def test_what_needs_no_acknowledgement_may_cross_the_delivery_that_takes_the_room(crosses: bool) -> None:
    """Each queue asks the limiter by itself, so r1 may be allowed before m2 and come after it; or it waits on."""
    talk = _at_its_limit()
    assert [failure.defect for failure in talk.acceptor.failures] == ["channel-limit-holds-no-ack"]
    talk.send("a.1 basic.ack 1").deliver("a.1", 2, "m2")
    if crosses:
        talk.see(
            "a.1", "basic.deliver", "r1",
            consumer_tag="u", delivery_tag=3, redelivered=False, exchange="", routing_key="r",
        )  # fmt: skip
    talk.rest()
    assert [failure.defect for failure in talk.acceptor.failures] == ["channel-limit-holds-no-ack"]
