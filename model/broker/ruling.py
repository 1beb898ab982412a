"""What a client wants to become of deliveries: what basic.ack, reject, nack and recover say, and a transaction repeats.

QUORUM-002 says which of these count as a failed delivery.

Requirements:

* QUORUM-002: What counts as failed (4.3). reject(requeue=true), channel/connection close: x-delivery-count +1 and
  x-acquired-count +1. nack(requeue=true), recover, timeout: only x-acquired-count +1. In rabbitmq-3: every return +1
  x-delivery-count. In rabbitmq-4.0: every return +1 x-delivery-count. [rabbit_channel.erl: nack->requeue,
  reject->settle(true,false)]
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Outcome(Enum):
    """What the client wants to become of deliveries."""

    ACKNOWLEDGED = "done"
    REQUEUED = "requeued"
    DISCARDED = "discarded"


@dataclass(frozen=True, slots=True)
class Ruling:
    """An outcome, and whether it counts as a failed delivery (QUORUM-002)."""

    outcome: Outcome
    failed: bool = False
