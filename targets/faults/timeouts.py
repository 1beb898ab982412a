"""Faults of consumer timeouts (area TIMEOUT): how long a delivery may wait for its settlement, and since when.

What becomes of it then: `targets.faults.timeouts_effects`; brokers up to 4.2: `targets.faults.timeouts_channels`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from amqpspec.model.broker.channels import Channel, Unacknowledged
from amqpspec.model.broker.deadlines import NEVER, Deadline
from amqpspec.model.broker.delivery_timeouts import (
    ARGUMENT,
    DEFAULTS,
    OF_CONSUMER,
    OF_QUEUE,
    OF_SERVER,
    TIMEOUT,
    begin_delivery,
    of_queue_and_policy,
    time_of,
)
from amqpspec.model.broker.internal_events import DeliveryTimeout
from amqpspec.model.broker.queues import Consumer, Queue
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Method
from amqpspec.targets.embedded.hooks import Chapter, Proceed, ProceedTimeout
from amqpspec.targets.embedded.served_broker import ServedBroker

TIMEOUTS = Chapter()
on_input, on_timeout = TIMEOUTS.on_input, TIMEOUTS.on_timeout
on_output, in_broker = TIMEOUTS.on_output, TIMEOUTS.in_broker

#: Seconds that a consumer gets in place of the right ones.
Seconds = Callable[[ServedBroker, Consumer], float]


# ------------------------------------------------------------------------------------------ how long, and who says so


def _for_consumers(name: str, requirement: str, defect: str) -> Callable[[Seconds], Seconds]:
    """Consumers get another time when they are made."""

    def declare(seconds: Seconds) -> Seconds:
        @on_input(name, requirement, defect, "basic.consume")
        def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
            before = set(_consumers(broker, method))
            proceed(method)
            for consumer in _consumers(broker, method):
                if consumer not in before:
                    consumer.timeout = seconds(broker, consumer)

        return seconds

    return declare


def _consumers(broker: ServedBroker, method: Method) -> Iterable[Consumer]:
    return broker.channel(method.connection, method.channel).consumers.values()


@_for_consumers("timeout-twice-as-long", "TIMEOUT-008", "A delivery may wait for twice its time.")
def _(broker: ServedBroker, consumer: Consumer) -> float:
    return consumer.timeout * 2


@_for_consumers("timeout-half-as-long", "TIMEOUT-008", "A delivery may wait for half its time.")
def _(broker: ServedBroker, consumer: Consumer) -> float:
    return consumer.timeout / 2


@_for_consumers("timeout-never", "TIMEOUT-008", "A delivery may wait for ever.")
def _(broker: ServedBroker, consumer: Consumer) -> float:
    return NEVER


@_for_consumers("timeout-of-queue-first", OF_CONSUMER, "The queue's time overrides the consumer's.")
def _(broker: ServedBroker, consumer: Consumer) -> float:
    of_queue = of_queue_and_policy(broker, consumer.queue)
    return consumer.timeout if of_queue is None else of_queue


@_for_consumers("timeout-of-consumer-ignored", OF_CONSUMER, "The consumer's argument is ignored.")
def _(broker: ServedBroker, consumer: Consumer) -> float:
    return time_of(broker, consumer.queue, {})[0]


@_for_consumers("longer-timeout-holds", OF_QUEUE, "Of the queue's argument and its policy the longer one holds.")
def _(broker: ServedBroker, consumer: Consumer) -> float:
    if consumer.timeout_from != OF_QUEUE:
        return consumer.timeout
    argument: int = consumer.queue.arguments.get(ARGUMENT, 0)
    return max([*_policies(broker, consumer.queue), argument]) / 1000


@_for_consumers("timeout-policy-ignored", OF_QUEUE, "A policy says nothing about timeouts.")
def _(broker: ServedBroker, consumer: Consumer) -> float:
    if consumer.timeout_from != OF_QUEUE:
        return consumer.timeout
    argument: int | None = consumer.queue.arguments.get(ARGUMENT)
    return NEVER if argument is None else argument / 1000


@_for_consumers("timeout-argument-of-queue-ignored", OF_QUEUE, "A queue's argument says nothing where a policy does.")
def _(broker: ServedBroker, consumer: Consumer) -> float:
    policies = _policies(broker, consumer.queue)
    return max(policies) / 1000 if consumer.timeout_from == OF_QUEUE and policies else consumer.timeout


def _policies(broker: ServedBroker, queue: Queue) -> list[int]:
    """Milliseconds that policies give the queue."""
    return [policy.definition.get(ARGUMENT, 0) for policy in broker.policies.values() if policy.queue == queue.name]


@_for_consumers("timeout-setting-ignored", OF_SERVER, "The server's setting is ignored.")
def _(broker: ServedBroker, consumer: Consumer) -> float:
    return DEFAULTS[TIMEOUT] / 1000 if consumer.timeout_from == OF_SERVER else consumer.timeout


@_for_consumers("timeout-zero-is-never", "TIMEOUT-027", "A time of 0 lets deliveries wait for ever.")
def _(broker: ServedBroker, consumer: Consumer) -> float:
    return consumer.timeout or NEVER


@on_input(
    "later-timeout-holds",
    "TIMEOUT-028",
    "What the operator sets holds for consumers that are there as well.",
    *("operator.configure", "operator.reset-configuration", "operator.set-policy", "operator.clear-policy"),
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(method)
    for queue in broker.queues.values():
        for consumer in queue.consumers:
            consumer.timeout = time_of(broker, queue, consumer.arguments)[0]


# ----------------------------------------------------------------------------------------------------- since when


class _ClockedOtherwise(ServedBroker):
    """Has the clock of a delivery begin at another moment."""

    def refresh_sharing(self, channel: Channel) -> None:
        """A consumer of the channel was handed a message, or settled one."""
        for entry in channel.unacknowledged.values():
            if entry.deadline is not None:
                since = self.since(entry, entry.deadline)
                entry.deadline = replace(entry.deadline, since=since, by=since)
                self.next_timeout = min(self.next_timeout, entry.deadline.earliest)
        super().refresh_sharing(channel)

    def since(self, entry: Unacknowledged, deadline: Deadline) -> float:
        """The moment at which the clock began."""
        return deadline.since


@in_broker("timeout-since-publish", "TIMEOUT-008", "The clock begins when the message is published.")
class _ClockedSincePublish(_ClockedOtherwise):
    def join_transit_group(self, queue: Queue, message: object) -> int:
        self.memory.setdefault(message, self.latest)
        return super().join_transit_group(queue, message)  # type: ignore[arg-type]

    def since(self, entry: Unacknowledged, deadline: Deadline) -> float:
        return float(self.memory.get(entry.message, deadline.since))


@in_broker("timeout-since-first-delivery", "TIMEOUT-008", "The clock goes on when a message is delivered again.")
class _ClockedSinceFirstDelivery(_ClockedOtherwise):
    def since(self, entry: Unacknowledged, deadline: Deadline) -> float:
        return float(self.memory.setdefault(entry.message, deadline.since))


@on_timeout("timeout-of-next-forgotten", "TIMEOUT-021", "Of a queue's deadlines only the first one is kept.")
def _(broker: ServedBroker, timeout: DeliveryTimeout, proceed: ProceedTimeout) -> None:
    queue = delivery_of(broker, timeout).queue
    proceed(timeout)
    for channel in broker.channels.values():
        for entry in channel.unacknowledged.values():
            if entry.queue is queue:
                entry.deadline = None


def delivery_of(broker: ServedBroker, timeout: DeliveryTimeout) -> Unacknowledged:
    """The delivery that times out."""
    channel = broker.channels[timeout.key]
    return channel.unacknowledged[timeout.tag]


# ------------------------------------------------------------------------------------------------- what has no time


@on_output("get-never-times-out", "TIMEOUT-010", "What basic.get has taken may wait for ever.", "basic.get-ok")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    entry = handed_over(broker, method)
    if entry is not None:
        entry.deadline = None
    yield method


@on_output("classic-queue-times-out", "TIMEOUT-007", "Deliveries from classic queues time out.", "basic.deliver")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    entry = handed_over(broker, method)
    if entry is not None and entry.queue.type is QueueType.CLASSIC:
        begin(broker, method, entry, time_of(broker, entry.queue, {})[0])
    yield method


@on_output("no-ack-times-out", "TIMEOUT-023", "Consumers without acknowledgements time out.", "basic.deliver")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    channel = broker.channel(method.connection, method.channel)
    consumer = channel.consumers[method.arguments["consumer_tag"]]
    if consumer.no_ack and consumer.queue.type is QueueType.QUORUM:
        entry = Unacknowledged(consumer.queue.gone[-1].message, consumer.queue, consumer)
        channel.unacknowledged[method.arguments["delivery_tag"]] = entry
        begin_delivery(broker, channel, entry)
    yield method


def handed_over(broker: ServedBroker, method: Method) -> Unacknowledged | None:
    """What was delivered just now, if it is to be settled."""
    return broker.channel(method.connection, method.channel).unacknowledged.get(method.arguments["delivery_tag"])


def begin(broker: ServedBroker, method: Method, entry: Unacknowledged, seconds: float) -> None:
    """Have what was delivered just now time out."""
    entry.deadline = Deadline(seconds, broker.latest, broker.latest)
    broker.next_timeout = min(broker.next_timeout, entry.deadline.earliest)
    broker.timing[(method.connection, method.channel)] = None
