"""Messages whose time in their queue is up are removed, and dead-lettered (areas TTL and DLX).

A message's time is up at a moment that is known as a span (`model.broker.deadlines`). Within it the acceptor tries at
every point whether the queue has removed it already: that is the internal event `MessageExpiry`. What is
in front goes first, so one of these is open for each queue, and the next comes with it. After the span the message is
gone.

RabbitMQ: rabbit_amqqueue_process:drop_expired_msgs, by a timer for the message in front, and whenever one is taken or
comes back; rabbit_fifo:expire_msgs before each delivery, and the timer of timer_effect.

Requirements:

* TTL-003: Expired behind a live head. Messages expire only at the head: they are still counted while a live message is
  in front. get-ok.message_count: classic already drops the expired follower (0), quorum still counts it (1). A quorum
  queue of 4.3 has a head of each priority, and one of the messages that were given back. In rabbitmq-4.3: quorum
  queues: behind a live message of the same priority. [rabbit_amqqueue_process:fetch; rabbit_fifo:expire_msgs,
  expire_batch (4.3)]
* TTL-004: expiration "0". Delivered if a consumer can take it at once, else removed; confirmed either way.
  [rabbit_amqqueue_process]
* TTL-005: Unacked messages do not expire. Expiry is checked again on requeue: an over-age message nacked with requeue
  vanishes. [LavinMQ specs "expires messages with TTL on requeue"]
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import ChannelState
from amqpspec.model.broker.deadlines import NEVER
from amqpspec.model.broker.dispatch import contenders
from amqpspec.model.broker.internal_events import MessageExpiry
from amqpspec.model.broker.length_limits import handed_over
from amqpspec.model.broker.queues import Message, Queue
from amqpspec.model.broker.survival import AGE
from amqpspec.model.broker.time_to_live import (
    ARGUMENT,
    BEHIND,
    GIVEN_BACK,
    certain_by,
    exposed,
    front_known_by,
    is_due,
    is_long_over,
    looks_behind,
    may_go,
)
from amqpspec.model.broker.transaction import Transaction
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import ChannelKey
from amqpspec.model.rules.extensions.dead_letter import has_to_be_seen, keep_within_limits, outlive

#: Seconds in which an answer may come to what is sent now: what expires in that time may have expired before it.
AHEAD = 1.5


# ---------------------------------------------------------------------------------- what a judge knows of it


def message_expiries(broker: Broker, now: float, *, is_certain: bool, ahead: float = 0.0) -> None:
    """It is `now`: remove what has certainly expired, and tell of what may have (`Broker.internal_events`).

    `is_certain`: nothing is under way that might have taken the messages. `ahead`: seconds in which what is done now
    is seen.
    """
    broker.latest = max(broker.latest, now)
    for queue in list(broker.ageing):
        if queue.deleted:
            del broker.ageing[queue]
        elif is_certain and queue not in broker.deliverable:
            _remove_certain(broker, queue, now)
    broker.looked_ahead_until = now + ahead
    tell_of_expiries(broker)


def _remove_certain(broker: Broker, queue: Queue, now: float) -> None:
    while over := [each for each in exposed(broker.dialect, queue, 0) if _certain_by(broker, each) < now]:
        if has_to_be_seen(broker, queue, over[0]):
            return
        _expire(broker, queue, over[0], by=certain_by(over[0]))


def _certain_by(broker: Broker, message: Message) -> float:
    return certain_by(message)


def should_have_expired(broker: Broker) -> bool:
    """Is something ready whose time had certainly been looked at before the last input was sent?

    So the broker is not at this point: what the queue has removed, or what had come to it, has been processed by now.
    """
    return any(
        _certain_by(broker, each) < broker.now
        for queue in broker.ageing
        if not queue.deleted and queue not in broker.deliverable
        for each in exposed(broker.dialect, queue, 0)
    )


def fronts_were_seen(broker: Broker, now: float) -> None:
    """The broker was at this point before `now`: what is in front in its queues was so by then."""
    for queue in broker.ageing:
        for message in exposed(broker.dialect, queue, 0):
            message.in_front_by = min(message.in_front_by, now)


def tell_of_expiries(broker: Broker) -> None:
    """Put down what may expire in the time that matters now."""
    for queue in broker.ageing:
        for message in may_go(broker.dialect, queue, handed_over(broker, queue)):
            if _may_expire(broker, queue, message):
                broker.internal_events.append(MessageExpiry(queue.name, message.position))


def _may_expire(broker: Broker, queue: Queue, message: Message) -> bool:
    if message.deadline is None or message.deadline.earliest > broker.looked_ahead_until:
        return False
    return message.redelivered or not broker.dialect.extensions or not _is_awaited(broker, queue)


def _is_awaited(broker: Broker, queue: Queue) -> bool:
    """Does somebody certainly wait for the queue's next new message, and is handed it whatever its time (TTL-004)?"""
    if queue not in broker.deliverable or queue.messages[0].redelivered:
        return False
    for consumer in contenders(broker, queue):
        channel = broker.channels[consumer.channel]
        is_sure = not consumer.is_doubtful and not consumer.unheeded_prefetch and not channel.channel_prefetch
        if is_sure and consumer.announced and channel.state is ChannelState.OPEN and broker.has_room(consumer):
            return True
    return False


def doubted_message(broker: Broker, event: MessageExpiry) -> tuple[Queue, Message] | None:
    """The message that expires if the event comes about; None: it cannot any more."""
    queue = broker.queues.get(event.queue)
    for message in () if queue is None else may_go(broker.dialect, queue, handed_over(broker, queue)):
        if message.position == event.position:
            assert queue is not None
            return (queue, message) if _may_expire(broker, queue, message) else None
    return None


def process_message_expiry(broker: Broker, event: MessageExpiry) -> None:
    """The message expires at this point, and the next one may as well."""
    found = doubted_message(broker, event)
    if found is not None:
        queue, message = found
        assert message.deadline is not None
        broker.not_before = max(broker.not_before, message.deadline.earliest)
        broker.busy_since = min(broker.busy_since, message.deadline.earliest)
        _expire(broker, queue, message, by=NEVER)
        tell_of_expiries(broker)


def expire_timeless(broker: Broker, transaction: Transaction) -> None:
    """What has no time at all expires before the transaction goes on, if its queue has come to it (TTL-004)."""
    if transaction.expires_between:
        for queue in list(broker.ageing):
            while (message := _timeless(broker, queue)) is not None:
                _expire(broker, queue, message, by=NEVER)


def expire_timeless_letters(broker: Broker, queue: Queue) -> None:
    """A classic queue removes such a dead letter before the next one comes, and after it has looked at its limits
    (rabbit_amqqueue_process:deliver_or_enqueue), where nobody may be handed it.
    """
    while queue.type is QueueType.CLASSIC and queue not in broker.deliverable:
        message = _timeless(broker, queue)
        if message is None or (has_to_be_seen(broker, queue, message) and not broker.is_punctual):
            return
        _expire(broker, queue, message, by=NEVER)


def _timeless(broker: Broker, queue: Queue) -> Message | None:
    """The next message that has no time at all, and that nobody is handed first."""
    for message in exposed(broker.dialect, queue, handed_over(broker, queue)):
        if message.deadline is not None and not message.deadline.seconds and not _is_awaited(broker, queue):
            return message
    return None


def messages_are_at_rest(broker: Broker, now: float) -> None:
    """Whatever was sent has been processed by now."""
    broker.latest = max(broker.latest, now)
    broker.last_at_rest = broker.latest
    for queue in list(broker.ageing) if broker.ageing else ():
        if queue.deleted or not front_known_by(broker.dialect, queue, broker.latest):
            del broker.ageing[queue]


# ------------------------------------------------------------------------------- where the queue looks by itself


def look_behind_fetch(broker: Broker, queue: Queue, dropped: int = 0, *, no_ack: bool = False) -> None:
    """A message was taken. A classic queue removes at once what is next and has expired: so many, or what it must.

    A quorum queue does it in its own time, but before it hands over the next one, or has settled this one (`no_ack`).
    """
    if queue not in broker.ageing or not (looks_behind(queue, no_ack) or broker.is_punctual):
        return
    while queue.messages and (dropped > 0 or is_due(queue.messages[0], broker.last_at_rest)):
        if has_to_be_seen(broker, queue, queue.messages[0]) and not broker.is_punctual:
            return  # as in `_remove_certain`: that it has happened is an input of its own
        _expire(broker, queue, queue.messages[0], by=NEVER)
        dropped -= 1


def look_at_returned(
    broker: Broker, queue: Queue, messages: Sequence[Message], holder: ChannelKey, away: Collection[Message]
) -> None:
    """Messages came back, and the queue looks at what is too much and at what is in front now (TTL-005).

    The limits of a quorum queue come after what it serves and what has expired (rabbit_fifo:checkout), those of a
    classic queue before.
    """
    if queue.type is QueueType.QUORUM:
        _expire_in_front(broker, queue)
    if messages and not queue.deleted:
        keep_within_limits(broker, queue, messages[-1], holder, given_back=True, away=away)
    if queue.type is not QueueType.QUORUM:
        _expire_in_front(broker, queue)


def _expire_in_front(broker: Broker, queue: Queue) -> None:
    for message in queue.messages:
        if message.deadline is not None:
            broker.ageing[queue] = None
            break
    else:
        return
    while over := [each for each in exposed(broker.dialect, queue, 0) if is_due(each, broker.now)]:
        _expire(broker, queue, over[0], by=NEVER)


# ------------------------------------------------------------------------- a broker that knows the times itself


def next_message_expiry(broker: Broker) -> float:
    """When the next message expires, `NEVER` if none does."""
    return min((deadline for queue in broker.ageing for deadline in _dues(broker, queue)), default=NEVER)


def _dues(broker: Broker, queue: Queue) -> list[float]:
    if queue in broker.deliverable:
        return []
    return [m.deadline.since + m.deadline.seconds for m in exposed(broker.dialect, queue, 0) if m.deadline is not None]


def expire_messages_punctually(broker: Broker, now: float) -> None:
    """Remove what is over, one moment after the other. A queue that has somebody to hand its messages to does that
    first (TTL-004).
    """
    while (moment := next_message_expiry(broker)) <= now:
        # one that was not in front before goes later than at its time
        broker.now = max(broker.now, moment)
        for queue in list(broker.ageing):
            for message in list(exposed(broker.dialect, queue, 0)):
                deadline = message.deadline
                if queue not in broker.deliverable and deadline and deadline.since + deadline.seconds <= broker.now:
                    _expire(broker, queue, message, by=broker.now)
    forget_ageless_queues(broker)


def forget_ageless_queues(broker: Broker) -> None:
    """Those that are gone, or hold no messages any more whose time will be up."""
    for queue in list(broker.ageing):
        if queue.deleted or all(message.deadline is None for message in queue.messages):
            del broker.ageing[queue]


# ------------------------------------------------------------------------------------------------- the step


def _expire(broker: Broker, queue: Queue, message: Message, by: float) -> None:
    """The message is removed, and is a dead letter `by` then."""
    index = queue.messages.index(message)
    broker.take(queue, index)
    if index < len(queue.messages):
        following = queue.messages[index]
        following.in_front_by = min(following.in_front_by, by)
    give_up_expired(broker, queue, message, by)
    broker.refresh(queue)


def give_up_expired(broker: Broker, queue: Queue, message: Message, by: float) -> None:
    """The message, which is not among the ready ones any more, is gone for the queue, and a dead letter."""
    assert message.deadline is not None
    requirement = GIVEN_BACK if message.redelivered else message.ttl_from
    broker.note_gone(queue, message, requirement)
    queue.expired_counted += not broker.dialect.extensions
    # it is the broker's own doing, also where only a barrier shows it
    decided = queue.decided(ARGUMENT)
    for each in dict.fromkeys((requirement, *(decided if message.ttl_from in decided else ()))):
        broker.bookkeeping.exercised[each] += 1
    if message.survived_by:
        broker.bookkeeping.exercised[AGE] += 1
    holder = _holder(broker, message)
    if holder is not None:
        broker.touch(broker.channels[holder], queue, keeps_state=False)
    moments = broker.now, broker.step_done_by
    if not broker.is_punctual:
        broker.now = message.deadline.since + message.deadline.seconds
    broker.step_done_by = by
    with broker.bookkeeping.counting_anyway():
        outlive(broker, queue, message, holder)
    broker.now, broker.step_done_by = moments


def _holder(broker: Broker, message: Message) -> ChannelKey | None:
    """Some channel by which to look after what becomes of the message, at best its publisher's; None: there is none."""
    if message.via is not None and message.via in broker.channels:
        return message.via
    return next((key for key, each in broker.channels.items() if each.state is ChannelState.OPEN), None) or next(
        iter(broker.channels), None
    )


def shown_by_count(broker: Broker, queue: Queue) -> str | None:
    """What it shows to count the ready messages: that some have expired, and are behind one that has not (TTL-003)."""
    if queue in broker.ageing and any(is_long_over(message, broker.now) for message in queue.messages):
        return BEHIND
    return None


def note_expired(broker: Broker, queue: Queue, shown: list[str]) -> None:
    """The ready messages are counted."""
    if behind := shown_by_count(broker, queue):
        shown.append(behind)


def too_early(broker: Broker, body: bytes) -> str | None:
    """The requirement that is broken if a message of that body is a dead letter already, by its time."""
    for queue in broker.ageing:
        for index, message in enumerate(queue.messages):
            if message.content.body == body and message.deadline is not None:
                return BEHIND if index and message.deadline.earliest <= broker.latest else message.ttl_from
    for channel in broker.channels.values():
        for entry in channel.unacknowledged.values():
            if entry.message.content.body == body and entry.message.deadline is not None:
                return GIVEN_BACK
    return None
