"""An error on one channel ends the connection; what its other channels held may be seen elsewhere before the close."""

from __future__ import annotations

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.model.defects.known_defects import acceptor_for
from amqpspec.model.judging.acceptor import Acceptor
from amqpspec.model.promises.dialects.rabbitmq_4_3 import RABBITMQ_4_3
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.methods import Content, Method, Table, event_of
from tests.handshakes import opening
from tests.model.judging.test_acceptor import Conversation, declared

CLOSE: Table = {
    "reply_code": 540,
    "reply_text": "NOT_IMPLEMENTED - requeue=false",
    "class_id": 60,
    "method_id": 110,
}


def deliver(connection: str, tag: int, consumer: str, redelivered: bool) -> Method:
    arguments = {
        "consumer_tag": consumer,
        "delivery_tag": tag,
        "redelivered": redelivered,
        "exchange": "",
        "routing_key": "q",
    }
    return Method(connection, 1 if connection == "b" else 2, "basic.deliver", arguments, False, Content({}, b"m1"))


def before_the_error() -> Acceptor:
    """a.2 holds m1, b.1 consumes as well, a.1 is open."""
    acceptor = acceptor_for(RABBITMQ_4_3)
    for connection in "ab":
        for method in opening(connection, RABBITMQ_4_3):
            (acceptor.sent if method.sent else acceptor.received)(method)
    for line, answer, arguments in (
        ("a.1 channel.open", "channel.open-ok", {}),
        ("a.2 channel.open", "channel.open-ok", {}),
        ("b.1 channel.open", "channel.open-ok", {}),
        ("a.2 queue.declare q", "queue.declare-ok", {"queue": "q", "message_count": 0, "consumer_count": 0}),
        ("a.2 basic.consume q tag=t", "basic.consume-ok", {"consumer_tag": "t"}),
        ("a.2 basic.publish q body=m1", None, {}),
        ("b.1 basic.consume q tag=u", "basic.consume-ok", {"consumer_tag": "u"}),
    ):
        command = parse_command(line)
        acceptor.sent(
            event_of(command.connection, command.channel, command.method, command.arguments, True, command.content)
        )
        if answer is None:
            acceptor.received(deliver("a", 1, "t", False))
        else:
            acceptor.received(event_of(command.connection, command.channel, answer, arguments, False))
    acceptor.quiescent()
    assert acceptor.failures == []
    acceptor.sent(Method("a", 1, "basic.recover", {}, True))
    return acceptor


@pytest.mark.parametrize("close_comes_first", [True, False])
def test_redelivery_and_close_come_in_either_order(close_comes_first: bool) -> None:
    acceptor = before_the_error()
    methods = [Method("a", 0, "connection.close", CLOSE, False), deliver("b", 1, "u", True)]
    for method in methods if close_comes_first else reversed(methods):
        assert acceptor.owes()
        acceptor.received(method)
    assert not acceptor.owes()
    acceptor.quiescent()
    assert acceptor.failures == []


def test_the_close_is_owed_all_the_same() -> None:
    acceptor = before_the_error()
    acceptor.received(deliver("b", 1, "u", True))
    acceptor.overdue()
    assert [failure.requirement for failure in acceptor.failures] == ["RECOVER-003"]


def test_the_message_is_owed_after_the_close() -> None:
    acceptor = before_the_error()
    acceptor.received(Method("a", 0, "connection.close", CLOSE, False))
    acceptor.overdue()
    assert [failure.requirement for failure in acceptor.failures] == ["CHAN-016"]


@pytest.mark.parametrize("failures", [1, 2])
def test_what_another_channel_held_may_go_round_by_the_one_with_the_error(failures: int) -> None:
    """A quorum queue hears of the ends in either order: a.2 may have had m1 before its own end."""
    talk = declared("quorum").send("b.1 basic.publish q body=m1").rest()
    for channel in ("a.1", "a.2"):
        talk.send(f"{channel} basic.qos 1").see(channel, "basic.qos-ok")
    talk.send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t").deliver("a.1", 1, "m1")
    talk.rest().send("a.2 basic.consume q tag=t").see("a.2", "basic.consume-ok", consumer_tag="t").rest()
    talk.send("a.2 basic.qos 2 prefetch-size=1")
    text = "NOT_IMPLEMENTED - prefetch_size!=0 (1)"
    talk.see("a", "connection.close", reply_code=540, reply_text=text, class_id=60, method_id=10)
    talk.send("a connection.close-ok").see("a", "socket.closed").rest()
    talk.send("b.1 basic.get q")
    headers = {"x-delivery-count": failures, "x-acquired-count": failures}
    about = {"delivery_tag": 1, "redelivered": True, "exchange": "", "routing_key": "q", "message_count": 0}
    talk.see("b.1", "basic.get-ok", "m1", properties={"headers": headers}, **about).rest()
    assert talk.acceptor.failures == []


def crash_of_cancel() -> Conversation:
    """a.1 holds m1, which b.1 may have next; a.2 is to crash, as it cancels a consumer that is not announced yet."""
    talk = declared(dialect="rabbitmq-4.0").send("b.1 basic.publish q body=m1").rest()
    talk.send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t").deliver("a.1", 1, "m1")
    talk.rest().send("b.1 basic.consume q tag=u").see("b.1", "basic.consume-ok", consumer_tag="u").rest()
    return talk.send("a.2 basic.consume q tag=v &", "a.2 basic.cancel v")


@pytest.mark.known_defects
def test_what_a_broken_connection_said_before_may_be_read_behind_what_follows_from_its_end() -> None:
    talk = crash_of_cancel().deliver("b.1", 1, "m1", redelivered=True, consumer="u")
    talk.see("a.2", "basic.consume-ok", consumer_tag="v")
    talk.see("a", "connection.close", reply_code=541, reply_text="INTERNAL_ERROR", class_id=0, method_id=0)
    talk.send("a connection.close-ok").see("a", "socket.closed").rest()
    assert [failure.defect for failure in talk.acceptor.failures] == ["cancel-before-consume-ok-breaks"]


@pytest.mark.known_defects
@pytest.mark.parametrize("further", [(), ("a.2 basic.qos 1 &",)], ids=["at-once", "behind-another-input"])
def test_a_channel_that_crashes_ends_before_the_others_of_its_connection(further: tuple[str, ...]) -> None:
    """What it held may be handed to a consumer on another one of them yet; what it is sent it may process before."""
    talk = declared(dialect="rabbitmq-4.0").send("b.1 basic.publish q body=m1").rest()
    talk.send("a.2 basic.consume q tag=t").see("a.2", "basic.consume-ok", consumer_tag="t").deliver("a.2", 1, "m1")
    talk.rest().send("a.1 basic.consume q tag=u").see("a.1", "basic.consume-ok", consumer_tag="u").rest()
    talk.send("a.2 basic.consume q tag=v &", "a.2 basic.cancel v", *further)
    if further:
        talk.see("a.2", "basic.qos-ok")
    talk.deliver("a.1", 1, "m1", redelivered=True, consumer="u")
    talk.see("a", "connection.close", reply_code=541, reply_text="INTERNAL_ERROR", class_id=0, method_id=0)
    talk.send("a connection.close-ok").see("a", "socket.closed").rest()
    assert [failure.defect for failure in talk.acceptor.failures] == ["cancel-before-consume-ok-breaks"]


@pytest.mark.known_defects
@pytest.mark.parametrize("text", ["INTERNAL_ERROR", "INTERNAL_ERROR - Cannot query missing deliveries from {q}: no"])
def test_a_queue_may_be_gone_when_the_channel_asks_for_what_a_reused_tag_seems_to_lack(text: str) -> None:
    talk = declared("quorum", dialect="rabbitmq-3").send("b.1 basic.publish q body=m1").rest()
    talk.send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t").deliver("a.1", 1, "m1")
    talk.rest().send("a.1 basic.cancel t").see("a.1", "basic.cancel-ok", consumer_tag="t").rest()
    talk.send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t").rest()
    talk.send("b.1 basic.publish q body=m2 &", "b.1 queue.delete q")
    talk.see("a", "connection.close", reply_code=541, reply_text=text, class_id=0, method_id=0)
    talk.see("b.1", "queue.delete-ok", message_count=1).send("a connection.close-ok").see("a", "socket.closed").rest()
    assert [failure.defect for failure in talk.acceptor.failures] == ["reused-tag-breaks-at-delivery"]


@pytest.mark.parametrize("count", [0, 1])
def test_what_other_channels_were_sent_may_come_too_late_when_an_error_ends_them(count: int) -> None:
    talk = declared().send("a.2 basic.qos 1").see("a.2", "basic.qos-ok").rest()
    talk.send("a.1 basic.recover requeue=false &", "a.2 basic.publish q body=m1")
    talk.see("a", "connection.close", reply_code=540, reply_text="NOT_IMPLEMENTED - requeue=false", class_id=60,
             method_id=110)  # fmt: skip
    talk.send("a connection.close-ok").see("a", "socket.closed").rest().send("b.1 queue.declare q passive")
    talk.see("b.1", "queue.declare-ok", queue="q", message_count=count, consumer_count=0).rest()
    assert talk.acceptor.verdict is Verdict.PASS
