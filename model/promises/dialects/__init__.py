"""Dialects: what brokers of one family and version range chose (`model.promises.choices`), one file each.

A dialect is data. Model code asks it, and never asks for a version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialects.amqp_0_9_1 import AMQP_0_9_1
from amqpspec.model.promises.dialects.rabbitmq_3 import RABBITMQ_3
from amqpspec.model.promises.dialects.rabbitmq_4_0 import RABBITMQ_4_0
from amqpspec.model.promises.dialects.rabbitmq_4_3 import RABBITMQ_4_3
from amqpspec.model.promises.versions import RABBITMQ, dialect_name_of, version_of

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect for dialect in (AMQP_0_9_1, RABBITMQ_3, RABBITMQ_4_0, RABBITMQ_4_3)
}

#: The dialect of the embedded broker, and of a broker that says of itself what we do not know.
DEFAULT_DIALECT = RABBITMQ_4_3

#: What the embedded broker calls itself; its server properties have the key `dialect`.
EMBEDDED_PRODUCT = "amqpspec"


class UnknownDialect(ValueError):
    """A dialect was asked for that does not exist."""


def dialect_named(name: str) -> Dialect:
    """The dialect of that name; `UnknownDialect` with the known names otherwise."""
    try:
        return DIALECTS[name]
    except KeyError:
        raise UnknownDialect(f"unknown dialect {name!r}: choose from {', '.join(DIALECTS)}") from None


def dialect_of(server_properties: Mapping[str, Any]) -> Dialect:
    """The dialect that fits what a broker says of itself in connection.start.

    RabbitMQ by its version, our own embedded broker by what it says; a broker of another product is held to RabbitMQ's
    newest dialect, which is what its clients expect of it.
    """
    if server_properties.get("product") == EMBEDDED_PRODUCT:
        return DIALECTS.get(str(server_properties.get("dialect", "")), DEFAULT_DIALECT)
    if server_properties.get("product") != RABBITMQ:
        return DEFAULT_DIALECT
    version = version_of(str(server_properties.get("version", "")))
    return DIALECTS[dialect_name_of(version)] if version is not None else DEFAULT_DIALECT
