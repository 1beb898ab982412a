"""The text with the extensions that a broker announces: its name, what it demands, and what it leaves to RabbitMQ."""

from __future__ import annotations

import pytest

from amqpspec.model.promises.dialect_names import in_short
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.dialects.extensions import EXTENSIONS, text_with
from amqpspec.model.promises.registry import AS_STATED, applies, requirements

ALL = text_with(EXTENSIONS)


def test_the_name_says_all() -> None:
    assert text_with(()).name == "amqp-0-9-1"
    assert text_with(("publisher_confirms", "basic.nack")).name == "amqp-0-9-1+basic.nack+publisher_confirms"
    assert dialect_named(ALL.name) == ALL
    # the order in which somebody writes them does not matter
    assert dialect_named("amqp-0-9-1+publisher_confirms+basic.nack").name == "amqp-0-9-1+basic.nack+publisher_confirms"
    assert dialect_named("amqp-0-9-1+basic.nack").has("basic.nack")
    assert not dialect_named("amqp-0-9-1+basic.nack").has("publisher_confirms")
    assert dialect_named("rabbitmq-4.3").has("publisher_confirms")


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("rabbitmq-4.3", "rabbitmq-4.3"),
        ("amqp-0-9-1", "amqp-0-9-1"),
        ("amqp-0-9-1+basic.nack", "amqp-0-9-1 and 1 extension"),
        (ALL.name, "amqp-0-9-1 and 24 extensions"),
    ],
)
def test_the_name_in_short(name: str, short: str) -> None:
    assert in_short(name) == short


@pytest.mark.parametrize(
    ("requirement", "name", "note"),
    [
        ("ACK-014", "amqp-0-9-1", None),
        ("ACK-014", "amqp-0-9-1+basic.nack", AS_STATED),
        ("ACK-014", "amqp-0-9-1+publisher_confirms", None),
        ("CONFIRM-001", "amqp-0-9-1+publisher_confirms", AS_STATED),
        # how many confirms one frame settles is RabbitMQ's own way
        ("ACK-001", "amqp-0-9-1+basic.nack", AS_STATED),
        # a limit of the whole channel is the text's; the guide gives the flag another meaning
        ("QOS-016", "amqp-0-9-1", AS_STATED),
        ("QOS-016", "amqp-0-9-1+per_consumer_qos", None),
        # what a feature is, of which only trying tells
        ("STREAM-004", "amqp-0-9-1", None),
        ("STREAM-004", "amqp-0-9-1+streams", AS_STATED),
        ("DLX-005", "amqp-0-9-1+x-dead-letter-exchange", None),
        # … and what is RabbitMQ's own way in it
        ("DLX-009", ALL.name, None),
        ("TTL-003", ALL.name, None),
        ("REPLY-002", ALL.name, None),
    ],
)
def test_what_holds_there(requirement: str, name: str, note: str | None) -> None:
    entry = requirements()[requirement]
    assert entry.note_in(name) == note
    assert applies(entry, name, None) is (note is not None)
