"""Names of dialects: the name of one that is listed, or that of the text with the extensions behind it that a broker
announces, such as `amqp-0-9-1+basic.nack+publisher_confirms` (`model.promises.dialects.extensions`).
"""

from __future__ import annotations

SEPARATOR = "+"


def base_of(name: str) -> str:
    """The listed dialect that the name begins with."""
    return name.partition(SEPARATOR)[0]


def capabilities_of(name: str) -> list[str]:
    """The capabilities that stand behind it."""
    return name.split(SEPARATOR)[1:]


def in_short(name: str) -> str:
    """The name where there is one line for it: "amqp-0-9-1 and 7 extensions"."""
    number = len(capabilities_of(name))
    return base_of(name) if not number else f"{base_of(name)} and {number} extension{'s' if number > 1 else ''}"
