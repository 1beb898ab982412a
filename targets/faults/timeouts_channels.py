"""Faults of the timeouts that close channels, up to 4.2 (area TIMEOUT)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from amqpspec.model.broker.delivery_timeouts import ARGUMENT, of_queue_and_policy
from amqpspec.model.broker.internal_events import DeliveryTimeout
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.extensions.timeout_cancels_consumer import time_out
from amqpspec.targets.embedded.hooks import Chapter, Proceed, ProceedTimeout, altered
from amqpspec.targets.embedded.served_broker import ServedBroker
from amqpspec.targets.faults.timeouts import begin, delivery_of, handed_over

TIMEOUTS_OF_CHANNELS = Chapter()
on_input, on_output = TIMEOUTS_OF_CHANNELS.on_input, TIMEOUTS_OF_CHANNELS.on_output
on_timeout = TIMEOUTS_OF_CHANNELS.on_timeout

_BEFORE_4_3, _BEFORE_3_12 = "rabbitmq-4.0", "rabbitmq-3"

#: Seconds between two looks at a channel when nobody sets them.
_USUAL_TICK = 60.0


@on_timeout(
    "channel-closed-for-capable-only", "TIMEOUT-001", "Channels time out of clients with the capability only.",
    dialect=_BEFORE_4_3,
)  # fmt: skip
def _(broker: ServedBroker, timeout: DeliveryTimeout, proceed: ProceedTimeout) -> None:
    if broker.connections[timeout.key[0]].is_told_of_cancels:
        proceed(timeout)
    else:
        delivery_of(broker, timeout).deadline = None


@on_timeout(
    "consumer-cancelled-before-4.3", "TIMEOUT-001", "The consumer is cancelled, and the channel stays.",
    dialect=_BEFORE_4_3,
)  # fmt: skip
def _(broker: ServedBroker, timeout: DeliveryTimeout, proceed: ProceedTimeout) -> None:
    channel = broker.channels[timeout.key]
    if delivery_of(broker, timeout).queue.type is QueueType.QUORUM:
        time_out(broker, channel, timeout.tag)
    else:
        proceed(timeout)


@on_timeout(
    "channel-tick-not-set", "TIMEOUT-002", "A channel looks at its deliveries once a minute whatever is set.",
    dialect=_BEFORE_4_3,
)  # fmt: skip
def _(broker: ServedBroker, timeout: DeliveryTimeout, proceed: ProceedTimeout) -> None:
    deadline = delivery_of(broker, timeout).deadline
    assert deadline is not None
    delivery_of(broker, timeout).deadline = replace(deadline, seconds=deadline.seconds + _USUAL_TICK)


@on_timeout(
    "youngest-delivery-counts", "TIMEOUT-003", "A channel looks at its youngest delivery.",
    dialect=_BEFORE_4_3,
)  # fmt: skip
def _(broker: ServedBroker, timeout: DeliveryTimeout, proceed: ProceedTimeout) -> None:
    channel = broker.channels[timeout.key]
    *_, youngest = channel.unacknowledged.values()
    if youngest.deadline is None or youngest.deadline.due <= broker.latest:
        proceed(timeout)
    else:
        delivery_of(broker, timeout).deadline = youngest.deadline


@on_input(
    "settled-delivery-counts", "TIMEOUT-003", "The clock of a channel goes on when the oldest delivery is settled.",
    "basic.ack", dialect=_BEFORE_4_3,
)  # fmt: skip
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    channel = broker.channel(method.connection, method.channel)
    oldest = next(iter(channel.unacknowledged.values()), None)
    proceed(method)
    for entry in channel.unacknowledged.values():
        if oldest is not None:
            entry.deadline = oldest.deadline


@on_timeout(
    "timed-out-channel-keeps", "TIMEOUT-004", "What a channel held that has timed out is lost.",
    dialect=_BEFORE_4_3,
)  # fmt: skip
def _(broker: ServedBroker, timeout: DeliveryTimeout, proceed: ProceedTimeout) -> None:
    channel = broker.channels[timeout.key]
    held = list(channel.unacknowledged.values())
    proceed(timeout)
    for entry in held:
        if entry.message in entry.queue.messages:
            broker.take(entry.queue, entry.queue.messages.index(entry.message))
            broker.refresh(entry.queue)


@on_input(
    "queue-timeout-ignored", "TIMEOUT-005", "A queue's x-consumer-timeout is ignored.",
    "queue.declare", dialect=_BEFORE_4_3,
)  # fmt: skip
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    arguments = method.arguments.get("arguments") or {}
    proceed(altered(method, arguments={name: value for name, value in arguments.items() if name != ARGUMENT}))


@on_output(
    "queue-timeout-before-3.12", "TIMEOUT-005", "A queue's x-consumer-timeout holds.",
    "basic.deliver", dialect=_BEFORE_3_12,
)  # fmt: skip
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    entry = handed_over(broker, method)
    seconds = of_queue_and_policy(broker, entry.queue) if entry is not None else None
    if entry is not None and seconds is not None:
        begin(broker, method, entry, seconds)
    yield method


@on_output(
    "consumer-timeout-before-4.3", "TIMEOUT-006", "A consumer's x-consumer-timeout holds.",
    "basic.deliver", dialect=_BEFORE_4_3,
)  # fmt: skip
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    entry = handed_over(broker, method)
    milliseconds = entry.consumer.arguments.get(ARGUMENT) if entry is not None and entry.consumer is not None else None
    if entry is not None and milliseconds is not None:
        begin(broker, method, entry, milliseconds / 1000)
    yield method


@on_output(
    "stream-never-times-out", "TIMEOUT-032", "Deliveries from streams may wait for ever.",
    "basic.deliver", dialect=_BEFORE_4_3,
)  # fmt: skip
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    entry = handed_over(broker, method)
    if entry is not None and entry.queue.type is QueueType.STREAM:
        entry.deadline = None
    yield method
