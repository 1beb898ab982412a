"""Other ways with exchanges, with bindings, and with where they lead at a commit (`model.rules.other_ways`).

Requirements:

* EXCHANGE-006: Equivalence. type, durable, auto_delete, internal and alternate-exchange must match (406); unknown
  arguments are ignored. In amqp-0-9-1: type, durable and arguments are compared; a channel exception, its code is not
  named. [rabbit_exchange:assert_equivalence; AMQP 0-9-1 class exchange]
* EXCHANGE-007: delete if-unused. Deleting a bound exchange with if_unused=true is a soft 406. In amqp-0-9-1: as stated,
  but a missing exchange is 404, and no code is named for one in use. [rabbit_exchange:ensure_deleted; AMQP 0-9-1 class
  exchange]
* QUEUE-019: Exclusive queue access from another connection. declare, passive declare, consume, get, purge, delete and
  bind from another connection are 405; unbind of an existing binding as well, of a non-existing binding NOT
  (unbind-ok). In amqp-0-9-1: 405 from another connection; unbind is not mentioned.
  [rabbit_amqqueue:check_exclusive_access; AMQP 0-9-1 class queue]
"""

from __future__ import annotations

from dataclasses import replace

from amqpspec.model.broker.broker import Broker, Rule
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.queues import Binding, Exchange
from amqpspec.model.broker.routing import Routes
from amqpspec.model.broker.transaction import Publication
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.basic.publish import routes_of
from amqpspec.model.rules.other_way import OtherWay, refuse

_BINDING = ("queue.bind", "queue.unbind", "exchange.bind", "exchange.unbind")


def _differs_in_type(broker: Broker, channel: Channel, method: Method) -> bool:
    exchange = broker.exchanges.get(method.arguments.get("exchange", ""))
    if exchange is None or not exchange.name or method.arguments.get("passive"):
        return False
    return bool(method.arguments.get("type", "direct") != exchange.type)


def _is_of_another_connection(broker: Broker, channel: Channel, method: Method) -> bool:
    queue = broker.queues.get(method.arguments.get("queue", "") or channel.last_queue or "")
    return queue is not None and queue.owner not in (None, channel.connection)


# ------------------------------------------------------------------------- use by bindings of exchanges


def _is_destination_only(broker: Broker, channel: Channel, method: Method) -> bool:
    exchange = broker.exchanges.get(method.arguments.get("exchange", ""))
    if exchange is None or exchange.bindings or not method.arguments.get("if_unused"):
        return False
    sources = (each for each in broker.exchanges.values() if each is not exchange)
    return any(each.to_exchange and each.destination == exchange.name for source in sources for each in source.bindings)


def _leads_to_exchanges_only(broker: Broker, channel: Channel, method: Method) -> bool:
    exchange = broker.exchanges.get(method.arguments.get("exchange", ""))
    bindings = exchange.bindings if exchange is not None and method.arguments.get("if_unused") else ()
    return bool(bindings) and all(each.to_exchange for each in bindings)


def _delete_used(broker: Broker, channel: Channel, method: Method, rule: Rule) -> None:
    rule(broker, channel, replace(method, arguments={**method.arguments, "if_unused": False}))


# ------------------------------------------------------------------------- arguments of a binding that mean nothing


def _differs_in_arguments_only(broker: Broker, channel: Channel, method: Method) -> bool:
    return _equal_but_for_arguments(broker, channel, method) is not None


def _bind_what_is_bound(broker: Broker, channel: Channel, method: Method, rule: Rule) -> None:
    """The arguments are those that the binding has."""
    binding = _equal_but_for_arguments(broker, channel, method)
    table = {} if binding is None else dict(binding.arguments)
    rule(broker, channel, replace(method, arguments={**method.arguments, "arguments": table}))


def _equal_but_for_arguments(broker: Broker, channel: Channel, method: Method) -> Binding | None:
    """A binding with the method's ends and key, where there is none that has its arguments as well."""
    is_exchange = method.name.startswith("exchange.")
    arguments = method.arguments
    source = broker.exchanges.get(arguments.get("source" if is_exchange else "exchange", ""))
    if source is None or source.type == "headers":
        return None
    named = arguments.get("destination" if is_exchange else "queue", "")
    key = arguments.get("routing_key", "")
    if not is_exchange and not named:
        named = channel.last_queue or ""
        key = key or named
    found = [each for each in source.bindings if _leads(each, named, key, is_exchange)]
    table = dict(arguments.get("arguments") or {})
    return None if any(dict(each.arguments) == table for each in found) else next(iter(found), None)


def _leads(binding: Binding, destination: str, key: str, to_exchange: bool) -> bool:
    return (binding.destination, binding.routing_key, binding.to_exchange) == (destination, key, to_exchange)


# ---------------------------------------------------------------------------------- routes of a transaction


def _leads_elsewhere_by_now(broker: Broker, channel: Channel, method: Method) -> bool:
    kept = () if channel.transaction is None else channel.transaction.publications
    return any(_rerouted(broker, each).routes.queues.keys() != each.routes.queues.keys() for each in kept)


def _route_at_commit(broker: Broker, channel: Channel, method: Method, rule: Rule) -> None:
    if channel.transaction is not None:
        kept = channel.transaction.publications
        kept[:] = [_rerouted(broker, each) for each in kept]
    rule(broker, channel, method)


def _rerouted(broker: Broker, publication: Publication) -> Publication:
    pattern = publication.pattern
    exchange: Exchange | None = broker.exchanges.get(pattern.exchange)
    if exchange is None:
        return replace(publication, routes=Routes())
    routes = routes_of(broker, exchange, pattern.routing_key, pattern.content)
    if publication.immediate:
        routes = replace(routes, queues={queue: why for queue, why in routes.queues.items() if queue.consumers})
    return replace(publication, routes=routes)


WAYS_OF_TOPOLOGY: tuple[OtherWay, ...] = (
    OtherWay(
        "retyped-exchange", "channel", ("exchange.declare",), _differs_in_type, refuse("EXCHANGE-006", 406)
    ),
    OtherWay(
        "use-by-exchanges", "both", ("exchange.delete",), _is_destination_only, refuse("EXCHANGE-007", 406)
    ),
    OtherWay("use-by-exchanges", "neither", ("exchange.delete",), _leads_to_exchanges_only, _delete_used),
    OtherWay(
        "exclusive-unbind", "refused", ("queue.unbind",), _is_of_another_connection, refuse("QUEUE-019", 405)
    ),
    OtherWay("binding-arguments", "ignored", _BINDING, _differs_in_arguments_only, _bind_what_is_bound),
    OtherWay("routed-in-transaction", "at-commit", ("tx.commit",), _leads_elsewhere_by_now, _route_at_commit),
)  # fmt: skip
