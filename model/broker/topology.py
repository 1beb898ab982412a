"""What follows when a queue, an exchange or a binding goes: steps that `model.broker.broker` and the rules share.

RabbitMQ: rabbit_db_exchange:delete, rabbit_db_binding:maybe_auto_delete_exchange_in_khepri.

Requirements:

* BIND-003: Duplicate bindings deliver once. A queue bound several times (equal or different keys) that all match gets
  ONE copy per publish. [rabbit_exchange:route; AMQP 0-9-1 queue.bind]
* EXCHANGE-008: Auto-delete exchange. Deleted when its last outgoing binding is removed (unbind, or target queue or
  exchange deleted; so a chain of them goes at once); never-bound stays, and bindings to it do not keep it.
  [rabbit_binding:remove]
"""

from __future__ import annotations

from dataclasses import replace

from amqpspec.model.broker.broker_state import BrokerState
from amqpspec.model.broker.facts import remember
from amqpspec.model.broker.queues import Binding, Exchange, Queue

#: How many bindings of one exchange that were taken back are remembered: to blame a broker that keeps them.
REMEMBERED_BINDINGS = 8


def delete_exchange(broker: BrokerState, exchange: Exchange) -> None:
    """The exchange is gone, with the bindings from it and to it."""
    del broker.exchanges[exchange.name]
    remove_bindings_to(broker, exchange)


def remove_bindings_to(broker: BrokerState, destination: Queue | Exchange) -> None:
    """Nothing is bound to it any more; auto-delete exchanges that are left without bindings go too, and so on."""
    gone: list[Queue | Exchange] = [destination]
    while gone:
        destination = gone.pop()
        for exchange in list(broker.exchanges.values()):
            if not exchange.bindings and not exchange.unbound:
                continue
            kept = tuple([each for each in exchange.bindings if not each.leads_to(destination)])
            unbound = tuple([each for each in exchange.unbound if not each.leads_to(destination)])
            left = broker.exchanges[exchange.name] = replace(exchange, bindings=kept, unbound=unbound)
            if len(kept) < len(exchange.bindings) and _ends(broker, left):
                gone.append(left)


def rename_in_bindings(broker: BrokerState, queue: str, name: str) -> None:
    """What is bound to the queue of that name is bound to it under its new one."""

    def renamed(binding: Binding) -> Binding:
        is_to_it = binding.destination == queue and not binding.to_exchange
        return replace(binding, destination=name) if is_to_it else binding

    for exchange in broker.exchanges.values():
        if exchange.bindings or exchange.unbound:
            bindings, unbound = tuple(map(renamed, exchange.bindings)), tuple(map(renamed, exchange.unbound))
            broker.exchanges[exchange.name] = replace(exchange, bindings=bindings, unbound=unbound)


def add_binding(broker: BrokerState, source: Exchange, binding: Binding) -> None:
    """A binding that is there already is there once (BIND-003)."""
    bindings = source.bindings if binding in source.bindings else (*source.bindings, binding)
    unbound = tuple([each for each in source.unbound if each != binding])
    broker.exchanges[source.name] = replace(source, bindings=bindings, unbound=unbound)


def remove_binding(broker: BrokerState, source: Exchange, place: int) -> None:
    """That binding is gone."""
    bindings = source.bindings
    left = broker.exchanges[source.name] = replace(
        source,
        bindings=bindings[:place] + bindings[place + 1 :],
        unbound=(*source.unbound, bindings[place])[-REMEMBERED_BINDINGS:],
    )
    if _ends(broker, left):
        remove_bindings_to(broker, left)


def _ends(broker: BrokerState, exchange: Exchange) -> bool:
    """EXCHANGE-008: the exchange has lost a binding from it; if that was the last, auto-delete takes effect."""
    if exchange.bindings or not exchange.auto_delete:
        return False
    broker.fired("EXCHANGE-008")
    del broker.exchanges[exchange.name]
    remember(broker.bookkeeping.ended_exchanges, exchange.name, "EXCHANGE-008")
    return True
