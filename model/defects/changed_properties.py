"""What versions make of the properties of a message, which should come back as they were.

A stream keeps messages as AMQP 1.0 (rabbit_msg_record in 3.10, mc_amqpl from 4.0 on), and what that cannot hold is lost
or changed. From 4.0 on an expiration is kept as a number, and written anew: what was 060000 or +60000 comes back as
60000, in the property and in the history of a dead letter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.dead_letter_headers import HISTORY, published_expiration
from amqpspec.model.broker.queues import Queue
from amqpspec.model.defects.situations import named_consumer
from amqpspec.model.judging.known_defect import OutputDefect
from amqpspec.model.outputs.mismatch import Mismatch
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.versions import versions
from amqpspec.model.protocol.methods import Content, Method

Properties = Mapping[str, Any]
Change = Callable[[Properties], Properties]

_NUMBER = re.compile(r"[+-]?[0-9]+")


def as_number(properties: Properties) -> Properties:
    """The properties with each expiration as the number that it is."""
    headers = properties.get("headers")
    if headers and isinstance(history := headers.get(HISTORY), list):
        name = "original-expiration"
        deaths = [_rewritten(death, name) if isinstance(death, Mapping) else death for death in history]
        properties = {**properties, "headers": {**headers, HISTORY: deaths}}
    return _rewritten(properties, "expiration")


def _rewritten(table: Properties, name: str) -> Properties:
    text = table.get(name)
    is_number = isinstance(text, str) and _NUMBER.fullmatch(text) is not None
    return {**table, name: str(int(str(text)))} if is_number else table


def without_nested(properties: Properties) -> Properties:
    """Application properties hold simple values only. Those of names with x-, such as x-death, are none of them."""
    headers = properties.get("headers", {})
    kept = {name: value for name, value in headers.items() if name[:2] == "x-" or not isinstance(value, dict | list)}
    return {**properties, "headers": kept} if len(kept) < len(headers) else properties


def without_cluster_id(properties: Properties) -> Properties:
    return {name: value for name, value in properties.items() if name != "cluster_id"}


def octets_as_text(properties: Properties) -> Properties:
    headers = properties.get("headers", {})
    octets = {name: value for name, value in headers.items() if isinstance(value, bytes | bytearray)}
    text = {name: bytes(value).decode("utf-8", "surrogateescape") for name, value in octets.items()}
    return {**properties, "headers": {**headers, **text}} if text else properties


def with_expiration(properties: Properties) -> Properties:
    """What is converted is the message as it was published; what its deaths have changed is kept beside it."""
    own = published_expiration((properties.get("headers") or {}).get(HISTORY))
    return {**properties, "expiration": own} if own is not None and "expiration" not in properties else properties


#: In the order in which they are made; what no stream has done is the last one alone.
_CHANGES: tuple[Change, ...] = (without_nested, without_cluster_id, octets_as_text, with_expiration, as_number)


def changes_between(expected: Properties, observed: Properties) -> tuple[Change, ...]:
    """The changes that together make of the expected properties what is observed; none if they do not."""
    made = tuple(each for each in _CHANGES if each(expected) != expected and each(observed) == observed)
    kept = expected
    for change in made:
        kept = change(kept)
    return made if kept == observed else ()


def _explains(change: Change, broker: Broker, method: Method, mismatch: Mismatch) -> bool:
    right, content = mismatch.right, method.content
    if mismatch.argument == "content" and isinstance(right, Content) and content and right.body == content.body:
        right = right.properties  # what is returned
    elif mismatch.argument != "properties":
        return False
    if content is None or not isinstance(right, Mapping):
        return False
    changes = changes_between(right, content.properties)
    is_of_stream = isinstance(mismatch.about, Queue) and mismatch.about.type is QueueType.STREAM
    return change in changes and (is_of_stream or changes == (as_number,))


def _is_refuted(change: Change, broker: Broker, method: Method) -> bool:
    """Does a delivery of a stream have what would be lost or changed there?"""
    consumer = named_consumer(broker, method) if method.name == "basic.deliver" else None
    if consumer is None or consumer.queue.type is not QueueType.STREAM or method.content is None:
        return False
    return change(method.content.properties) != method.content.properties


def _turns_around(broker: Broker, method: Method, mismatch: Mismatch) -> bool:
    """Is it the same history but for the order of all deaths before the last one?"""
    if mismatch.argument != "properties" or method.content is None or not isinstance(mismatch.right, Mapping):
        return False
    headers = mismatch.right.get("headers") or {}
    right, told = headers.get(HISTORY), (method.content.properties.get("headers") or {}).get(HISTORY)
    if not isinstance(right, list) or not isinstance(told, list) or len(told) < 3 or len(told) != len(right):
        return False
    all_told = list(map(_with_any_time, told))
    is_same = right[0] == told[0] and all(death in all_told for death in map(_with_any_time, right))
    return is_same and {**mismatch.right, "headers": {**headers, HISTORY: told}} == method.content.properties


def _with_any_time(death: Any) -> Any:
    """With no more of its time than that it has one: an entry that a publisher sent along may have none."""
    return {**death, "time": "time" in death} if isinstance(death, Mapping) else death


CHANGED_PROPERTIES: tuple[OutputDefect, ...] = (
    OutputDefect(
        name="stream-drops-nested-headers",
        requirement="PUBLISH-016",
        statement="Headers that are tables or arrays are lost in a stream: it keeps messages as AMQP 1.0, whose"
        " application properties hold simple values only.",
        source="rabbit_msg_record:from_amqp091; mc_amqpl:convert_to from 4.0 on",
        explains=partial(_explains, without_nested),
        is_refuted_by=partial(_is_refuted, without_nested),
    ),
    OutputDefect(
        name="stream-drops-cluster-id",
        requirement="PUBLISH-016",
        strength=Strength.ARGUABLE,
        statement="The property cluster-id is lost in a stream: AMQP 1.0, as which it keeps messages, has none.",
        source="rabbit_msg_record:from_amqp091; mc_amqpl:convert_to from 4.0 on",
        explains=partial(_explains, without_cluster_id),
        is_refuted_by=partial(_is_refuted, without_cluster_id),
    ),
    OutputDefect(
        name="stream-turns-octets-into-text",
        requirement="PUBLISH-016",
        strength=Strength.ARGUABLE,
        statement="A header of octets (type x) comes out of a stream as text (type S).",
        source="mc_amqpl:to_091, which has binary become longstr",
        dialects=("rabbitmq-4.0", "rabbitmq-4.3"),
        explains=partial(_explains, octets_as_text),
        is_refuted_by=partial(_is_refuted, octets_as_text),
    ),
    OutputDefect(
        name="stream-keeps-expiration-of-dead-letter",
        requirement="DLX-006",
        statement="A dead letter that comes out of a stream has the expiration that it was published with.",
        source="v4.0.5 mc_amqpl:convert_to (takes the expiration out of the properties as they were published; that it"
        " is none any more is noted beside them, mc:set_ttl)",
        dialects=("rabbitmq-4.0", "rabbitmq-4.3"),
        explains=partial(_explains, with_expiration),
    ),
    OutputDefect(
        name="expiration-is-rewritten",
        requirement="PUBLISH-016",
        statement="A message's expiration comes back as the number that it is: 060000 as 60000.",
        source="v4.0.5 mc_amqpl:protocol_state",
        dialects=("rabbitmq-4.0", "rabbitmq-4.3"),
        explains=partial(_explains, as_number),
    ),
    OutputDefect(
        name="deaths-turn-around",
        requirement="DLX-002",
        statement="In the history of a dead letter each further death turns the order of the earlier ones: third,"
        " first, second.",
        source="v3.12.14 rabbit_dead_letter:group_by_queue_and_reason; mended in 3.13.0",
        dialects=("rabbitmq-3",),
        versions=(versions("3.10.0", "3.12.14"),),
        explains=_turns_around,
    ),
)
