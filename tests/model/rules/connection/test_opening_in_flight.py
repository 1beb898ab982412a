"""A connection is opened while inputs of others are under way: its handshake is judged as if it were alone."""

from __future__ import annotations

from amqpspec.model.broker.connections import ConnectionState
from amqpspec.model.defects.known_defects import acceptor_for
from amqpspec.model.judging.acceptor import Acceptor
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.methods import Method
from tests.handshakes import opening


def feed(acceptor: Acceptor, *methods: Method) -> None:
    for method in methods:
        (acceptor.sent if method.sent else acceptor.received)(method)


def test_each_step_counts_at_once_though_an_error_is_still_owed_elsewhere() -> None:
    acceptor = acceptor_for(dialect_named("rabbitmq-4.3"))
    opened = [Method("a", 1, "channel.open", {}, True), Method("a", 1, "channel.open-ok", {}, False)]
    feed(acceptor, *opening("a"), *opened)
    acceptor.overlapping = True
    feed(acceptor, Method("a", 1, "basic.get", {"queue": "missing"}, True), Method("a", 1, "basic.qos", {}, True))
    acceptor.overlapping = False
    *steps, last = opening("b")
    feed(acceptor, *steps)
    assert all(e.broker.connections["b"].state is ConnectionState.OPEN for e in acceptor.explanations)
    feed(acceptor, last)
    text = "NOT_FOUND - no queue 'missing' in vhost '/'"
    arguments = {"reply_code": 404, "reply_text": text, "class_id": 60, "method_id": 70}
    feed(acceptor, Method("a", 1, "channel.close", arguments, False))
    acceptor.quiescent()
    assert (acceptor.verdict, acceptor.failures) == (Verdict.PASS, [])


def test_a_wrong_step_is_found_all_the_same() -> None:
    acceptor = acceptor_for(dialect_named("rabbitmq-4.3"))
    opened = [Method("a", 1, "channel.open", {}, True), Method("a", 1, "channel.open-ok", {}, False)]
    feed(acceptor, *opening("a"), *opened)
    acceptor.overlapping = True
    feed(acceptor, Method("a", 1, "basic.get", {"queue": "missing"}, True))
    acceptor.overlapping = False
    feed(acceptor, *opening("b")[:4], Method("b", 0, "connection.open-ok", {}, False))
    assert acceptor.verdict is Verdict.FAIL
