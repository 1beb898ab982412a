"""Chapter tx (0-9-1 section 1.9; area TX): publishes and settlements that take effect together, or not at all.

Requirements:

* CONFIRM-015: tx and confirm exclude each other. tx.select on a confirm channel and confirm.select on a tx channel are
  406. [RabbitMQ guide: consumer acknowledgements and publisher confirms]
* TX-001: select / commit / rollback basics. tx.select is idempotent, what is pending included; commit or rollback
  without select is 406. A new transaction begins after each commit and rollback. [rabbit_channel.erl; AMQP 0-9-1 class
  tx]
* TX-002: Publishes invisible until commit. Messages published in a tx are routed at publish time but enqueued at
  commit, in their order and before anything is settled; rolled back ones vanish. What becomes of a message whose queue
  was deleted meanwhile is not promised. In rabbitmq-3: as stated; queues are looked up again by name: a deleted queue's
  message is dropped (returned if mandatory), or goes to the queue that has its name now. In rabbitmq-4.0: as stated; a
  deleted classic queue refuses (TX-008), a deleted quorum queue's message is dropped or goes to the quorum queue of its
  name, a deleted stream closes the connection with 506. In rabbitmq-4.3: as stated; without a queue of that name the
  connection is closed with 506 (not always if the channel has dealt with the quorum queue or stream before); with one,
  a deleted classic queue refuses (TX-008), others' messages go to the new one. [rabbit_channel.erl:tx.commit; AMQP
  0-9-1 class tx]
* TX-004: commit-ok waits for all confirms. tx.commit-ok is sent only when every published message has been confirmed by
  all queues; no basic.ack is sent to the client. [rabbit_channel.erl:maybe_complete_tx]
* TX-005: Acks in tx take effect at commit. ack/nack/reject only reserve the tag: no new delivery for a full prefetch
  window until the commit, nothing comes back and nothing is dead-lettered before. What follows each other with one
  outcome is carried out as one. basic.recover does not wait, and leaves what is reserved. [rabbit_channel.erl:basic.ack
  tx; AMQP 0-9-1 class tx]
* TX-007: Rollback restores acks. After rollback the tags acked in the tx are unacked again (not redelivered) and may be
  acked afresh. [rabbit_channel.erl:tx.rollback; AMQP 0-9-1 class tx]
* TX-008: Rejected publish fails the commit. A tx publish rejected by a queue (reject-publish) makes commit close the
  channel with 406 partial tx completion; the rest of the transaction is carried out. [rabbit_channel.erl:complete_tx
  failed]
* TX-010: No method other than close during commit. While a commit waits for its queues any other method is hard 504;
  channel.close is answered, and commit-ok may not come. A commit that waits for nothing is over at once.
  [rabbit_channel.erl]
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.effects import Committed
from amqpspec.model.broker.length_limits import hear
from amqpspec.model.broker.queues import Message, Queue
from amqpspec.model.broker.transaction import Transaction
from amqpspec.model.broker.uncommitted import drop, unchanged
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.basic.settlement import carry_out
from amqpspec.model.rules.common.steps import Step
from amqpspec.model.rules.tx.commit import publish_kept

#: What the transaction publishes has come to the queues, and nothing of it has been settled yet.
published: Step[Broker, Transaction] = Step()


def select(broker: Broker, channel: Channel, method: Method) -> None:
    """TX-001: there is a transaction from now on; repeating it changes nothing, what is in it included."""
    if channel.confirming:
        raise ProtocolError("CONFIRM-015", 406, "cannot switch from confirm to tx mode")
    if channel.transaction is None:
        channel.transaction = Transaction()
    broker.owe(channel, "tx.select-ok", {}, "TX-001")


def commit(broker: Broker, channel: Channel, method: Method) -> None:
    """First the publishes in their order, then the settlements in theirs; the next transaction begins (TX-001).

    TX-004: commit-ok waits until what was published has arrived. TX-008: if a queue has refused a message, the error
    comes after all that.
    """
    transaction = _of(channel)
    broker.blame(channel, "TX-001")
    hear(channel)
    copies: list[tuple[Queue, Message]] = []
    is_refused = False
    for publication in transaction.publications:
        made, refused = publish_kept(broker, channel, publication)
        copies += [(queue, message) for queue, message in made if not (queue.reply_address or message.refused_by)]
        is_refused |= refused
    published(broker, transaction)
    channel.transaction = Transaction()  # a new one: no tags are reserved, those of the old one are settled now
    for ruling, tags in transaction.batches():
        broker.fired("TX-005")
        carry_out(broker, channel, tags, ruling, "TX-005")
    if is_refused:
        raise ProtocolError("TX-008", 406, "partial tx completion")
    if copies and broker.dialect.extensions:
        channel.transaction.arriving = tuple(copies)
        broker.owe(channel, "tx.commit-ok", {}, "TX-004", "TX-001", effect=Committed(channel.key))
    else:
        broker.owe(channel, "tx.commit-ok", {}, "TX-001")


def rollback(broker: Broker, channel: Channel, method: Method) -> None:
    """TX-002, TX-007: the publishes are gone; what was settled is the client's to settle again, and stays with it."""
    transaction = _of(channel)
    broker.blame(channel, "TX-001")
    drop(broker, channel, "TX-007" if transaction.rulings else "TX-002")
    for held in channel.unacknowledged.values():
        unchanged(broker, channel, held.queue, "TX-007")
    restored = transaction.reserved | transaction.restored
    channel.transaction = Transaction(restored=restored.intersection(channel.unacknowledged))
    broker.owe(channel, "tx.rollback-ok", {}, "TX-001")


def _of(channel: Channel) -> Transaction:
    if channel.transaction is None:
        raise ProtocolError("TX-001", 406, "channel is not transactional")
    return channel.transaction


def check_not_committing(broker: Broker, channel: Channel, method: Method) -> None:
    """TX-010: while commit-ok waits nothing but channel.close is processed (rabbit_channel:handle_method)."""
    transaction = channel.transaction
    if transaction is None or not (transaction.arriving or transaction.is_failing):
        return
    if method.name == "channel.close":
        broker.fired("TX-010")
    else:
        raise ProtocolError("TX-010", 504, "unexpected command while processing 'tx.commit'")
