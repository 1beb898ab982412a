"""Do a message's headers fit the arguments of a headers binding? (PUBLISH-006; rabbit_exchange_type_headers:route)

Requirements:

* PUBLISH-006: headers all / any. x-match default is all; all = every non-x- binding header present with equal value;
  any = at least one; header value void (None) tests presence only; keys starting x- are ignored except with
  all-with-x/any-with-x; empty all matches everything, empty any matches nothing; string "1" is not integer 1. The
  header BCC is not seen. In rabbitmq-3: as stated; 1 may equal 1.0, or not, as no text says (not from 3.13.0 on). In
  rabbitmq-4.0: as stated; 1 may equal 1.0, or not, as no text says. In rabbitmq-4.3: as stated; 1 may equal 1.0, or
  not, as no text says. In amqp-0-9-1: as stated, without all-with-x and any-with-x.
  [rabbit_exchange_type_headers:route, v3.10.9 headers_match; AMQP 0-9-1 3.1.3.4]
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from amqpspec.model.protocol.erlang_wording import wire_type

#: What `x-match` may be; without it, all (rabbit_exchange_type_headers:validate_binding).
ALL, ANY, ALL_WITH_X, ANY_WITH_X = "all", "any", "all-with-x", "any-with-x"
MATCH_KINDS = (ALL, ANY, ALL_WITH_X, ANY_WITH_X)


def headers_match(
    arguments: Mapping[str, Any],
    headers: Mapping[str, Any],
    *,
    numbers_by_value: bool,
    any_of_nothing_matches: bool = False,
) -> bool:
    """`numbers_by_value`: 1 and 1.0 are equal; see the dialect. `any_of_nothing_matches`: so is any of no fields.

    An argument without a value asks only whether the header is there. Arguments that begin with `x-` do not count,
    unless the kind of match says so; `x-match` itself never does.
    """
    kind = arguments.get("x-match", ALL)
    with_x = kind in (ALL_WITH_X, ANY_WITH_X)
    found = (
        name in headers and (value is None or _equal(value, headers[name], numbers_by_value))
        for name, value in arguments.items()
        if not name.startswith("x-") or (with_x and name != "x-match")
    )
    if kind not in (ANY, ANY_WITH_X):
        return all(found)
    return any(found) or (any_of_nothing_matches and asks_for_nothing(arguments))


def asks_for_nothing(arguments: Mapping[str, Any]) -> bool:
    """Is it any of fields of which there are none?"""
    kind = arguments.get("x-match", ALL)
    if kind not in (ANY, ANY_WITH_X):
        return False
    return all(name == "x-match" or (kind == ANY and name.startswith("x-")) for name in arguments)


def _equal(wanted: Any, value: Any, numbers_by_value: bool) -> bool:
    """The top level compares the values and not their wire types, so octets equal a string of the same octets."""
    wanted, value = _plain(wanted), _plain(value)
    if type(wanted) is type(value):
        return _same(wanted, value)
    numbers = type(wanted) in (int, float) and type(value) in (int, float)
    return numbers_by_value and numbers and bool(wanted == value)


def _same(one: Any, other: Any) -> bool:
    """Equal, with everything within of the same wire type; tables in the same order, as they are lists of fields."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return list(one) == list(other) and all(map(_same_typed, one.values(), other.values()))
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same_typed, one, other))
    return bool(one == other)


def _same_typed(one: Any, other: Any) -> bool:
    return wire_type(one) == wire_type(other) and _same(one, other)


def _plain(value: Any) -> Any:
    """What the broker's term for the value is: strings are octets, moments and numbers of all sizes numbers."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if isinstance(value, datetime):
        return int((value if value.tzinfo is not None else value.replace(tzinfo=UTC)).timestamp())
    if isinstance(value, float):
        return float(value)
    if isinstance(value, bool | Decimal | Mapping | bytes) or value is None:
        return value
    return list(value) if isinstance(value, list | tuple) else int(value)
