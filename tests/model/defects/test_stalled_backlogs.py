"""The backlog of a classic queue whose active consumer was cancelled, on RabbitMQ 3.10: frames as seen there."""

from __future__ import annotations

import pytest

from tests.model.broker.test_dispatch import SINGLE, consume, conversation, limit


@pytest.mark.known_defects
def test_what_is_given_back_wakes_a_backlog_that_a_later_message_had_overtaken() -> None:
    talk = consume(limit(conversation(f"durable {SINGLE}", "rabbitmq-3"), "a.1", 2), "a.1", "t")
    talk.send("b.1 confirm.select").see("b.1", "confirm.select-ok").rest()
    for number in range(1, 6):
        talk.send(f"b.1 basic.publish q body=m{number}").confirm("b.1", number)
        if number <= 2:
            talk.deliver("a.1", number, f"m{number}")
        talk.rest()
    talk = consume(talk, "a.2", "u", "no-ack")
    talk.send("a.1 basic.cancel t").see("a.1", "basic.cancel-ok", consumer_tag="t").rest()
    assert talk.failure.defect == "cancel-leaves-backlog"
    talk.send("a.1 basic.ack 1").rest().send("a.2 basic.publish q body=m6").deliver("a.2", 1, "m6", consumer="u").rest()
    talk.send("a.1 basic.nack 2 requeue").deliver("a.2", 2, "m2", redelivered=True, consumer="u")
    for number in range(3, 6):
        talk.deliver("a.2", number, f"m{number}", consumer="u")
    talk.rest()
    assert [each.defect for each in talk.acceptor.failures] == ["cancel-leaves-backlog"]
