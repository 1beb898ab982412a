"""RabbitMQ's extension basic.nack: reject for many (area ACK; guide: consumer acknowledgements).

Requirements:

* ACK-013: reject(tag,requeue) = nack without multiple; reject(false) drops or dead-letters. [RabbitMQ guide: consumer
  acknowledgements and publisher confirms; AMQP 0-9-1 basic.reject]
* ACK-014: nack(tag,true,requeue) applies to all outstanding <= tag; (0,true) to all. [RabbitMQ guide: consumer
  acknowledgements and publisher confirms]
* ACK-004: nack(0,true) with nothing outstanding is a no-op, as ack(0,true) is. [rabbit_channel.erl]
* CHAN-011: A client sending a *-ok or other unhandled method gets hard 503. [rabbit_channel.erl:handle_method
  catch-all]
* CAP-002: A client that announced no capabilities can still use basic.nack and confirm.select. [rabbit_channel.erl]
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.state import Channel
from amqpspec.model.broker.transaction import Outcome, Ruling
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Frame
from amqpspec.model.rules.basic.settlement import Wording, settle

NACK = Wording(single="ACK-013", several="ACK-014", everything="ACK-014", nothing="ACK-004")


def nack(broker: Broker, channel: Channel, frame: Frame) -> None:
    """ACK-014, and for one delivery the same as reject (ACK-013). Whether it counts as failed is QUORUM-002.

    CAP-002: the client need not have said that it understands this.
    """
    if not broker.dialect.extensions:
        raise ProtocolError("CHAN-011", 503, "unimplemented method")
    failed = not broker.dialect.quorum_nack_keeps_count
    outcome = Outcome.REQUEUED if frame.arguments.get("requeue") else Outcome.DISCARDED
    settle(broker, channel, frame, NACK, Ruling(outcome, failed))
    if not broker.connections[channel.connection].capabilities.get("basic.nack"):
        broker.fired("CAP-002")
