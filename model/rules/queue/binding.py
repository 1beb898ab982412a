"""Bindings of queues to exchanges (0-9-1 section 1.7, queue.bind and queue.unbind; area BIND).

The steps are shared with the bindings of exchanges (`model.rules.extensions.exchange_binding`), as they are in
RabbitMQ: rabbit_channel:binding_action.

Requirements:

* BIND-001: bind to missing queue or exchange. Binding to a missing queue or exchange is a soft 404 that names the
  missing entity. [rabbit_channel.erl:binding_action; AMQP 0-9-1 queue.bind]
* BIND-002: unbind is idempotent. Unbinding a binding, queue or exchange that does not exist returns unbind-ok. In
  amqp-0-9-1: 404, as an error of the channel or of the connection; unbind-ok as well where only the binding is missing.
  [rabbit_channel.erl:binding_action remove]
* BIND-005: headers bind validation. x-match other than all, any, all-with-x, any-with-x is 406.
  [rabbit_exchange_type_headers:validate_binding]
* BIND-006: bind-ok order. bind-ok/unbind-ok take effect before they are sent: a publish on the same channel after
  bind-ok is routed with the binding. [rabbit_binding:add]
* BIND-007: Wildcards of a topic binding. The key of a binding to a topic exchange may hold two words # at most; one
  with more is a soft 406. In rabbitmq-4.3: as stated, or no limit, as versions differ (as stated from 4.3.5 on).
  [rabbit_exchange_type_topic:validate_binding (4.3.5 and later; not in 4.3.0 to 4.3.4)]
* QUEUE-019: Exclusive queue access from another connection. declare, passive declare, consume, get, purge, delete and
  bind from another connection are 405; unbind of an existing binding as well, of a non-existing binding NOT
  (unbind-ok). In amqp-0-9-1: 405 from another connection; unbind is not mentioned.
  [rabbit_amqqueue:check_exclusive_access; AMQP 0-9-1 class queue]
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.headers_matching import MATCH_KINDS
from amqpspec.model.broker.queues import Binding, Exchange, Queue
from amqpspec.model.broker.topic_matching import ANY_WORDS, words
from amqpspec.model.broker.topology import add_binding, remove_binding
from amqpspec.model.protocol.erlang_wording import term, wire_type
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Method, Table
from amqpspec.model.rules.common.answer import answer
from amqpspec.model.rules.common.lookup import (
    check_not_default,
    check_owner,
    find_exchange,
    queue_text,
    shortcut,
    without_line_breaks,
)
from amqpspec.model.rules.common.permission import check_read, check_write

_PLAIN = re.compile(r"[ !#-\[\]-~]{1,40}")


def bind(broker: Broker, channel: Channel, method: Method) -> None:
    """BIND-001, BIND-006: in effect before bind-ok is sent. A missing exchange is named before a missing queue."""
    name, routing_key = _named(broker, channel, method.arguments, True)
    source_name = without_line_breaks(method.arguments.get("exchange", ""))
    check_write(broker, channel, name, "queue")
    if not broker.dialect.text.default_exchange_can_be_bound:
        check_not_default(source_name)
    check_read(broker, channel, source_name, "exchange")
    source = find_exchange(broker, channel, source_name, "BIND-001")
    queue = broker.queues.get(name)
    if queue is None:
        raise ProtocolError("BIND-001", 404, f"no {queue_text(broker, channel, name)}")
    binding = binding_of(queue, routing_key, method.arguments)
    check_binding(broker, source, binding)
    check_owner(broker, channel, queue)
    add_binding(broker, source, binding)
    answer(broker, channel, method, "queue.bind-ok", {}, "BIND-006")


def unbind(broker: Broker, channel: Channel, method: Method) -> None:
    """BIND-002: what is not there is unbound already. Only a binding that is there has an owner (QUEUE-019)."""
    name, routing_key = _named(broker, channel, method.arguments, False)
    source_name = without_line_breaks(method.arguments.get("exchange", ""))
    check_write(broker, channel, name, "queue")
    if not broker.dialect.text.default_exchange_can_be_bound:
        check_not_default(source_name)
    check_read(broker, channel, source_name, "exchange")
    source, queue = broker.exchanges.get(source_name), broker.queues.get(name)
    requirements: tuple[str, ...] = ("BIND-002",)
    if queue is not None:
        if queue.owner not in (None, channel.connection):
            requirements = ("QUEUE-019", "BIND-002")
        place = place_of(source, binding_of(queue, routing_key, method.arguments))
        if source is not None and place is not None:
            check_owner(broker, channel, queue)
            remove_binding(broker, source, place)
            requirements = ("BIND-006",)
    text = broker.dialect.text
    is_there = source is not None and queue is not None
    must_exist = text.missing_binding_is_not_found if is_there else text.missing_is_not_found
    if requirements[-1] == "BIND-002" and must_exist:
        raise ProtocolError("BIND-002", 404, f"no such binding of {queue_text(broker, channel, name)}")
    broker.owe(channel, "queue.unbind-ok", {}, *requirements)


def lacks_only_the_binding(broker: Broker, channel: Channel, method: Method) -> bool:
    """Is there no such binding to take back by this queue.unbind, and both ends of it are there?"""
    if not method.arguments.get("queue") and channel.last_queue is None:
        return False
    name, routing_key = _named(broker, channel, method.arguments, False)
    source = broker.exchanges.get(without_line_breaks(method.arguments.get("exchange", "")))
    queue = broker.queues.get(name)
    if source is None or queue is None:
        return False
    return place_of(source, binding_of(queue, routing_key, method.arguments)) is None


def _named(broker: Broker, channel: Channel, arguments: Table, is_bound: bool) -> tuple[str, str]:
    """Queue and routing key; both empty mean the queue last declared (rabbit_channel:expand_shortcuts).

    For queue.unbind that is a choice of the dialect (`is_bound`: it is not queue.unbind).
    """
    named = arguments.get("queue", "")
    routing_key = arguments.get("routing_key", "")
    name = without_line_breaks(shortcut(broker, channel, named))
    is_shortened = not named and not routing_key and (is_bound or broker.dialect.text.unbind_names_key)
    return name, name if is_shortened else routing_key


def binding_of(destination: Queue | Exchange, routing_key: str, arguments: Table) -> Binding:
    """The binding that the method speaks of. Its arguments are part of what it is, in any order."""
    table: Mapping[str, Any] = arguments.get("arguments") or {}
    identity = tuple(sorted((name, repr(value)) for name, value in table.items()))
    is_exchange = isinstance(destination, Exchange)
    return Binding(destination.name, routing_key, identity, dict(table), to_exchange=is_exchange)


def place_of(source: Exchange | None, binding: Binding) -> int | None:
    """Where among the exchange's bindings this one is, if it is there."""
    if source is None or binding not in source.bindings:
        return None
    return source.bindings.index(binding)


def check_binding(broker: Broker, source: Exchange, binding: Binding) -> None:
    """What the type of exchange does not take (rabbit_exchange:validate_binding)."""
    if source.type == "headers":
        _check_match_kind(binding.arguments)
    elif source.type == "topic":
        _check_wildcards(broker, binding.routing_key)


def _check_match_kind(arguments: Table) -> None:
    """BIND-005; rabbit_exchange_type_headers:validate_binding."""
    if "x-match" not in arguments or arguments["x-match"] in MATCH_KINDS:
        return
    kind = arguments["x-match"]
    if isinstance(kind, str):
        reason = f"value {term(kind)}; expected all, any, all-with-x, or any-with-x"
        # Erlang breaks and escapes what is longer or other text
        any_text = not _PLAIN.fullmatch(kind)
    else:
        reason = f"type {wire_type(kind)} (value {term(kind)}); expected longstr"
        any_text = isinstance(kind, list | dict | bytes | float)
    raise ProtocolError("BIND-005", 406, f"Invalid x-match field {reason}", any_text=any_text)


def _check_wildcards(broker: Broker, routing_key: str) -> None:
    """BIND-007; rabbit_exchange_type_topic:validate_binding."""
    limit = broker.dialect.topic_wildcard_limit
    count = words(routing_key).count(ANY_WORDS)
    if limit is not None and count > limit:
        raise ProtocolError(
            "BIND-007",
            406,
            f"Topic binding key '{routing_key}' uses {count} '#' wildcards, at most {limit} are allowed",
        )
