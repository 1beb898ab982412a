"""RabbitMQ's extension confirm.select (area CONFIRM; guide: publisher confirms).

Confirms themselves are owed in `model.rules.basic.publish`; `model.outputs.permitted` says which may be sent, and
`model.outputs.confirms` judges those that came.

Requirements:

* CAP-002: basic.nack needs no client capability. A client that announced no capabilities can still use basic.nack and
  confirm.select. [rabbit_channel.erl]
* CHAN-011: Method only valid server-to-client. A client sending a *-ok or other unhandled method gets hard 503. In
  amqp-0-9-1: an error of the connection, its code is not named. [rabbit_channel.erl:handle_method catch-all]
* CONFIRM-001: confirm.select. Answered by select-ok unless nowait; repeating it is allowed and does not reset the
  counter. [RabbitMQ guide: consumer acknowledgements and publisher confirms; rabbit_channel.erl:confirm.select]
* CONFIRM-015: tx and confirm exclude each other. tx.select on a confirm channel and confirm.select on a tx channel are
  406. [RabbitMQ guide: consumer acknowledgements and publisher confirms]
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.common.answer import answer


def select(broker: Broker, channel: Channel, method: Method) -> None:
    """CONFIRM-001: repeating it changes nothing. CAP-002: the client need not have said that it understands this."""
    if not broker.dialect.has("publisher_confirms"):
        raise ProtocolError("CHAN-011", 503, "unimplemented method")
    if channel.transaction is not None:
        raise ProtocolError("CONFIRM-015", 406, "cannot switch from tx to confirm mode")
    if channel.confirming:
        channel.selected_again = channel.published
    else:
        channel.selected_untold = bool(method.arguments.get("nowait"))
    channel.confirming = True
    untold = not broker.connections[channel.connection].capabilities.get("publisher_confirms")
    answer(broker, channel, method, "confirm.select-ok", {}, *(("CAP-002",) if untold else ()), "CONFIRM-001")
