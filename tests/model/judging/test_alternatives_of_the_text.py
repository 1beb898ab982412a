"""What the text says and RabbitMQ does otherwise, and what the text leaves open: a broker is right by either way."""

from __future__ import annotations

import pytest

from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.methods import METHOD_IDS
from tests.model.judging.test_acceptor import Conversation


def talk() -> Conversation:
    """With the queue q."""
    told = Conversation("amqp-0-9-1").send("a.1 queue.declare q durable")
    return told.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()


def identifiers(method: str) -> dict[str, int]:
    return dict(zip(("class_id", "method_id"), METHOD_IDS[method], strict=True))


def refused(told: Conversation, line: str, code: int, hard: bool = False) -> Conversation:
    """The command is sent, and refused with that code, in words of the broker's own."""
    words = {"reply_code": code, "reply_text": "any words", **identifiers(line.split()[1])}
    told.send(line)
    return told.see("a" if hard else "a.1", "connection.close" if hard else "channel.close", **words)


def passes(told: Conversation) -> bool:
    return told.acceptor.verdict is Verdict.PASS and not told.acceptor.finished


def test_flow_stops_deliveries_and_lets_them_go_on() -> None:
    told = talk().send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t").rest()
    told.send("a.1 channel.flow").see("a.1", "channel.flow-ok", active=False).rest()
    told.send("b.1 basic.publish q body=m1").rest()
    assert passes(told)
    told.send("a.1 channel.flow active").see("a.1", "channel.flow-ok", active=True).deliver("a.1", 1, "m1").rest()
    assert passes(told)


def test_a_delivery_while_flow_is_off_is_wrong() -> None:
    told = talk().send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t").rest()
    told.send("a.1 channel.flow").see("a.1", "channel.flow-ok", active=False).rest()
    told.send("b.1 basic.publish q body=m1").deliver("a.1", 1, "m1")
    assert told.acceptor.verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("a.1 queue.delete missing", 404),
        ("a.1 exchange.delete missing", 404),
        ("a.1 queue.unbind q amq.direct routing-key=k", 404),
        ("a.1 exchange.delete amq.direct", 405),
        ('a.1 exchange.declare "" direct', 406),
        ("a.1 queue.declare r x-anything=1", 406),
        ("a.1 queue.declare q durable auto-delete", 405),
        ("a.1 basic.ack 0", 406),
        ("a.1 exchange.declare amq.direct fanout durable", 406),
    ],
)
def test_refused_with_an_error_of_the_channel(line: str, code: int) -> None:
    assert passes(refused(talk(), line, code).rest())


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("a.1 queue.unbind q amq.direct routing-key=k", 404),
        ('a.1 exchange.declare "" direct', 530),
        ("a.1 queue.declare r x-anything=1", 542),
        ("a.1 basic.publish q body=m1 immediate", 540),
        ("a.1 basic.qos prefetch-size=1", 540),
        ("a.1 queue.declare-ok", 540),
        ("a.1 channel.close-ok", 503),
        ("a.1 exchange.declare amq.direct fanout durable", 530),
        ("a.1 basic.recover-async requeue", 540),
    ],
)
def test_refused_with_an_error_of_the_connection(line: str, code: int) -> None:
    assert passes(refused(talk(), line, code, hard=True))


@pytest.mark.parametrize("line", ["a.1 basic.ack 0", "a.1 channel.close-ok"])
def test_ignored(line: str) -> None:
    told = talk().send(line).send("a.1 exchange.declare amq.direct direct passive")
    assert passes(told.see("a.1", "exchange.declare-ok").rest())


def test_a_round_trip_may_not_be_answered_where_the_error_was_due() -> None:
    told = talk().send("a.1 basic.ack 9").send("a.1 exchange.declare amq.direct direct passive")
    assert told.see("a.1", "exchange.declare-ok").rest().acceptor.verdict is Verdict.FAIL


@pytest.mark.parametrize("name", ["tmp_1", "amq.gen-x", "anything"])
def test_a_generated_name_is_any(name: str) -> None:
    told = talk().send("a.1 queue.declare")
    assert passes(told.see("a.1", "queue.declare-ok", queue=name, message_count=0, consumer_count=0).rest())


def test_words_and_code_of_a_return_are_free() -> None:
    told = talk().send("a.1 basic.publish missing body=m1 mandatory")
    words = {"reply_code": 313, "reply_text": "nobody", "exchange": "", "routing_key": "missing"}
    assert passes(told.see("a.1", "basic.return", "m1", **words).rest())


def test_immediate_comes_back_where_nobody_consumes() -> None:
    told = talk().send("a.1 basic.publish q body=m1 immediate")
    words = {"reply_code": 313, "reply_text": "nobody", "exchange": "", "routing_key": "q"}
    assert passes(told.see("a.1", "basic.return", "m1", **words).rest())


def test_nobody_is_told_of_a_cancelled_consumer_who_was_not_promised_it() -> None:
    told = talk().send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t").rest()
    told.acceptor.broker.connections["a"].server_properties = {"capabilities": {}}
    told.send("b.1 queue.delete q").see("b.1", "queue.delete-ok", message_count=0).rest()
    assert passes(told)


@pytest.mark.parametrize("count", [0, 1])
def test_delete_ok_may_count_the_unacknowledged(count: int) -> None:
    told = talk().send("a.1 basic.publish q body=m1").rest().send("a.1 basic.get q").got("a.1", 1, "m1", 0).rest()
    assert passes(told.send("a.1 queue.delete q").see("a.1", "queue.delete-ok", message_count=count).rest())


def test_numbers_with_the_unacknowledged_are_one_failure() -> None:
    told = talk().send("a.1 basic.publish q body=m1").rest().send("a.1 basic.get q").got("a.1", 1, "m1", 0).rest()
    told.send("b.1 queue.declare q passive")
    told.see("b.1", "queue.declare-ok", queue="q", message_count=1, consumer_count=0).rest()
    (failure,) = told.acceptor.failures
    assert failure.identity == "QUEUE-001|wrong argument|queue.declare-ok message-count with the unacknowledged"


def test_they_are_the_same_failure_where_a_purge_has_deleted_some_of_these() -> None:
    """The broker counts only what was got after the purge."""
    told = talk().send("a.1 basic.publish q body=m1").rest().send("a.1 basic.get q").got("a.1", 1, "m1", 0).rest()
    told.send("a.1 queue.purge q").see("a.1", "queue.purge-ok", message_count=0).rest()
    told.send("a.1 basic.publish q body=m2").rest().send("a.1 basic.get q").got("a.1", 2, "m2", 0).rest()
    told.send("b.1 queue.declare q passive")
    told.see("b.1", "queue.declare-ok", queue="q", message_count=1, consumer_count=0).rest()
    (failure,) = told.acceptor.failures
    assert failure.identity == "QUEUE-001|wrong argument|queue.declare-ok message-count with the unacknowledged"


def with_exchange() -> Conversation:
    """With the exchange x, of type direct, and the queue q that is bound to it with a table of arguments."""
    told = talk().send("a.1 exchange.declare x direct").see("a.1", "exchange.declare-ok").rest()
    return told.send("a.1 queue.bind q x routing-key=k x-a=1").see("a.1", "queue.bind-ok").rest()


@pytest.mark.parametrize("are_one", [True, False])
def test_bindings_that_differ_in_arguments_are_one_or_two(are_one: bool) -> None:
    told = with_exchange().send("a.1 queue.bind q x routing-key=k x-a=2").see("a.1", "queue.bind-ok").rest()
    told.send("a.1 queue.unbind q x routing-key=k x-a=1").see("a.1", "queue.unbind-ok").rest()
    told.send("a.1 basic.publish k exchange=x mandatory body=m1")
    if are_one:
        told.see("a.1", "basic.return", "m1", reply_code=312, reply_text="", exchange="x", routing_key="k")
    assert passes(told.rest())


def test_a_binding_that_was_taken_back_with_its_own_arguments_leads_nowhere() -> None:
    told = with_exchange().send("a.1 queue.unbind q x routing-key=k x-a=1").see("a.1", "queue.unbind-ok").rest()
    told.send("b.1 basic.consume q tag=t").see("b.1", "basic.consume-ok", consumer_tag="t").rest()
    told.send("a.1 basic.publish k exchange=x body=m1")
    told.see(
        "b.1", "basic.deliver", "m1", consumer_tag="t", delivery_tag=1, redelivered=False, exchange="x", routing_key="k"
    )
    assert told.acceptor.verdict is Verdict.FAIL


@pytest.mark.parametrize("at_commit", [True, False])
def test_a_message_is_routed_when_it_is_published_or_committed(at_commit: bool) -> None:
    told = with_exchange().send("b.1 tx.select").see("b.1", "tx.select-ok").rest()
    told.send("b.1 basic.publish k exchange=x body=m1").rest()
    told.send("a.1 queue.unbind q x routing-key=k x-a=1").see("a.1", "queue.unbind-ok").rest()
    told.send("b.1 tx.commit").see("b.1", "tx.commit-ok").rest()
    told.send("a.1 queue.declare q passive durable")
    told.see("a.1", "queue.declare-ok", queue="q", message_count=0 if at_commit else 1, consumer_count=0)
    assert passes(told.rest())


def test_what_is_immediate_may_say_that_nobody_consumes() -> None:
    told = Conversation("amqp-0-9-1;return-text=NO_ROUTE").send("a.1 basic.publish nosuch immediate body=m1")
    words = {"reply_code": 313, "reply_text": "NO_CONSUMERS", "exchange": "", "routing_key": "nosuch"}
    told.see("a.1", "basic.return", "m1", **words)
    assert passes(told.rest())


def test_word_of_a_consumer_may_come_before_the_deletion_is_answered() -> None:
    told = Conversation("amqp-0-9-1+consumer_cancel_notify").send("a.1 queue.declare q durable")
    told.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    told.send("a.1 basic.consume q tag=t").see("a.1", "basic.consume-ok", consumer_tag="t").rest()
    told.send("a.1 queue.delete q")
    late = told.fork().see("a.1", "queue.delete-ok", message_count=0)
    assert passes(late.see("a.1", "basic.cancel", consumer_tag="t", nowait=True).rest())
    told.see("a.1", "basic.cancel", consumer_tag="t", nowait=True).see("a.1", "queue.delete-ok", message_count=0)
    assert passes(told.rest())


@pytest.mark.parametrize(("extensions", "is_right"), [("", True), ("+consumer_priorities", False)])
def test_a_priority_of_a_consumer_says_nothing_where_nobody_promised_it(extensions: str, is_right: bool) -> None:
    """The one without is served first, and what it held goes to the one with, which is seen before."""
    told = Conversation(f"amqp-0-9-1{extensions}").send("a.1 queue.declare q")
    told.see("a.1", "queue.declare-ok", queue="q", message_count=0, consumer_count=0).rest()
    for channel, arguments in (("a.1", "x-priority=1"), ("b.1", "")):
        told.send(f"{channel} basic.consume q tag=t {arguments}")
        told.see(channel, "basic.consume-ok", consumer_tag="t").rest()
    told.send("a.1 basic.publish q body=m1").send("b.1 channel.close")
    for channel, redelivered in (("a.1", True), ("b.1", False)):
        given = {"consumer_tag": "t", "delivery_tag": 1, "exchange": "", "routing_key": "q"}
        told.see(channel, "basic.deliver", "m1", redelivered=redelivered, **given)
    assert passes(told.see("b.1", "channel.close-ok").rest()) is is_right
