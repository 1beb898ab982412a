"""Chapter basic, recover and recover-async (0-9-1 sections 1.8.3.15 and 1.8.3.16; area RECOVER).

All that the channel holds goes back to its queue, also where the consumer that got it is gone, and what basic.get took
(where in its queue: `model.rules.basic.requeue`). Any consumer with room is handed it. The channel goes on counting
delivery tags from where it was (CONSUME-014). No text says whether recover-ok or the deliveries come first. With
requeue=false the text wants the original recipient. RabbitMQ refuses that; where a broker accepts it
(`recover_to_original_recipient`), the model takes it as requeue=true, and does not look at who is served.

Requirements:

* CONSUME-014: Delivery tags are shared per channel. Tags start at 1 per channel and increase by 1 over ALL deliveries
  and get-oks of the channel, ack or no-ack, across consumers and queues. [RabbitMQ guide: consumer acknowledgements and
  publisher confirms; rabbit_channel.erl:record_sent]
* RECOVER-001: basic.recover(true). Requeues ALL unacked messages of the channel (consumers and gets) and answers
  recover-ok; messages come back with redelivered=true and new tags, possibly to other consumers.
  [rabbit_channel.erl:basic.recover_async; AMQP 0-9-1 basic.recover]
* RECOVER-002: basic.recover-async(true). basic.recover-async(true) does the same as basic.recover(true), without a
  reply. [rabbit_channel.erl; AMQP 0-9-1 basic.recover-async]
* RECOVER-003: recover(false). basic.recover with requeue=false is a hard error 540. [rabbit_channel.erl]
* RECOVER-004: Old tags invalid after recover. Tags held before recover are unknown afterwards. [rabbit_channel.erl]
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.ruling import Outcome, Ruling
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.basic.settlement import apply_ruling, take_off


def recover_async(broker: Broker, channel: Channel, method: Method, requirement: str = "RECOVER-002") -> None:
    """RECOVER-002: everything that is outstanding goes back; old tags are unknown from now on (RECOVER-004)."""
    if not method.arguments.get("requeue") and not broker.dialect.recover_to_original_recipient:
        raise ProtocolError("RECOVER-003", 540, "requeue=false")
    broker.blame(channel, requirement)
    tags = channel.outstanding_tags  # at once, in a transaction as well
    settled = take_off(broker, channel, tags, requirement)
    if settled:
        broker.fired(requirement)
    ruling = Ruling(Outcome.REQUEUED, failed=not broker.dialect.quorum_nack_has_not_failed)
    apply_ruling(broker, channel, tags, settled, ruling, requirement)
    channel.note_over(*tags, again="RECOVER-004")


def recover(broker: Broker, channel: Channel, method: Method) -> None:
    """RECOVER-001: the same, and answered."""
    recover_async(broker, channel, method, "RECOVER-001")
    broker.owe(channel, "basic.recover-ok", {}, "RECOVER-001")
