"""Publishing when the transaction is committed, to queues that may be others by then (TX-002, TX-003).

Requirements:

* TX-002: Publishes invisible until commit. Messages published in a tx are routed at publish time but enqueued at
  commit, in their order and before anything is settled; rolled back ones vanish. What becomes of a message whose queue
  was deleted meanwhile is not promised. In rabbitmq-3: as stated; queues are looked up again by name: a deleted queue's
  message is dropped (returned if mandatory), or goes to the queue that has its name now. In rabbitmq-4.0: as stated; a
  deleted classic queue refuses (TX-008), a deleted quorum queue's message is dropped or goes to the quorum queue of its
  name, a deleted stream closes the connection with 506. In rabbitmq-4.3: as stated; without a queue of that name the
  connection is closed with 506 (not always if the channel has dealt with the quorum queue or stream before); with one,
  a deleted classic queue refuses (TX-008), others' messages go to the new one. [rabbit_channel.erl:tx.commit; AMQP
  0-9-1 class tx]
* TX-003: Mandatory returns at commit. basic.return for unroutable messages is sent during commit, before commit-ok;
  publish to a missing exchange closes the channel immediately. [rabbit_channel.erl]
* TX-008: Rejected publish fails the commit. A tx publish rejected by a queue (reject-publish) makes commit close the
  channel with 406 partial tx completion; the rest of the transaction is carried out. [rabbit_channel.erl:complete_tx
  failed]
"""

from __future__ import annotations

from dataclasses import replace

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.queues import Message, Queue
from amqpspec.model.broker.routing import OUT_OF_THE_ORDINARY
from amqpspec.model.broker.transaction import Publication
from amqpspec.model.promises.deleted_before_commit import DeletedBeforeCommit
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.rules.basic.publish import deliver
from amqpspec.model.rules.common.lookup import queue_text

Copies = tuple[tuple[Queue, Message], ...]

_REFUSING = (DeletedBeforeCommit.KEPT, DeletedBeforeCommit.MISSED)


def publish_kept(broker: Broker, channel: Channel, publication: Publication) -> tuple[Copies, bool]:
    """Publish what the transaction kept back. Gives the copies of it, and whether a queue refuses its own (TX-008).

    Raises `ProtocolError` where the dialect has it that a queue which is gone breaks the connection.
    """
    routes = publication.routes
    queues = reached_now(broker, channel, publication)
    refused = any(queue.deleted and _refuses(broker, queue) for queue in routes.queues)
    # queues that are kept count as routed to, even if they are gone
    mandatory = publication.mandatory and (_looks_up(broker) or not routes.queues)
    copies = deliver(broker, channel, replace(publication, routes=replace(routes, queues=queues), mandatory=mandatory))
    return copies, refused or any(message.refused_by for _, message in copies)


def reached_now(broker: Broker, channel: Channel, publication: Publication) -> dict[Queue, str]:
    """The queues that get what the transaction kept back, with the requirements of their doing so.

    Raises `ProtocolError` as `publish_kept`.
    """
    queues: dict[Queue, str] = {}
    for queue, reason in publication.routes.queues.items():
        now = _target_now(broker, channel, queue)
        if now is not None:
            queues[now] = reason if reason in OUT_OF_THE_ORDINARY else "TX-002"
    pattern = publication.pattern
    late = broker.queues.get(pattern.routing_key) if _looks_up(broker) and not pattern.exchange else None
    if late is not None and not late.reply_address:
        queues.setdefault(late, "TX-002")  # the default exchange routes to names, whether there are such queues or not
    return queues


def _looks_up(broker: Broker) -> bool:
    return broker.dialect.deleted_before_commit is DeletedBeforeCommit.LOOKED_UP


def _refuses(broker: Broker, queue: Queue) -> bool:
    """Does a queue that is gone count as one that refuses?"""
    return queue.type is QueueType.CLASSIC and broker.dialect.deleted_before_commit in _REFUSING


def breaks_connection(broker: Broker, queue: Queue) -> bool:
    """Does what was kept for this queue, which is gone, break the connection (506)?"""
    if not queue.deleted:
        return False
    ways = broker.dialect.deleted_before_commit
    if ways is DeletedBeforeCommit.MISSED:
        return queue.name not in broker.queues
    return ways is DeletedBeforeCommit.KEPT and queue.type is QueueType.STREAM


def _target_now(broker: Broker, channel: Channel, queue: Queue) -> Queue | None:
    """The queue that gets what was routed to that one; None: nobody does."""
    if not queue.deleted:
        return queue
    next_queue = broker.queues.get(queue.name)
    if broker.dialect.deleted_before_commit is DeletedBeforeCommit.LOOKED_UP:
        return next_queue
    if breaks_connection(broker, queue) and not (channel.transaction and channel.transaction.overlooks_deletion):
        text = f"Stream not found for {queue_text(broker, channel, queue.name)}"
        if broker.dialect.deleted_before_commit is DeletedBeforeCommit.MISSED:
            text = f"failed to deliver message: {{not_found,{queue.name}}}"
        # how Erlang breaks its lines is nobody's contract
        raise ProtocolError("TX-002", 506, text, any_text=not text.startswith("Stream"))
    is_same = next_queue is not None and next_queue.type is queue.type is not QueueType.CLASSIC
    return next_queue if is_same else None
