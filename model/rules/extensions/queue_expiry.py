"""Queues with x-expires: unused for that long they are deleted (QUEUE-027).

The broker's clock is not the trace's: an input reaches the broker some time after it was sent. So a queue is certain to
exist for a good part of its time, certain to be gone some time after it, and in between it may be either. `expiries`
asks for that at every input; what may happen in between is an internal event, `QueueExpiry`, which the
acceptor processes at every point at which it might.

RabbitMQ: rabbit_amqqueue_process:ensure_expiry_timer (classic queues: from the last use on, exact), rabbit_fifo:tick
(quorum queues: looked at every `quorum_tick_interval`, which is 5 seconds unless configured).

Requirements:

* CANCEL-015: Queue expiry / vhost deletion. x-expires deletion cannot hit a queue with consumers; vhost deletion sends
  basic.cancel to each consumer, then connection.close 320. [rabbit_channel.erl; rabbit_reader.erl]
* DURABLE-018: Expiring queues. The time of a durable queue with x-expires begins anew when the broker is up again.
  [RabbitMQ guide: time-to-live and expiration (queue TTL: leases of durable queues restart)]
* QUEUE-027: x-expires. A queue with x-expires is deleted after being unused that long; no basic.cancel arises since
  there is no consumer at that moment. Uses are a consumer, basic.get, on classic queues a declare with an answer, and
  on quorum queues whoever holds messages; on these expiry is evaluated on a coarser tick (5 s).
  [rabbit_amqqueue_process:ensure_expiry_timer; rabbit_fifo tick]
"""

from __future__ import annotations

from collections.abc import Iterator

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.deadlines import NEVER
from amqpspec.model.broker.delivery_timeouts import note_next_timeout
from amqpspec.model.broker.internal_events import QueueExpiry
from amqpspec.model.broker.queues import Queue
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.field_types import is_whole_number
from amqpspec.model.rules.extensions.message_expiry import (
    expire_messages_punctually,
    forget_ageless_queues,
    next_message_expiry,
)
from amqpspec.model.rules.extensions.timeout_schedule import next_due, time_out_punctually

ARGUMENT = "x-expires"

#: Seconds by which a broker may be late, and by which the last use may be later than it was sent.
SLACK = {QueueType.CLASSIC: 1.0, QueueType.QUORUM: 6.0}

#: The part of its time, and the seconds, by which a queue may seem to go early: its last look was sent before it came.
EARLY_PART, EARLY_SECONDS = 0.5, 1.0


def lifetime(queue: Queue) -> float | None:
    """Seconds that the queue lives unused; None: for ever."""
    milliseconds = queue.in_force.get(ARGUMENT)
    return milliseconds / 1000 if is_whole_number(milliseconds) and queue.type in SLACK else None


def begin(broker: Broker, queue: Queue) -> None:
    """The queue was made just now."""
    if lifetime(queue) is not None:
        broker.expiring[queue.name] = None
        broker.used(queue)


def begin_again(broker: Broker, queue: Queue) -> None:
    """What its policies say has changed: its time begins anew, but for quorum queues from 4.3 on
    (rabbit_fifo:update_config).
    """
    if lifetime(queue) is not None:
        broker.expiring[queue.name] = None
        unused_since = queue.idle_since
        broker.used(queue)
        if queue.type is QueueType.QUORUM and not broker.is_punctual:
            queue.idle_since = unused_since


def note_lifetime(broker: Broker, queue: Queue, shown: list[str]) -> None:
    """An answer shows that the queue is still there."""
    if _has_been_idle(broker, queue):
        shown[:1] = queue.decided(ARGUMENT) or ("QUEUE-027",)
    if _is_kept_by_consumers(broker, queue):
        shown.append("CANCEL-015")


def _has_been_idle(broker: Broker, queue: Queue) -> bool:
    """Is its last use so long ago that this is worth noting?"""
    seconds = lifetime(queue) if broker.expiring else None
    return seconds is not None and broker.now - queue.idle_since >= seconds / 4


def _is_kept_by_consumers(broker: Broker, queue: Queue) -> bool:
    """Would the queue have expired by now if nobody consumed from it (CANCEL-015)?"""
    seconds = lifetime(queue) if broker.expiring and queue.consumers else None
    return seconds is not None and broker.now - queue.idle_since > seconds + SLACK[queue.type]


def expiries(broker: Broker, now: float, *, is_certain: bool, ahead: float = 0.0) -> None:
    """It is `now`: delete what must have expired, and tell of what may have (`Broker.internal_events`).

    `is_certain`: no input is under way that might have been a use. `ahead`: seconds in which what is sent now is read.
    """
    broker.latest = max(broker.latest, now)
    for queue, seconds in list(_idle(broker)):
        is_unused = len(queue.present_consumers) == len(queue.consumers)
        # while the broker is down no queue expires: its time begins anew with it (DURABLE-018)
        must_expire = is_certain and is_unused and not broker.down_by
        if must_expire and now > queue.idle_by + seconds + SLACK[queue.type]:
            expire(broker, queue)
        elif now + ahead >= _earliest(queue, seconds) and queue.expiring_use != queue.uses:
            queue.expiring_use = queue.uses
            broker.internal_events.append(QueueExpiry(queue.name, queue.uses))


def next_expiry(broker: Broker) -> float:
    """When, for a broker that knows the times itself, the next queue or message expires or delivery times out; `NEVER`
    if none does. Where no time runs any more is forgotten.
    """
    if not _has_deadlines(broker):
        return NEVER
    forget_ageless_queues(broker)
    if broker.next_timeout <= broker.latest:
        note_next_timeout(broker)
    # a bound is enough: at that time it is asked again
    timeout = broker.next_timeout if broker.next_timeout > broker.latest else next_due(broker)
    moments = [queue.idle_since + seconds for queue, seconds in _idle(broker)]
    return min([*moments, next_message_expiry(broker), timeout])


def _has_deadlines(broker: Broker) -> bool:
    """Seldom: it is asked about at each frame."""
    return bool(broker.expiring or broker.ageing or broker.timing)


def expire_punctually(broker: Broker, now: float) -> None:
    if not _has_deadlines(broker):
        return
    expire_messages_punctually(broker, now)
    time_out_punctually(broker, now)
    for queue, seconds in list(_idle(broker)):
        if now >= queue.idle_since + seconds:
            expire(broker, queue)


def _idle(broker: Broker) -> Iterator[tuple[Queue, float]]:
    """Queues that are expiring, with the seconds that they have."""
    for name in list(broker.expiring):
        queue = broker.queues.get(name)
        seconds = lifetime(queue) if queue is not None else None
        if queue is None or seconds is None:
            del broker.expiring[name]
        elif not is_in_use(broker, queue):
            yield queue, seconds


def _earliest(queue: Queue, seconds: float) -> float:
    """When the queue, which has so many seconds, may be gone if it is not used."""
    return queue.idle_since + seconds - min(seconds * EARLY_PART, EARLY_SECONDS)


def note_going(broker: Broker, queue: Queue) -> None:
    """What is supposed shows that the queue is on its way out: so it is not too early for that."""
    broker.not_before = max(broker.not_before, _earliest(queue, lifetime(queue) or 0.0))


def expire(broker: Broker, queue: Queue) -> None:
    broker.fired(*queue.decided(ARGUMENT)[1:])
    broker.end_queue(queue, queue.blamed("QUEUE-027", ARGUMENT))


def process_expiry(broker: Broker, event: QueueExpiry) -> None:
    """The queue expires at this point, unless it has been used since it could."""
    if is_outstanding(broker, event):
        queue = broker.queues[event.queue]
        if queue.uses == event.use:
            note_going(broker, queue)
        expire(broker, queue)


def is_outstanding(broker: Broker, event: QueueExpiry) -> bool:
    """Can it still happen?"""
    queue = broker.queues.get(event.queue)
    if queue is None:
        return False
    if queue.uses == event.use:
        return not is_in_use(broker, queue)
    # its end may be decided and under way while it answers (rabbit_quorum_queue:spawn_deleter, which asks no more)
    return queue.type is QueueType.QUORUM and queue.settled_use == event.use


def uses_are_over(broker: Broker, now: float) -> None:
    """Whatever used a queue until now has done so by now, however late it came."""
    broker.latest = max(broker.latest, now)
    for name in broker.expiring:
        queue = broker.queues.get(name)
        if queue is not None and queue.settled_use != queue.uses:
            queue.settled_use = queue.uses
            queue.idle_by = broker.latest


def is_in_use(broker: Broker, queue: Queue) -> bool:
    """Quorum queues count whoever holds messages as a consumer (rabbit_fifo:is_expired).

    One that the broker has cancelled because its time was up uses nothing. That it holds up the end of its queue, as
    long as the broker knows it, is left open.
    """
    return bool(queue.present_consumers) or (queue.type is QueueType.QUORUM and broker.holders(queue) > 0)
