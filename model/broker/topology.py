"""What follows when a queue, an exchange or a binding goes: steps that `model.broker.broker` and the rules share.

RabbitMQ: rabbit_db_exchange:delete, rabbit_db_binding:maybe_auto_delete_exchange_in_khepri.
"""

from __future__ import annotations

from amqpspec.model.broker.broker_state import BrokerState
from amqpspec.model.broker.queues import Binding, Exchange, Queue

#: How many exchanges that ended by themselves, and bindings of one exchange, are remembered: to blame a broker that
#: keeps them.
REMEMBERED = 64
REMEMBERED_BINDINGS = 8


def delete_exchange(broker: BrokerState, exchange: Exchange) -> None:
    """The exchange is gone, with the bindings from it and to it."""
    del broker.exchanges[exchange.name]
    exchange.bindings, exchange.unbound = [], []
    remove_bindings_to(broker, exchange)


def remove_bindings_to(broker: BrokerState, destination: Queue | Exchange) -> None:
    """Nothing is bound to it any more; auto-delete exchanges that are left without bindings go too, and so on."""
    gone: list[Queue | Exchange] = [destination]
    while gone:
        destination = gone.pop()
        for exchange in list(broker.exchanges.values()):
            if exchange.unbound:
                exchange.unbound = [each for each in exchange.unbound if each.destination is not destination]
            kept = [binding for binding in exchange.bindings if binding.destination is not destination]
            if len(kept) < len(exchange.bindings):
                exchange.bindings = kept
                if _ends(broker, exchange):
                    gone.append(exchange)


def add_binding(source: Exchange, binding: Binding) -> None:
    """A binding that is there already is there once (BIND-003)."""
    if binding not in source.bindings:
        source.bindings.append(binding)
    if binding in source.unbound:
        source.unbound.remove(binding)


def remove_binding(broker: BrokerState, source: Exchange, place: int) -> None:
    """That binding is gone."""
    source.unbound.append(source.bindings.pop(place))
    del source.unbound[:-REMEMBERED_BINDINGS]
    if _ends(broker, source):
        remove_bindings_to(broker, source)


def _ends(broker: BrokerState, exchange: Exchange) -> bool:
    """EXCHANGE-008: the exchange has lost a binding from it; if that was the last, auto-delete takes effect."""
    if exchange.bindings or not exchange.auto_delete:
        return False
    broker.fired("EXCHANGE-008")
    del broker.exchanges[exchange.name]
    broker.ended_exchanges[exchange.name] = "EXCHANGE-008"
    if len(broker.ended_exchanges) > REMEMBERED:
        del broker.ended_exchanges[next(iter(broker.ended_exchanges))]
    return True
