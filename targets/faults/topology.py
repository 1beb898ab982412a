"""Faults of exchanges, queues, bindings and routing (areas EXCHANGE, QUEUE, BIND and PUBLISH)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from amqpspec.model.broker.channels import ChannelState
from amqpspec.model.broker.queues import Message
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import EMPTY_CONTENT, Content, Method, Table
from amqpspec.model.rules.connection.closing import fail
from amqpspec.targets.embedded.hooks import Chapter, Proceed, altered
from amqpspec.targets.embedded.served_broker import ServedBroker

TOPOLOGY = Chapter()
on_input, on_output = TOPOLOGY.on_input, TOPOLOGY.on_output

# --------------------------------------------------------------------------------------------- exchanges


@on_input(
    "exchange-inequivalence-accepted",
    "EXCHANGE-006",
    "An exchange is redeclared with another type.",
    "exchange.declare",
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    known = method.arguments.get("exchange", "") in broker.exchanges
    proceed(altered(method, passive=True) if known and method.arguments.get("exchange") else method)


@on_output(
    "missing-exchange-breaks-connection", "EXCHANGE-005", "A missing exchange closes the connection.", "channel.close"
)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    if method.arguments["reply_code"] == 404 and method.arguments["class_id"] == 40:
        yield replace(method, channel=0, name="connection.close")
    else:
        yield method


@on_input(
    "reserved-exchange-name-free", "EXCHANGE-002", "Anybody may make an exchange named amq.*.", "exchange.declare"
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    name = method.arguments.get("exchange", "")
    if not name.startswith("amq.") or name in broker.exchanges or method.arguments.get("passive"):
        proceed(method)
        return
    proceed(altered(method, exchange=f"as-{name}"))
    broker.exchanges[name] = replace(broker.exchanges.pop(f"as-{name}"), name=name)


@on_input(
    "predeclared-missing", "EXCHANGE-002", "There is no amq.direct, and none of the others that are to be there.",
    "exchange.declare",
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    channel = broker.channel(method.connection, method.channel)
    name = method.arguments.get("exchange", "")
    if name.startswith("amq.") and channel.state is ChannelState.OPEN:
        fail(broker, channel, method, ProtocolError("EXCHANGE-005", 404, f"no exchange '{name}' in vhost '/'"))
    else:
        proceed(method)


@on_input(
    "if-unused-ignored", "EXCHANGE-007", "An exchange in use is deleted although if-unused is set.", "exchange.delete"
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(altered(method, if_unused=False))


@on_input(
    "exchange-auto-delete-forgotten",
    "EXCHANGE-008",
    "An auto-delete exchange stays after its last binding.",
    "exchange.declare",
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    # as if it had been said on every redeclaring too, so that nothing else is wrong
    proceed(altered(method, auto_delete=False))


@on_input("internal-exchange-open", "EXCHANGE-009", "Clients may publish to an internal exchange.", "basic.publish")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    exchange = broker.exchanges.get(method.arguments.get("exchange", ""))
    if exchange is not None:
        broker.exchanges[exchange.name] = replace(exchange, internal=False)
    proceed(method)
    if exchange is not None:
        broker.exchanges[exchange.name] = exchange


# ------------------------------------------------------------------------------------------------ queues

_QUEUE_METHODS = ("queue.declare", "queue.purge", "queue.delete", "queue.bind", "basic.get", "basic.consume")


@on_input(
    "exclusive-queue-open-to-others", "QUEUE-019", "Other connections may use an exclusive queue.", *_QUEUE_METHODS
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    queue = broker.queues.get(method.arguments.get("queue", ""))
    if queue is None or queue.owner is None or (method.name == "queue.declare" and not method.arguments.get("passive")):
        proceed(method)
        return
    owner, queue.owner = queue.owner, method.connection
    proceed(method)
    queue.owner = owner


@on_output(
    "locked-queue-not-found",
    "QUEUE-019",
    "Another connection's exclusive queue is said to be missing.",
    "channel.close",
)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield altered(method, reply_code=404) if method.arguments["reply_code"] == 405 else method


@on_input("queue-auto-delete-forgotten", "QUEUE-021", "An auto-delete queue stays without consumers.", "basic.cancel")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    consumer = broker.channel(method.connection, method.channel).consumers.get(method.arguments.get("consumer_tag", ""))
    if consumer is not None:
        consumer.queue.auto_delete = False
    proceed(method)
    if consumer is not None:
        consumer.queue.auto_delete = True


@on_input("queue-argument-not-compared", "QUEUE-010", "Arguments are not compared on redeclaring.", "queue.declare")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    queue = broker.queues.get(method.arguments.get("queue", ""))
    proceed(method if queue is None else altered(method, arguments=queue.arguments))


@on_input(
    "last-queue-of-connection",
    "CHAN-017",
    "No queue name means the one last declared by anybody.",
    "queue.declare",
    "basic.get",
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    if method.name == "queue.declare":
        proceed(method)
        broker.memory["last"] = broker.channel(method.connection, method.channel).last_queue
    else:
        named = method.arguments.get("queue") or broker.memory.get("last") or ""
        proceed(altered(method, queue=named))


@on_input("no-wait-answered", "CHAN-018", "queue.declare is answered although no-wait is set.", "queue.declare")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(altered(method, nowait=False))


# ---------------------------------------------------------------------------------------------- bindings


@on_input("unbind-keeps-binding", "BIND-006", "queue.unbind is answered, and the binding stays.", "queue.unbind")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(altered(method, routing_key=method.arguments.get("routing_key", "") + "?"))


@on_input(
    "exchange-bindings-not-followed", "BIND-004", "exchange.bind is answered, and has no effect.", "exchange.bind"
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(method)
    source = broker.exchanges.get(method.arguments.get("source", ""))
    destination = broker.exchanges.get(method.arguments.get("destination", ""))
    if source is not None and destination is not None:
        kept = tuple(binding for binding in source.bindings if not binding.leads_to(destination))
        broker.exchanges[source.name] = replace(source, bindings=kept)


@on_input("routed-once-for-each-binding", "BIND-003", "Two bindings that match bring two copies.", "basic.publish")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    exchange = broker.exchanges.get(method.arguments.get("exchange", ""))
    proceed(method)
    if exchange is None or exchange.type == "headers":
        return
    key = method.arguments.get("routing_key", "")
    for queue in broker.queues.values():
        ways = [
            b
            for b in exchange.bindings
            if b.leads_to(queue) and (b.routing_key == key or exchange.type == "fanout")
        ]
        for _ in ways[1:]:
            again = Message(method.content or EMPTY_CONTENT, exchange.name, key, 0)
            broker.enqueue(queue, again)


def _with_pattern(method: Method, word: str, other: str) -> Method:
    """The frame with the words of its routing key exchanged."""
    words = method.arguments.get("routing_key", "").split(".")
    return altered(method, routing_key=".".join(other if each == word else each for each in words))


def _to_topic_exchange(broker: ServedBroker, method: Method) -> bool:
    exchange = broker.exchanges.get(method.arguments.get("exchange", ""))
    return exchange is not None and exchange.type == "topic"


@on_input("topic-star-is-hash", "PUBLISH-005", "In a topic binding * stands for any number of words.", "queue.bind")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(_with_pattern(method, "*", "#") if _to_topic_exchange(broker, method) else method)


@on_input("topic-hash-needs-a-word", "PUBLISH-005", "In a topic binding # stands for at least one word.", "queue.bind")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(_with_pattern(method, "#", "*.#") if _to_topic_exchange(broker, method) else method)


def _with_table(method: Method, **changed: object) -> Method:
    table: Table = {**(method.arguments.get("arguments") or {}), **changed}
    return altered(method, arguments=table)


@on_input("headers-any-means-all", "PUBLISH-006", "x-match=any is taken for all.", "queue.bind")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    any_of = (method.arguments.get("arguments") or {}).get("x-match") == "any"
    proceed(_with_table(method, **{"x-match": "all"}) if any_of else method)


@on_input("headers-values-not-compared", "PUBLISH-006", "A header of any value matches a binding.", "queue.bind")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    table = method.arguments.get("arguments") or {}
    proceed(_with_table(method, **{name: None for name in table if not name.startswith("x-")}))


# ----------------------------------------------------------------------------------------------- routing


@on_input(
    "alternate-exchange-ignored",
    "PUBLISH-010",
    "What an exchange cannot route is lost in spite of its alternate.",
    "basic.publish",
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    exchange = broker.exchanges.get(method.arguments.get("exchange", ""))
    if exchange is not None:
        others = {name: value for name, value in exchange.arguments.items() if name != "alternate-exchange"}
        broker.exchanges[exchange.name] = replace(exchange, arguments=others)
    proceed(method)
    if exchange is not None:
        broker.exchanges[exchange.name] = exchange


def _header_lists(method: Method, *names: str) -> Table:
    headers = (method.content or EMPTY_CONTENT).properties.get("headers") or {}
    return {name: value for name, value in headers.items() if name in names and isinstance(value, list)}


@on_input("further-keys-ignored", "PUBLISH-011", "The keys in CC and BCC are not routed by.", "basic.publish")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    content = method.content or EMPTY_CONTENT
    if not _header_lists(method, "CC", "BCC"):
        proceed(method)
        return
    headers = {**content.properties["headers"], **{key: [] for key in _header_lists(method, "CC", "BCC")}}
    proceed(replace(method, content=Content({**content.properties, "headers": headers}, content.body)))


@on_output("bcc-shown", "PUBLISH-011", "A delivery shows a BCC header.", "basic.deliver", "basic.get-ok")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    content = method.content or EMPTY_CONTENT
    headers = content.properties.get("headers")
    if headers is None:
        yield method
    else:
        shown = {**content.properties, "headers": {**headers, "BCC": ["somebody"]}}
        yield replace(method, content=Content(shown, content.body))


@on_output(
    "nested-header-lost",
    "PUBLISH-016",
    "Tables and arrays among the headers are lost.",
    "basic.deliver",
    "basic.get-ok",
)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    content = method.content or EMPTY_CONTENT
    headers = content.properties.get("headers") or {}
    flat = {name: value for name, value in headers.items() if not isinstance(value, dict | list)}
    properties = {**content.properties, "headers": flat} if headers else content.properties
    yield replace(method, content=Content(properties, content.body))


@on_input("user-id-not-checked", "PUBLISH-012", "Anybody may publish under any user-id.", "basic.publish")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(_without_property(method, "user_id"))


@on_input("expiration-not-checked", "PUBLISH-014", "An expiration that is no number is accepted.", "basic.publish")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(_without_property(method, "expiration"))


def _without_property(method: Method, name: str) -> Method:
    content = method.content or EMPTY_CONTENT
    kept = {each: value for each, value in content.properties.items() if each != name}
    return replace(method, content=Content(kept, content.body))


@on_output(
    "return-code-wrong", "PUBLISH-007", "basic.return says 313 for a message that no queue takes.", "basic.return"
)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield altered(method, reply_code=313)
