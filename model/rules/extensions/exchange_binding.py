"""Bindings of exchanges to exchanges, RabbitMQ's extension (area BIND): exchange.bind and exchange.unbind.

Requirements:

* BIND-001: bind to missing queue or exchange. Binding to a missing queue or exchange is a soft 404 that names the
  missing entity. [rabbit_channel.erl:binding_action; AMQP 0-9-1 queue.bind]
* BIND-002: unbind is idempotent. Unbinding a binding, queue or exchange that does not exist returns unbind-ok. In
  amqp-0-9-1: 404, as an error of the channel or of the connection; unbind-ok as well where only the binding is missing.
  [rabbit_channel.erl:binding_action remove]
* BIND-004: Exchange-to-exchange bindings. Messages follow e2e bindings; cycles deliver once per queue;
  basic.deliver.exchange is the exchange originally published to. [rabbit_exchange:route1]
* CHAN-011: Method only valid server-to-client. A client sending a *-ok or other unhandled method gets hard 503. In
  amqp-0-9-1: an error of the connection, its code is not named. [rabbit_channel.erl:handle_method catch-all]
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.topology import add_binding, remove_binding
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.common.answer import answer
from amqpspec.model.rules.common.lookup import check_not_default, find_exchange, without_line_breaks
from amqpspec.model.rules.common.permission import check_read, check_write
from amqpspec.model.rules.queue.binding import binding_of, check_binding, place_of


def bind(broker: Broker, channel: Channel, method: Method) -> None:
    """BIND-001, BIND-004; rabbit_channel:binding_action. An exchange may be bound to itself."""
    destination_name, source_name = _named(broker, channel, method)
    source = find_exchange(broker, channel, source_name, "BIND-001")
    destination = find_exchange(broker, channel, destination_name, "BIND-001")
    binding = binding_of(destination, method.arguments.get("routing_key", ""), method.arguments)
    check_binding(broker, source, binding)
    add_binding(broker, source, binding)
    answer(broker, channel, method, "exchange.bind-ok", {}, "BIND-004")


def unbind(broker: Broker, channel: Channel, method: Method) -> None:
    """BIND-002: what is not there is unbound already."""
    destination_name, source_name = _named(broker, channel, method)
    source, destination = broker.exchanges.get(source_name), broker.exchanges.get(destination_name)
    requirement = "BIND-002"
    if source is not None and destination is not None:
        place = place_of(source, binding_of(destination, method.arguments.get("routing_key", ""), method.arguments))
        if place is not None:
            remove_binding(broker, source, place)
            requirement = "BIND-004"
    answer(broker, channel, method, "exchange.unbind-ok", {}, requirement)


def _named(broker: Broker, channel: Channel, method: Method) -> tuple[str, str]:
    """Destination and source, neither of which may be the default exchange, and which the user may use so."""
    if not broker.dialect.has("exchange_exchange_bindings"):
        raise ProtocolError("CHAN-011", 503, "unimplemented method")
    destination = without_line_breaks(method.arguments.get("destination", ""))
    source = without_line_breaks(method.arguments.get("source", ""))
    check_write(broker, channel, destination, "exchange")
    check_not_default(destination)
    check_not_default(source)
    check_read(broker, channel, source, "exchange")
    return destination, source
