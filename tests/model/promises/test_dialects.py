"""Dialects: chosen from what a broker says of itself, found by name, and different where the brokers are."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.plan import Plan
from amqpspec.model.promises.dialects import DEFAULT_DIALECT, DIALECTS, UnknownDialect, dialect_named, dialect_of
from amqpspec.model.promises.dialects.extensions import EXTENSIONS, text_with


@pytest.mark.parametrize(
    ("properties", "name"),
    [
        ({"product": "RabbitMQ", "version": "3.8.0"}, "rabbitmq-3"),
        ({"product": "RabbitMQ", "version": "3.10.8"}, "rabbitmq-3"),
        ({"product": "RabbitMQ", "version": "3.13.7"}, "rabbitmq-3"),
        ({"product": "RabbitMQ", "version": "4.0.5"}, "rabbitmq-4.0"),
        ({"product": "RabbitMQ", "version": "4.2.0-rc.1"}, "rabbitmq-4.0"),
        ({"product": "RabbitMQ", "version": "4.3.0"}, "rabbitmq-4.3"),
        ({"product": "RabbitMQ", "version": "4.10.1"}, "rabbitmq-4.3"),
        ({"product": "RabbitMQ", "version": "5.0"}, "rabbitmq-4.3"),
        # a RabbitMQ whose version says nothing is held to the newest
        ({"product": "RabbitMQ", "version": "unreleased"}, DEFAULT_DIALECT.name),
        ({"product": "RabbitMQ", "version": 4}, DEFAULT_DIALECT.name),
        ({"product": "RabbitMQ"}, DEFAULT_DIALECT.name),
        # what we do not know is held to the text, and to the extensions that it announces
        ({"product": "qpid", "version": "9.2.1"}, "amqp-0-9-1"),
        ({"product": b"RabbitMQ", "version": b"3.8"}, "amqp-0-9-1"),
        ({}, "amqp-0-9-1"),
        ({"product": "GarageMQ", "capabilities": {"basic.nack": True}}, "amqp-0-9-1+basic.nack"),
        (
            {"capabilities": {"publisher_confirms": True, "connection.blocked": True, "basic.nack": True}},
            "amqp-0-9-1+basic.nack+connection.blocked+publisher_confirms",
        ),
        ({"capabilities": {"basic.nack": False}}, "amqp-0-9-1"),
        ({"product": "amqpspec", "dialect": "amqp-0-9-1+basic.nack"}, "amqp-0-9-1+basic.nack"),
    ],
)
def test_the_dialect_of_a_broker(properties: dict[str, Any], name: str) -> None:
    assert dialect_of(properties).name == name


def test_dialects_by_name() -> None:
    for name, dialect in DIALECTS.items():
        assert dialect_named(name) is dialect
        assert dialect.name == name
        assert copy.deepcopy(dialect) is dialect, "shared by all copies of a state"
    assert len({dialect.title for dialect in DIALECTS.values()}) == len(DIALECTS)
    with pytest.raises(UnknownDialect, match=r"^unknown dialect 'rabbitmq-5': choose from .*rabbitmq-4\.3") as caught:
        dialect_named("rabbitmq-5")
    assert "\n" not in str(caught.value)
    with pytest.raises(UnknownDialect, match=r"may stand \+authentication_failure_close, \+basic\.nack"):
        dialect_named("amqp-0-9-1+nack")


def test_every_choice_makes_a_difference_between_two_dialects() -> None:
    dialects = (*DIALECTS.values(), text_with(EXTENSIONS))
    for field in dataclasses.fields(DEFAULT_DIALECT):
        choices = {repr(getattr(dialect, field.name)) for dialect in dialects}
        assert len(choices) > 1, f"all dialects agree on {field.name}"


def outcome(dialect: str, *lines: str) -> dict[str, Any]:
    """What is left on channel a.1 and in `q` after these commands."""
    plan = Plan(dialect_named(dialect))
    for line in lines:
        plan.carry_out(parse_command(line))
    queue = plan.queue("q")
    return {
        "ready": [message.content.body.decode() for message in queue.messages] if queue else None,
        "open": plan.usable("a", 1),
        "connected": plan.connected("a"),
    }


PUBLISHED = ("a.1 queue.declare q durable x-queue-type=quorum", *(f"a.1 basic.publish q body={n}" for n in "012"))


@pytest.mark.parametrize(
    ("dialect", "expected"),
    [
        ("rabbitmq-3", "120"),
        ("rabbitmq-4.0", "012"),
        ("rabbitmq-4.3", "012"),
    ],
)
def test_where_a_quorum_queue_puts_what_is_given_back(dialect: str, expected: str) -> None:
    assert "".join(outcome(dialect, *PUBLISHED, "a.1 basic.get q", "a.1 basic.nack 1 requeue")["ready"]) == expected


@pytest.mark.parametrize(
    ("dialect", "method", "deliveries"),
    [
        ("rabbitmq-3", "nack", None),
        ("rabbitmq-4.0", "nack", 21),
        ("rabbitmq-4.0", "reject", 21),
        ("rabbitmq-4.3", "nack", None),
        ("rabbitmq-4.3", "reject", 21),
    ],
)
def test_how_often_a_quorum_queue_delivers(dialect: str, method: str, deliveries: int | None) -> None:
    lines = ["a.1 queue.declare q durable x-queue-type=quorum", "a.1 basic.publish q body=m"]
    for tag in range(1, 26):
        lines += ["a.1 basic.get q", f"a.1 basic.{method} {tag} requeue"]
        ready = outcome(dialect, *lines)["ready"]
        if deliveries is not None and tag >= deliveries:
            assert ready == []
            return
        assert ready == ["m"], f"gone after {tag} deliveries"
    assert deliveries is None


@pytest.mark.parametrize(
    ("line", "connected"),
    [
        # the connection survives in these dialects, and not in the others
        ("a.1 exchange.declare x nosuch", {"rabbitmq-4.0", "rabbitmq-4.3"}),
        ("a.1 basic.recover", {"amqp-0-9-1"}),
        ("a.1 basic.cancel-ok t", {"rabbitmq-4.3"}),
        ("a.1 confirm.select", {"rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"}),
        ("a.1 basic.nack 0 multiple", {"rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"}),
    ],
)
def test_what_ends_a_connection(line: str, connected: set[str]) -> None:
    assert {name for name in DIALECTS if outcome(name, line)["connected"]} == connected
