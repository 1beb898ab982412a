"""Which deliveries time out when: what a judge knows of it, and what a broker does that knows the times itself.

What it means: `model.rules.extensions.timeout_cancels_consumer`, `model.rules.extensions.timeout_closes_channel`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, ChannelState, Unacknowledged
from amqpspec.model.broker.deadlines import LATE_SECONDS, NEVER
from amqpspec.model.broker.delivery_timeouts import first_of_each, note_next_timeout
from amqpspec.model.broker.internal_events import DeliveryTimeout
from amqpspec.model.promises.choices import ConsumerTimeouts
from amqpspec.model.protocol.methods import ChannelKey
from amqpspec.model.rules.extensions.timeout_cancels_consumer import is_told_by_close, time_out
from amqpspec.model.rules.extensions.timeout_closes_channel import close_channel, oldest


def candidates(broker: Broker) -> Iterator[tuple[Channel, int, Unacknowledged]]:
    """The deliveries that are next to time out, one of each consumer or of each channel."""
    for key in broker.timing:
        channel = broker.channels.get(key)
        if channel is None or channel.state is not ChannelState.OPEN:
            continue
        if broker.dialect.consumer_timeouts is ConsumerTimeouts.OF_QUORUM_QUEUES:
            for tag, entry in first_of_each(channel):
                yield channel, tag, entry
        elif (first := oldest(channel)) is not None and first[1].deadline is not None:
            yield channel, *first


def timeouts(broker: Broker, now: float, *, is_certain: bool, ahead: float = 0.0) -> None:
    """It is `now`: have what must have timed out time out, and tell of what may have (`Broker.internal_events`).

    `is_certain`: nothing is under way that might have settled it. `ahead`: as in `message_expiries`.
    """
    if is_certain:
        while over := _certainly_over(broker, now):
            for channel, tag, entry in sorted(over, key=_earliest):
                if _is_open(channel, tag, entry):
                    assert entry.deadline is not None
                    broker.busy_since = min(broker.busy_since, entry.deadline.earliest)
                    _process(broker, channel, tag)
    broker.looked_ahead_until = max(broker.looked_ahead_until, now + ahead)
    _note_exempt(broker, now)
    tell_of_timeouts(broker)
    note_next_timeout(broker)


def _certainly_over(broker: Broker, now: float) -> list[tuple[Channel, int, Unacknowledged]]:
    return [each for each in candidates(broker) if _certain_by(broker, each[0], each[1], each[2]) < now]


def _earliest(candidate: tuple[Channel, int, Unacknowledged]) -> float:
    deadline = candidate[2].deadline
    return deadline.earliest if deadline is not None else NEVER


def _note_exempt(broker: Broker, now: float) -> None:
    """Some of what does not time out would have by now."""
    over = [each for each in broker.bookkeeping.exempt if each[2].latest + _tick(broker, each[0]) < now]
    if over:
        broker.bookkeeping.exempt = [each for each in broker.bookkeeping.exempt if each not in over]
        for key, requirement, _ in over:
            if key in broker.channels and broker.channels[key].state is ChannelState.OPEN:
                broker.bookkeeping.exercised[requirement] += 1


def _tick(broker: Broker, key: ChannelKey) -> float:
    is_by_tick = broker.dialect.consumer_timeouts is not ConsumerTimeouts.OF_QUORUM_QUEUES
    return broker.channels[key].tick if is_by_tick and key in broker.channels else 0.0


def _is_open(channel: Channel, tag: int, entry: Unacknowledged) -> bool:
    return channel.state is ChannelState.OPEN and channel.unacknowledged.get(tag) is entry


def _certain_by(broker: Broker, channel: Channel, tag: int, entry: Unacknowledged) -> float:
    """From when on it has certainly timed out, as long as nobody settles it."""
    assert entry.deadline is not None
    if broker.dialect.consumer_timeouts is ConsumerTimeouts.OF_QUORUM_QUEUES:
        return entry.deadline.latest
    if channel.oldest_tag != tag:
        channel.oldest_tag, channel.oldest_by = tag, broker.latest
    return max(entry.deadline.due, channel.oldest_by) + channel.tick + LATE_SECONDS


def tell_of_timeouts(broker: Broker) -> None:
    """Put down what may time out in the time that matters now."""
    for channel, tag, entry in candidates(broker):
        assert entry.deadline is not None
        if entry.deadline.earliest <= broker.looked_ahead_until:
            broker.internal_events.append(DeliveryTimeout(channel.key, tag))


def doubted_delivery(broker: Broker, event: DeliveryTimeout) -> tuple[Channel, Unacknowledged] | None:
    """The delivery that times out if the event comes about; None: it cannot any more."""
    for channel, tag, entry in candidates(broker):
        if channel.key == event.key and tag == event.tag:
            assert entry.deadline is not None
            return (channel, entry) if entry.deadline.earliest <= broker.looked_ahead_until else None
    return None


#: How many deliveries, at most, may time out with the one because of which a channel is closed.
MOST_TOGETHER = 4


def others_due(broker: Broker, event: DeliveryTimeout) -> list[int]:
    """Deliveries that may time out together with that one, before its channel is closed because of it."""
    found = doubted_delivery(broker, event)
    if found is None or broker.dialect.consumer_timeouts is not ConsumerTimeouts.OF_QUORUM_QUEUES:
        return []
    channel, first = found
    return others_due_on(broker, channel, first) if is_told_by_close(broker, channel, first) else []


def others_due_on(broker: Broker, channel: Channel, first: Unacknowledged) -> list[int]:
    """The other deliveries of the channel whose time may be up as well."""
    due = [
        (each.deadline.earliest, tag)
        for tag, each in channel.unacknowledged.items()
        if each is not first and each.deadline is not None and each.deadline.earliest <= broker.looked_ahead_until
    ]
    return [tag for _, tag in sorted(due)]


def process_closing(broker: Broker, event: DeliveryTimeout, number: int) -> None:
    """The delivery times out, and so many others of the channel, which is closed whatever the client understands."""
    found = doubted_delivery(broker, event)
    if found is None:
        return
    others = others_due_on(broker, *found)[:number]
    connection = broker.connections[event.key[0]]
    understood = connection.capabilities
    connection.capabilities = {**understood, "consumer_cancel_notify": False}
    process_timeout(broker, event, others)
    connection.capabilities = understood


def process_timeout(broker: Broker, event: DeliveryTimeout, others: Sequence[int] = ()) -> None:
    """The delivery times out at this point, with these others of its channel, and the next one may as well."""
    found = doubted_delivery(broker, event)
    if found is not None:
        channel, entry = found
        assert entry.deadline is not None
        broker.not_before = max(broker.not_before, entry.deadline.earliest)
        broker.busy_since = min(broker.busy_since, entry.deadline.earliest)
        _process(broker, channel, event.tag, others)
        tell_of_timeouts(broker)


def _process(broker: Broker, channel: Channel, tag: int, others: Sequence[int] = ()) -> None:
    if broker.dialect.consumer_timeouts is ConsumerTimeouts.OF_QUORUM_QUEUES:
        time_out(broker, channel, tag, others)
    else:
        close_channel(broker, channel)


# ------------------------------------------------------------------------- a broker that knows the times itself


def next_due(broker: Broker) -> float:
    """When the next delivery times out, `NEVER` if none does."""
    dues = [entry.deadline.since + entry.deadline.seconds for _, _, entry in candidates(broker) if entry.deadline]
    return min(dues, default=float("inf"))


def time_out_punctually(broker: Broker, now: float) -> None:
    for event in due_by(broker, now):
        time_out_now(broker, event)
    note_next_timeout(broker)


def due_by(broker: Broker, now: float) -> Iterator[DeliveryTimeout]:
    """The deliveries that time out by `now`. Each must have timed out, or lost its deadline, before the next is asked
    for.
    """
    while next_due(broker) <= now:
        for channel, tag, entry in list(candidates(broker)):
            deadline = entry.deadline
            if deadline and deadline.since + deadline.seconds <= now and _is_open(channel, tag, entry):
                yield DeliveryTimeout(channel.key, tag)


def time_out_now(broker: Broker, event: DeliveryTimeout) -> None:
    """What `due_by` tells of comes about."""
    _process(broker, broker.channels[event.key], event.tag)
