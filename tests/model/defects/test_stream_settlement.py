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


def test_what_stands_before_the_stream_is_settled_before_it_refuses() -> None:
    talk = Reading("rabbitmq-3", 1, published=1).consume().read(1, 0).rest()
    for tag, name in enumerate(("q", "z")):
        talk.send(f"a.1 queue.declare {name} durable")
        talk.see("a.1", "queue.declare-ok", queue=name, message_count=0, consumer_count=0).rest()
        talk.send(f"a.1 basic.publish {name} body={name}").rest().send(f"a.1 basic.get {name}")
        talk.see(
            "a.1", "basic.get-ok", name,
            delivery_tag=tag + 2, redelivered=False, exchange="", routing_key=name, message_count=0,
        ).rest()  # fmt: skip
    talk.send("a.1 basic.nack 0 multiple")
    text = "NOT_IMPLEMENTED - basic.nack and basic.reject not supported by stream queues queue 's' in vhost '/'"
    talk.see("a", "connection.close", reply_code=540, reply_text=text, class_id=60, method_id=120)
    talk.send("a connection.close-ok").see("a", "socket.closed").rest()
    assert talk.send("b.1 basic.get q").see("b.1", "basic.get-empty").is_known(REFUSES)
    talk.send("b.1 basic.get z").see(
        "b.1", "basic.get-ok", "z", delivery_tag=1, redelivered=True, exchange="", routing_key="z", message_count=0
    )
    assert talk.is_known(REFUSES)


def test_what_stands_before_the_stream_is_given_back_before_it_refuses() -> None:
    """As by basic.nack, so behind what was published since, and not as the end of the connection gives back."""
    talk = Reading("rabbitmq-3", 1, published=1).consume().read(1, 0).rest()
    talk.send("a.1 queue.declare q durable x-queue-type=quorum")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send("a.1 basic.publish q body=p0").rest().send("a.1 basic.publish q body=p1").rest().send("a.1 basic.get q")
    talk.see(
        "a.1", "basic.get-ok", "p0", delivery_tag=2, redelivered=False, exchange="", routing_key="q", message_count=1,
        properties={"headers": {"x-delivery-count": 0}},
    ).rest()  # fmt: skip
    talk.send("a.1 basic.nack 0 multiple requeue")
    text = "NOT_IMPLEMENTED - basic.nack and basic.reject not supported by stream queues queue 's' in vhost '/'"
    talk.see("a", "connection.close", reply_code=540, reply_text=text, class_id=60, method_id=120)
    talk.send("a connection.close-ok").see("a", "socket.closed").rest().send("b.1 basic.get q")
    talk.see(
        "b.1", "basic.get-ok", "p1", delivery_tag=1, redelivered=False, exchange="", routing_key="q", message_count=1,
        properties={"headers": {"x-delivery-count": 0}},
    )  # fmt: skip
    assert talk.is_known(REFUSES)


@pytest.mark.parametrize("left", [0, 1])
def test_the_room_that_is_made_before_the_stream_refuses_may_be_used_unseen(left: int) -> None:
    """And a queue that bears no return has given up what was."""
    talk = Reading("rabbitmq-3", 1, published=1).consume().read(1, 0).rest()
    talk.send("a.1 queue.declare q durable x-queue-type=quorum x-delivery-limit=-1")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send("a.1 basic.publish q body=p0").rest().send("a.1 basic.publish q body=p1").rest()
    talk.send("a.1 basic.qos 1").see("a.1", "basic.qos-ok").rest()
    talk.send("a.1 basic.consume q tag=u").see("a.1", "basic.consume-ok", consumer_tag="u")
    talk.see(
        "a.1", "basic.deliver", "p0", consumer_tag="u", delivery_tag=2, redelivered=False, exchange="",
        routing_key="q",
    ).rest()  # fmt: skip
    talk.send("a.1 basic.nack 0 multiple")
    text = "NOT_IMPLEMENTED - basic.nack and basic.reject not supported by stream queues queue 's' in vhost '/'"
    talk.see("a", "connection.close", reply_code=540, reply_text=text, class_id=60, method_id=120)
    talk.send("a connection.close-ok").see("a", "socket.closed")
    talk.send("b.1 queue.declare q passive")
    assert talk.see("b.1", "queue.declare-ok", queue="q", message_count=left, consumer_count=0).is_known(REFUSES)


def test_what_is_refused_before_the_stream_refuses_is_a_dead_letter() -> None:
    talk = Reading("rabbitmq-3", 1, published=1).consume().read(1, 0).rest()
    for name, arguments in (("d", ""), ("q", 'x-dead-letter-exchange="" x-dead-letter-routing-key=d')):
        talk.send(f"a.1 queue.declare {name} durable {arguments}")
        talk.see("a.1", "queue.declare-ok", queue=name, message_count=0, consumer_count=0).rest()
    talk.send("a.1 basic.publish q body=m1").rest().send("a.1 basic.get q").got("a.1", 2, "m1", 0).rest()
    talk.send("a.1 basic.nack 0 multiple")
    text = "NOT_IMPLEMENTED - basic.nack and basic.reject not supported by stream queues queue 's' in vhost '/'"
    talk.see("a", "connection.close", reply_code=540, reply_text=text, class_id=60, method_id=120)
    talk.send("a connection.close-ok").see("a", "socket.closed").rest()
    talk.send("b.1 queue.declare d passive")
    assert talk.see("b.1", "queue.declare-ok", queue="d", message_count=1, consumer_count=0).is_known(REFUSES)


@pytest.mark.parametrize("counted", [0, 1])
@pytest.mark.parametrize("name", ["q", "z"])
def test_what_recover_gives_back_before_it_crashes_over_a_stream_may_come_again(name: str, counted: int) -> None:
    """Queues hear of it by name: q before the stream s, and may hand it out to who crashes, for the second time."""
    talk = Reading("rabbitmq-3", 1, published=1).consume().read(1, 0).rest()
    talk.send(f"a.1 queue.declare {name} durable x-queue-type=quorum x-delivery-limit=1")
    talk.see("a.1", "queue.declare-ok", queue=name, message_count=0, consumer_count=0).rest()
    talk.send(f"a.1 basic.consume {name} tag=u").see("a.1", "basic.consume-ok", consumer_tag="u").rest()
    talk.send(f"b.1 basic.publish {name} body=m1").confirm("b.1", 2)
    about = {"consumer_tag": "u", "delivery_tag": 2, "redelivered": False, "exchange": "", "routing_key": name}
    talk.see("a.1", "basic.deliver", "m1", **about).rest().send("a.1 basic.recover requeue")
    talk.see("a", "connection.close", reply_code=541, reply_text="INTERNAL_ERROR", class_id=0, method_id=0)
    talk.send("a connection.close-ok").see("a", "socket.closed").send(f"b.1 queue.declare {name} passive")
    talk.see("b.1", "queue.declare-ok", queue=name, message_count=counted, consumer_count=0)
    talk.acceptor.overdue()
    assert talk.is_known(BREAKS) is (counted == 1 or name == "q")


def test_recovering_crashes_before_3_13() -> None:
    talk = Reading("rabbitmq-3", 1, published=2).consume().read(1, 0).rest().send("a.1 basic.recover requeue")
    talk.see("a", "connection.close", reply_code=541, reply_text="INTERNAL_ERROR", class_id=0, method_id=0)
    assert talk.send("a connection.close-ok").see("a", "socket.closed").is_known(BREAKS)


@pytest.mark.parametrize("name", [REFUSES, BREAKS])
def test_of_3_13_neither_is_known(name: str) -> None:
    assert KNOWN_DEFECTS[name].is_known_of("rabbitmq-3", Version(3, 12, 14))
    assert not KNOWN_DEFECTS[name].is_known_of("rabbitmq-3", Version(3, 13, 0))
