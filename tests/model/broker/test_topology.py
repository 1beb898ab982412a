"""Bindings know queues and exchanges by name: they follow a name, and go with it."""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.copying import copy_broker
from amqpspec.model.broker.queues import Binding, Exchange, Queue
from amqpspec.model.broker.routing import route
from amqpspec.model.broker.topology import add_binding, delete_exchange, remove_binding
from amqpspec.model.promises.dialects.rabbitmq_4_3 import RABBITMQ_4_3

FANOUT = "amq.fanout"


def bound() -> tuple[Broker, Queue]:
    broker = Broker(RABBITMQ_4_3)
    queue = broker.queues["unknown"] = Queue("unknown")
    add_binding(broker, broker.exchanges[FANOUT], Binding(queue.name, "k"))
    return broker, queue


def reached(broker: Broker) -> list[Queue]:
    return list(route(broker.exchanges, broker.queues, broker.exchanges[FANOUT], ["k"], {}, broker.dialect).queues)


def test_a_queue_whose_name_becomes_known_stays_bound() -> None:
    broker, queue = bound()
    other = copy_broker(broker)
    broker.rename_queue(queue, "known")
    assert reached(broker) == [queue]
    assert reached(other) == [other.queues["unknown"]], "what other explanations know has not changed"


def test_a_binding_that_was_taken_back_follows_the_name_too() -> None:
    broker, queue = bound()
    remove_binding(broker, broker.exchanges[FANOUT], 0)
    broker.rename_queue(queue, "known")
    assert [each.destination for each in broker.exchanges[FANOUT].unbound] == ["known"]


def test_nothing_is_bound_to_what_is_gone() -> None:
    broker, queue = bound()
    broker.exchanges["x"] = Exchange("x", "direct")
    add_binding(broker, broker.exchanges[FANOUT], Binding("x", "k", to_exchange=True))
    other = copy_broker(broker)
    broker.delete_queue(queue, "QUEUE-016")
    delete_exchange(broker, broker.exchanges["x"])
    assert broker.exchanges[FANOUT].bindings == ()
    assert len(other.exchanges[FANOUT].bindings) == 2


def test_a_queue_and_an_exchange_of_one_name_are_told_apart() -> None:
    broker, queue = bound()
    broker.exchanges["unknown"] = Exchange("unknown", "direct")
    delete_exchange(broker, broker.exchanges["unknown"])
    assert reached(broker) == [queue]
