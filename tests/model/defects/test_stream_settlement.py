"""Up to 3.12 streams refuse what is given back, and recovering crashes; whoever takes it is right."""

from __future__ import annotations

import pytest

from amqpspec.model.defects.known_defects import KNOWN_DEFECTS
from amqpspec.model.promises.versions import Version
from tests.model.rules.extensions.test_streams import Reading

pytestmark = pytest.mark.known_defects
REFUSES, BREAKS = "stream-refuses-rejection", "recover-breaks-on-stream"


def test_giving_back_is_refused_before_4_0_unless_the_stream_is_gone() -> None:
    talk = Reading("rabbitmq-3", 1, published=2).consume().read(1, 0).rest()
    refused = talk.fork().send("a.1 basic.nack 1")
    text = "NOT_IMPLEMENTED - basic.nack and basic.reject not supported by stream queues queue 's' in vhost '/'"
    refused.see("a", "connection.close", reply_code=540, reply_text=text, class_id=60, method_id=120)
    assert refused.send("a connection.close-ok").see("a", "socket.closed").is_known(REFUSES)
    talk.send("b.1 queue.delete s").see("b.1", "queue.delete-ok", message_count=0)
    talk.see("a.1", "basic.cancel", consumer_tag="t", nowait=True).rest()
    assert talk.send("a.1 basic.nack 1").passes()


def test_recovering_crashes_before_3_13() -> None:
    talk = Reading("rabbitmq-3", 1, published=2).consume().read(1, 0).rest().send("a.1 basic.recover requeue")
    talk.see("a", "connection.close", reply_code=541, reply_text="INTERNAL_ERROR", class_id=0, method_id=0)
    assert talk.send("a connection.close-ok").see("a", "socket.closed").is_known(BREAKS)


@pytest.mark.parametrize("name", [REFUSES, BREAKS])
def test_of_3_13_neither_is_known(name: str) -> None:
    assert KNOWN_DEFECTS[name].is_known_of("rabbitmq-3", Version(3, 12, 14))
    assert not KNOWN_DEFECTS[name].is_known_of("rabbitmq-3", Version(3, 13, 0))
