"""Which explanations an output fits."""

from __future__ import annotations

import pytest

from tests.model.judging.test_acceptor import Conversation


@pytest.mark.known_defects
@pytest.mark.parametrize("ends", [True, False])
def test_a_rare_way_that_is_right_does_not_hide_a_usual_one_that_is_known_to_tell_wrong_numbers(ends: bool) -> None:
    """A cancel-ok that answers nothing ends the consumer or is ignored. RabbitMQ counts who holds deliveries of a
    quorum queue as consumers, so the number of one tells nothing; that m2 is delivered, or not, tells it.
    """
    talk = Conversation().send("a.1 queue.declare q durable x-queue-type=quorum")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0)
    talk.send("a.1 basic.qos 1").see("a.1", "basic.qos-ok")
    talk.send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t").rest()
    talk.send("a.2 basic.publish q body=m1").deliver("a.1", 1, "m1").rest()
    talk.send("a.2 basic.publish q body=m2", "a.1 basic.cancel-ok t", "a.2 queue.declare q passive")
    told = {"queue": "q", "message_count": 1, "consumer_count": 1}
    talk.see("a.2", "queue.declare-ok", **told)
    talk.acceptor.overdue()  # it may have been too early to count one less; it is no more
    talk.rest().send("a.2 queue.declare q passive").see("a.2", "queue.declare-ok", **told).rest()
    talk.send("a.1 basic.ack 1")
    if not ends:
        talk.deliver("a.1", 2, "m2")
    talk.rest()
    assert talk.acceptor.failures == []
