"""Dialects: what brokers of one family and version range chose (`model.promises.choices`), one file each.

A dialect is data. Model code asks it, and never asks for a version.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from amqpspec.model.promises.capabilities import advertised
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialect_names import CHOICE, SEPARATOR, choices_of
from amqpspec.model.promises.dialects.amqp_0_9_1 import AMQP_0_9_1
from amqpspec.model.promises.dialects.extensions import EXTENSIONS, text_named, text_with
from amqpspec.model.promises.dialects.rabbitmq_3 import RABBITMQ_3
from amqpspec.model.promises.dialects.rabbitmq_4_0 import RABBITMQ_4_0
from amqpspec.model.promises.dialects.rabbitmq_4_3 import RABBITMQ_4_3
from amqpspec.model.promises.dialects.settled import UnknownChoice, with_choices, with_settings
from amqpspec.model.promises.versions import RABBITMQ, dialect_name_of, version_of

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect for dialect in (AMQP_0_9_1, RABBITMQ_3, RABBITMQ_4_0, RABBITMQ_4_3)
}

#: The dialect of the embedded broker, and of a RabbitMQ whose version says nothing.
DEFAULT_DIALECT = RABBITMQ_4_3

#: What the embedded broker calls itself; its server properties have the key `dialect`.
EMBEDDED_PRODUCT = "amqpspec"


class UnknownDialect(ValueError):
    """A dialect was asked for that does not exist."""


def dialect_named(name: str) -> Dialect:
    """The dialect of that name; `UnknownDialect` with the known names otherwise."""
    found = DIALECTS.get(name) or _with_choices_named(name)
    if found is None:
        raise UnknownDialect(f"unknown dialect {name!r}: choose from {', '.join(DIALECTS)}{_more(name)}")
    return found


def as_dialect(given: Dialect | str) -> Dialect:
    """The dialect, which may be given by its name. Raises `UnknownDialect`, a ValueError."""
    if isinstance(given, str):
        return dialect_named(given)
    if not isinstance(given, Dialect):
        raise UnknownDialect(f"{given!r} is no dialect: choose from {', '.join(DIALECTS)}")
    return given


@cache
def _with_choices_named(name: str) -> Dialect | None:
    """The dialect with the extensions, choices and settings of such a name; None: it is no such name. Raises
    `UnknownDialect`.
    """
    base = name.partition(CHOICE)[0]
    found = DIALECTS.get(base) or text_named(base)
    if found is None or CHOICE not in name:
        return found
    settle = with_settings if found.extensions else with_choices
    try:
        return settle(found, choices_of(name))
    except UnknownChoice as error:
        raise UnknownDialect(f"unknown dialect {name!r}: {error}") from None


def _more(name: str) -> str:
    """What can stand behind the name of the text, where that is what was meant."""
    if not name.startswith(AMQP_0_9_1.name + SEPARATOR):
        return ""
    return f"; behind {AMQP_0_9_1.name} may stand {', '.join(SEPARATOR + each for each in EXTENSIONS)}"


def dialect_of(server_properties: Mapping[str, Any]) -> Dialect:
    """The dialect that fits what a broker says of itself in connection.start.

    RabbitMQ by its version, our own embedded broker by what it says; a broker of another product is held to the text,
    and to the extensions that it announces.
    """
    if server_properties.get("product") == EMBEDDED_PRODUCT:
        said = str(server_properties.get("dialect", ""))
        return DIALECTS.get(said) or _with_choices_named(said) or DEFAULT_DIALECT
    if server_properties.get("product") != RABBITMQ:
        return text_with(advertised(server_properties))
    version = version_of(str(server_properties.get("version", "")))
    return DIALECTS[dialect_name_of(version)] if version is not None else DEFAULT_DIALECT


def is_known(server_properties: Mapping[str, Any]) -> bool:
    """Is it a product whose dialect is known by what it says of itself?"""
    return server_properties.get("product") in (EMBEDDED_PRODUCT, RABBITMQ)
