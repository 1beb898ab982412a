"""Deliveries of products that are not RabbitMQ, of what comes by a feature: what they must say, and what is their way.

A dead letter comes, with its content. Which headers tell of its history, whether they do, whether it is a redelivery,
by which of its exchanges and keys it is named, and whether its expiration still shows, is the product's way (DLX-001,
DLX-005, DLX-006). So is by which header a stream numbers its messages, and from which number on (STREAM-003).

Requirements:

* DLX-001: Reasons. The reason of a dead-lettering is rejected (nack/reject requeue=false), expired, maxlen, or
  delivery_limit (quorum). [rabbit_dead_letter; RabbitMQ Java client test DeadLetterExchange]
* DLX-005: Routing. Dead-lettering uses x-dead-letter-routing-key or the original keys; the delivered exchange is the
  name of the dead-letter exchange. [RabbitMQ Java client test DeadLetterExchange]
* DLX-006: Expiration removed. expiration property is removed from the dead-lettered message and kept as
  original-expiration in x-death. [rabbit_dead_letter]
* STREAM-003: Non-destructive, offset header. Reading a stream takes nothing away: every consumer is handed the same
  messages, in the order of the log, also after others have acknowledged them. Deliveries carry x-stream-offset (from 0,
  a long-long-int), and redelivered is always false. [RabbitMQ guide: streams; rabbit_stream_queue:stream_entries]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from amqpspec.model.broker.queues import Message, Queue
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.basic.message_checks import KEY_HEADERS

#: Begins the names of headers that brokers add.
_OF_BROKERS = "x-"


def _is_of_brokers(header: str) -> bool:
    return header.startswith(_OF_BROKERS) or header in KEY_HEADERS


def is_of_others(queue: Queue, message: Message) -> bool:
    """Does the message come by a feature whose deliveries have ways of their own?"""
    return bool(message.deaths) or queue.type is not QueueType.CLASSIC


def as_of_others(queue: Queue, message: Message, method: Method, expected: Mapping[str, Any]) -> Method:
    """The delivery of such a message, with what is open as it is expected. `expected`: the properties."""
    arguments = dict(method.arguments)
    if queue.type is QueueType.STREAM:
        arguments["redelivered"] = message.redelivered
    elif message.is_first_here:
        message.redelivered = bool(arguments.get("redelivered"))
    ways = {(death["exchange"], key) for death in message.deaths for key in death["routing-keys"]}
    if (arguments.get("exchange", ""), arguments.get("routing_key", "")) in ways:
        arguments |= {"exchange": message.exchange, "routing_key": message.routing_key}
    content = method.content
    if content is not None:
        open_ones: tuple[str, ...] = ("expiration",) if message.deaths else ()
        open_ones += ("delivery_mode",) if queue.type is QueueType.STREAM else ()
        properties = _with_theirs(message, expected, content.properties, open_ones)
        content = replace(content, properties=properties)
    return replace(method, arguments=arguments, content=content)


def _with_theirs(
    message: Message, expected: Mapping[str, Any], observed: Mapping[str, Any], open_ones: tuple[str, ...]
) -> Mapping[str, Any]:
    """What was observed, with the headers of brokers and the open properties that are expected."""
    told, right = observed.get("headers") or {}, expected.get("headers") or {}
    sent = message.content.properties.get("headers") or {}
    # of a dead letter the content has all that the broker wrote as well, and may have lost the keys that it went by
    own = {name for name in sent if not (message.deaths and _is_of_brokers(name))}
    headers = {name: value for name, value in told.items() if name in own or not _is_of_brokers(name)}
    headers |= {name: value for name, value in right.items() if name not in own}
    properties = {name: value for name, value in observed.items() if name not in ("headers", *open_ones)}
    properties |= {name: value for name, value in expected.items() if name in open_ones}
    return {**properties, "headers": headers} if headers or "headers" in expected else properties
