"""Judging goes on after a failure whose effect is clear: a connection that ended where its channel should have."""

from __future__ import annotations

from amqpspec.model.broker.connections import ConnectionState
from tests.model.judging.test_acceptor import Conversation

CLOSE = {"reply_code": 530, "reply_text": "", "class_id": 0, "method_id": 0}


def test_a_connection_closed_in_place_of_its_channel_is_over_and_what_it_held_is_back() -> None:
    talk = Conversation("amqp-0-9-1").send("a.1 queue.declare q durable")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send("a.1 basic.publish q body=m1").rest()
    talk.send("a.1 basic.get q").got("a.1", 1, "m1", 0).rest()
    talk.send("a.1 basic.get missing").see("a", "connection.close", **CLOSE)
    (failure,) = talk.acceptor.failures
    assert failure.identity == "GET-002|unexpected frame|connection.close in place of channel.close"
    assert not talk.acceptor.finished
    assert talk.acceptor.broker.connections["a"].state is ConnectionState.CLOSING
    talk.send("b.1 basic.get q").got("b.1", 1, "m1", 0, redelivered=True)
    assert talk.acceptor.failures == [failure]


def test_a_tcp_connection_that_ends_in_place_of_a_close_is_over() -> None:
    talk = Conversation("amqp-0-9-1").send("a.1 queue.declare-ok")
    talk.see("a", "socket.closed", reason="by the broker")
    assert len(talk.acceptor.failures) == 1 and not talk.acceptor.finished
    assert talk.acceptor.broker.connections["a"].state is ConnectionState.CLOSED


def test_a_close_that_nothing_calls_for_says_nothing_of_what_was_done_before() -> None:
    talk = Conversation("amqp-0-9-1").send("a.1 queue.declare q durable").see("a", "connection.close", **CLOSE)
    assert talk.acceptor.finished


def test_a_connection_closed_in_place_of_a_consumer_leaves_nothing_of_it() -> None:
    talk = Conversation("amqp-0-9-1").send("a.1 queue.declare q durable")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send("a.1 basic.consume q consumer-tag=t").see("a", "connection.close", **CLOSE)
    assert [each.detail for each in talk.acceptor.failures] == ["connection.close in place of basic.consume-ok"]
    assert not talk.acceptor.finished
    assert not talk.acceptor.broker.queues["q"].consumers


def test_a_delivery_beyond_the_limit_is_one_all_the_same() -> None:
    talk = Conversation("amqp-0-9-1").send("a.1 queue.declare q durable")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    talk.send("a.1 basic.qos 1").see("a.1", "basic.qos-ok").rest()
    talk.send("a.1 basic.consume q consumer-tag=t").see("a.1", "basic.consume-ok", consumer_tag="t").rest()
    for number in (1, 2):
        about = {"consumer_tag": "t", "delivery_tag": number, "redelivered": False, "exchange": "", "routing_key": "q"}
        talk.send(f"a.1 basic.publish q body=m{number}").see("a.1", "basic.deliver", f"m{number}", **about).rest()
    assert [each.detail for each in talk.acceptor.failures] == ["basic.deliver beyond the limit"]
    assert not talk.acceptor.finished
    assert list(talk.acceptor.broker.channels["a", 1].unacknowledged) == [1, 2]
    talk.send("a.1 basic.ack 2 multiple").rest()
    assert len(talk.acceptor.failures) == 1


def test_a_message_that_comes_before_earlier_ones_is_gone_from_where_it_was() -> None:
    talk = Conversation("amqp-0-9-1").send("a.1 queue.declare q durable")
    talk.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    for number in (1, 2, 3):
        talk.send(f"a.1 basic.publish q body=m{number}").rest()
    talk.send("a.1 basic.get q").got("a.1", 1, "m2", 2).rest()
    assert [each.identity for each in talk.acceptor.failures] == ["PUBLISH-015|unexpected frame|basic.get-ok"]
    for tag, body, left in ((2, "m1", 1), (3, "m3", 0)):
        talk.send("a.1 basic.get q").got("a.1", tag, body, left).rest()
    assert len(talk.acceptor.failures) == 1 and not talk.acceptor.finished


def test_what_is_confirmed_again_stays_confirmed() -> None:
    talk = Conversation("amqp-0-9-1+publisher_confirms")
    talk.send("a.1 confirm.select").see("a.1", "confirm.select-ok").rest()
    talk.send("a.1 basic.publish nowhere body=m1").confirm("a.1", 1).confirm("a.1", 1).rest()
    assert [each.detail for each in talk.acceptor.failures] == ["basic.ack of a publish that is not open"]
    talk.send("a.1 basic.publish nowhere body=m2").confirm("a.1", 2).rest()
    assert len(talk.acceptor.failures) == 1 and not talk.acceptor.finished


def test_after_the_confirm_of_what_was_never_published_nobody_knows_what_is_numbered() -> None:
    talk = Conversation("amqp-0-9-1+publisher_confirms")
    talk.send("a.1 confirm.select").see("a.1", "confirm.select-ok").rest()
    talk.send("a.1 basic.publish nowhere body=m1").confirm("a.1", 2)
    assert talk.acceptor.finished
