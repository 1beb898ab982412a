"""Dead letters of products that are not RabbitMQ: what a message must still say that came by a dead-letter exchange.

The feature is that the message comes, with its content. Which headers tell of its history, whether they do, whether it
is a redelivery, by which of its exchanges and keys it is named, and whether its expiration still shows is the
product's own way (DLX-001, DLX-005, DLX-006).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from amqpspec.model.broker.dead_letter_headers import is_first_here, without_history
from amqpspec.model.broker.queues import Message
from amqpspec.model.protocol.methods import Method

#: Begins the names of headers that brokers add.
_OF_BROKERS = "x-"


def as_of_others(message: Message, method: Method) -> Method:
    """The delivery of the dead letter, with what is open as the model has it."""
    arguments = dict(method.arguments)
    if is_first_here(message):
        message.redelivered = bool(arguments.get("redelivered"))
    ways = {(message.exchange, message.routing_key)}
    ways |= {(death["exchange"], key) for death in message.deaths for key in death["routing-keys"]}
    if (arguments.get("exchange", ""), arguments.get("routing_key", "")) in ways:
        arguments |= {"exchange": message.exchange, "routing_key": message.routing_key}
    content = method.content
    if content is not None:
        properties = _with_history(message.content.properties, content.properties)
        content = replace(content, properties=properties)
    return replace(method, arguments=arguments, content=content)


def _with_history(expected: Mapping[str, Any], observed: Mapping[str, Any]) -> dict[str, Any]:
    """What was observed, with the headers of brokers and the expiration that are expected."""
    own = without_history(expected).get("headers") or {}
    told = observed.get("headers") or {}
    sent = {name: value for name, value in told.items() if name in own or not name.startswith(_OF_BROKERS)}
    theirs = {name: value for name, value in (expected.get("headers") or {}).items() if name not in own}
    kept = {name: value for name, value in observed.items() if name not in ("headers", "expiration")}
    again = {name: value for name, value in expected.items() if name == "expiration"}
    return {**kept, **again, "headers": {**sent, **theirs}}
