"""Publisher confirms (area CONFIRM; rabbit_channel:send_confirms_and_nacks, coalesce_and_send).

RabbitMQ's channel collects what its queues tell it and sends it in batches: first the acks, then the nacks. Of either,
what lies below everything that is still open goes in one frame with `multiple`, the rest one by one. How much is in a
batch, and in which order publishes become ready for it, is the broker's choice. So of one that no queue took and of a
refused one after it either may be confirmed first; only the return has a fixed place (CONFIRM-009).

Requirements:

* CLUSTER-013: Mirrored: a confirm waits for all mirrors. A publish to a classic queue that a policy mirrors (ha-mode)
  is confirmed when each mirror has it: who is told so finds it there when the leader is lost. [RabbitMQ 3.10 guide:
  classic queue mirroring (publisher confirms); v3.10.9 rabbit_mirror_queue_master]
* CONFIRM-001: confirm.select. Answered by select-ok unless nowait; repeating it is allowed and does not reset the
  counter. [RabbitMQ guide: consumer acknowledgements and publisher confirms; rabbit_channel.erl:confirm.select]
* CONFIRM-002: Sequence numbers. The n-th basic.publish after the first confirm.select on the channel has delivery-tag n
  (from 1); publishes before select are not counted. [RabbitMQ guide: consumer acknowledgements and publisher confirms]
* CONFIRM-003: Every publish confirmed exactly once. Each sequence number is covered by exactly one ack or nack EVENT
  for the first time; never both ack and nack. A multiple=true frame may cover tags already confirmed individually, so
  the checker must treat it as "all still outstanding <= tag". [RabbitMQ guide: consumer acknowledgements and publisher
  confirms; rabbit_channel.erl:coalesce_and_send]
* CONFIRM-004: Confirms may be out of order. Confirm tags are not monotone: unroutable messages are confirmed at once
  while earlier routed ones are pending. [rabbit_channel.erl:send_confirms_and_nacks]
* CONFIRM-005: multiple is set only below the lowest unconfirmed. A multiple=true ack with tag t is sent only if no tag
  <= t is still unconfirmed and (for acks) no nacked tag of the same batch is lower.
  [rabbit_channel.erl:coalesce_and_send]
* CONFIRM-006: Single-tag batches of nacks use multiple=true. basic.nack for one message is sent through the coalescer:
  with nothing outstanding below, and nothing below acked in the same batch, even a single nack has multiple=true; a
  single ack has multiple=false. [rabbit_channel.erl:send_nacks vs send_confirms([MsgSeqNo])]
* CONFIRM-007: nack fields. Server basic.nack has requeue=true set by default on the wire; clients must ignore it.
  [RabbitMQ guide: consumer acknowledgements and publisher confirms; rabbit_framing default]
* CONFIRM-008: Unroutable is acked. An unroutable message is acked as soon as routing found no queue. [RabbitMQ guide:
  consumer acknowledgements and publisher confirms; rabbit_channel.erl:process_routing_confirm]
* CONFIRM-009: Return before ack. For an unroutable mandatory message basic.return precedes its basic.ack on the
  channel. [RabbitMQ guide: consumer acknowledgements and publisher confirms; rabbit_channel.erl:deliver_to_queues]
* CONFIRM-010: Routed message acked when ALL queues accepted. With several target queues exactly one ack, after all of
  them confirmed. [RabbitMQ guide: consumer acknowledgements and publisher confirms; rabbit_confirms]
* CONFIRM-011: Any rejecting queue makes it a nack. If one target queue rejects (overflow reject-publish) the message is
  nacked although other queues keep their copy. The nack does not wait for these; CONFIRM-006 and CONFIRM-007 say how it
  looks. [rabbit_confirms:reject]
* CONFIRM-012: Confirm survives queue deletion. If a target queue is deleted while confirms are pending, the messages
  are confirmed all the same: acked or, as no queue has them any more, nacked. [rabbit_channel.erl:handle_eol acks;
  rabbit_fifo_client:enqueue ({error, {shutdown, delete}} on registering) makes it a nack; guide on confirms: basic.nack
  is for what the broker could not handle]
* CONFIRM-016: Persistent vs transient. Persistent to durable: ack after disk write; transient to classic: ack as soon
  as the queue process accepted it; quorum: after raft commit. Delay not bounded. [RabbitMQ guide: consumer
  acknowledgements and publisher confirms]
* CONFIRM-018: Pending confirms at channel error. If the channel dies, outstanding confirms are never sent.
  [rabbit_channel.erl:terminate]
* CONFIRM-019: Publish failing with a channel error consumes no seqno. A publish that closes the channel (404, 403, 406)
  gets neither return nor ack. [rabbit_channel.erl]
* TX-004: commit-ok waits for all confirms. tx.commit-ok is sent only when every published message has been confirmed by
  all queues; no basic.ack is sent to the client. [rabbit_channel.erl:maybe_complete_tx]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, ChannelState
from amqpspec.model.broker.length_limits import refusal_of, refused_for_nothing, tells_of_arrival
from amqpspec.model.broker.mirrors import is_too_early
from amqpspec.model.broker.nodes import is_mute
from amqpspec.model.broker.nodes_shown import MIRRORED, UNANIMOUS
from amqpspec.model.broker.nodes_shown import shown_by_confirm as shown_by_nodes
from amqpspec.model.broker.owed import Expected
from amqpspec.model.broker.queues import Arrival, Message, Queue
from amqpspec.model.broker.stream_log import stored
from amqpspec.model.broker.survival import CONFIRMED
from amqpspec.model.outputs.mismatch import NONE, Mismatch, Mismatches, unexpected
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.verdict import Shape
from amqpspec.model.protocol.methods import Method

#: Ends what is said of a confirm on a channel that wants none.
UNASKED = "where no confirms are wanted"
#: What is said of a nack that no queue is the reason of.
REFUSED_BY_NOBODY = "basic.nack of a message that no queue refused"


def observe_confirm(broker: Broker, channel: Channel, method: Method) -> Mismatches:
    """CONFIRM-003: each publish once; `multiple` means all that are still open up to the tag."""
    numbers = _confirmed(channel, method)
    if amiss := _not_open(broker, channel, method, numbers):
        return amiss
    tag, unconfirmed = method.arguments.get("delivery_tag", 0), channel.unconfirmed
    channel.selected_untold = False
    wrong = _wrong(broker, channel, method, numbers)
    fired = ["CONFIRM-002", "CONFIRM-003"]
    for number in numbers:
        copies = unconfirmed.pop(number)
        for queue, message in copies:
            if method.name == "basic.ack":
                message.stored_by = CONFIRMED
                message.may_be_absent = False
            # delivered and given back before its confirm was seen, which does not show where it is now
            was_requeued = message.arrival is Arrival.RETURNING
            if (queue.unproven or queue.dropping) and not was_requeued and tells_of_arrival(copies, queue, message):
                broker.prove(queue, message, by_confirm=True)
            if queue.type is QueueType.STREAM:
                stored(queue, message.position)
        if broker.bookkeeping.counting:
            fired.extend(shown_by_confirm(copies))
            fired.extend(shown_by_nodes(channel, copies))
    if any(number < tag for number in unconfirmed):
        fired.append("CONFIRM-004")
    if len(numbers) > 1:
        fired += ["CONFIRM-005"] if broker.dialect.extensions else []
        channel.confirmed_together = frozenset(numbers) - {tag}
    broker.settle_debts(channel)
    if method.name == "basic.ack":
        channel.lowest_of_acks = min(channel.lowest_of_acks or tag, *numbers, tag)
    else:
        fired += ["CONFIRM-006", "CONFIRM-007"] if broker.dialect.extensions else []
    broker.fired(*fired)
    return wrong


def is_owed(broker: Broker, channel: Channel, method: Method) -> bool:
    """Is there nothing wrong with the confirm, as far as the channel has come?"""
    numbers = _confirmed(channel, method)
    return not _not_open(broker, channel, method, numbers) and not _wrong(broker, channel, method, numbers)


def _confirmed(channel: Channel, method: Method) -> list[int]:
    """The numbers of the open publishes that it confirms."""
    tag, unconfirmed = method.arguments.get("delivery_tag", 0), channel.unconfirmed
    if method.arguments.get("multiple"):
        return [number for number in unconfirmed if number <= tag]
    return [tag] if tag in unconfirmed else []


def _not_open(broker: Broker, channel: Channel, method: Method, numbers: Sequence[int]) -> Mismatches:
    tag = method.arguments.get("delivery_tag", 0)
    if not numbers or tag > channel.published:
        # what is confirmed again stays confirmed, and what nobody wants to have confirmed is as it was, so judging goes
        # on; of RabbitMQ a known defect may say how it goes on
        in_text = not broker.dialect.extensions
        is_unasked = in_text and not channel.confirming and channel.transaction is None
        is_clear = in_text and (is_unasked or 0 < tag <= channel.published)
        detail = f"{method.name} {UNASKED if is_unasked else 'of a publish that is not open'}"
        blamed = UNANIMOUS if is_mute(broker.failed, channel.connection) else _misnumbered(channel, tag)
        return (Mismatch(blamed, Shape.UNEXPECTED, detail, not is_clear, is_habit=is_unasked),)
    for owed in channel.owed if method.name == "basic.ack" else ():
        if isinstance(owed, Expected) and owed.publish and owed.publish in numbers:
            return unexpected("CONFIRM-009", f"{method.name} before basic.return")
    return NONE


def _wrong(broker: Broker, channel: Channel, method: Method, numbers: list[int]) -> Mismatches:
    """The mismatches. Where it should be no such method, only that; else its flags, which only RabbitMQ prescribes."""
    tag = method.arguments.get("delivery_tag", 0)
    wrong = tuple(_wrong_kind(channel, method, numbers, broker.dialect.extensions))
    return wrong or tuple(_wrong_form(channel, method, tag, numbers) if broker.dialect.extensions else ())


def _wrong_kind(channel: Channel, method: Method, numbers: list[int], in_rabbitmqs_way: bool) -> Iterator[Mismatch]:
    """CONFIRM-011: a nack is for what some queue has refused, and an ack for what all have taken. CONFIRM-008: what
    no queue was to take is acked as well, and none has refused it, returned or not; that this is no nack is RabbitMQ's
    own way. CONFIRM-012: what goes to a queue that is being deleted may be confirmed by either. CLUSTER-013: neither
    comes before each mirror of a queue has it.
    """
    for number in numbers:
        copies = channel.unconfirmed[number]
        refused = refusal_of(copies)
        if not copies and not in_rabbitmqs_way:
            continue
        if refused and method.name == "basic.ack":
            yield Mismatch(refused, Shape.UNEXPECTED, "basic.ack of a message that a queue refused", False)
        elif not refused and any(is_too_early(queue, message, method.time) for queue, message in copies):
            yield Mismatch(MIRRORED, Shape.UNEXPECTED, f"{method.name} before each mirror has the message", False)
        elif not refused and method.name == "basic.nack" and not any(
            queue.deleted or queue.open_by for queue, _ in copies
        ):
            yield Mismatch(refused_for_nothing(copies), Shape.UNEXPECTED, REFUSED_BY_NOBODY, False)


def _misnumbered(channel: Channel, tag: int) -> str:
    """Blame for the confirm of a number that is not open."""
    if channel.transaction is not None:
        return "TX-004"
    if channel.state is not ChannelState.OPEN:
        return "CONFIRM-019" if tag > channel.published else "CONFIRM-018"
    if channel.selected_again and tag + channel.selected_again in channel.unconfirmed:
        return "CONFIRM-001"  # counted anew since confirm.select was repeated
    if not 0 < tag <= channel.published:
        if any(isinstance(owed, Expected) and owed.method == "channel.close" for owed in channel.owed):
            return "CONFIRM-019"
        return "CONFIRM-002"
    return "CONFIRM-005" if tag in channel.confirmed_together else "CONFIRM-003"


def _wrong_form(channel: Channel, method: Method, tag: int, numbers: list[int]) -> Iterator[Mismatch]:
    """CONFIRM-006, CONFIRM-007: what else the frame says. A batch of one ack is not `multiple`; a nack below which
    nothing is open, and nothing was acked in its batch, is.
    """
    multiple = bool(method.arguments.get("multiple"))
    detail = f"{method.name} multiple"
    if method.name == "basic.ack":
        if multiple and len(channel.unconfirmed) == 1:
            yield Mismatch("CONFIRM-006", Shape.WRONG_ARGUMENT, detail, False, "multiple=false")
        return
    # what was acked directly before, with no other frame in between, may be of the same batch
    is_lowest = min(channel.unconfirmed) >= min(numbers) and not 0 < channel.lowest_of_acks < tag
    if is_lowest and not multiple:
        yield Mismatch("CONFIRM-006", Shape.WRONG_ARGUMENT, detail, False, "multiple=true")
    if not method.arguments.get("requeue"):
        yield Mismatch("CONFIRM-007", Shape.WRONG_ARGUMENT, f"{method.name} requeue", False, "requeue=true")


def shown_by_confirm(copies: tuple[tuple[Queue, Message], ...]) -> Iterator[str]:
    """What the confirm of a publish shows, by where the publish went: first what is to blame if it does not come."""
    if refused := refusal_of(copies):
        yield from dict.fromkeys((refused, *(message.refused_by for _, message in copies if message.refused_by)))
        return
    if not copies:
        yield "CONFIRM-008"
    if any(queue.deleted for queue, _ in copies):
        yield "CONFIRM-012"
    if sum(not queue.open_by for queue, _ in copies) > 1:
        yield "CONFIRM-010"
    if any(queue.durable and message.content.properties.get("delivery_mode") == 2 for queue, message in copies):
        yield "CONFIRM-016"
