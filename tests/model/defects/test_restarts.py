"""What RabbitMQ does wrong over a restart explains only what it is said to explain."""

from __future__ import annotations

import pytest

from amqpspec.model.defects.known_defects import is_as_known
from amqpspec.model.promises.verdict import Verdict
from tests.model.judging.test_restarts import Restarted

pytestmark = pytest.mark.known_defects


def given_back(method: str, dialect: str) -> Restarted:
    talk = Restarted(dialect).declared().confirmed("m1")
    talk.send("a.1 basic.get q").see(
        "a.1", "basic.get-ok", "m1", properties={"delivery_mode": 2},
        delivery_tag=1, redelivered=False, exchange="", routing_key="q", message_count=0,
    ).rest().send(f"a.1 {method} 1 requeue").rest()  # fmt: skip
    return talk.restart("broker.stop").get(1, "m1", 0)


def test_a_stop_forgets_what_was_given_back() -> None:
    failure = given_back("basic.nack", "rabbitmq-4.3").failure
    assert (failure.requirement, failure.defect) == ("DURABLE-020", "stop-forgets-redelivered")


@pytest.mark.parametrize("dialect", ["rabbitmq-4.3", "rabbitmq-4.0"])
def test_a_stop_is_known_to_forget_what_was_held_on_4_3_only(dialect: str) -> None:
    talk = Restarted(dialect).declared().confirmed("m1")
    talk.send("a.1 basic.get q").see(
        "a.1", "basic.get-ok", "m1", properties={"delivery_mode": 2},
        delivery_tag=1, redelivered=False, exchange="", routing_key="q", message_count=0,
    ).rest()  # fmt: skip
    failure = talk.restart("broker.stop").get(1, "m1", 0).failure
    assert (failure.requirement, failure.defect) == ("DURABLE-003", "stop-forgets-held")
    assert is_as_known(failure, dialect) == (dialect == "rabbitmq-4.3")


def test_a_transient_exchange_is_known_to_survive_on_4_3_only() -> None:
    for dialect, defect in (("rabbitmq-4.3", "transient-exchange-survives"), ("rabbitmq-4.0", "")):
        talk = Restarted(dialect)
        talk.send("a.1 exchange.declare x fanout").see("a.1", "exchange.declare-ok").rest().restart()
        talk.send("c.1 exchange.declare x passive").see("c.1", "exchange.declare-ok")
        assert talk.acceptor.verdict is Verdict.FAIL
        assert (talk.failure.requirement, talk.failure.defect) == ("DURABLE-001", defect)
