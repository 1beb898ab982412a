"""Observing an output: is this frame permitted in this state, and what is the state after it?

`observe` is the one definition of what a broker may send. The judge asks it about frames that a target sent, the
embedded broker and the explorer about frames that `model.permitted` enumerates.
"""

from __future__ import annotations

from model.alphabet import Frame
from model.broker import Broker
from model.messages import check_delivery, find
from model.mismatch import NONE, Mismatch, Mismatches, unexpected
from model.patterns import Pattern, matches
from model.rules.closing import end_connection
from model.rules.requeue import give_back, shown_by
from model.state import (
    Channel,
    ChannelState,
    Connection,
    ConnectionState,
    Consumer,
    Expected,
    Message,
    PendingGet,
    Queue,
    QueueType,
    Unacknowledged,
)
from model.verdict import Shape

#: Arguments that can be wrong without leaving the state in doubt.
HARMLESS = frozenset({"reply_text", "reply_code", "class_id", "method_id", "message_count", "consumer_count", "nowait"})

#: What a frame breaks that nothing asked for.
UNSOLICITED = {
    "basic.cancel": "CANCEL-002",
    "basic.return": "PUBLISH-008",
    "basic.ack": "CONFIRM-003",
    "basic.nack": "CONFIRM-003",
    "basic.get-ok": "GET-001",
    "basic.get-empty": "GET-001",
    "basic.deliver": "CANCEL-001",
    "socket.closed": "CONN-020",
}


def observe(broker: Broker, frame: Frame) -> Mismatches:
    """Take the frame out of what the broker may send. Returns the differences; none is right.

    After a fatal mismatch the state is unchanged, except for harmless bookkeeping; after others it is the state that
    the right frame would have led to.
    """
    if frame.channel == 0:
        return _observe_on_connection(broker, frame)
    channel = broker.channels.get((frame.connection, frame.channel))
    if channel is None:
        return unexpected(UNSOLICITED.get(frame.method, "CHAN-001"), f"{frame.method} on a channel that is not open")
    method = frame.method
    if channel.state is ChannelState.CLOSED and _is_over(broker, frame):
        return NONE  # overtaken by connection.close on its way to the socket; every client drops it
    if method == "basic.deliver":
        return _observe_deliver(broker, channel, frame)
    if method == "basic.get-ok" or method == "basic.get-empty":
        return _observe_get(broker, channel, frame)
    if method == "basic.ack" or method == "basic.nack":
        return _observe_confirm(broker, channel, frame)
    return _observe_reply(broker, channel, frame)


def _is_over(broker: Broker, frame: Frame) -> bool:
    """Has the broker's connection.close been seen?"""
    connection = broker.connections.get(frame.connection)
    return connection is not None and connection.state is ConnectionState.CLOSING and not connection.owed


# ------------------------------------------------------------------------------------------------ deliveries


def _observe_deliver(broker: Broker, channel: Channel, frame: Frame) -> Mismatches:
    consumer = channel.consumers.get(frame.arguments["consumer_tag"])
    if consumer is None or channel.state is not ChannelState.OPEN:
        return _nothing_explains(broker, channel, frame, channel.ended_consumers.get(frame.arguments["consumer_tag"]))
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
            return _nothing_explains(broker, channel, frame, found)
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
            requirement = "PUBLISH-016"
        return unexpected(requirement, "basic.deliver out of the stream's order")
    wrong = check_delivery(broker, channel, queue, message, frame, False)
    if any(mismatch.fatal for mismatch in wrong):
        return wrong
    consumer.next_offset += 1
    channel.unacknowledged[channel.next_tag] = Unacknowledged(message, queue, consumer)
    channel.next_tag += 1
    consumer.outstanding += 1
    broker.fired("STREAM-003")
    if channel.next_tag > 2:
        broker.fired("CONSUME-014")
    if consumer.outstanding > 1 or consumer.next_offset < len(queue.log):
        broker.fired("PUBLISH-015")
    if _tells_apart(message):
        broker.fired("PUBLISH-016")
    broker.refresh(queue)
    return wrong


def _observe_get(broker: Broker, channel: Channel, frame: Frame) -> Mismatches:
    pending = _first_in_lane(channel, PendingGet)
    if not isinstance(pending, PendingGet):
        return _nothing_explains(broker, channel, frame, None)
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
            return _nothing_explains(broker, channel, frame, found, asked=True)
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


# ------------------------------------------------------------------------------------------------- confirms


def _observe_confirm(broker: Broker, channel: Channel, frame: Frame) -> Mismatches:
    """CONFIRM-003: each publish once; `multiple` means all that are still open up to the tag."""
    tag = frame.arguments.get("delivery_tag", 0)
    unconfirmed = channel.unconfirmed
    if frame.arguments.get("multiple"):
        numbers = [number for number in unconfirmed if number <= tag] if tag <= channel.published else []
    else:
        numbers = [tag] if tag in unconfirmed else []
    if not numbers:
        return unexpected("CONFIRM-003", f"{frame.method} of a publish that is not open")
    for owed in channel.owed:
        if isinstance(owed, Expected) and owed.publish and owed.publish in numbers:
            return unexpected("CONFIRM-009", f"{frame.method} before basic.return")
    fired = ["CONFIRM-002", "CONFIRM-003"]
    for number in numbers:
        copies = unconfirmed.pop(number)
        for queue, message in copies:
            if queue.unproven:
                broker.prove(queue, message)
        if len(copies) != 1:
            fired.append("CONFIRM-010" if copies else "CONFIRM-008")
    broker.settle_debts(channel)
    broker.fired(*fired)
    if frame.method == "basic.nack":
        return (Mismatch("CONFIRM-011", Shape.UNEXPECTED, "basic.nack of a message that no queue refused", False),)
    return NONE


# -------------------------------------------------------------------------------------------------- replies


def _first_in_lane(channel: Channel, kind: type[PendingGet]) -> PendingGet | None:
    """The oldest owed get, if no other reply of the channel itself is owed before it."""
    for owed in channel.owed:
        if isinstance(owed, kind):
            return owed
        if isinstance(owed, Expected) and owed.lane == "channel":
            return None
    return None


def _observe_reply(broker: Broker, channel: Channel, frame: Frame) -> Mismatches:
    """The first owed frame of its lane that this is; of several lanes, the one whose frame it fits."""
    lanes: set[str] = set()
    found: Expected | None = None
    for owed in channel.owed:
        lane = "channel" if isinstance(owed, PendingGet) else owed.lane
        if lane in lanes:
            continue
        lanes.add(lane)
        if isinstance(owed, Expected) and owed.method == frame.method:
            if _fits(owed, frame):
                found = owed
                break
            found = found or owed
    if found is None:
        return _nothing_explains(broker, channel, frame, None)
    if any(not isinstance(other, PendingGet) and other.lane != found.lane for other in channel.owed):
        broker.fired("CHAN-019")
    return _take_expected(broker, channel, found, frame)


def _fits(expected: Expected, frame: Frame) -> bool:
    """Do the arguments agree that cannot be wrong without leaving the state in doubt?"""
    return all(
        matches(value, frame.arguments.get(name)) for name, value in expected.arguments.items() if name not in HARMLESS
    )


def _take_expected(broker: Broker, holder: Channel | Connection, expected: Expected, frame: Frame) -> Mismatches:
    wrong: Mismatches = NONE
    for name, value in expected.arguments.items():
        observed = frame.arguments.get(name)
        if value.matches(observed) if isinstance(value, Pattern) else value == observed:
            continue
        if not value and not observed and not isinstance(value, Pattern):
            continue  # a field at its zero value may be left out of the frame's arguments
        requirement = expected.blame.get(name, expected.requirements[0])
        detail = f"{frame.method} {name.replace('_', '-')}"
        allowed = f"{name.replace('_', '-')}={value}"
        departure = ""
        if name in expected.departures and matches(expected.departures[name][0], observed):
            if not expected.counted:
                continue  # known, and asked for by a barrier: what a sequence is about shows it or does not
            departure = expected.departures[name][1]
        wrong += (Mismatch(requirement, Shape.WRONG_ARGUMENT, detail, name not in HARMLESS, allowed, departure),)
    if expected.content is not None and frame.content != expected.content:
        wrong += (Mismatch(expected.requirements[0], Shape.WRONG_ARGUMENT, f"{frame.method} content", False),)
    if wrong and any(mismatch.fatal for mismatch in wrong):
        return wrong
    holder.owed.remove(expected)
    if expected.effect is not None:
        name, subject = expected.effect
        getattr(broker, name)(subject, frame.arguments)
    if expected.counted:
        for requirement in expected.requirements:
            broker.exercised[requirement] += 1
    if isinstance(holder, Channel):
        broker.settle_debts(holder)
    elif not holder.owed:
        broker.debtors.pop((holder.name, 0), None)
    return wrong


def _nothing_explains(
    broker: Broker, channel: Channel, frame: Frame, requirement: str | None, asked: bool = False
) -> Mismatches:
    """Blame for a frame that may not come now: an error that is owed and did not come, else the frame's own rule."""
    for owed in broker.connections[channel.connection].owed:
        if isinstance(owed, Expected) and owed.method == "connection.close":
            return unexpected(owed.requirements[0], f"{frame.method} in place of {owed.method}")
    if not asked:
        for owed in channel.owed:
            if isinstance(owed, Expected) and owed.method in ("channel.close", "basic.return"):
                return unexpected(owed.requirements[0], f"{frame.method} in place of {owed.method}")
        first = channel.owed[0] if channel.owed else None
        # what a barrier waits for is not to blame
        if requirement is None and isinstance(first, Expected) and first.counted:
            owed = first
            if frame.method == "basic.cancel" and owed.method == "queue.delete-ok":
                return unexpected("CANCEL-011", "basic.cancel before queue.delete-ok")
            return unexpected(owed.requirements[0], f"{frame.method} in place of {owed.method}")
    if requirement is None:
        requirement = UNSOLICITED.get(frame.method) or channel.reason or "CHAN-007"
    return unexpected(requirement, frame.method)


# ----------------------------------------------------------------------------------------------- connections


def _observe_on_connection(broker: Broker, frame: Frame) -> Mismatches:
    connection = broker.connections.get(frame.connection)
    if connection is None:
        connection = broker.connections[frame.connection] = Connection(frame.connection)
    if frame.method in ("socket.closed", "socket.garbage"):
        return _observe_end(broker, connection, frame)
    if connection.state is ConnectionState.HANDSHAKE:
        if frame.method == "connection.start":
            connection.server_properties = frame.arguments.get("server_properties", {})
        return NONE
    for owed in connection.owed:
        if isinstance(owed, Expected) and owed.method == frame.method:
            wrong = _take_expected(broker, connection, owed, frame)
            if frame.method == "connection.close" and connection.state is ConnectionState.OPEN:
                # it was owed while the channels went on (model.departures)
                end_connection(broker, connection)
                connection.state = ConnectionState.CLOSING
                connection.may_end = True
            return wrong
    if connection.owed and isinstance(connection.owed[0], Expected):
        return unexpected(connection.owed[0].requirements[0], f"{frame.method} in place of {connection.owed[0].method}")
    if frame.method == "connection.close":
        # an error that the model wanted on a channel, or none at all
        for channel in broker.channels.values():
            first = channel.owed[0] if channel.owed else None
            if channel.connection == connection.name and isinstance(first, Expected) and first.counted:
                return unexpected(first.requirements[0], f"connection.close in place of {first.method}")
        return unexpected(broker.reason or "CHAN-007", frame.method)
    return unexpected("CONN-019", frame.method)


def _observe_end(broker: Broker, connection: Connection, frame: Frame) -> Mismatches:
    if connection.may_end and not connection.owed:
        connection.state = ConnectionState.CLOSED
        return NONE
    if connection.owed and isinstance(connection.owed[0], Expected):
        return unexpected(connection.owed[0].requirements[0], f"{frame.method} in place of {connection.owed[0].method}")
    for channel in broker.channels.values():
        if channel.connection == connection.name and channel.owed and isinstance(channel.owed[0], Expected):
            return unexpected(channel.owed[0].requirements[0], f"{frame.method} in place of {channel.owed[0].method}")
    return unexpected(broker.reason or "CONN-020", frame.method)
