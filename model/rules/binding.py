"""Chapter queue, bind and unbind (0-9-1 section 1.7; area BIND): queues to direct and fanout exchanges."""

from __future__ import annotations

from model.alphabet import Frame, Table
from model.broker import Broker
from model.errors import ProtocolError
from model.rules.answer import answer
from model.rules.lookup import check_owner, find_exchange, queue_text, shortcut, without_line_breaks
from model.state import Binding, Channel


def bind(broker: Broker, channel: Channel, frame: Frame) -> None:
    """BIND-006: in effect before bind-ok is sent."""
    name, routing_key = _named(broker, channel, frame.arguments)
    exchange_name = without_line_breaks(frame.arguments.get("exchange", ""))
    _check_not_default(exchange_name)
    exchange = broker.exchanges.get(exchange_name)
    queue = broker.queues.get(name)
    if queue is None and exchange is not None:
        raise ProtocolError("BIND-001", 404, f"no {queue_text(broker, channel, name)}")
    exchange = find_exchange(broker, channel, exchange_name, "BIND-001")
    assert queue is not None
    check_owner(broker, channel, queue)
    binding = Binding(queue, routing_key, _pairs(frame.arguments))
    if binding not in exchange.bindings:
        exchange.bindings.append(binding)
    answer(broker, channel, frame, "queue.bind-ok", {}, "BIND-006")


def unbind(broker: Broker, channel: Channel, frame: Frame) -> None:
    """BIND-002: what is not there is unbound already."""
    name, routing_key = _named(broker, channel, frame.arguments)
    exchange_name = without_line_breaks(frame.arguments.get("exchange", ""))
    _check_not_default(exchange_name)
    exchange = broker.exchanges.get(exchange_name)
    queue = broker.queues.get(name)
    requirements: tuple[str, ...] = ("BIND-002",)
    if queue is not None and queue.owner not in (None, channel.connection):
        requirements = ("QUEUE-019", "BIND-002")
    if exchange is not None and queue is not None:
        binding = Binding(queue, routing_key, _pairs(frame.arguments))
        if binding in exchange.bindings:
            requirements = ("BIND-006",)
            check_owner(broker, channel, queue)
            exchange.bindings.remove(binding)
            if exchange.auto_delete and not exchange.bindings:
                broker.fired("EXCHANGE-008")
                del broker.exchanges[exchange_name]
    broker.owe(channel, "queue.unbind-ok", {}, *requirements)


def _named(broker: Broker, channel: Channel, arguments: Table) -> tuple[str, str]:
    """Queue and routing key; both empty mean the queue last declared (rabbit_channel:expand_shortcuts)."""
    named = arguments.get("queue", "")
    routing_key = arguments.get("routing_key", "")
    name = without_line_breaks(shortcut(broker, channel, named))
    return name, name if not named and not routing_key else routing_key


def _pairs(arguments: Table) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((key, repr(value)) for key, value in (arguments.get("arguments") or {}).items()))


def _check_not_default(name: str) -> None:
    if not name:
        raise ProtocolError("EXCHANGE-001", 403, "operation not permitted on the default exchange")
