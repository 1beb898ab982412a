"""An alarm of the broker that is nobody's fault ends the judging without a verdict, and never as a failure."""

from __future__ import annotations

from amqpspec.model.defects.known_defects import acceptor_for
from amqpspec.model.judging.acceptor import Acceptor
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.methods import OPERATOR, Method, OperatorAction
from tests.handshakes import opening

BLOCKED = Method("a", 0, "connection.blocked", {"reason": "low on disk"}, sent=False)


def connected(**capabilities: bool) -> Acceptor:
    acceptor = acceptor_for(dialect_named("rabbitmq-4.3"))
    for method in opening("a", capabilities=capabilities):
        (acceptor.sent if method.sent else acceptor.received)(method)
    assert acceptor.verdict is Verdict.PASS, acceptor.failures
    return acceptor


def test_it_is_inconclusive_and_says_why() -> None:
    acceptor = connected(**{"connection.blocked": True})
    acceptor.received(BLOCKED)
    assert acceptor.verdict is Verdict.INCONCLUSIVE
    assert acceptor.reason == "the broker has an alarm that is none of ours: low on disk"
    assert acceptor.finished


def test_who_did_not_ask_to_be_told_may_not_be_told() -> None:
    acceptor = connected(consumer_cancel_notify=True)
    acceptor.received(BLOCKED)
    assert [failure.requirement for failure in acceptor.failures] == ["CAP-004"]


def test_an_alarm_of_our_own_is_judged() -> None:
    acceptor = connected(**{"connection.blocked": True})
    acceptor.sent(OperatorAction(OPERATOR, 0, "operator.set-alarm", {}, sent=True))
    acceptor.received(BLOCKED)
    assert [failure.requirement for failure in acceptor.failures] == ["CAP-003"], "nothing was published yet"
