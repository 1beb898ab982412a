"""Faults of channels, queues, routing and confirms (areas CHAN, QUEUE, PUBLISH and CONFIRM)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from amqpspec.model.broker.channels import ChannelState
from amqpspec.model.broker.owed import Expected
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.connection.closing import fail
from amqpspec.targets.embedded.hooks import Chapter, Proceed, altered
from amqpspec.targets.embedded.served_broker import ServedBroker

MESSAGES = Chapter()
on_input, on_output = MESSAGES.on_input, MESSAGES.on_output

# ---------------------------------------------------------------------------------------------- channels


@on_output("wrong-reply-text", "CHAN-008", "The text of channel.close is another one.", "channel.close")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield altered(method, reply_text="an error occurred")


@on_output("wrong-method-id-in-close", "CHAN-007", "channel.close does not name the culprit method.", "channel.close")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield altered(method, method_id=0)


@on_input(
    "message-lost-on-channel-close",
    "CHAN-016",
    "channel.close loses what the channel's consumers hold.",
    "channel.close",
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    channel = broker.channel(method.connection, method.channel)
    for tag in [tag for tag, entry in channel.unsettled.items() if entry.consumer is not None]:
        broker.release(channel, tag, "CHAN-016")
    proceed(method)


# ------------------------------------------------------------------------------------------------ queues


@on_output("declare-count-wrong", "QUEUE-001", "queue.declare-ok counts a consumer too many.", "queue.declare-ok")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield altered(method, consumer_count=method.arguments["consumer_count"] + 1)


@on_output("counts-untold", "QUEUE-001", "queue.declare-ok says 0 messages, 0 consumers.", "queue.declare-ok")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield altered(method, message_count=0, consumer_count=0)


@on_input("get-unknown", "GET-001", "basic.get is not implemented.", "basic.get")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    channel = broker.channel(method.connection, method.channel)
    if channel.state is ChannelState.OPEN:
        fail(broker, channel, method, ProtocolError("GET-001", 540, "basic.get"))


@on_output("delete-unanswered", "QUEUE-024", "queue.delete is never answered.", "queue.delete-ok")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    return ()


@on_input("queue-inequivalence-accepted", "QUEUE-007", "A queue is redeclared with other properties.", "queue.declare")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    queue = broker.queues.get(method.arguments.get("queue", ""))
    if queue is None or queue.owner is not None:
        proceed(method)
    else:
        proceed(altered(method, durable=queue.durable, auto_delete=queue.auto_delete, arguments=queue.arguments))


@on_input("purge-removes-unacked", "QUEUE-024", "queue.purge removes outstanding messages as well.", "queue.purge")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(method)
    queue = broker.queues.get(method.arguments.get("queue", ""))
    asked = broker.channel(method.connection, method.channel)
    removed = 0
    for channel in broker.channels.values():
        for tag, entry in list(channel.unsettled.items()):
            if entry.queue is queue:
                broker.release(channel, tag, "QUEUE-024")
                removed += 1
    for owed in asked.owed:
        if isinstance(owed, Expected) and owed.method == "queue.purge-ok":
            owed.arguments["message_count"] += removed


# ---------------------------------------------------------------------------------- routing and confirms


@on_input("routing-ignores-key", "PUBLISH-003", "A direct exchange routes to all its queues.", "basic.publish")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    exchange = broker.exchanges.get(method.arguments.get("exchange", ""))
    if exchange is None or not exchange.name or exchange.type != "direct":
        proceed(method)
        return
    broker.exchanges[exchange.name] = replace(exchange, type="fanout")
    proceed(method)
    broker.exchanges[exchange.name] = exchange


@on_input("fanout-misses-one", "PUBLISH-004", "A fanout exchange leaves its last binding out.", "basic.publish")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    exchange = broker.exchanges.get(method.arguments.get("exchange", ""))
    if exchange is None or exchange.type != "fanout":
        proceed(method)
        return
    broker.exchanges[exchange.name] = replace(exchange, bindings=exchange.bindings[:-1])
    proceed(method)
    broker.exchanges[exchange.name] = exchange


@on_output("confirm-missing", "CONFIRM-003", "A publish is not confirmed.", "basic.ack")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    return ()


@on_output("confirm-twice", "CONFIRM-003", "A publish is confirmed two times.", "basic.ack")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield method
    yield method


@on_output("return-missing", "PUBLISH-007", "An unroutable mandatory message is not returned.", "basic.return")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    return ()
