"""Settling deliveries: which ones a tag means, shared by ack, reject and nack (area ACK).

rabbit_channel:collect_acks. Source: RabbitMQ guide, consumer acknowledgements.

Requirements:

* ACK-003: multiple with tag 0. ack(0,true) acks everything outstanding; with nothing outstanding it is a no-op.
  [RabbitMQ guide: consumer acknowledgements and publisher confirms; rabbit_channel.erl:collect_acks; AMQP 0-9-1
  basic.ack]
* ACK-005: tag 0 without multiple. A tag of 0 without multiple is a soft 406, unknown delivery tag 0.
  [rabbit_channel.erl]
* ACK-006: Unknown tag. Any tag not outstanding is 406; method id tells which (ack 60/80, reject 60/90, nack 60/120). In
  amqp-0-9-1: as stated; basic.nack is not part of the text. [RabbitMQ guide: consumer acknowledgements and publisher
  confirms; AMQP 0-9-1 basic.ack]
* ACK-007: Double ack. Acking twice is 406. [RabbitMQ guide: consumer acknowledgements and publisher confirms; AMQP
  0-9-1 basic.ack]
* ACK-008: multiple needs an existing tag. ack(t,true) with t not currently outstanding (already acked, or higher than
  any delivered) is 406 and acks nothing visible (channel is closed and all is requeued).
  [rabbit_channel.erl:collect_acks]
* ACK-009: multiple skips holes. ack(2), ack(3,true) is fine; then ack(1) is 406. [rabbit_channel.erl; AMQP 0-9-1
  basic.ack]
* ACK-010: Tags are channel scoped. Acking on another channel is 406 there; the original delivery stays outstanding.
  [RabbitMQ guide: consumer acknowledgements and publisher confirms; AMQP 0-9-1 basic.ack]
* ACK-011: Ack after cancel. Deliveries of a cancelled consumer stay outstanding and can be acked/nacked until the
  channel closes. [RabbitMQ Java client test NoRequeueOnCancel; rabbit_channel.erl; AMQP 0-9-1 basic.cancel]
* ACK-012: Ack after queue deletion. Acking a delivery whose queue was deleted is accepted silently; the tag is
  consumed. [rabbit_channel.erl]
* ACK-013: reject. reject(tag,requeue) = nack without multiple, but for what counts as a failed delivery (QUORUM-002);
  reject(false) drops or dead-letters. In amqp-0-9-1: as stated for reject; basic.nack is not part of the text.
  [RabbitMQ guide: consumer acknowledgements and publisher confirms; AMQP 0-9-1 basic.reject]
* ACK-014: nack multiple. nack(tag,true,requeue) applies to all outstanding <= tag; (0,true) to all. [RabbitMQ guide:
  consumer acknowledgements and publisher confirms]
* ACK-021: Reject on a stream. nack/reject on a stream is accepted as a credit return: nothing is requeued. In
  rabbitmq-3: broken up to 3.12: hard 540. [rabbit_stream_queue:settle]
* ACK-022: Max delivery tag. Delivery tags are unsigned 64 bit on the wire. The guide names 9223372036854775807 as the
  maximum; the broker accepts and prints any 64-bit value. In amqp-0-9-1: as stated, with any text. [RabbitMQ guide:
  consumer acknowledgements and publisher confirms]
* ACK-023: nack needs no reply and no order guarantee towards other channels. Acks and nacks of two channels to one
  queue are applied in an arbitrary interleaving: what they give back at the same time to a quorum queue comes back in
  either order. [rabbit_channel.erl]
* ACK-024: Settling what came from a deleted queue settles nothing else. An acknowledgement, nack or reject of a
  delivery whose queue was deleted has no effect on any other delivery, also when a new queue of the same name exists
  and the channel holds deliveries from it. In rabbitmq-3: broken: a delivery from the new queue is settled as well. In
  rabbitmq-4.0: broken: a delivery from the new queue is settled as well. In rabbitmq-4.3: broken: a delivery from the
  new queue is settled as well. [AMQP 0-9-1 basic.ack, delivery-tag; rabbit_queue_type:settle]
* CONSUME-013: no_ack consumer. Deliveries of a no_ack consumer count as acked when sent: ack of such a tag is 406; on
  channel close they are lost. [RabbitMQ guide: consumer acknowledgements and publisher confirms; AMQP 0-9-1
  basic.consume]
* DLX-001: Reasons. The reason of a dead-lettering is rejected (nack/reject requeue=false), expired, maxlen, or
  delivery_limit (quorum). [rabbit_dead_letter; RabbitMQ Java client test DeadLetterExchange]
* DLX-009: Order. What is rejected together is dead-lettered in delivery order, and what a limit on length drops at one
  time from the head on. In rabbitmq-3: broken: of what a quorum queue drops at one time the latest comes first. In
  rabbitmq-4.0: broken up to 4.2.0: of what a quorum queue drops at one time the latest comes first. [RabbitMQ release
  notes of 4.2.1 and 4.3.0 (correct order); rabbit_fifo:drop_head]
* RECOVER-001: basic.recover(true). Requeues ALL unacked messages of the channel (consumers and gets) and answers
  recover-ok; messages come back with redelivered=true and new tags, possibly to other consumers.
  [rabbit_channel.erl:basic.recover_async; AMQP 0-9-1 basic.recover]
* RECOVER-002: basic.recover-async(true). basic.recover-async(true) does the same as basic.recover(true), without a
  reply. [rabbit_channel.erl; AMQP 0-9-1 basic.recover-async]
* RECOVER-004: Old tags invalid after recover. Tags held before recover are unknown afterwards. [rabbit_channel.erl]
* TX-005: Acks in tx take effect at commit. ack/nack/reject only reserve the tag: no new delivery for a full prefetch
  window until the commit, nothing comes back and nothing is dead-lettered before. What follows each other with one
  outcome is carried out as one. basic.recover does not wait, and leaves what is reserved. [rabbit_channel.erl:basic.ack
  tx; AMQP 0-9-1 class tx]
* TX-006: A tag acked in an open tx cannot be acked again. Second ack of the same tag before commit is 406 unknown
  delivery tag. [rabbit_channel.erl:collect_acks; AMQP 0-9-1 class tx]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, Unacknowledged
from amqpspec.model.broker.delivery_timeouts import note_oldest
from amqpspec.model.broker.queues import Message, Queue
from amqpspec.model.broker.ruling import Outcome, Ruling
from amqpspec.model.broker.uncommitted import reserve
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import ChannelKey, Method
from amqpspec.model.rules.basic.requeue import by_consumer, give_back, return_order
from amqpspec.model.rules.common.steps import Step

Settled = list[tuple[int, Unacknowledged]]

#: The client settles these tags, by that ruling, and no transaction holds it up. These deliveries are among them; other
#: tags belong to an extension. The messages have not been dropped or given back yet.
settling: Step[Broker, Channel, Sequence[int], Settled, Ruling] = Step()
#: The client gives these deliveries back, or refuses them for good. They are off the channel; what becomes of their
#: messages has not been done yet.
rejecting: Step[Broker, Settled] = Step()
#: The client has refused the message for good, and its queue has dropped it. True: it counts as a failed delivery.
discarded: Step[Broker, Queue, Message, ChannelKey, bool] = Step()
#: These deliveries are settled and not requeued, by that requirement. On streams every settlement is one of these.
let_go: Step[Broker, Sequence[Unacknowledged], str] = Step()
#: The client has settled these tags, by that ruling, and all of it is done.
all_settled: Step[Broker, Channel, Sequence[int], Ruling] = Step()

#: Requirements by which a client gives deliveries back.
RETURNS = frozenset({"ACK-009", "ACK-013", "ACK-014", "RECOVER-001", "RECOVER-002"})


class SettlementRequirements(NamedTuple):
    """The requirements that one method of settling comes under: for one delivery, for many, for all and for none."""

    single: str
    several: str
    everything: str
    nothing: str


def settle(
    broker: Broker, channel: Channel, method: Method, requirements: SettlementRequirements, ruling: Ruling
) -> None:
    """The client rules on some of the channel's deliveries: at once, or when the transaction is committed (TX-005)."""
    tags, requirement = _tags_of(broker, channel, method, requirements)
    note_oldest(broker, channel, tags)
    if channel.transaction is None:
        carry_out(broker, channel, tags, ruling, requirement)
    else:
        reserve(broker, channel, channel.transaction, tags, ruling)


def _tags_of(
    broker: Broker, channel: Channel, method: Method, requirements: SettlementRequirements
) -> tuple[list[int], str]:
    """The delivery tags that the method settles, lowest first, and the requirement that says so.

    ACK-003: tag 0 with `multiple` is everything, and may be nothing. Any other tag must be outstanding: else a
    `ProtocolError` is raised (ACK-005, ACK-006, ACK-007, ACK-008).
    """
    tag = method.arguments.get("delivery_tag", 0)
    multiple = bool(method.arguments.get("multiple"))
    tags = tags_named(channel, method)
    if tags is None:
        raise ProtocolError(_unknown(broker, channel, tag, multiple), 406, f"unknown delivery tag {tag}")
    if multiple and tag == 0:
        requirement = requirements.everything if tags else requirements.nothing
        broker.fired(requirement)
    elif multiple:
        requirement = requirements.several
        if len(tags) > 1:
            broker.fired(requirement)
        if len(tags) < tag - (min(tags) - 1):
            requirement = "ACK-009"
            broker.fired(requirement)
    else:
        requirement = requirements.single
        broker.fired(requirement)
    broker.blame(channel, requirement)
    return tags, requirement


def carry_out(broker: Broker, channel: Channel, tags: Sequence[int], ruling: Ruling, requirement: str) -> None:
    """Do with those deliveries of the channel what the client wants, by that requirement."""
    settled = _take_off(broker, channel, [tag for tag in tags if tag in channel.unacknowledged], requirement)
    settling(broker, channel, tags, settled, ruling)
    if ruling.outcome is Outcome.ACKNOWLEDGED:
        finish(broker, channel, settled, requirement)
    else:
        rejecting(broker, settled)
        is_requeued = ruling.outcome is Outcome.REQUEUED
        (requeue if is_requeued else discard)(broker, channel, settled, requirement, failed=ruling.failed)
    all_settled(broker, channel, tags, ruling)


def _take_off(broker: Broker, channel: Channel, tags: Iterable[int], requirement: str) -> Settled:
    settled: Settled = []
    for other in tags:
        entry = broker.release(channel, other, requirement)
        if entry.consumer is not None and entry.consumer.tag not in channel.consumers:
            broker.fired("ACK-011")
            broker.blame(channel, "ACK-011")
        if entry.queue.deleted:
            broker.fired("ACK-012")
            broker.blame(channel, "ACK-012")
            living = broker.queues.get(entry.queue.name)
            if living is not None and any(held.queue is living for held in channel.unacknowledged.values()):
                broker.fired("ACK-024")
                broker.blame(channel, "ACK-024")
        settled.append((other, entry))
    broker.make_room(channel, settled, requirement)
    return settled


def tags_named(channel: Channel, method: Method) -> list[int] | None:
    """The outstanding tags that the method names, lowest first; None where it names one that is not outstanding."""
    tag, outstanding = method.arguments.get("delivery_tag", 0), channel.outstanding_tags
    multiple = bool(method.arguments.get("multiple"))
    if multiple and tag == 0:
        return outstanding
    if tag not in outstanding:
        return None
    return [other for other in outstanding if other <= tag] if multiple else [tag]


def tags_meant(channel: Channel, method: Method) -> list[int]:
    """The unacknowledged deliveries that the method settles now: none where it is an error, or in a transaction."""
    if channel.transaction is not None:
        return []  # nothing is settled before the commit
    return [tag for tag in tags_named(channel, method) or () if tag in channel.unacknowledged]


def _unknown(broker: Broker, channel: Channel, tag: int, multiple: bool) -> str:
    """Which requirement forbids this tag."""
    if tag == 0:
        return "ACK-005"
    if tag > 2**62:
        return "ACK-022"
    if channel.transaction is not None and tag in channel.transaction.reserved:
        return "TX-006"
    if multiple:
        # the text has one rule for both, basic.ack `exists`
        return "ACK-008" if broker.dialect.extensions else "ACK-006"
    if tag in channel.recovered:
        return "RECOVER-004"
    if tag in channel.automatic:
        return "CONSUME-013"
    if tag in channel.settled:
        return "ACK-007"
    if any(tag in other.unacknowledged for other in broker.channels.values()):
        return "ACK-010"
    return "ACK-006"


def by_queue(settled: Iterable[tuple[int, Unacknowledged]]) -> dict[Queue, Settled]:
    grouped: dict[Queue, Settled] = {}
    for item in settled:
        grouped.setdefault(item[1].queue, []).append(item)
    return grouped


def _touched_by_another(broker: Broker, channel: Channel, queue: Queue) -> bool:
    return any(other is queue and key != channel.key for key, other in broker.touched)


def finish(broker: Broker, channel: Channel, settled: Settled, requirement: str) -> None:
    """The messages are settled for good: acknowledged, or discarded."""
    for _, entry in settled:
        if entry.queue.type is not QueueType.STREAM:
            broker.note_gone(entry.queue, entry.message, requirement)
    let_go(broker, [entry for _, entry in settled], requirement)
    for queue in {entry.queue: None for _, entry in settled}:
        broker.touch(channel, queue)
        broker.refresh(queue)
    broker.refresh_sharing(channel)


def discard(broker: Broker, channel: Channel, settled: Settled, requirement: str, *, failed: bool) -> None:
    """The client refuses the messages for good: they are gone, or dead letters (DLX-001), in the order of DLX-009."""
    finish(broker, channel, settled, requirement)
    for queue, entries in by_queue(settled).items():
        if queue.type is not QueueType.STREAM:
            for message in by_consumer(entries):
                discarded(broker, queue, message, channel.key, failed)


def requeue(broker: Broker, channel: Channel, settled: Settled, requirement: str, *, failed: bool) -> None:
    """The messages go back to their queues; on a stream only the credit does (ACK-021)."""
    for queue, entries in by_queue(settled).items():
        if queue.unproven and queue.reason in RETURNS and _touched_by_another(broker, channel, queue):
            broker.fired("ACK-023")
        broker.touch(channel, queue)
        if queue.type is QueueType.STREAM:
            let_go(broker, [entry for _, entry in entries], requirement)
            broker.refresh(queue)
        else:
            freed = sum(1 for _, entry in entries if entry.consumer in queue.consumers)
            give_back(
                broker, queue, return_order(queue, entries), requirement, failed=failed, holder=channel.key, freed=freed
            )
    broker.refresh_sharing(channel)
