"""Settling deliveries: what basic.ack, reject and nack do, and recover, each with its own ruling (area ACK).

The client names deliveries by their tags, singly or up to one (`tags_named`), and rules on them. What it names leaves
the channel, whose consumers have room for as many more (`take_off`). Then the ruling is carried out on the messages:
acknowledged ones are gone, discarded ones are gone or become dead letters, requeued ones are ready again
(`apply_ruling`). In a transaction all of this waits for the commit. Source: RabbitMQ guide, consumer acknowledgements;
rabbit_channel:collect_acks.

Requirements:

* ACK-003: multiple with tag 0. ack(0,true) acks everything outstanding; with nothing outstanding it is a no-op.
  [RabbitMQ guide: consumer acknowledgements and publisher confirms; rabbit_channel.erl:collect_acks; AMQP 0-9-1
  basic.ack]
* ACK-005: tag 0 without multiple. A tag of 0 without multiple is a soft 406, unknown delivery tag 0.
  [rabbit_channel.erl]
* ACK-006: Unknown tag. Any tag not outstanding is 406; method id tells which (ack 60/80, reject 60/90, nack 60/120). In
  amqp-0-9-1: as stated; basic.nack is not part of the text. [RabbitMQ guide: consumer acknowledgements and publisher
  confirms; AMQP 0-9-1 basic.ack]
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
* DLX-001: Reasons. The reason of a dead-lettering is rejected (nack/reject requeue=false), expired, maxlen, or
  delivery_limit (quorum). [rabbit_dead_letter; RabbitMQ Java client test DeadLetterExchange]
* DLX-009: Order. What is rejected together is dead-lettered in delivery order, and what a limit on length drops at one
  time from the head on. In rabbitmq-3: broken: of what a quorum queue drops at one time the latest comes first. In
  rabbitmq-4.0: broken up to 4.2.0: of what a quorum queue drops at one time the latest comes first. [RabbitMQ release
  notes of 4.2.1 and 4.3.0 (correct order); rabbit_fifo:drop_head]
* TX-005: Acks in tx take effect at commit. ack/nack/reject only reserve the tag: no new delivery for a full prefetch
  window until the commit, nothing comes back and nothing is dead-lettered before. What follows each other with one
  outcome is carried out as one. basic.recover does not wait, and leaves what is reserved. [rabbit_channel.erl:basic.ack
  tx; AMQP 0-9-1 class tx]
* TX-006: A tag acked in an open tx cannot be acked again. Second ack of the same tag before commit is 406 unknown
  delivery tag. [rabbit_channel.erl:collect_acks; AMQP 0-9-1 class tx]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, Unacknowledged
from amqpspec.model.broker.delivery_timeouts import note_oldest
from amqpspec.model.broker.queues import Arrival, Message, Queue
from amqpspec.model.broker.ruling import Outcome, Ruling
from amqpspec.model.broker.uncommitted import reserve
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import ChannelKey, Method
from amqpspec.model.rules.basic.requeue import by_consumer, give_back, return_order
from amqpspec.model.rules.common.steps import Step

#: Deliveries that have left the channel, with their tags.
Settled = list[tuple[int, Unacknowledged]]

#: The client settles these tags, by that ruling, and no transaction holds it up. These deliveries are among them; other
#: tags belong to an extension. The messages have not been dropped or given back yet.
settling: Step[Broker, Channel, Sequence[int], Settled, Ruling] = Step()
#: The client has refused the message for good, and its queue has dropped it. True: it counts as a failed delivery.
discarded: Step[Broker, Queue, Message, ChannelKey, bool] = Step()
#: These deliveries of streams are settled, by that ruling and requirement: the messages stay where they are.
settled_on_stream: Step[Broker, Sequence[Unacknowledged], Ruling, str] = Step()
#: The client has settled these tags, by that ruling, and all of it is done.
all_settled: Step[Broker, Channel, Sequence[int], Ruling] = Step()


class SettlementRequirements(NamedTuple):
    """The requirements that one method of settling comes under: for one delivery, for many, for all and for none."""

    single: str
    several: str
    everything: str
    nothing: str


def settle(
    broker: Broker, channel: Channel, method: Method, requirements: SettlementRequirements, ruling: Ruling
) -> None:
    """The client rules on some of the channel's deliveries: at once, or when the transaction is committed (TX-005).

    Raises `ProtocolError` where it names a delivery that is not outstanding.
    """
    tags = tags_named(channel, method)
    if tags is None:
        tag = method.arguments.get("delivery_tag", 0)
        raise ProtocolError(_forbidden_by(broker, channel, method), 406, f"unknown delivery tag {tag}")
    requirement = _note_how_named(broker, channel, method, tags, requirements)
    note_oldest(broker, channel, tags)
    if channel.transaction is None:
        carry_out(broker, channel, tags, ruling, requirement)
    else:
        reserve(broker, channel, channel.transaction, tags, ruling)


def carry_out(broker: Broker, channel: Channel, tags: Sequence[int], ruling: Ruling, requirement: str) -> None:
    """Do with those deliveries of the channel what the client wants, by that requirement."""
    settled = take_off(broker, channel, tags, requirement)
    for _, entry in settled:
        broker.comes_under(channel, *_shown_by(broker, channel, entry))
    apply_ruling(broker, channel, tags, settled, ruling, requirement)


# ------------------------------------------------------------------------------------------ which deliveries


def tags_named(channel: Channel, method: Method) -> list[int] | None:
    """The outstanding tags that the method names, lowest first; None where it names one that is not outstanding.

    ACK-003: tag 0 with `multiple` is everything, and may be nothing.
    """
    tag, is_multiple = _named(method)
    outstanding = channel.outstanding_tags
    if is_multiple and tag == 0:
        return outstanding
    if tag not in outstanding:
        return None
    return [other for other in outstanding if other <= tag] if is_multiple else [tag]


def tags_meant(channel: Channel, method: Method) -> list[int]:
    """The unacknowledged deliveries that the method settles now: none where it is an error, or in a transaction."""
    if channel.transaction is not None:
        return []  # nothing is settled before the commit
    return [tag for tag in tags_named(channel, method) or () if tag in channel.unacknowledged]


def _named(method: Method) -> tuple[int, bool]:
    return method.arguments.get("delivery_tag", 0), bool(method.arguments.get("multiple"))


def _note_how_named(
    broker: Broker, channel: Channel, method: Method, tags: Sequence[int], requirements: SettlementRequirements
) -> str:
    """The requirement by which the method settles just these tags."""
    tag, is_multiple = _named(method)
    if not is_multiple:
        shown = [requirements.single]
    elif tag == 0:
        shown = [requirements.everything if tags else requirements.nothing]
    else:
        shown = [requirements.several]
        if len(tags) < tag - (min(tags) - 1):
            shown.append("ACK-009")
    if tag == 0 or not is_multiple or len(tags) > 1:  # one alone does not show that it means several
        broker.fired(*shown)
    broker.blame(channel, shown[-1])
    return shown[-1]


def _forbidden_by(broker: Broker, channel: Channel, method: Method) -> str:
    """The requirement that forbids to settle what the method names."""
    tag, is_multiple = _named(method)
    if tag == 0:
        return "ACK-005"
    if tag > 2**62:
        return "ACK-022"
    if channel.transaction is not None and tag in channel.transaction.reserved:
        return "TX-006"
    if is_multiple:
        # the text has one rule for both, basic.ack `exists`
        return "ACK-008" if broker.dialect.extensions else "ACK-006"
    if again := channel.forbidden_again(tag):
        return again
    is_of_another = any(tag in other.unacknowledged for other in broker.channels.values())
    return "ACK-010" if is_of_another else "ACK-006"


# ------------------------------------------------------------------------------------- what becomes of them


def take_off(broker: Broker, channel: Channel, tags: Iterable[int], requirement: str) -> Settled:
    """They are outstanding no longer, and there is room for more. What has timed out is not among them."""
    held = [tag for tag in tags if tag in channel.unacknowledged]
    settled = [(tag, broker.release(channel, tag, requirement)) for tag in held]
    broker.make_room(channel, requirement)
    return settled


def _shown_by(broker: Broker, channel: Channel, entry: Unacknowledged) -> Iterator[str]:
    """What it shows that the delivery could be settled though something of it is gone."""
    if entry.consumer is not None and entry.consumer.tag not in channel.consumers:
        yield "ACK-011"
    if entry.queue.deleted:
        yield "ACK-012"
        living = broker.queues.get(entry.queue.name)
        if any(held.queue is living for held in channel.unacknowledged.values()):
            yield "ACK-024"


def apply_ruling(
    broker: Broker, channel: Channel, tags: Sequence[int], settled: Settled, ruling: Ruling, requirement: str
) -> None:
    """What the ruling means for the messages. `tags`: all that were settled with them."""
    settling(broker, channel, tags, settled, ruling)
    for queue, entries in _by_queue(settled).items():
        if queue.type is QueueType.STREAM:
            broker.touch(channel, queue)
            settled_on_stream(broker, [entry for _, entry in entries], ruling, requirement)
            broker.refresh(queue)
        elif ruling.outcome is Outcome.REQUEUED:
            _requeue(broker, channel, queue, entries, ruling, requirement)
        else:
            _finish(broker, channel, queue, entries, ruling, requirement)
    broker.refresh_sharing(channel)
    all_settled(broker, channel, tags, ruling)


def _by_queue(settled: Settled) -> dict[Queue, Settled]:
    grouped: dict[Queue, Settled] = {}
    for item in settled:
        grouped.setdefault(item[1].queue, []).append(item)
    return grouped


def _finish(
    broker: Broker, channel: Channel, queue: Queue, entries: Settled, ruling: Ruling, requirement: str
) -> None:
    """The messages are gone for good; those discarded may become dead letters (DLX-001), in the order of DLX-009."""
    for _, entry in entries:
        broker.note_gone(queue, entry.message, requirement)
    broker.touch(channel, queue)
    broker.refresh(queue)
    if ruling.outcome is Outcome.DISCARDED:
        for message in by_consumer(entries):
            discarded(broker, queue, message, channel.key, ruling.failed)


def _requeue(
    broker: Broker, channel: Channel, queue: Queue, entries: Settled, ruling: Ruling, requirement: str
) -> None:
    """The messages are ready again: where in the queue says `model.rules.basic.requeue`."""
    if _another_gives_back(broker, channel, queue):
        broker.fired("ACK-023")
    broker.touch(channel, queue)
    freed = sum(1 for _, entry in entries if entry.consumer in queue.consumers)
    messages = return_order(queue, entries)
    give_back(broker, queue, messages, requirement, failed=ruling.failed, holder=channel.key, freed=freed)


def _another_gives_back(broker: Broker, channel: Channel, queue: Queue) -> bool:
    """Are messages on their way back to the queue from another channel (ACK-023)?"""
    if not any(message.arrival is Arrival.RETURNING for message in queue.unproven):
        return False
    return any(other is queue and key != channel.key for key, other in broker.touched)
