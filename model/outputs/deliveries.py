"""Deliveries and answers to basic.get: a message leaves its queue for a client (areas CONSUME, GET, QOS).

Those from a stream: `model.outputs.stream_deliveries`.

Requirements:

* CONSUME-001: consume-ok precedes deliveries. consume-ok for a tag is sent before the first basic.deliver with that tag
  (unless nowait, then no consume-ok). [rabbit_channel.erl:basic_consume]
* CONSUME-013: no_ack consumer. Deliveries of a no_ack consumer count as acked when sent: ack of such a tag is 406; on
  channel close they are lost. [RabbitMQ guide: consumer acknowledgements and publisher confirms; AMQP 0-9-1
  basic.consume]
* CONSUME-014: Delivery tags are shared per channel. Tags start at 1 per channel and increase by 1 over ALL deliveries
  and get-oks of the channel, ack or no-ack, across consumers and queues. [RabbitMQ guide: consumer acknowledgements and
  publisher confirms; rabbit_channel.erl:record_sent]
* CONSUME-015: Consumers of different queues interleave freely. Only per-queue order is defined between two consumers on
  one channel. [rabbit_channel.erl]
* REPLY-001: A reply goes straight to the requester. On a channel that consumes from amq.rabbitmq.reply-to, the reply-to
  amq.rabbitmq.reply-to of a published message is replaced by an address of the channel, which begins with
  amq.rabbitmq.reply-to. and is the same in each of them. What anybody publishes with that address as routing key
  through the default exchange is delivered to that consumer, in the order of publishing, under the next delivery tag,
  with redelivered=false. [rabbit_channel:override_reply_to; rabbit_volatile_queue:deliver (up to 4.1
  rabbit_channel:deliver_reply)]
* REPLY-006: Replies take part in the count of deliveries. Deliveries of direct replies have delivery tags of their own,
  in one series with all others of the channel. In rabbitmq-3: broken: a reply has the tag that the next delivery has as
  well. In rabbitmq-4.0: broken: a reply has the tag that the next delivery has as well. [AMQP 0-9-1 basic.deliver,
  delivery-tag; rabbit_channel:handle_cast deliver_reply (up to 4.1)]
* GET-001: get-ok / get-empty. Message-count in get-ok is the number of ready messages left; empty queue gives
  get-empty. [rabbit_channel.erl:basic.get; AMQP 0-9-1 basic.get]
* GET-003: get is not limited by prefetch. basic.get ignores basic.qos limits. [rabbit_channel.erl]
* GET-004: Unacked get is requeued at channel close. An unacked get returns to its queue (redelivered=true) when the
  channel's process ends, which is just after close-ok; before close-ok only on a classic queue that the channel also
  consumes from. After a server-sent channel.close this waits for the client's close-ok.
  [rabbit_channel.erl:notify_queues]
* GET-007: get right after an unconfirmed publish. Classic: get is FIFO behind the publish from the same channel.
  Quorum: enqueue is a low-priority raft command and may be overtaken, so get-empty is possible.
  [rabbit_fifo_client:enqueue (low) vs dequeue]
* PUBLISH-015: Per-channel publish order per queue. Messages published on one channel to one queue through one exchange
  path are enqueued in publish order, and come out in it where one channel takes them, by basic.get or as consumer.
  [AMQP 0-9-1 4.7; rabbit_channel.erl]
* PUBLISH-016: Properties and body are preserved bit-exact. Properties, header table and body (also empty and
  multi-frame) arrive unchanged apart from broker-added headers (x-death*, x-delivery-count, x-acquired-count,
  x-stream-offset) and BCC removal. In rabbitmq-3: as stated; a long-long-int of type L may come back as l. In
  rabbitmq-4.0: broken: expiration comes back as the number that it is (060000 as 60000); type L may come back as l. In
  rabbitmq-4.3: broken: expiration comes back as the number that it is (060000 as 60000); type L may come back as l.
  [rabbit_channel.erl:handle_deliver0; AMQP 0-9-1 basic.publish]
* QUORUM-001: x-delivery-count header. Counts earlier failed deliveries; absent on the first delivery from 4.0 on, 0 on
  basic.get in 3.10. A client's own header of that name comes through as long as the broker has no count. Classic queues
  count nothing. The counts are long-long-ints (l). In rabbitmq-3: 0 or absent on first get, as versions differ (absent
  from 3.12.0 on), absent on first deliver. In rabbitmq-4.0: absent first, then 1,2.. In rabbitmq-4.3: absent unless
  failed; x-acquired-count counts every return. [rabbit_fifo_client:add_delivery_count_header]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, ChannelState, Unacknowledged
from amqpspec.model.broker.dead_letter_headers import EXPIRED, is_likely
from amqpspec.model.broker.dead_letter_headers import shown_by as shown_by_dead_letter
from amqpspec.model.broker.delivery_timeouts import begin_delivery, spare
from amqpspec.model.broker.limits import note_delivery, nothing_was_got
from amqpspec.model.broker.limits_shown import broken_by_delivery, shown_by_delivery
from amqpspec.model.broker.message_order import priority_requirement, shows_priority
from amqpspec.model.broker.nodes_shown import shown_by_delivery as shown_by_nodes
from amqpspec.model.broker.openness import message_of
from amqpspec.model.broker.owed import Expected, PendingGet
from amqpspec.model.broker.queues import UNKNOWN_TAG, Consumer, Message, Queue
from amqpspec.model.broker.survival import late_ones_are_away, none_is_there
from amqpspec.model.broker.survival import shown_by as shown_by_survivor
from amqpspec.model.broker.time_to_live import BEHIND, dropped_by_fetch, is_long_over, missed
from amqpspec.model.outputs.delivered_content import check_delivery, shows_what_is_kept, wrong_number
from amqpspec.model.outputs.delivered_message import find, out_of_order, passed_over
from amqpspec.model.outputs.late_deliveries import (
    check_late_delivery,
    check_lost_delivery,
    lost_with_channel,
    under_way,
)
from amqpspec.model.outputs.mismatch import NONE, Mismatch, Mismatches, unexpected
from amqpspec.model.outputs.replies import WITH_UNACKNOWLEDGED, counts_unacknowledged, nothing_explains
from amqpspec.model.outputs.stream_deliveries import observe_stream_deliver
from amqpspec.model.outputs.turns import check_turn, note_order, note_turn
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.verdict import Shape
from amqpspec.model.protocol.methods import Method
from amqpspec.model.protocol.patterns import between
from amqpspec.model.rules.basic.consume import chosen_tags_begin
from amqpspec.model.rules.basic.requeue import give_back, shown_by
from amqpspec.model.rules.connection.ending import end_channel
from amqpspec.model.rules.extensions.message_expiry import look_behind_fetch, shown_by_count


def _learned_from(broker: Broker, channel: Channel, method: Method) -> Consumer | None:
    """The consumer whose tag the broker has chosen and not told, as it was made with nowait (or, by a known defect, is
    served before its consume-ok): its first delivery tells the tag, which is noted.
    """
    tag = method.arguments["consumer_tag"]
    if not tag.startswith(chosen_tags_begin(broker)) or tag in channel.ended_consumers:
        return None
    for consumer in channel.consumers.values():
        if consumer.announced and consumer.tag.startswith(UNKNOWN_TAG):
            broker.announce_consumer(consumer, tag)
            return consumer
    return None


def observe_deliver(broker: Broker, channel: Channel, method: Method) -> Mismatches:
    """A basic.deliver: what is wrong with it. If nothing fatal is, the message is with the client now."""
    tag = method.arguments["consumer_tag"]
    consumer = channel.consumers.get(tag) or channel.may_still_be_served.get(tag)
    if consumer is None:
        consumer = _learned_from(broker, channel, method)
    if consumer is None or channel.state is not ChannelState.OPEN:
        lost = lost_with_channel(broker, channel, method)
        if lost is not None:
            return check_lost_delivery(broker, channel, lost, method)
        return nothing_explains(broker, channel, method, channel.ended_consumers.get(tag))
    if not consumer.announced:
        return unexpected("CONSUME-001", "basic.deliver before consume-ok")
    queue = consumer.queue
    if queue.open_by:
        return _observe_from_open(broker, channel, consumer, method)
    if queue.type is QueueType.STREAM:
        return observe_stream_deliver(broker, channel, consumer, method)
    late = under_way(consumer, method) if queue.deleted else None
    if late is not None:
        wrong = check_late_delivery(broker, channel, consumer, late, method)
        if not any(mismatch.fatal for mismatch in wrong):
            _hand_over(broker, channel, queue, late, consumer, consumer.no_ack)
        return wrong
    messages = queue.messages
    if messages and not messages[0].passed_over_by and _is_it(broker, messages[0], method):
        index = 0
    else:
        found = find(broker, channel, queue, method)
        if isinstance(found, str) and broker.down_by and _end_holder(broker, channel, queue, method):
            found = find(broker, channel, queue, method)
        if isinstance(found, str):
            return nothing_explains(broker, channel, method, found)
        index = found
    beyond: Mismatches = NONE
    if not broker.has_room(consumer):
        # what the broker has done is clear, so judging goes on
        ends = bool(broker.dialect.extensions or consumer.timed_out)
        requirement = broken_by_delivery(broker, consumer)
        beyond = (Mismatch(requirement, Shape.UNEXPECTED, "basic.deliver beyond the limit", ends),)
        if ends:
            return beyond
    message = messages[index]
    out_of_turn = check_turn(broker, queue, consumer, message) if consumer in queue.consumers else None
    if out_of_turn:
        return out_of_turn
    wrong = beyond + _check_time(broker, message) + check_delivery(broker, channel, queue, message, method, False)
    if wrong and any(mismatch.fatal for mismatch in wrong):
        return wrong
    note_order(queue, index)
    if broker.has_doubts:
        index -= passed_over(broker, channel, queue, index)
    broker.take(queue, index)
    look_behind_fetch(broker, queue)
    _hand_over(broker, channel, queue, message, consumer, consumer.no_ack)
    broker.refresh(queue)
    return wrong


def _end_holder(broker: Broker, channel: Channel, queue: Queue, method: Method) -> bool:
    """The broker goes down: was the message held by another channel, whose end is not seen yet? It has ended, then."""
    body = method.content.body if method.content is not None else b""
    for other in broker.channels.values():
        entries = other.unacknowledged.values() if other is not channel else ()
        if any(entry.queue is queue and entry.message.content.body == body for entry in entries):
            end_channel(broker, other)
            other.state = ChannelState.CLOSED
            return True
    return False


def _observe_from_open(broker: Broker, channel: Channel, consumer: Consumer, method: Method) -> Mismatches:
    """A queue that nobody can follow may hand out anything (`model.broker.openness`), within the consumer's limits."""
    if not broker.has_room(consumer):
        return unexpected(broken_by_delivery(broker, consumer), "basic.deliver beyond the limit")
    wrong = wrong_number(broker, channel, consumer.queue, method)
    if not wrong:
        _take_from_open(broker, channel, consumer.queue, method, consumer, consumer.no_ack)
    return wrong


def _take_from_open(
    broker: Broker, channel: Channel, queue: Queue, method: Method, consumer: Consumer | None, no_ack: bool
) -> None:
    message = message_of(method, queue)
    broker.fired(*shown_by_nodes(broker, channel, queue, message, consumer))
    _hold(broker, channel, queue, message, consumer, no_ack)


def _hold(
    broker: Broker, channel: Channel, queue: Queue, message: Message, consumer: Consumer | None, no_ack: bool
) -> None:
    """The delivery has the channel's next number. It is outstanding, unless it needs no acknowledgement."""
    tag = channel.next_tag
    channel.next_tag = tag + 1
    if no_ack:
        channel.note_over(tag, again="CONSUME-013")
        spare(broker, channel, queue, consumer)
        return
    entry = channel.unacknowledged[tag] = Unacknowledged(message, queue, consumer)
    begin_delivery(broker, channel, entry)
    if consumer is not None:
        note_delivery(broker, channel, consumer)
        broker.refresh_sharing(channel)


def _check_time(broker: Broker, message: Message) -> Mismatches:
    """What is wrong about handing the message over now, as far as its time goes (area TTL)."""
    if not is_long_over(message, broker.last_at_rest):
        return NONE
    detail = "an expired message is handed over"
    return (Mismatch(message.ttl_from, Shape.UNEXPECTED, detail, argument="body", about=message),)


def _is_it(broker: Broker, message: Message, method: Method) -> bool:
    if method.content is None or message.content.body != method.content.body:
        return False
    return is_likely(message, method, tells=broker.dialect.extensions)


def _hand_over(
    broker: Broker, channel: Channel, queue: Queue, message: Message, consumer: Consumer | None, no_ack: bool
) -> None:
    """The message is with the client now; unless it needs no acknowledgement, until it is settled."""
    queue.handed_out += 1
    channel.direct_replies += queue.reply_address
    if message.deadline is not None:
        message.deadline = message.deadline.begun_by(broker.latest)
    fired = [*_shown_by_delivery(broker, channel, queue, message, consumer)]
    if consumer is not None:
        fired.extend(note_turn(broker, queue, consumer, message))
    _hold(broker, channel, queue, message, consumer, no_ack)
    if no_ack:
        broker.note_gone(queue, message, "CONSUME-013")
        fired.append("CONSUME-013")
    if consumer is not None:
        fired.extend(shown_by_delivery(channel, consumer))
    broker.fired(*fired)
    if len(queue.consumers) > 1 and not queue.single_active_consumer and consumer in queue.consumers:
        # whose turn it is next: a preference of the embedded broker, not a rule
        queue.consumers.remove(consumer)
        queue.consumers.append(consumer)


def _shown_by_delivery(
    broker: Broker, channel: Channel, queue: Queue, message: Message, consumer: Consumer | None
) -> Iterator[str]:
    """What it shows that just this message is handed over; it is out of its queue, and not yet counted as held."""
    if channel.next_tag > 1:
        yield "CONSUME-014"
    if queue.reply_address:
        yield "REPLY-001"
    if channel.direct_replies > queue.reply_address:  # one before this took a tag of the same series
        yield "REPLY-006"
    yield from shown_by_nodes(broker, channel, queue, message, consumer)
    if message.survived_by:
        yield from shown_by_survivor(queue, message)
    if shows_what_is_kept(message):
        yield "PUBLISH-016"
    if queue.messages and not message.redelivered:
        yield "PUBLISH-015"
    if shows_priority(broker.dialect, queue, message):
        yield priority_requirement(queue)
    if any(other is not queue and channel.key in {c.channel for c in other.consumers} for other in broker.deliverable):
        yield "CONSUME-015"
    if message.is_first_here:
        shown = shown_by_dead_letter(queue, message)
        if message.deaths[0]["reason"] == EXPIRED and not broker.bookkeeping.counting:
            broker.bookkeeping.exercised.update(shown)  # it comes in its own time, whatever else is going on
        yield from shown
    elif message.redelivered:
        yield from shown_by(broker, queue, message, consumer)
        if message.acquired_count:
            yield "QUORUM-001"
    elif consumer is None and queue.type is QueueType.QUORUM and broker.dialect.quorum_count_on_first_get:
        yield "QUORUM-001"


def first_get(channel: Channel) -> PendingGet | None:
    """The oldest owed get, if no other reply of the channel itself is owed before it."""
    for owed in channel.owed:
        if isinstance(owed, PendingGet):
            return owed
        if isinstance(owed, Expected) and owed.lane == "channel":
            return None
    return None


def _range_for(broker: Broker, pending: PendingGet) -> tuple[int, int]:
    """The least and the most ready messages that the queue may have counted for the get: none that came later."""
    low, high = broker.ready_range(pending.queue)
    later = _came_later(pending) if low else 0
    return max(low - later - pending.missed, 0), high


def _came_later(pending: PendingGet) -> int:
    """How many of the ready messages have certainly come after the get."""
    queue = pending.queue
    return sum(m.position >= pending.position_limit and m not in queue.unproven for m in queue.messages)


def _serves_its_active_consumer_alone(broker: Broker, queue: Queue) -> bool:
    """May a basic.get find nothing there, whatever is ready? What it gets beside the consumer that is served is
    RabbitMQ's own way.
    """
    return queue.single_active_consumer and bool(queue.consumers) and not broker.dialect.extensions


def observe_get(broker: Broker, channel: Channel, method: Method) -> Mismatches:
    """A basic.get-ok or basic.get-empty: what is wrong with it. If nothing fatal is, the oldest get is answered."""
    pending = first_get(channel)
    if pending is None:
        return nothing_explains(broker, channel, method, None)
    queue = pending.queue
    wrong: Mismatches = NONE
    if pending.counted and queue.type is QueueType.QUORUM and queue.messages and not broker.ready_range(queue)[0]:
        broker.fired("GET-007")
    if method.name == "basic.get-empty":
        low, _ = _range_for(broker, pending)
        is_left_out = _serves_its_active_consumer_alone(broker, queue)
        if low > 0 and not queue.deleted and channel.key not in broker.paused and not is_left_out:
            limited = 0 < (channel.channel_prefetch or channel.prefetch) <= len(channel.unacknowledged)
            requirement = "GET-003" if limited else missed(queue, broker.latest) or queue.messages[0].reason
            return unexpected(requirement, "basic.get-empty although a message is ready")
        nothing_was_got(broker, channel)
        queue.expired_counted = 0
        if broker.has_doubts and not broker.with_room(queue) and not is_left_out:
            none_is_there(broker, queue)
            late_ones_are_away(queue)
        if pending.counted:
            broker.bookkeeping.exercised["GET-001"] += 1
    elif queue.open_by:
        wrong = wrong_number(broker, channel, queue, method)
        if wrong:
            return wrong
        _take_from_open(broker, channel, queue, method, None, pending.no_ack)
    else:
        found = find(broker, channel, queue, method)
        if isinstance(found, str):
            wrong = nothing_explains(broker, channel, method, found, asked=True)
            place = out_of_order(broker, queue, method, wrong[0].requirement)
            if place is None:
                return wrong
            found, wrong = place, (replace(wrong[0], fatal=False),)
        message = queue.messages[found]
        low, high = _range_for(broker, pending)
        wrong += _check_time(broker, message) + check_delivery(broker, channel, queue, message, method, True)
        count = method.arguments.get("message_count", 0)
        least, most = dropped_by_fetch(queue, found, broker.latest, broker.last_at_rest, no_ack=pending.no_ack)
        low, high = low - most, high - least
        if not max(low - 1, 0) <= count <= high - 1:
            allowed = str(high - 1) if low == high else f"{max(low - 1, 0)}..{high - 1}"
            expired = BEHIND if most or shown_by_count(broker, queue) else ""
            requirement = expired or "GET-001"
            right = between(max(low - 1, 0), high - 1)
            is_habit = counts_unacknowledged(broker, queue, right, count, more=int(not pending.no_ack))
            detail = f"basic.get-ok {WITH_UNACKNOWLEDGED if is_habit else 'message-count'}"
            wrong += (Mismatch(requirement, Shape.WRONG_ARGUMENT, detail, False, allowed),)
        if any(mismatch.fatal for mismatch in wrong):
            return wrong
        if pending.counted and (least or shown_by_count(broker, queue)):
            broker.fired(BEHIND)
        dropped = 0
        if most and not queue.unproven:
            # of those that were there already: what came later may be counted or not, and lives on
            dropped = min(max(len(queue.messages) - 1 - _came_later(pending) - count, 0), most)
        if broker.has_doubts:
            found -= passed_over(broker, channel, queue, found)
        broker.take(queue, found)
        look_behind_fetch(broker, queue, dropped, no_ack=pending.no_ack)
        _hand_over(broker, channel, queue, message, None, pending.no_ack)
        if channel.state is not ChannelState.OPEN and channel.unacknowledged:
            # the channel was closed by a later input, and the message went back with all that it held
            entry = channel.unacknowledged.popitem()[1]
            give_back(broker, queue, [entry.message], "GET-004", failed=True, holder=channel.key, lost_holder=True)
        broker.fired("GET-001")
        if 0 < (channel.channel_prefetch or channel.prefetch) < len(channel.unacknowledged):
            broker.fired("GET-003")
        broker.refresh(queue)
    channel.owed.remove(pending)
    broker.settle_debts(channel)
    return wrong
