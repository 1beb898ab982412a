"""The rules: what a broker does with each method, one file a chapter.

A rule is a function that takes the broker, the channel and the frame, in the order of checks that RabbitMQ makes.
It changes the state through the steps of `model.broker.broker.Broker` and raises `ProtocolError` where the broker owes
a close. The 0-9-1 chapters and RabbitMQ's extensions are kept apart.

Requirements:

* CHAN-011: Method only valid server-to-client. A client sending a *-ok or other unhandled method gets hard 503.
  [rabbit_channel.erl:handle_method catch-all]
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Rule
from amqpspec.model.rules.basic import acknowledge, cancel, consume, get, publish, qos, recover
from amqpspec.model.rules.channel import channel
from amqpspec.model.rules.exchange import exchange
from amqpspec.model.rules.extensions import confirm, exchange_binding, negative_acknowledge
from amqpspec.model.rules.queue import binding, queue
from amqpspec.model.rules.tx import tx

#: What happens to a method that a client sends on a channel other than 0. Methods that are not here are answered
#: with 503 (CHAN-011).
RULES: dict[str, Rule] = {
    # 0-9-1, in the order of its chapters
    "channel.open": channel.open_channel,
    "channel.close": channel.close,
    "channel.close-ok": channel.close_ok,
    "channel.flow": channel.flow,
    "exchange.declare": exchange.declare,
    "exchange.delete": exchange.delete,
    "queue.declare": queue.declare,
    "queue.bind": binding.bind,
    "queue.unbind": binding.unbind,
    "queue.purge": queue.purge,
    "queue.delete": queue.delete,
    "basic.qos": qos.qos,
    "basic.consume": consume.consume,
    "basic.cancel": cancel.cancel,
    "basic.publish": publish.publish,
    "basic.get": get.get,
    "basic.ack": acknowledge.ack,
    "basic.reject": acknowledge.reject,
    "basic.recover-async": recover.recover_async,
    "basic.recover": recover.recover,
    "tx.select": tx.select,
    "tx.commit": tx.commit,
    "tx.rollback": tx.rollback,
    # RabbitMQ's extensions
    "basic.cancel-ok": cancel.client_cancel_ok,
    "basic.nack": negative_acknowledge.nack,
    "confirm.select": confirm.select,
    "exchange.bind": exchange_binding.bind,
    "exchange.unbind": exchange_binding.unbind,
}
