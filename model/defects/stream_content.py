"""What a stream makes of properties: it keeps messages as AMQP 1.0, and what that cannot hold is lost or changed.

It breaks PUBLISH-016 and DLX-006, and is told from what is delivered; rabbit_msg_record in 3.10, mc_amqpl from 4.0 on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.dead_letter_headers import HISTORY, published_expiration
from amqpspec.model.broker.queues import Queue
from amqpspec.model.defects.expiration_text import EXPIRATION_REWRITTEN, as_number
from amqpspec.model.judging.known_defect import OutputDefect
from amqpspec.model.outputs.mismatch import Mismatch, Mismatches
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.methods import Method

Properties = Mapping[str, Any]

#: Application properties hold simple values only (rabbit_msg_record, mc_amqpl:convert_to).
STREAM_DROPS_NESTED_HEADERS = "stream-drops-nested-headers"
#: AMQP 1.0 has no such property.
STREAM_DROPS_CLUSTER_ID = "stream-drops-cluster-id"
#: mc_amqpl:to_091 has binary become longstr.
STREAM_TURNS_OCTETS_INTO_TEXT = "stream-turns-octets-into-text"
#: What is converted is the message as it was published (mc_amqpl:convert_to), and what its deaths have
#: changed is kept beside it.
STREAM_KEEPS_EXPIRATION = "stream-keeps-expiration-of-dead-letter"


def defects_of_content(expected: Properties, observed: Properties) -> tuple[str, ...]:
    """The known defects that together make of the expected properties what is observed; none if they do not."""
    showing = list(would_show(expected))
    for number in range(1, len(showing) + 1):
        for chosen in combinations(showing, number):
            kept = expected
            for name in chosen:
                kept = _CHANGES[name](kept)
            if kept == observed:
                return chosen
    return ()


def would_show(expected: Properties) -> Iterator[str]:
    """The known defects that make a difference to such properties."""
    return (name for name, change in _CHANGES.items() if change(expected) != expected)


def is_nested(name: str, value: Any) -> bool:
    """Those of names with x-, such as x-death, are no application properties, and are kept."""
    return isinstance(value, dict | list) and not name.startswith("x-")


def _without_nested(properties: Properties) -> Properties:
    headers = properties.get("headers", {})
    return _with_headers(properties, {name: value for name, value in headers.items() if not is_nested(name, value)})


def _without_cluster_id(properties: Properties) -> Properties:
    return {name: value for name, value in properties.items() if name != "cluster_id"}


def _octets_as_text(properties: Properties) -> Properties:
    headers = properties.get("headers", {})
    return _with_headers(properties, {name: _as_text(value) for name, value in headers.items()})


def _with_expiration(properties: Properties) -> Properties:
    own = published_expiration((properties.get("headers") or {}).get(HISTORY))
    return {**properties, "expiration": own} if own is not None and "expiration" not in properties else properties


def _as_text(value: Any) -> Any:
    return bytes(value).decode("utf-8", "surrogateescape") if isinstance(value, bytes | bytearray) else value


def _with_headers(properties: Properties, headers: dict[str, Any]) -> Properties:
    return {**properties, "headers": headers} if "headers" in properties else properties


_CHANGES: dict[str, Callable[[Properties], Properties]] = {
    STREAM_DROPS_NESTED_HEADERS: _without_nested,
    STREAM_DROPS_CLUSTER_ID: _without_cluster_id,
    STREAM_TURNS_OCTETS_INTO_TEXT: _octets_as_text,
    STREAM_KEEPS_EXPIRATION: _with_expiration,
    EXPIRATION_REWRITTEN: as_number,
}


def _is_kept(name: str, broker: Broker, method: Method) -> bool:
    """Does a delivery of a stream have what would be lost or changed there?"""
    if method.name != "basic.deliver" or method.content is None:
        return False
    channel = broker.channels.get((method.connection, method.channel))
    consumer = channel.consumers.get(method.arguments["consumer_tag"]) if channel is not None else None
    if consumer is None or consumer.queue.type is not QueueType.STREAM:
        return False
    return name in would_show(method.content.properties)


def _named(name: str, broker: Broker, method: Method, mismatch: Mismatch) -> Mismatches | None:
    """One mismatch for each of those that together explain it: given for the first of these."""
    queue = mismatch.about
    if mismatch.argument != "properties" or not isinstance(queue, Queue) or queue.type is not QueueType.STREAM:
        return None
    explaining = defects_of_content(mismatch.right, method.content.properties if method.content else {})
    if not explaining or explaining[0] != name:
        return None
    return tuple(replace(mismatch, defect=each) for each in explaining)


STREAM_CONTENT_DEFECTS: tuple[OutputDefect, ...] = (
    OutputDefect(
        name=STREAM_DROPS_NESTED_HEADERS,
        requirement="PUBLISH-016",
        statement="Headers that are tables or arrays are lost in a stream: it keeps messages as AMQP 1.0, whose"
        " application properties hold simple values only.",
        source="rabbit_msg_record:from_amqp091; mc_amqpl:convert_to from 4.0 on",
        names=partial(_named, STREAM_DROPS_NESTED_HEADERS),
        is_refuted_by=partial(_is_kept, STREAM_DROPS_NESTED_HEADERS),
    ),
    OutputDefect(
        name=STREAM_DROPS_CLUSTER_ID,
        requirement="PUBLISH-016",
        strength=Strength.ARGUABLE,
        statement="The property cluster-id is lost in a stream: AMQP 1.0, as which it keeps messages, has none.",
        source="rabbit_msg_record:from_amqp091; mc_amqpl:convert_to from 4.0 on",
        names=partial(_named, STREAM_DROPS_CLUSTER_ID),
        is_refuted_by=partial(_is_kept, STREAM_DROPS_CLUSTER_ID),
    ),
    OutputDefect(
        name=STREAM_TURNS_OCTETS_INTO_TEXT,
        requirement="PUBLISH-016",
        strength=Strength.ARGUABLE,
        statement="A header of octets (type x) comes out of a stream as text (type S).",
        source="mc_amqpl:to_091, which has binary become longstr",
        dialects=("rabbitmq-4.0", "rabbitmq-4.3"),
        names=partial(_named, STREAM_TURNS_OCTETS_INTO_TEXT),
        is_refuted_by=partial(_is_kept, STREAM_TURNS_OCTETS_INTO_TEXT),
    ),
    OutputDefect(
        name=STREAM_KEEPS_EXPIRATION,
        requirement="DLX-006",
        statement="A dead letter that comes out of a stream has the expiration that it was published with.",
        source="v4.0.5 mc_amqpl:convert_to (takes the expiration out of the properties as they were published; that it"
        " is none any more is noted beside them, mc:set_ttl)",
        dialects=("rabbitmq-4.0", "rabbitmq-4.3"),
        names=partial(_named, STREAM_KEEPS_EXPIRATION),
    ),
)
