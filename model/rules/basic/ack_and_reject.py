"""Chapter basic, ack and reject (0-9-1 sections 1.8.3.13 and 1.8.3.14; area ACK).

Requirements:

* ACK-001: Single ack. ack(tag,false) removes exactly that delivery. [RabbitMQ guide: consumer acknowledgements and
  publisher confirms; AMQP 0-9-1 basic.ack]
* ACK-002: Multiple ack. ack(tag,true) acks all outstanding tags <= tag on the channel, over all consumers, queues and
  get-oks. [RabbitMQ guide: consumer acknowledgements and publisher confirms; AMQP 0-9-1 basic.ack]
* ACK-003: multiple with tag 0. ack(0,true) acks everything outstanding; with nothing outstanding it is a no-op.
  [RabbitMQ guide: consumer acknowledgements and publisher confirms; rabbit_channel.erl:collect_acks; AMQP 0-9-1
  basic.ack]
* ACK-013: reject. reject(tag,requeue) = nack without multiple, but for what counts as a failed delivery (QUORUM-002);
  reject(false) drops or dead-letters. In amqp-0-9-1: as stated for reject; basic.nack is not part of the text.
  [RabbitMQ guide: consumer acknowledgements and publisher confirms; AMQP 0-9-1 basic.reject]
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.ruling import Outcome, Ruling
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.basic.settlement import SettlementRequirements, settle

ACK = SettlementRequirements(single="ACK-001", several="ACK-002", everything="ACK-003", nothing="ACK-003")
#: has no `multiple`
REJECT = SettlementRequirements("ACK-013", "ACK-013", "ACK-013", "ACK-013")


def ack(broker: Broker, channel: Channel, method: Method) -> None:
    """ACK-001, ACK-002, ACK-003: no reply; the messages are gone, and their consumers have room for more."""
    settle(broker, channel, method, ACK, Ruling(Outcome.ACKNOWLEDGED))


def reject(broker: Broker, channel: Channel, method: Method) -> None:
    """ACK-013: one delivery, given back or discarded."""
    outcome = Outcome.REQUEUED if method.arguments.get("requeue") else Outcome.DISCARDED
    settle(broker, channel, method, REJECT, Ruling(outcome, failed=True))
