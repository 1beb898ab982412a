"""RabbitMQ's extension basic.nack: reject for many (area ACK; guide: consumer acknowledgements).

Requirements:

* ACK-004: nack(0,true) with nothing outstanding. nack(0,true) with nothing outstanding is a no-op, as ack(0,true) is.
  [rabbit_channel.erl]
* ACK-013: reject. reject(tag,requeue) = nack without multiple, but for what counts as a failed delivery (QUORUM-002);
  reject(false) drops or dead-letters. In amqp-0-9-1: as stated for reject; basic.nack is not part of the text.
  [RabbitMQ guide: consumer acknowledgements and publisher confirms; AMQP 0-9-1 basic.reject]
* ACK-014: nack multiple. nack(tag,true,requeue) applies to all outstanding <= tag; (0,true) to all. [RabbitMQ guide:
  consumer acknowledgements and publisher confirms]
* CAP-002: basic.nack needs no client capability. A client that announced no capabilities can still use basic.nack and
  confirm.select. [rabbit_channel.erl]
* CHAN-011: Method only valid server-to-client. A client sending a *-ok or other unhandled method gets hard 503. In
  amqp-0-9-1: an error of the connection, its code is not named. [rabbit_channel.erl:handle_method catch-all]
* QUORUM-002: What counts as failed (4.3). reject(requeue=true), channel/connection close: x-delivery-count +1 and
  x-acquired-count +1. nack(requeue=true), recover, timeout: only x-acquired-count +1. In rabbitmq-3: every return +1
  x-delivery-count. In rabbitmq-4.0: every return +1 x-delivery-count. [rabbit_channel.erl: nack->requeue,
  reject->settle(true,false)]
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.ruling import Outcome, Ruling
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.basic.settlement import SettlementRequirements, settle

NACK = SettlementRequirements(single="ACK-013", several="ACK-014", everything="ACK-014", nothing="ACK-004")


def nack(broker: Broker, channel: Channel, method: Method) -> None:
    """ACK-014, and for one delivery the same as reject (ACK-013). Whether it counts as a failed delivery, QUORUM-002
    says.

    CAP-002: the client need not have said that it understands this.
    """
    if not broker.dialect.has("basic.nack"):
        raise ProtocolError("CHAN-011", 503, "unimplemented method")
    failed = not broker.dialect.quorum_nack_has_not_failed
    outcome = Outcome.REQUEUED if method.arguments.get("requeue") else Outcome.DISCARDED
    settle(broker, channel, method, NACK, Ruling(outcome, failed))
    if not broker.connections[channel.connection].capabilities.get("basic.nack"):
        broker.fired("CAP-002")
