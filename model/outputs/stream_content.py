"""What a stream makes of properties: it keeps messages as AMQP 1.0, and what that cannot hold is lost or changed.

Known defects that break PUBLISH-016 and DLX-006 (`model.defects.known_defects`), told from what is delivered;
rabbit_msg_record in 3.10, mc_amqpl from 4.0 on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from typing import Any

from amqpspec.model.broker.dead_letters import HISTORY, published_expiration

Properties = Mapping[str, Any]

#: Known defect: application properties hold simple values only (rabbit_msg_record, mc_amqpl:convert_to).
STREAM_DROPS_NESTED_HEADERS = "stream-drops-nested-headers"
#: Known defect: AMQP 1.0 has no such property.
STREAM_DROPS_CLUSTER_ID = "stream-drops-cluster-id"
#: Known defect: mc_amqpl:to_091 has binary become longstr.
STREAM_TURNS_OCTETS_INTO_TEXT = "stream-turns-octets-into-text"
#: Known defect: what is converted is the message as it was published (mc_amqpl:convert_to), and what its deaths have
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
}
