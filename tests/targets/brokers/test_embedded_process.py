"""The embedded broker in a process of its own: what is asked of it from here, and what its end tells."""

from __future__ import annotations

import multiprocessing
import os
import signal
from threading import Thread

import pytest

from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.rules.inputs import RULES
from amqpspec.targets.brokers import embedded_process
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker, EmbeddedBrokerFailure
from amqpspec.targets.brokers.embedded_process import EmbeddedBrokerProcess, serve
from amqpspec.targets.brokers.operator import Peer
from amqpspec.targets.brokers.resolve import operator_of, running_broker, server_properties
from amqpspec.targets.errors import OperatorError, TargetUnreachable
from amqpspec.targets.faults.all_faults import UnknownFault
from tests.targets.brokers.test_operators import closes, frames, nobody, obeys
from tests.targets.embedded.test_embedded import RawClient

PATIENCE = 30.0


def test_it_serves_and_its_operator_obeys() -> None:
    with running_broker("embedded", apart=True) as broker:
        assert isinstance(broker, EmbeddedBrokerProcess)
        assert "embedded broker" in [each.name for each in multiprocessing.active_children()]
        operator = operator_of(broker)
        assert operator is not None
        obeys(broker.address, operator)
        closes(broker.address, operator)
        with pytest.raises(OperatorError, match="no client is connected from port 1"):
            operator.carry_out(frames("broker operator.close-connection a reason=r"), lambda name: Peer(1, "nobody"))
    assert "embedded broker" not in [each.name for each in multiprocessing.active_children()]


def test_it_may_be_faulty_or_another_one() -> None:
    with pytest.raises(UnknownFault, match="ack-acks-nothing"), running_broker("embedded:ack-acks-nothin", apart=True):
        pass
    text, variant = "amqp-0-9-1", "prefetch-size=taken"
    for target, dialect, spoken in (
        ("embedded", dialect_named(text), text),
        (f"embedded:{variant}", None, f"{text};{variant}"),
    ):
        with running_broker(target, dialect, apart=True) as broker:
            assert server_properties(broker.address)["dialect"] == spoken


def test_who_ends_it_from_outside_is_noticed_where_it_matters() -> None:
    with EmbeddedBrokerProcess() as broker:
        (process,) = [each for each in multiprocessing.active_children() if each.name == "embedded broker"]
        process.kill()
        process.join()
        with pytest.raises(TargetUnreachable, match="has ended"):
            broker.operator().carry_out(frames("broker operator.add-vhost v"), nobody)


def test_one_that_does_not_answer_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EmbeddedBrokerFailure, match=r"had not answered after 0\.5 s"), EmbeddedBrokerProcess():
        monkeypatch.setattr(embedded_process, "LONGEST_ANSWER", 0.5)
        (process,) = [each for each in multiprocessing.active_children() if each.name == "embedded broker"]
        assert process.pid is not None
        os.kill(process.pid, signal.SIGSTOP)
    assert not process.is_alive()


def test_a_process_that_may_have_no_others_serves_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded_process, "can_be_apart", lambda: False)
    with running_broker("embedded", apart=True) as broker:
        assert isinstance(broker, EmbeddedBroker)


def test_a_defect_of_the_model_is_told_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("lost")

    monkeypatch.setitem(RULES, "basic.qos", broken)
    here, there = multiprocessing.Pipe()
    thread = Thread(target=serve, args=(there, "embedded", ""), daemon=True)
    thread.start()
    with RawClient(here.recv()) as client:
        client.opened().send("basic.qos", 1)
        assert client.expect("connection.close").arguments["reply_code"] == 541
    here.send(None)
    failure = here.recv()
    assert isinstance(failure, EmbeddedBrokerFailure)
    assert "the model broke down over basic.qos: KeyError: 'lost'" in str(failure)
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_nobody_is_told_when_whoever_started_it_is_gone_already() -> None:
    here, there = multiprocessing.Pipe()
    here.close()
    serve(there, "embedded", "")


def test_it_ends_with_whoever_started_it() -> None:
    here, there = multiprocessing.Pipe()
    thread = Thread(target=serve, args=(there, "embedded", ""), daemon=True)
    thread.start()
    here.recv()
    here.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()
