"""What dialects do at tx.commit with a message for a queue that was there when it was published (TX-002)."""

from __future__ import annotations

from enum import Enum


class DeletedBeforeCommit(Enum):
    """The text leaves it open: queues are destroyed asynchronously, which is no part of a transaction (class tx)."""

    #: names are kept, and looked up again: the queue of that name gets the message, if there is one
    #: (v3.10.9 rabbit_channel:deliver_to_queues)
    LOOKED_UP = "looked up again"
    #: queues are kept: a classic one that is gone refuses (TX-008), a quorum queue is known by its name only, and a
    #: stream that is gone breaks the connection (v4.0.5 rabbit_channel:deliver_to_queues, rabbit_stream_queue:init)
    KEPT = "kept"
    #: whatever there is no queue of that name for breaks the connection; else a classic queue that is gone refuses
    #: (v4.3.5 rabbit_queue_type:to_queue, rabbit_classic_queue:handle_event of a queue that is down)
    MISSED = "missed"
    #: queues are kept, and one that is gone takes nothing; commit-ok comes all the same (Broker-J, no RabbitMQ)
    DROPPED = "dropped"
