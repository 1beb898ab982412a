"""Server capabilities: what a broker advertises in connection.start, and what it promises with that (area CAP).

An extension that is advertised is owed; one that is not advertised is asked for by nobody. RabbitMQ:
rabbit_reader:server_capabilities.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialect_names import capabilities_of

#: What the dialects of RabbitMQ advertise (CAP-001).
CAPABILITIES = (
    "publisher_confirms",
    "exchange_exchange_bindings",
    "basic.nack",
    "consumer_cancel_notify",
    "connection.blocked",
    "consumer_priorities",
    "authentication_failure_close",
    "per_consumer_qos",
    "direct_reply_to",
)

#: What a broker may announce beside that: it takes a client's basic.cancel-ok as the answer to its own basic.cancel,
#: and waits for it (RabbitMQ from 4.3.7 on; `model.rules.extensions.timed_out_consumer_still_known`).
ACCEPT_CANCEL_OK = "accept_consumer_cancel_ok"

#: A client's methods that exist only where a capability does.
METHODS = {
    "basic.nack": "basic.nack",
    "confirm.select": "publisher_confirms",
    "exchange.bind": "exchange_exchange_bindings",
    "exchange.unbind": "exchange_exchange_bindings",
}

#: Requirements that are about a capability and would be senseless without it; a whole area where no number is given.
REQUIREMENTS = {
    "ACK-004": "basic.nack",
    "ACK-014": "basic.nack",
    "BIND-004": "exchange_exchange_bindings",
    "CANCEL-004": "consumer_cancel_notify",
    "CANCEL-007": "consumer_cancel_notify",
    "CANCEL-008": "consumer_cancel_notify",
    "CANCEL-009": "consumer_cancel_notify",
    "CANCEL-010": "consumer_cancel_notify",
    "CANCEL-011": "consumer_cancel_notify",
    "CANCEL-012": "consumer_cancel_notify",
    "CANCEL-013": "consumer_cancel_notify",
    "CANCEL-015": "consumer_cancel_notify",
    "CAP-002": "basic.nack",
    "CAP-003": "connection.blocked",
    "CAP-005": "consumer_cancel_notify",
    "CONFIRM": "publisher_confirms",
    "CONN-005": "authentication_failure_close",
    "PRIORITY": "consumer_priorities",
    "PUBLISH-017": "direct_reply_to",
    "QOS-001": "per_consumer_qos",
    "QOS-003": "per_consumer_qos",
    "REPLY": "direct_reply_to",
}

#: Those that are RabbitMQ's own way of keeping what it announces, or need another extension of its own.
RABBITMQS_OWN = frozenset(
    {
        "CANCEL-011",
        "CANCEL-015",
        "CONFIRM-005",
        "CONFIRM-006",
        "CONFIRM-007",
        "CONFIRM-013",
        "CONFIRM-014",
        "CONFIRM-015",
        "PUBLISH-017",
        "REPLY-002",
        "REPLY-003",
        "REPLY-005",
        "REPLY-006",
    }
)

#: Of areas that a capability tells of, those that come with a feature alone.
OF_FEATURES = frozenset({"PRIORITY-003"})

#: Rules of the text that an extension replaces.
REPLACED = {"QOS-016": "per_consumer_qos"}


def required_of(dialect: Dialect) -> tuple[str, ...]:
    """The capabilities that a broker of the dialect advertises."""
    return CAPABILITIES if dialect.extensions else tuple(sorted(dialect.announced.intersection(CAPABILITIES)))


def advertised(server_properties: Mapping[str, Any]) -> frozenset[str]:
    """The capabilities that connection.start says are there."""
    table = server_properties.get("capabilities")
    return frozenset(name for name, value in table.items() if value is True) if isinstance(table, dict) else frozenset()


def missing(server_properties: Mapping[str, Any], dialect: Dialect) -> list[str]:
    """Those of the dialect that are not advertised as the boolean true. The text knows no such table."""
    if not dialect.extensions:
        return []
    found = advertised(server_properties)
    return [name for name in required_of(dialect) if name not in found]


def capability_of(requirement: str) -> str | None:
    """The capability that the requirement is about. What needs another extension is about that."""
    if requirement in OF_FEATURES:
        return None
    return REQUIREMENTS.get(requirement) or REQUIREMENTS.get(requirement.rpartition("-")[0])


def comes_with(requirement: str, dialect_name: str) -> bool:
    """Does it come with an extension that the name of a dialect tells of (`model.promises.dialects.extensions`)?"""
    return requirement not in RABBITMQS_OWN and capability_of(requirement) in capabilities_of(dialect_name)


def is_replaced(requirement: str, dialect_name: str) -> bool:
    """Does an extension that the name of a dialect tells of put something else in the place of this rule?"""
    return REPLACED.get(requirement) in capabilities_of(dialect_name)


def lacking(methods: Collection[str], requirements: Collection[str], known: Collection[str]) -> Iterator[str]:
    """The capabilities that these methods and requirements need and that are not among the known ones."""
    needed = [METHODS.get(method) for method in methods] + [capability_of(each) for each in requirements]
    return (each for each in dict.fromkeys(needed) if each is not None and each not in known)
