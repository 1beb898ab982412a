"""Words that the model does not know: what a plugin or a later version may make of them (`model.broker.openness`).

Types of exchanges and of queues, arguments, the broker's own exchanges. Usually the broker does what it does without
them: it refuses the type, ignores the argument, has no such exchange. As an alternative it knows the word. Then what
the word names is open, and the sequence is undecided if nothing else explains what comes.

The text keeps `x-` for types of exchanges that are not its own, and RabbitMQ and its plugins begin their arguments with
it: other types of exchanges are unknown to everybody, and other arguments mean nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.openness import EXTENSION, note_undecided, open_queue, spread, unknown_argument
from amqpspec.model.broker.owed import Expected
from amqpspec.model.broker.queues import Exchange, Queue
from amqpspec.model.broker.routing import BY_TYPE
from amqpspec.model.judging.alternative import Alternative
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import EMPTY_CONTENT, Method
from amqpspec.model.rules.basic.publish import routes_of
from amqpspec.model.rules.connection.closing import fail
from amqpspec.model.rules.inputs import process
from amqpspec.model.rules.queue.queue_values import CHECKS

#: Arguments of basic.consume that the model knows, or that make no difference to it.
_OF_CONSUMERS = frozenset({"x-priority", "x-stream-offset", "x-consumer-timeout", "x-cancel-on-ha-failover"})
#: Arguments of queue.declare that are somewhere known (`KnownArguments`), checked or not.
_OF_QUEUES = frozenset(CHECKS)
#: RabbitMQ's own exchanges, which are there by configuration: of its log, and of a plugin for its events. Nobody
#: publishes to them but the broker.
BY_CONFIGURATION = ("amq.rabbitmq.log", "amq.rabbitmq.event")
_RESERVED, _RABBITMQS = "amq.", "amq.rabbitmq."
_QUEUE_TYPES = frozenset(each.value for each in QueueType)


def _alternative(name: str, requirement: str, method: Method, way: Callable[[Broker, Method], None]) -> Alternative:
    return Alternative(
        name=name,
        requirement=requirement,
        source="a plugin, a later version, or what an operator has configured",
        kinds=(method.name,),
        applies=lambda broker, method: True,
        process=way,
    )


# ------------------------------------------------------------------------------------------------ exchanges


def _of_exchange(broker: Broker, method: Method) -> Iterator[Alternative]:
    arguments = method.arguments
    if arguments.get("passive") or broker.open_channel(method) is None:
        yield from _of_named_exchanges(broker, method)
        return
    name, kind = str(arguments.get("exchange", "")), str(arguments.get("type", "direct"))
    is_known = kind in broker.dialect.further_exchange_types
    if kind.startswith(EXTENSION) and all(each.type != kind for each in broker.exchanges.values()):
        way = _refuse_type if is_known else partial(_take_type, name=name, kind=kind)
        yield _alternative("exchange type of a plugin", "EXCHANGE-004", method, way)
    word = unknown_argument(arguments.get("arguments") or {}, ())
    if word is not None and name not in broker.exchanges and (kind in BY_TYPE or is_known):
        way = partial(_open_exchange, name=name, word=f"argument {word} of the exchange {name}")
        yield _alternative("argument of a plugin", "EXCHANGE-006", method, way)
    if name.startswith(_RABBITMQS):
        yield from _of_named_exchanges(broker, method)
    if name.startswith(_RABBITMQS) or _is_nameless(broker, name):
        yield _alternative("exchange of the broker's own", "EXCHANGE-002", method, partial(_refuse, code=406))


def _take_type(broker: Broker, method: Method, name: str, kind: str) -> None:
    dialect = broker.dialect
    broker.dialect = replace(dialect, further_exchange_types=(*dialect.further_exchange_types, kind))
    _open_exchange(broker, method, name, f"exchange type {kind}")
    broker.dialect = dialect


def _refuse_type(broker: Broker, method: Method) -> None:
    """The feature may be switched off (rabbit_exchange_type_local_random:validate)."""
    dialect = broker.dialect
    broker.dialect = replace(dialect, further_exchange_types=())
    process(broker, method)
    broker.dialect = dialect


def _open_exchange(broker: Broker, method: Method, name: str, word: str) -> None:
    process(broker, method)
    made = broker.exchanges.get(name)
    if made is not None and broker.open_channel(method) is not None:
        _put(broker, replace(made, open_by=word))
        note_undecided(broker, word)


def _put(broker: Broker, exchange: Exchange) -> None:
    broker.exchanges[exchange.name] = exchange
    broker.has_open = True


def _of_named_exchanges(broker: Broker, method: Method) -> Iterator[Alternative]:
    """The broker's own exchanges, of which the model does not know whether they are there."""
    names = [str(method.arguments.get(each, "")) for each in ("exchange", "source", "destination")]
    for name in dict.fromkeys(names):
        if name.startswith(_RESERVED) and name not in broker.exchanges:
            way = partial(_have_exchange, name=name)
            yield _alternative("exchange of the broker's own", "EXCHANGE-005", method, way)


def _have_exchange(broker: Broker, method: Method, name: str) -> None:
    if name in BY_CONFIGURATION:
        _put(broker, Exchange(name, "topic", internal=True, open_by=f"exchange {name}"))
    else:
        _put(broker, Exchange(name, "", open_by=f"exchange {name}"))
        note_undecided(broker, f"exchange {name}")
    process(broker, method)


def _of_publish(broker: Broker, method: Method) -> Iterator[Alternative]:
    """What an exchange does that nobody can follow: it may be there, and may send the message to nobody."""
    name = str(method.arguments.get("exchange", ""))
    if name.startswith(_RESERVED) and name not in broker.exchanges:
        yield from _of_named_exchanges(broker, method)
    elif _is_nameless(broker, name):
        yield _alternative("internal exchange of the broker's own", "EXCHANGE-009", method, partial(_refuse, code=403))
    elif method.arguments.get("mandatory") and broker.has_open and name in broker.exchanges:
        content = method.content or EMPTY_CONTENT
        if routes_of(broker, broker.exchanges[name], method.arguments.get("routing_key", ""), content).open_by:
            yield _alternative("message that an open exchange sends to nobody", "PUBLISH-007", method, _route_nowhere)


def _of_commit(broker: Broker, method: Method) -> Iterator[Alternative]:
    """An open queue may refuse a message. Where an open exchange may have chosen a queue that is gone now, the commit
    may break the connection.
    """
    channel = broker.open_channel(method)
    if channel is None or channel.transaction is None or not broker.has_open:
        return
    routes = [each.routes for each in channel.transaction.publications]
    if any(queue.deleted for each in routes for queue in each.perhaps):
        yield _alternative("message for a queue that is gone", "TX-002", method, partial(_refuse, code=541))
    if any(each.perhaps or any(queue.open_by for queue in each.queues) for each in routes):
        yield _alternative("message that an open queue refuses", "TX-008", method, _complete_in_part)


def _complete_in_part(broker: Broker, method: Method) -> None:
    process(broker, method)
    channel = broker.open_channel(method)
    answer = channel.owed[-1] if channel is not None and channel.owed else None
    if channel is not None and isinstance(answer, Expected) and answer.method == "tx.commit-ok":
        channel.owed.pop()
        fail(broker, channel, method, ProtocolError("TX-008", 406, "partial tx completion"))


def _is_nameless(broker: Broker, name: str) -> bool:
    """Is it one of the broker's own of which nothing is known but that it is there?"""
    return name in broker.exchanges and not broker.exchanges[name].type


def _route_nowhere(broker: Broker, method: Method) -> None:
    broker.routes_nothing = True
    process(broker, method)
    broker.routes_nothing = False


def _of_binding(broker: Broker, method: Method) -> Iterator[Alternative]:
    """A type that nobody knows may take some bindings only; RabbitMQ's tracer may be on."""
    yield from _of_named_exchanges(broker, method)
    source = broker.exchanges.get(str(method.arguments.get("source", method.arguments.get("exchange", ""))))
    if source is None or not method.name.endswith(".bind"):
        return
    if source.open_by or source.type in broker.dialect.further_exchange_types:
        yield _alternative("binding that the type refuses", "EXCHANGE-011", method, partial(_refuse, code=406))
    elif source.name.startswith(_RABBITMQS):
        way = partial(_bind_to_tracer, name=source.name)
        yield _alternative("tracer that is on", "EXCHANGE-012", method, way)


def _bind_to_tracer(broker: Broker, method: Method, name: str) -> None:
    _put(broker, replace(broker.exchanges[name], open_by=f"operator's setting of {name}"))
    process(broker, method)


# --------------------------------------------------------------------------------------------------- queues


def _of_queue(broker: Broker, method: Method) -> Iterator[Alternative]:
    arguments = method.arguments
    if arguments.get("passive") or broker.open_channel(method) is None or arguments.get("queue") in broker.queues:
        return
    table = arguments.get("arguments") or {}
    kind = table.get("x-queue-type")
    if isinstance(kind, str) and kind not in _QUEUE_TYPES:
        without = replace(method, arguments={**arguments, "arguments": {}})
        way = partial(_make_open, method=without, table=table, word=f"queue type {kind}")
        yield _alternative("queue type of a plugin", "QUEUE-013", method, way)
    elif (word := unknown_argument(table, _OF_QUEUES)) is not None:
        where = f" of the queue {arguments['queue']}" if arguments.get("queue") else ""
        way = partial(_make_open, method=method, table=table, word=f"argument {word}{where}")
        yield _alternative("argument of a plugin", "QUEUE-011", method, way)


def _make_open(broker: Broker, _: Method, method: Method, table: dict[str, object], word: str) -> None:
    before = set(broker.queues)
    process(broker, method)
    for name in broker.queues.keys() - before:
        broker.queues[name].arguments = table
        open_queue(broker, broker.queues[name], word)
    spread(broker)


def _of_consumer(broker: Broker, method: Method) -> Iterator[Alternative]:
    word = unknown_argument(method.arguments.get("arguments") or {}, _OF_CONSUMERS)
    queue = _named(broker, method)
    if word is not None and queue is not None and not queue.open_by:
        way = partial(_consume_openly, name=queue.name, word=f"argument {word} of a consumer of {queue.name}")
        yield _alternative("argument of a plugin", "QUEUE-011", method, way)
    yield from _of_open_queue(broker, method)


def _consume_openly(broker: Broker, method: Method, name: str, word: str) -> None:
    process(broker, method)
    if name in broker.queues:
        open_queue(broker, broker.queues[name], word)
        spread(broker)


def _of_open_queue(broker: Broker, method: Method) -> Iterator[Alternative]:
    """What a queue may refuse of which nobody knows what it holds, or what its type can do."""
    queue = _named(broker, method) if broker.has_open else None
    if queue is None or not queue.open_by:
        return
    if queue.arguments.get("x-queue-type", "classic") not in _QUEUE_TYPES:
        for code in (406, 540):
            way = partial(_refuse, code=code)
            yield _alternative("what the type of the queue cannot do", "QUEUE-013", method, way)
    elif method.arguments.get("if_empty"):
        yield _alternative("queue that is not empty", "QUEUE-023", method, partial(_refuse, code=406))


def _named(broker: Broker, method: Method) -> Queue | None:
    channel = broker.open_channel(method)
    return None if channel is None else broker.queues.get(method.arguments.get("queue", "") or channel.last_queue or "")


def _refuse(broker: Broker, method: Method, code: int) -> None:
    channel = broker.open_channel(method)
    if channel is not None:
        fail(broker, channel, method, ProtocolError("QUEUE-013", code, "refused", any_text=True, any_code=True))


#: By the name of the method.
ALTERNATIVES_OF_WORDS: Mapping[str, Callable[[Broker, Method], Iterator[Alternative]]] = {
    "exchange.declare": _of_exchange,
    "exchange.bind": _of_binding,
    "exchange.unbind": _of_binding,
    "queue.declare": _of_queue,
    "queue.bind": _of_binding,
    "queue.unbind": _of_binding,
    "queue.purge": _of_open_queue,
    "queue.delete": _of_open_queue,
    "basic.consume": _of_consumer,
    "basic.get": _of_open_queue,
    "basic.publish": _of_publish,
    "tx.commit": _of_commit,
}
