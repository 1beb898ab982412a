"""What a transaction keeps back, and what becomes of it when it is dropped (TX-002, TX-005, TX-007, TX-009).

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
* TX-005: Acks in tx take effect at commit. ack/nack/reject only reserve the tag: no new delivery for a full prefetch
  window until the commit, nothing comes back and nothing is dead-lettered before. What follows each other with one
  outcome is carried out as one. basic.recover does not wait, and leaves what is reserved. [rabbit_channel.erl:basic.ack
  tx; AMQP 0-9-1 class tx]
* TX-007: Rollback restores acks. After rollback the tags acked in the tx are unacked again (not redelivered) and may be
  acked afresh. [rabbit_channel.erl:tx.rollback; AMQP 0-9-1 class tx]
* TX-009: Closing an uncommitted tx. The end of the channel, by whomever and however, discards uncommitted publishes and
  acks (messages are requeued). [rabbit_channel.erl]
"""

from __future__ import annotations

from collections.abc import Iterable

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.queues import Queue
from amqpspec.model.broker.ruling import Ruling
from amqpspec.model.broker.transaction import Publication, Transaction

#: Bodies beyond this many octets are not kept to recognize them.
LARGE_BODY = 65_536


def keep(broker: Broker, channel: Channel, transaction: Transaction, publication: Publication) -> None:
    """TX-002: the message is nowhere to be seen until it is committed."""
    transaction.publications.append(publication)
    if publication.routes.queues:
        broker.fired("TX-002")
    broker.blame(channel, "TX-002")
    _nowhere(broker, channel, publication, "TX-002")


def reserve(broker: Broker, channel: Channel, transaction: Transaction, tags: Iterable[int], ruling: Ruling) -> None:
    """TX-005: nothing happens to the deliveries until that is committed; only no second ruling on them is accepted."""
    tags = tuple(tags)
    if not tags:
        return
    if transaction.restored.intersection(tags):
        broker.fired("TX-007")
    broker.blame(channel, "TX-007" if transaction.restored.intersection(tags) else "TX-005")
    transaction.rulings.append((ruling, tags))
    for tag in tags:
        unchanged(broker, channel, channel.queue_of(tag), "TX-005")


def drop(broker: Broker, channel: Channel, requirement: str) -> None:
    """Nothing becomes of what was not committed, by that requirement."""
    transaction = channel.transaction
    if transaction is None:
        return
    if transaction.rulings or any(publication.routes.queues for publication in transaction.publications):
        broker.fired(requirement)
    for publication in transaction.publications:
        _nowhere(broker, channel, publication, requirement)
    for tag in transaction.reserved:
        unchanged(broker, channel, channel.queue_of(tag), requirement)


def _nowhere(broker: Broker, channel: Channel, publication: Publication, requirement: str) -> None:
    """Note what is to blame if the message turns up."""
    for queue in publication.routes.queues:
        unchanged(broker, channel, queue, requirement)
    body = publication.pattern.content.body
    if len(body) <= LARGE_BODY and broker.bookkeeping.counting:
        broker.bookkeeping.note_published(requirement, body)


def unchanged(broker: Broker, channel: Channel, queue: Queue, requirement: str) -> None:
    """Have the queue looked at, of which nothing changed, and blame the requirement if something has."""
    if queue.deleted or queue.reply_address:
        return
    broker.touch(channel, queue, keeps_state=False)
    if not queue.unproven:
        queue.reason = requirement
