"""Deliveries and answers to basic.get: a message leaves its queue for a client (areas CONSUME, GET, QOS, STREAM)."""

from __future__ import annotations

from model.alphabet import Frame
from model.broker import Broker
from model.messages import check_delivery, find, routed_by
from model.mismatch import NONE, Mismatch, Mismatches, unexpected
from model.outputs.replies import nothing_explains
from model.queues import Consumer, Message, Queue, QueueType
from model.rules.requeue import give_back, shown_by
from model.state import Channel, ChannelState, Expected, PendingGet, Unacknowledged
from model.verdict import Shape


def observe_deliver(broker: Broker, channel: Channel, frame: Frame) -> Mismatches:
    consumer = channel.consumers.get(frame.arguments["consumer_tag"])
    if consumer is None or channel.state is not ChannelState.OPEN:
        return nothing_explains(broker, channel, frame, channel.ended_consumers.get(frame.arguments["consumer_tag"]))
    if not consumer.announced:
        return unexpected("CONSUME-001", "basic.deliver before consume-ok")
    queue = consumer.queue
    if queue.type is QueueType.STREAM:
        return _observe_stream_deliver(broker, channel, consumer, frame)
    messages = queue.messages
    content = frame.content
    if messages and content and messages[0].content.body == content.body and not messages[0].passed_over_by:
        index = 0
    else:
        found = find(broker, channel, queue, frame, consumer)
        if isinstance(found, str):
            return nothing_explains(broker, channel, frame, found)
        index = found
    if not broker.has_room(consumer):
        return unexpected(_limit(channel, consumer), "basic.deliver beyond the limit")
    if queue.single_active_consumer and queue.consumers[0] is not consumer:
        return unexpected("SAC-001", "basic.deliver to a consumer that is not active")
    message = messages[index]
    wrong = check_delivery(broker, channel, queue, message, frame, False)
    if wrong and any(mismatch.fatal for mismatch in wrong):
        return wrong
    broker.take(queue, index)
    _hand_over(broker, channel, queue, message, consumer, consumer.no_ack)
    broker.refresh(queue)
    return wrong


def _limit(channel: Channel, consumer: Consumer) -> str:
    """The requirement that one more delivery to a consumer without room would break."""
    if channel.channel_prefetch:
        return "QOS-008"
    if not channel.prefetch or channel.prefetch > consumer.outstanding:
        return "QOS-003"  # the limit of consumers that are made from now on
    return "QOS-001"


def _hand_over(
    broker: Broker, channel: Channel, queue: Queue, message: Message, consumer: Consumer | None, no_ack: bool
) -> None:
    """The message is with the client now; unless it needs no acknowledgement, until it is settled."""
    tag = channel.next_tag
    channel.next_tag = tag + 1
    fired = ["CONSUME-014"] if tag > 1 else []
    if queue.reply_address:
        channel.uncounted_replies += 1
        fired.append("REPLY-001")
    if channel.uncounted_replies > queue.reply_address:
        fired.append("REPLY-006")
    if _tells_apart(message):
        fired.append("PUBLISH-016")
    if queue.messages and not message.redelivered:
        fired.append("PUBLISH-015")
    if any(other is not queue and channel.key in {c.channel for c in other.consumers} for other in broker.deliverable):
        fired.append("CONSUME-015")
    if message.redelivered:
        fired.extend(shown_by(broker, queue, message, consumer))
        if message.acquired_count:
            fired.append("QUORUM-001")
    if consumer is not None and queue.single_active_consumer and len(queue.consumers) > 1:
        fired.append("SAC-001")
    if consumer is not None and consumer.reason == "SAC-002":
        fired.append("SAC-002")
    if no_ack:
        channel.automatic.append(tag)
        broker.drop(queue, message, "CONSUME-013")
        fired.append("CONSUME-013")
        if consumer is not None and 0 < channel.prefetch < len(channel.automatic):
            fired.append("QOS-005")
    else:
        channel.unacknowledged[tag] = Unacknowledged(message, queue, consumer)
        if consumer is not None:
            consumer.outstanding += 1
            fired.extend(_limits_shown(channel, consumer))
    if consumer is not None and len(queue.consumers) > 1 and not queue.single_active_consumer:
        # whose turn it is next: a preference of the embedded broker, not a rule
        queue.consumers.remove(consumer)
        queue.consumers.append(consumer)
    broker.fired(*fired)


def _tells_apart(message: Message) -> bool:
    """Does the message have more to keep than a short body?"""
    content = message.content
    return bool(content.properties) or not content.body or len(content.body) > 65536


def _limits_shown(channel: Channel, consumer: Consumer) -> list[str]:
    """What it shows that the consumer was handed one more: limits that hold it back now, or that did not."""
    if consumer.outstanding == consumer.prefetch:
        if not consumer.queue.messages:
            return []
        return ["QOS-001", "QOS-006"] + (["QOS-003"] if channel.prefetch != consumer.prefetch else [])
    if not consumer.prefetch and consumer.outstanding > 1:
        return ["QOS-002"] + (["QOS-003"] if 0 < channel.prefetch < consumer.outstanding else [])
    return ["QOS-003"] if 0 < channel.prefetch < consumer.outstanding else []


def _observe_stream_deliver(broker: Broker, channel: Channel, consumer: Consumer, frame: Frame) -> Mismatches:
    """STREAM-003: from the log, in its order; nothing is taken away."""
    queue = consumer.queue
    if consumer.next_offset >= len(queue.log):
        return unexpected("STREAM-004", "basic.deliver beyond the end of the stream")
    message = queue.log[consumer.next_offset]
    if frame.content is None or frame.content.body != message.content.body:
        requirement = consumer.reason if consumer.reason == "ACK-021" else "STREAM-003"
        if frame.content is not None and all(m.content.body != frame.content.body for m in queue.log):
            requirement = routed_by(broker, frame.content.body) or "PUBLISH-016"
        return unexpected(requirement, "basic.deliver out of the stream's order")
    wrong = check_delivery(broker, channel, queue, message, frame, False)
    if any(mismatch.fatal for mismatch in wrong):
        return wrong
    consumer.next_offset += 1
    channel.unacknowledged[channel.next_tag] = Unacknowledged(message, queue, consumer)
    channel.next_tag += 1
    consumer.outstanding += 1
    broker.fired("STREAM-003")
    if message.position and "x-stream-offset" not in consumer.arguments:
        broker.fired("STREAM-004")
    if channel.next_tag > 2:
        broker.fired("CONSUME-014")
    if consumer.outstanding > 1 or consumer.next_offset < len(queue.log):
        broker.fired("PUBLISH-015")
    if _tells_apart(message):
        broker.fired("PUBLISH-016")
    broker.refresh(queue)
    return wrong


def _first_in_lane(channel: Channel, kind: type[PendingGet]) -> PendingGet | None:
    """The oldest owed get, if no other reply of the channel itself is owed before it."""
    for owed in channel.owed:
        if isinstance(owed, kind):
            return owed
        if isinstance(owed, Expected) and owed.lane == "channel":
            return None
    return None


def observe_get(broker: Broker, channel: Channel, frame: Frame) -> Mismatches:
    pending = _first_in_lane(channel, PendingGet)
    if not isinstance(pending, PendingGet):
        return nothing_explains(broker, channel, frame, None)
    queue = pending.queue
    if pending.counted and queue.type is QueueType.QUORUM and queue.messages and not broker.ready_range(queue)[0]:
        broker.fired("GET-007")
    if frame.method == "basic.get-empty":
        low, _ = broker.ready_range(queue)
        if low > 0 and not queue.deleted:
            limited = 0 < (channel.channel_prefetch or channel.prefetch) <= len(channel.unacknowledged)
            requirement = "GET-003" if limited else queue.messages[0].reason
            return unexpected(requirement, "basic.get-empty although a message is ready")
        wrong: Mismatches = NONE
        if pending.counted:
            broker.exercised["GET-001"] += 1
    else:
        found = find(broker, channel, queue, frame, None)
        if isinstance(found, str):
            return nothing_explains(broker, channel, frame, found, asked=True)
        message = queue.messages[found]
        low, high = broker.ready_range(queue)
        wrong = check_delivery(broker, channel, queue, message, frame, True)
        count = frame.arguments.get("message_count", 0)
        if not max(low - 1, 0) <= count <= high - 1:
            allowed = str(high - 1) if low == high else f"{max(low - 1, 0)}..{high - 1}"
            wrong += (Mismatch("GET-001", Shape.WRONG_ARGUMENT, "basic.get-ok message-count", False, allowed),)
        if any(mismatch.fatal for mismatch in wrong):
            return wrong
        broker.take(queue, found)
        _hand_over(broker, channel, queue, message, None, pending.no_ack)
        if channel.state is not ChannelState.OPEN and channel.unacknowledged:
            # the channel was closed by a later input, and the message went back with all that it held
            entry = channel.unacknowledged.popitem()[1]
            give_back(broker, queue, [entry.message], "GET-004", failed=True, holder=channel.key, lost_holder=True)
        broker.fired("GET-001")
        limit = channel.channel_prefetch or channel.prefetch
        if limit and len(channel.unacknowledged) > limit:
            broker.fired("GET-003")
        broker.refresh(queue)
    channel.owed.remove(pending)
    broker.settle_debts(channel)
    return wrong
