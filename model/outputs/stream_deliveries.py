"""Deliveries from a stream: read from the log, and nothing is taken away (area STREAM)."""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.consumer_timeouts import begin_delivery
from amqpspec.model.broker.dead_letters import shown_by
from amqpspec.model.broker.queues import Consumer, Message
from amqpspec.model.broker.state import Channel, Unacknowledged
from amqpspec.model.broker.stream_log import begin, begins_at, first_owed, goes_on_in_chunk, stored
from amqpspec.model.outputs.messages import check_delivery, routed_by
from amqpspec.model.outputs.mismatch import Mismatches, unexpected
from amqpspec.model.protocol.methods import Frame


def observe_stream_deliver(broker: Broker, channel: Channel, consumer: Consumer, frame: Frame) -> Mismatches:
    """STREAM-003: from the log, in its order, as far as there is credit (rabbit_stream_queue:stream_entries)."""
    queue = consumer.queue
    offset = _offset(consumer, frame)
    if offset is None:
        body = frame.content.body if frame.content else b""
        return unexpected(routed_by(broker, body) or "PUBLISH-016", "basic.deliver of what is not in the stream")
    if not begins_at(consumer, offset):
        return unexpected(_order_requirement(consumer, offset), "basic.deliver out of the stream's order")
    beyond = not broker.has_room(consumer)
    if beyond and goes_on_in_chunk(broker.dialect, consumer) is False:
        return unexpected("STREAM-006", "basic.deliver beyond the limit")
    message = queue.log[offset]
    wrong = check_delivery(broker, channel, queue, message, frame, False)
    if any(mismatch.fatal for mismatch in wrong):
        return wrong
    fired = _shown(channel, consumer, message)
    if message.deaths:
        fired.extend(shown_by(queue, message))
    if beyond:
        queue.chunk_starts[offset] = False
        fired.append("STREAM-006")
    elif consumer.next_offset != consumer.latest_offset:
        begin(consumer, offset)
    stored(queue, offset)
    message.acquired_count += 1
    consumer.next_offset = consumer.latest_offset = offset + 1
    consumer.has_begun = True
    entry = Unacknowledged(message, queue, consumer)
    channel.unacknowledged[channel.next_tag] = entry
    begin_delivery(broker, channel, entry)
    for told in broker.hooks.message_handed_over:
        told(broker, queue, message, consumer, entry)
    channel.next_tag += 1
    consumer.outstanding += 1
    if offset + 1 < len(queue.log):
        fired.append("PUBLISH-015")
        if not broker.has_room(consumer) and goes_on_in_chunk(broker.dialect, consumer) is False:
            fired.extend(("STREAM-006", "QOS-001"))
            if not broker.dialect.stream_serves_chunks:
                fired.append("QOS-006")
    broker.fired(*fired)
    broker.refresh(queue)
    return wrong


def _offset(consumer: Consumer, frame: Frame) -> int | None:
    """The place in the log of what was delivered: the one that is due if that fits, else the one that it names."""
    if frame.content is None:
        return None
    body, log = frame.content.body, consumer.queue.log
    named = (frame.content.properties.get("headers") or {}).get("x-stream-offset")
    due = first_owed(consumer)
    places = [due, named] if consumer.next_offset == consumer.latest_offset else [named, due]
    for place in places:
        if isinstance(place, int) and 0 <= place < len(log) and log[place].content.body == body:
            return place
    return next((place for place, message in enumerate(log) if message.content.body == body), None)


def _order_requirement(consumer: Consumer, offset: int) -> str:
    """Which rule a delivery from the wrong place breaks."""
    log, due = consumer.queue.log, consumer.next_offset
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
    content = message.content
    if content.properties or not content.body or len(content.body) > 65536:
        fired.append("PUBLISH-016")
    return fired
