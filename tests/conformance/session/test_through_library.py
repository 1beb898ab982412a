"""Sequences through a client library: the broker is judged by the wire, and the library by what it sends and shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from amqpspec.conformance.language.command_arguments import ARGUMENTS, TABLE_METHODS
from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.scenarios.applicability import applicable, not_applicable
from amqpspec.conformance.scenarios.scenario_files import selected
from amqpspec.conformance.session.command_sequence import CommandSequence, Place
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter, read_trace
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.verdict import Verdict
from amqpspec.targets.brokers.docker_broker import DockerBroker
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.drivers.aio_pika_client import AioPikaCarrier
from amqpspec.targets.drivers.application import REFUSED, WAITS
from amqpspec.targets.drivers.expressible import EXPRESSIBLE
from amqpspec.targets.drivers.pika_select import PikaSelectCarrier
from tests.conformance.session.drivers_page import table as table_of_page
from tests.conformance.session.libraries import CARRIERS, CONSUMING, RETURNING, judged, library_of, target_of


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker("rabbitmq-4.3") as serving:
        yield serving


@pytest.mark.parametrize(
    "commands",
    [
        CONSUMING,
        RETURNING,
        (
            "a.1 queue.declare q",
            "a.1 basic.publish q body=m1",
            "a.1 basic.get q",
            "a.1 basic.get q",
            "a.1 basic.nack 1",  # which gives nothing back
            "a.1 basic.get q",
            "a.1 basic.qos 2",
        ),
        ("a.1 queue.declare q", "b.1 basic.consume q tag=t", "a.1 queue.delete q", "b.1 basic.qos 3"),
        ("a.1 basic.ack 7", "a.1 basic.qos 3", "a.2 queue.declare q", "a connection.close"),
        ("a.1 tx.select", "a.1 queue.declare q", "a.1 basic.publish q body=m", "a.1 tx.commit", "a socket.abort"),
        (
            "a.1 confirm.select",
            "a.1 queue.declare q x-max-length=1 x-overflow=reject-publish",
            "a.1 basic.publish q body=m1 &",
            "a.1 basic.publish nowhere body=m2 mandatory &",
            "a.1 basic.publish q body=m3 &",
            "a.1 basic.publish q body=m4",
        ),
        ("a.1 queue.declare q", "b.1 queue.declare q durable", "c.1 exchange.declare e fanout", "c.1 queue.bind q e"),
    ],
)
@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_library_that_does_well_passes(
    broker: EmbeddedBroker, tmp_path: Path, commands: tuple[str, ...], carrier: Any
) -> None:
    said = judged(broker, tmp_path, commands, carrier)
    assert said.failures == () and said.verdict is Verdict.PASS and said.frames > 10


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_publish_that_a_library_refuses_has_no_number(broker: EmbeddedBroker, tmp_path: Path, carrier: Any) -> None:
    """Pika has no field type for a number with a fraction."""
    commands = ("a.1 confirm.select", 'a.1 basic.publish q body=m1 headers={"n": 1.5}', "a.1 basic.publish q body=m2")
    assert judged(broker, tmp_path, commands, carrier).failures == ()
    is_refused = REFUSED in (tmp_path / "trace.jsonl").read_text()
    assert is_refused is carrier.__name__.startswith("Pika")


@pytest.mark.parametrize("carrier", CARRIERS)
def test_what_a_command_does_not_say_is_not_for_the_library_to_choose(
    broker: EmbeddedBroker, tmp_path: Path, carrier: Any
) -> None:
    """Where nothing is said, libraries give back what is rejected."""
    commands = ("a.1 queue.declare q", "a.1 basic.publish q", "a.1 basic.get q", "a.1 basic.reject 1")
    assert judged(broker, tmp_path, commands, carrier).failures == ()
    rows = [row for row in read_trace(tmp_path / "trace.jsonl") if row.get("method") == "basic.reject"]
    assert [row["arguments"]["requeue"] for row in rows] == [False, False]  # asked for, and sent


def test_the_broker_is_judged_by_what_is_on_the_wire(tmp_path: Path) -> None:
    with EmbeddedBroker(fault="redelivered-never-set") as broken:
        commands = (*CONSUMING[:3], "a.1 basic.reject 1 requeue")
        [failure] = judged(broken, tmp_path, commands).failures
    assert not failure.requirement.startswith("LIBRARY") and failure.observed.startswith("a.1 < basic.deliver")


@pytest.mark.parametrize("carrier", [PikaSelectCarrier, AioPikaCarrier])
def test_what_a_library_holds_back_is_blamed_on_nobody(
    broker: EmbeddedBroker, tmp_path: Path, carrier: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """aiormq writes nothing while the broker blocks the connection."""
    monkeypatch.setattr("amqpspec.targets.drivers.carrier.SEND_TIME", 0.2)
    commands = (
        "a.1 queue.declare q", "broker operator.set-alarm", "a.1 basic.publish q body=m1", "a.2 queue.declare r",
        "b.1 queue.declare s", "broker operator.clear-alarm", "a.1 basic.get q", "a.2 basic.get q",
    )  # fmt: skip
    said = judged(broker, tmp_path, commands, carrier)
    assert said.failures == () and said.verdict is Verdict.PASS
    assert WAITS in (tmp_path / "trace.jsonl").read_text()


def test_a_function_that_never_comes_back_is_told(broker: EmbeddedBroker, tmp_path: Path) -> None:
    """pika waits for a declare-ok with the name that it sent, and a broker takes carriage returns out of it."""
    said = judged(broker, tmp_path, ('a.1 queue.declare "q\\r\\n1"', "a.1 basic.qos 3"))
    [failure] = said.failures
    assert (failure.requirement, failure.detail) == (
        "LIBRARY-ANSWER",
        "the end of queue.declare, whose answer has come",
    )


def test_what_a_library_refuses_and_sends_all_the_same_is_told(broker: EmbeddedBroker, tmp_path: Path) -> None:
    """pika's basic_get does not look whether its channel is open."""
    commands = ("a.1 queue.declare q passive", "a.1 basic.get q", "a.2 basic.qos 1")
    [failure] = judged(broker, tmp_path, commands).failures
    assert failure.identity == "LIBRARY-SENT|unexpected frame|basic.get on a channel that is closed"


def test_a_return_that_aio_pika_does_not_show_is_told(broker: EmbeddedBroker, tmp_path: Path) -> None:
    """aiormq looks a returned message up among those that wait for a confirm."""
    [failure] = judged(broker, tmp_path, RETURNING[1:], AioPikaCarrier).failures
    assert failure.identity == "LIBRARY-RETURN|missing frame|basic.return that has come"


# -------------------------------------------------------------------------------------- what it has no words for


def test_what_a_library_cannot_say_is_not_applicable_with_the_reason(broker: EmbeddedBroker) -> None:
    target = target_of(broker)
    reasons = not_applicable(target)
    assert reasons["CANCEL-003"] == "not applicable for this driver: pika does not send basic.cancel with nowait"
    files = applicable(selected((), "rabbitmq-4.3"), target)
    assert 300 < len(files) < len(selected((), "rabbitmq-4.3"))
    assert not any(command.as_it_stands for each in files for command in each.commands)
    methods = {command.method for each in files for command in each.commands}
    assert methods >= set(EXPRESSIBLE["pika"]) and "operator.close-connection" not in methods


def test_the_page_has_all_that_is_not_applicable() -> None:
    """`python -m tests.conformance.session.drivers_page` prints the table."""
    assert table_of_page() in (Path(__file__).parents[3] / "docs" / "drivers.md").read_text(encoding="utf-8")


def test_the_tables_name_methods_and_arguments_of_the_language() -> None:
    for table in EXPRESSIBLE.values():
        for method, arguments in table.items():
            known = set(ARGUMENTS.get(method, {})) | ({"arguments"} if method in TABLE_METHODS else set())
            assert arguments <= known, method


def test_a_search_leaves_out_what_cannot_be_said(broker: EmbeddedBroker, tmp_path: Path) -> None:
    commands = ("a.1 queue.declare q", "a.1 queue.purge q nowait", "a.1 queue.purge q")
    sequence = CommandSequence("one", tuple(map(parse_command, commands)))
    with TraceWriter(tmp_path / "trace.jsonl") as trace:
        outcome = Place(target_of(broker), trace).carry_out(sequence)
    assert [str(each) for each in outcome.sequence.commands] == [commands[0], commands[2]]


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_real_broker_is_asked_through_a_library(rabbitmq_4_3: DockerBroker, tmp_path: Path, carrier: Any) -> None:
    description = TargetDescription("4.3", "RabbitMQ", "4.3.6", "rabbitmq-4.3")
    target = TargetUnderTest(rabbitmq_4_3.address, description, driver=carrier, library=library_of(carrier))
    commands = (*CONSUMING, "b.1 basic.publish q", "a.1 basic.cancel t")
    sequence = CommandSequence("one", tuple(map(parse_command, commands)))
    with TraceWriter(tmp_path / "trace.jsonl") as trace:
        said = Place(target, trace).carry_out(sequence).judgement
    assert (said.failures, said.verdict) == ((), Verdict.PASS)
