"""An error on one channel ends the connection; what its other channels held may be seen elsewhere before the close."""

from __future__ import annotations

import pytest

from conformance.command import parse_command
from model.acceptor import Acceptor
from model.alphabet import Content, Frame, Table
from model.dialects import RABBITMQ_4_3
from tests.handshakes import opening

CLOSE: Table = {
    "reply_code": 540,
    "reply_text": "NOT_IMPLEMENTED - requeue=false",
    "class_id": 60,
    "method_id": 110,
}


def deliver(connection: str, tag: int, consumer: str, redelivered: bool) -> Frame:
    arguments = {
        "consumer_tag": consumer,
        "delivery_tag": tag,
        "redelivered": redelivered,
        "exchange": "",
        "routing_key": "q",
    }
    return Frame(connection, 1 if connection == "b" else 2, "basic.deliver", arguments, False, Content({}, b"m1"))


def before_the_error() -> Acceptor:
    """a.2 holds m1, b.1 consumes as well, a.1 is open."""
    acceptor = Acceptor(RABBITMQ_4_3)
    for connection in "ab":
        for frame in opening(connection, RABBITMQ_4_3):
            (acceptor.sent if frame.sent else acceptor.received)(frame)
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
            Frame(command.connection, command.channel, command.method, command.arguments, True, command.content)
        )
        if answer is None:
            acceptor.received(deliver("a", 1, "t", False))
        else:
            acceptor.received(Frame(command.connection, command.channel, answer, arguments, False))
    acceptor.quiescent()
    assert acceptor.failures == []
    acceptor.sent(Frame("a", 1, "basic.recover", {}, True))
    return acceptor


@pytest.mark.parametrize("close_comes_first", [True, False])
def test_redelivery_and_close_come_in_either_order(close_comes_first: bool) -> None:
    acceptor = before_the_error()
    frames = [Frame("a", 0, "connection.close", CLOSE, False), deliver("b", 1, "u", True)]
    for frame in frames if close_comes_first else reversed(frames):
        assert acceptor.owes()
        acceptor.received(frame)
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
    acceptor.received(Frame("a", 0, "connection.close", CLOSE, False))
    acceptor.overdue()
    assert [failure.requirement for failure in acceptor.failures] == ["CHAN-016"]
