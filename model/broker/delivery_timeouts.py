"""How long a delivery may wait for its settlement, and since when it does (area TIMEOUT).

Source: RabbitMQ guide, consumer timeouts. RabbitMQ: rabbit_queue_type:get_consumer_timeout (4.3), which is asked when a
consumer is made and by each basic.get; rabbit_channel:get_queue_consumer_timeout (4.0), asked whenever the channel
looks at its deliveries; rabbit_channel:get_consumer_timeout, the server's setting, read when a channel is opened.

Requirements:

* TIMEOUT-002: <=4.2: evaluated only on the channel tick. The check runs every channel_tick_interval (60 s default,
  first tick about 60 s after the channel was created), so the close comes between timeout and timeout+tick. Tests need
  `application:set_env(rabbit,channel_tick_interval,1000)` before opening the channel. [rabbit_channel
  v4.0.5:handle_info(tick)]
* TIMEOUT-005: Queue argument before 4.3. x-consumer-timeout as queue argument (and policy consumer-timeout) is honoured
  from 3.12 on for classic and quorum; 3.10 ignores it. In rabbitmq-3: ignored. In rabbitmq-4.0: honoured, min(arg,
  policy), then global. [rabbit_channel v4.0.5:get_queue_consumer_timeout]
* TIMEOUT-006: Consumer argument before 4.3. x-consumer-timeout on basic.consume is ignored. In rabbitmq-3: ignored. In
  rabbitmq-4.0: ignored. [rabbit_channel v4.0.5:get_queue_consumer_timeout, which asks the queue and no consumer;
  rabbitmq-server pull request 8260]
* TIMEOUT-007: 4.3: classic and stream never time out. No action for classic queues and streams however long a delivery
  is unacked. [RabbitMQ guide: consumer timeouts]
* TIMEOUT-023: no_ack consumers never time out. No unacked deliveries, no timeout. [RabbitMQ guide: consumer timeouts
  (manual acknowledgement mode)]
* TIMEOUT-024: Precedence: consumer argument first. x-consumer-timeout on basic.consume overrides queue argument, policy
  and global value, shorter or longer. [RabbitMQ guide: consumer timeouts]
* TIMEOUT-025: Precedence: queue argument and policy. Without a consumer argument: min(queue argument, policy
  consumer-timeout) if either is set. [RabbitMQ guide: consumer timeouts]
* TIMEOUT-026: Precedence: global. Otherwise consumer_timeout of rabbitmq.conf, otherwise 1800000 ms. [RabbitMQ guide:
  consumer timeouts]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from amqpspec.model.broker.broker_state import BrokerState
from amqpspec.model.broker.channels import Channel, Unacknowledged
from amqpspec.model.broker.deadlines import NEVER, Deadline
from amqpspec.model.broker.measurement import Due
from amqpspec.model.broker.queues import Consumer, Queue
from amqpspec.model.promises.choices import ConsumerTimeouts
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.field_types import is_whole_number
from amqpspec.model.protocol.methods import Table

ARGUMENT = "x-consumer-timeout"

#: The operator's settings: milliseconds in which a delivery is to be settled, and between two looks of a channel at it.
TIMEOUT, TICK = "consumer_timeout", "channel_tick_interval"
#: What they are as long as nobody sets them.
DEFAULTS = {TIMEOUT: 1_800_000, TICK: 60_000}

#: Deliveries that have more seconds than this are not watched by who judges.
LONGEST = 600.0

#: The requirements by which a time is what it is: of the consumer, of the queue or a policy, of the server.
OF_CONSUMER, OF_QUEUE, OF_SERVER = "TIMEOUT-024", "TIMEOUT-025", "TIMEOUT-026"


def setting(broker: BrokerState, name: str) -> float:
    """Seconds."""
    return broker.settings.get(name, DEFAULTS[name]) / 1000


def begin_channel(broker: BrokerState, channel: Channel) -> None:
    """The channel is opened: settings made later do not affect it."""
    channel.timeout, channel.tick = setting(broker, TIMEOUT), setting(broker, TICK)


def time_of(broker: BrokerState, queue: Queue, arguments: Table) -> tuple[float, str]:
    """Seconds, and the requirement by which it is so many."""
    of_consumer = arguments.get(ARGUMENT)
    if is_whole_number(of_consumer):
        return of_consumer / 1000, OF_CONSUMER
    of_queue = of_queue_and_policy(broker, queue)
    if of_queue is not None:
        return of_queue, OF_QUEUE
    return setting(broker, TIMEOUT), OF_SERVER


def of_queue_and_policy(broker: BrokerState, queue: Queue) -> float | None:
    """Seconds: the less of both (TIMEOUT-025); None if neither says anything."""
    milliseconds = queue.in_force.get(ARGUMENT)
    return milliseconds / 1000 if is_whole_number(milliseconds) else None


# ------------------------------------------------------------------------------------------- deliveries


def begin_delivery(broker: BrokerState, channel: Channel, entry: Unacknowledged) -> None:
    """The client has been handed the message just now: the clock runs from the delivery on.

    It was made since the first input that the broker was sent when it was at rest.
    """
    spare(broker, channel, entry.queue, entry.consumer)
    seconds = _seconds(broker, channel, entry)
    if seconds is None or (seconds > LONGEST and not broker.is_punctual):
        return
    entry.deadline = Deadline(seconds, _since(broker), _by(broker))
    entry.queue.deadlines += 1
    broker.timing[channel.key] = None
    broker.next_timeout = min(broker.next_timeout, entry.deadline.earliest)


def _since(broker: BrokerState) -> float:
    """The earliest moment at which the delivery was made."""
    # what the broker did by itself may be the last that happened, after the last that was heard of it
    return broker.latest if broker.is_punctual or broker.busy_since == NEVER else broker.busy_since


def _by(broker: BrokerState) -> float:
    """The latest one: the delivery has been seen by then."""
    return max(broker.latest, broker.looked_ahead_until)


def _seconds(broker: BrokerState, channel: Channel, entry: Unacknowledged) -> float | None:
    """How long the client may take, by what is known when the delivery is made; None: as long as it likes."""
    ways = broker.dialect.consumer_timeouts
    if ways is ConsumerTimeouts.NONE or entry.queue.reply_address:
        return None
    if ways is ConsumerTimeouts.OF_QUORUM_QUEUES:
        if entry.queue.type is not QueueType.QUORUM:
            return None
        return entry.consumer.timeout if entry.consumer is not None else time_of(broker, entry.queue, {})[0]
    if ways is ConsumerTimeouts.OF_CHANNELS_BY_QUEUE:
        of_queue = of_queue_and_policy(broker, entry.queue)
        if of_queue is not None:
            return of_queue
    return channel.timeout


def spare(broker: BrokerState, channel: Channel, queue: Queue, consumer: Consumer | None) -> None:
    """The client has been handed a message: note it if it would time out but for a requirement that it does not."""
    found = _exempt(broker, queue, consumer)
    if found is not None and found[0] <= LONGEST:
        deadline = Deadline(found[0], _since(broker), broker.latest)
        broker.bookkeeping.exempt.append((channel.key, found[1], deadline))
        broker.next_timeout = min(broker.next_timeout, deadline.earliest)


def _exempt(broker: BrokerState, queue: Queue, consumer: Consumer | None) -> tuple[float, str] | None:
    """Seconds and the requirement."""
    ways = broker.dialect.consumer_timeouts
    if ways is ConsumerTimeouts.NONE or queue.reply_address:
        return None
    if ways is ConsumerTimeouts.OF_QUORUM_QUEUES:
        if queue.type is not QueueType.QUORUM:
            return time_of(broker, queue, {})[0], "TIMEOUT-007"
        return (consumer.timeout, "TIMEOUT-023") if consumer is not None and consumer.no_ack else None
    of_consumer = consumer.arguments.get(ARGUMENT) if consumer is not None else None
    if is_whole_number(of_consumer):
        return of_consumer / 1000, "TIMEOUT-006"
    of_queue = queue.arguments.get(ARGUMENT)
    if ways is ConsumerTimeouts.OF_CHANNELS and is_whole_number(of_queue):
        return of_queue / 1000, "TIMEOUT-005"
    return None


def exempt_on(broker: BrokerState, channel: Channel) -> str | None:
    """The requirement by which something on the channel does not time out that otherwise might."""
    return next((requirement for key, requirement, _ in broker.bookkeeping.exempt if key == channel.key), None)


def note_oldest(broker: BrokerState, channel: Channel, settled: Sequence[int]) -> None:
    """These deliveries, oldest first, are being settled: if the channel's oldest is among them, it is another now."""
    if settled and settled[0] == next(iter(channel.unsettled), 0):
        channel.oldest_since = broker.now


def due_with_tick(channel: Channel, deadline: Deadline) -> Due:
    """Up to 4.2, the oldest delivery is looked at with each tick; not before it is the oldest one."""
    since = channel.oldest_since - deadline.seconds
    if since > deadline.since:
        deadline = replace(deadline, since=since, by=NEVER)
    return Due("TIMEOUT-002", deadline, channel.tick)


def first_of_each(channel: Channel) -> Iterator[tuple[int, Unacknowledged]]:
    """The oldest delivery of each consumer that waits for its settlement, and those of basic.get: these time out next.

    A consumer's deliveries time out in their order, as its time is the same for all of them.
    """
    seen: set[int] = set()
    for tag, entry in channel.unacknowledged.items():
        if entry.deadline is None or entry.queue.deleted:
            continue
        if entry.consumer is None or id(entry.consumer) not in seen:
            seen.add(id(entry.consumer))
            yield tag, entry


def note_next_timeout(broker: BrokerState) -> None:
    """Deliveries were settled, or have timed out: when may the next one, at the earliest?"""
    broker.next_timeout = min((deadline.earliest for _, _, deadline in broker.bookkeeping.exempt), default=NEVER)
    for key in list(broker.timing):
        channel = broker.channels.get(key)
        deadlines = [e.deadline.earliest for _, e in first_of_each(channel) if e.deadline] if channel else []
        if deadlines:
            broker.next_timeout = min(broker.next_timeout, *deadlines)
        else:
            del broker.timing[key]
