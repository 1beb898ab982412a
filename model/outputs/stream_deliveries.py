"""Deliveries from a stream: read from the log, and nothing is taken away (area STREAM).

Requirements:

* ACK-021: Reject on a stream. nack/reject on a stream is accepted as a credit return: nothing is requeued. In
  rabbitmq-3: broken up to 3.12: hard 540. [rabbit_stream_queue:settle]
* CONSUME-014: Delivery tags are shared per channel. Tags start at 1 per channel and increase by 1 over ALL deliveries
  and get-oks of the channel, ack or no-ack, across consumers and queues. [RabbitMQ guide: consumer acknowledgements and
  publisher confirms; rabbit_channel.erl:record_sent]
* PUBLISH-015: Per-channel publish order per queue. Messages published on one channel to one queue through one exchange
  path are enqueued in publish order, and come out in it where one channel takes them, by basic.get or as consumer.
  [AMQP 0-9-1 4.7; rabbit_channel.erl]
* PUBLISH-016: Properties and body are preserved bit-exact. Properties, header table and body (also empty and
  multi-frame) arrive unchanged apart from broker-added headers (x-death*, x-delivery-count, x-acquired-count,
  x-stream-offset) and BCC removal. In rabbitmq-3: as stated; a long-long-int of type L may come back as l. In
  rabbitmq-4.0: broken: expiration comes back as the number that it is (060000 as 60000); type L may come back as l. In
  rabbitmq-4.3: broken: expiration comes back as the number that it is (060000 as 60000); type L may come back as l.
  [rabbit_channel.erl:handle_deliver0; AMQP 0-9-1 basic.publish]
* QOS-001: Per-consumer prefetch. basic.qos(n, global=false) limits each consumer created LATER on the channel to n
  unacked messages, independently. [RabbitMQ guide: consumer prefetch]
* QOS-006: Never exceed. At no time has a consumer more than its prefetch unacked (as seen on the wire, counting acks
  when sent), except after qos(global) changes mid-stream on <=4.2. In amqp-0-9-1: as stated, for the window of the
  channel. [RabbitMQ guide: consumer acknowledgements and publisher confirms; RabbitMQ guide: consumer prefetch; AMQP
  0-9-1 basic.qos]
* STREAM-003: Non-destructive, offset header. Reading a stream takes nothing away: every consumer is handed the same
  messages, in the order of the log, also after others have acknowledged them. Deliveries carry x-stream-offset (from 0,
  a long-long-int), and redelivered is always false. [RabbitMQ guide: streams; rabbit_stream_queue:stream_entries]
* STREAM-004: Default offset is next. Without x-stream-offset only messages published after the consume arrive.
  [RabbitMQ guide: streams]
* STREAM-006: Credit granularity. A consumer is handed messages as long as it has fewer unacknowledged ones than its
  prefetch limit, and settling each one, in whatever way, lets one more come. In rabbitmq-3: broken: a chunk (messages
  that were written together) that was begun is handed over whole. [rabbit_stream_queue:stream_entries, settle;
  osiris_writer:handle_batch]
* STREAM-007: Recover on a stream. basic.recover and basic.recover-async settle a stream's deliveries as acknowledging
  does: their credit returns, reading goes on, and nothing is delivered again. In rabbitmq-3: broken up to 3.12: hard
  541. [rabbit_stream_queue:settle; rabbit_channel:handle_method basic.recover_async]
* STREAM-008: Where an offset begins. x-stream-offset says where reading begins: first (the oldest message), last (the
  last chunk), next (what is published from now on), a number (the message of that offset; beyond the end nothing until
  there is one), a time stamp or an interval back from now (the first chunk written since then). Below 0 is the oldest
  message. [RabbitMQ guide: streams (consuming); rabbit_stream_queue:parse_offset_arg; osiris_log:init_offset_reader]
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, Unacknowledged
from amqpspec.model.broker.dead_letter_headers import shown_by
from amqpspec.model.broker.delivery_timeouts import begin_delivery
from amqpspec.model.broker.queues import Consumer, Message
from amqpspec.model.broker.stream_log import begin_reading_at, begins_at, first_owed, stored
from amqpspec.model.broker.survival import OFFSETS
from amqpspec.model.broker.survival import shown_by as shown_by_survivor
from amqpspec.model.outputs.delivered_content import check_delivery, shows_what_is_kept
from amqpspec.model.outputs.delivered_message import routed_by
from amqpspec.model.outputs.mismatch import Mismatch, Mismatches, unexpected
from amqpspec.model.promises.verdict import Shape
from amqpspec.model.protocol.methods import Method

BEYOND_LIMIT = "basic.deliver beyond the limit"


def observe_stream_deliver(broker: Broker, channel: Channel, consumer: Consumer, method: Method) -> Mismatches:
    """STREAM-003: from the log, in its order, as far as there is credit (rabbit_stream_queue:stream_entries)."""
    queue = consumer.queue
    offset = _offset(consumer, method)
    if offset is None:
        body = method.content.body if method.content else b""
        return unexpected(routed_by(broker, body) or "PUBLISH-016", "basic.deliver of what is not in the stream")
    if not begins_at(consumer, offset):
        return unexpected(_order_requirement(consumer, offset), "basic.deliver out of the stream's order")
    if not broker.has_room(consumer):
        return beyond_limit(consumer)
    message = queue.log[offset]
    wrong = check_delivery(broker, channel, queue, message, method, False)
    if any(mismatch.fatal for mismatch in wrong):
        return wrong
    fired = _shown(channel, consumer, message)
    if message.survived_by:
        fired.extend(shown_by_survivor(queue, message))
    if message.deaths:
        fired.extend(shown_by(queue, message))
    if consumer.next_offset != consumer.latest_offset:
        begin_reading_at(consumer, offset)
    stored(queue, offset)
    message.acquired_count += 1
    consumer.next_offset = consumer.latest_offset = offset + 1
    consumer.has_begun = True
    entry = Unacknowledged(message, queue, consumer)
    channel.unacknowledged[channel.next_tag] = entry
    begin_delivery(broker, channel, entry)
    channel.next_tag += 1
    consumer.outstanding += 1
    if offset + 1 < len(queue.log):
        fired.append("PUBLISH-015")
        if not broker.has_room(consumer):
            fired.extend(("STREAM-006", "QOS-001", "QOS-006"))
    broker.fired(*fired)
    broker.refresh(queue)
    return wrong


def beyond_limit(consumer: Consumer) -> Mismatches:
    """STREAM-006: the consumer of a stream is handed more than its limit."""
    return (Mismatch("STREAM-006", Shape.UNEXPECTED, BEYOND_LIMIT, about=consumer),)


def _offset(consumer: Consumer, method: Method) -> int | None:
    """The place in the log of what was delivered: the one that is due if that fits, else the one that it names."""
    if method.content is None:
        return None
    body, log = method.content.body, consumer.queue.log
    named = (method.content.properties.get("headers") or {}).get("x-stream-offset")
    due = first_owed(consumer)
    places = [due, named] if consumer.next_offset == consumer.latest_offset else [named, due]
    for place in places:
        if isinstance(place, int) and 0 <= place < len(log) and log[place].content.body == body:
            return place
    return next((place for place, message in enumerate(log) if message.content.body == body), None)


def _order_requirement(consumer: Consumer, offset: int) -> str:
    """Which rule a delivery from the wrong place breaks."""
    log, due = consumer.queue.log, consumer.next_offset
    if offset > due and log[due].survived_by:
        return OFFSETS
    if offset > due and log[due].acquired_count and not log[offset].acquired_count:
        return "STREAM-003"  # it was read before, and is there no more
    if not consumer.has_begun:
        return "STREAM-008" if "x-stream-offset" in consumer.arguments else "STREAM-004"
    if offset > due:
        return "PUBLISH-015"
    return consumer.reason if consumer.reason in ("ACK-021", "STREAM-007") else "STREAM-003"


def _shown(channel: Channel, consumer: Consumer, message: Message) -> list[str]:
    """What it shows that the consumer is handed this message."""
    fired = []
    if message.acquired_count:
        fired.append("STREAM-003")
    if not consumer.has_begun and "x-stream-offset" in consumer.arguments:
        fired.append("STREAM-008")
    elif not consumer.has_begun and message.position:
        fired.append("STREAM-004")
    if channel.next_tag > 1:
        fired.append("CONSUME-014")
    if consumer.outstanding:
        fired.append("PUBLISH-015")
    if consumer.reason in ("ACK-021", "STREAM-007"):
        fired.append(consumer.reason)
    if shows_what_is_kept(message):
        fired.append("PUBLISH-016")
    return fired
