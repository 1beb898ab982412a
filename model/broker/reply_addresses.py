"""Addresses of direct replies: names that the broker makes up, and that show only in the requests that carry them.

`Broker.reply_addresses` maps the name that the model gave an address to the one that the broker gave it, None as long
as that was not seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.topology import rename_in_bindings
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.protocol.field_types import same_field

#: What a client names as queue to consume replies from, and as reply-to of its requests.
REPLY_TO = "amq.rabbitmq.reply-to"
ADDRESS = REPLY_TO + "."


def looks_like_address(dialect: Dialect, reply_to: str) -> bool:
    """Is that the address of direct replies, where a request carries it? Others than RabbitMQ call it as they like."""
    return reply_to.startswith(ADDRESS) or (not dialect.extensions and reply_to not in ("", REPLY_TO))


def known(broker: Broker, properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """The properties with the address by the broker's name for it, if that is known."""
    if not broker.reply_addresses:
        return properties
    name = broker.reply_addresses.get(properties.get("reply_to", ""))
    return properties if name is None else {**properties, "reply_to": name}


def agree(broker: Broker, expected: Mapping[str, Any], observed: Mapping[str, Any]) -> bool:
    """Are these the same properties? An address that was not seen yet may be any, and is known from then on."""
    if observed == expected:
        return True
    if not broker.reply_addresses:
        return same_field(observed, expected)  # a nan equals nothing, itself neither
    address, told = expected.get("reply_to", ""), observed.get("reply_to")
    # one that was seen already is named as it was told
    made_up = next((each for each, seen in broker.reply_addresses.items() if address in (each, seen)), "")
    expected = known(broker, expected)
    if observed == expected:
        return True
    if not made_up or not isinstance(told, str) or not _is_address(broker, made_up, told):
        return False
    if {**expected, "reply_to": told} != observed:
        return False
    _learn(broker, made_up, told)
    return True


def _is_address(broker: Broker, made_up: str, told: str) -> bool:
    """May that be the address? Others than RabbitMQ may call it as they like, and otherwise in each request."""
    if not broker.dialect.extensions:
        return told not in ("", REPLY_TO) and (told not in broker.queues or broker.queues[told].reply_address)
    return broker.reply_addresses[made_up] is None and told.startswith(ADDRESS) and told != ADDRESS


def _learn(broker: Broker, made_up: str, told: str) -> None:
    name = broker.reply_addresses[made_up] or made_up
    broker.reply_addresses[made_up] = told
    queue = broker.queues.pop(name, None)
    if queue is not None:
        rename_in_bindings(broker, name, told)
        queue.name = told
        broker.queues[told] = queue
