"""Chapter basic, recover and recover-async (0-9-1 sections 1.8.3.15 and 1.8.3.16; area RECOVER).

Requirements:

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
from amqpspec.model.broker.state import Channel
from amqpspec.model.broker.transaction import Outcome, Ruling
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Frame
from amqpspec.model.rules.basic.settlement import Settled, requeue
from amqpspec.model.rules.extensions.consumer_timeout import in_two_parts, settle_all_late, settle_behind
from amqpspec.model.rules.extensions.stream_settlement import check_recovered


def recover_async(broker: Broker, channel: Channel, frame: Frame, requirement: str = "RECOVER-002") -> None:
    """RECOVER-002: everything that is outstanding goes back; old tags are unknown from now on (RECOVER-004)."""
    if not frame.arguments.get("requeue") and not broker.dialect.recover_to_original_recipient:
        raise ProtocolError("RECOVER-003", 540, "requeue=false")
    broker.blame(channel, requirement)
    settled: Settled = []
    tags = channel.outstanding_tags  # at once, in a transaction as well
    late, behind = in_two_parts(channel, tags)
    settle_all_late(broker, channel, late, Ruling(Outcome.REQUEUED))
    for tag in tags:
        if tag not in channel.unacknowledged:
            channel.recovered.append(tag)
            continue
        settled.append((tag, broker.release(channel, tag, requirement)))
        channel.recovered.append(tag)
    check_recovered(broker, channel, settled)
    broker.make_room(channel, settled, requirement)
    if settled:
        broker.fired(requirement)
    requeue(broker, channel, settled, requirement, failed=not broker.dialect.quorum_nack_has_not_failed)
    settle_behind(broker, channel, behind, Ruling(Outcome.REQUEUED))


def recover(broker: Broker, channel: Channel, frame: Frame) -> None:
    """RECOVER-001: the same, and answered."""
    recover_async(broker, channel, frame, "RECOVER-001")
    broker.owe(channel, "basic.recover-ok", {}, "RECOVER-001")
