"""Faults of consumer timeouts (area TIMEOUT): what becomes of a delivery whose time is up, of its consumer and of what
its client does about it later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.internal_events import DeliveryTimeout
from amqpspec.model.broker.queues import Consumer, Queue
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.extensions.timed_out_consumer_still_known import recovering, resume
from amqpspec.model.rules.extensions.timeout_cancels_consumer import close_saying
from amqpspec.targets.embedded.hooks import Chapter, Proceed, ProceedTimeout, altered
from amqpspec.targets.embedded.served_broker import ServedBroker
from amqpspec.targets.faults.timeouts import delivery_of

TIMEOUT_EFFECTS = Chapter()
on_input, on_timeout = TIMEOUT_EFFECTS.on_input, TIMEOUT_EFFECTS.on_timeout
on_output, in_broker = TIMEOUT_EFFECTS.on_output, TIMEOUT_EFFECTS.in_broker

_SETTLEMENTS = ("basic.ack", "basic.nack", "basic.reject")


def _channel_of(broker: ServedBroker, timeout: DeliveryTimeout) -> Channel:
    """The channel on which something times out."""
    return broker.channels[timeout.key]


# -------------------------------------------------------------------------------------------------- the message


@on_timeout("timed-out-message-lost", "TIMEOUT-012", "What has timed out does not go back to its queue.")
def _(broker: ServedBroker, timeout: DeliveryTimeout, proceed: ProceedTimeout) -> None:
    entry = delivery_of(broker, timeout)
    proceed(timeout)
    broker.take(entry.queue, entry.queue.messages.index(entry.message))
    broker.refresh(entry.queue)


@on_timeout("younger-deliveries-time-out", "TIMEOUT-020", "All deliveries to the consumer time out together.")
def _(broker: ServedBroker, timeout: DeliveryTimeout, proceed: ProceedTimeout) -> None:
    channel, consumer = _channel_of(broker, timeout), delivery_of(broker, timeout).consumer
    others = [tag for tag, other in channel.unacknowledged.items() if other.consumer is consumer is not None]
    proceed(timeout)
    for tag in others:
        if tag in channel.unacknowledged:
            proceed(DeliveryTimeout(timeout.key, tag))


@on_timeout("timeout-counts-as-failed", "TIMEOUT-013", "What has timed out counts as a failed delivery.")
def _(broker: ServedBroker, timeout: DeliveryTimeout, proceed: ProceedTimeout) -> None:
    delivery_of(broker, timeout).message.delivery_count += 1
    proceed(timeout)


@on_timeout("timed-out-not-redelivered", "TIMEOUT-012", "What has timed out is not marked as redelivered.")
def _(broker: ServedBroker, timeout: DeliveryTimeout, proceed: ProceedTimeout) -> None:
    message = delivery_of(broker, timeout).message
    proceed(timeout)
    message.redelivered = False


# ------------------------------------------------------------------------------------------- what the client is told


def _told_of_timeout(broker: ServedBroker, method: Method) -> list[Consumer]:
    """The other consumers of the channel, if the basic.cancel is because of a timeout: before them the one itself."""
    consumers = broker.channel(method.connection, method.channel).consumers
    consumer = consumers.get(method.arguments["consumer_tag"])
    if consumer is None or not consumer.timed_out:
        return []
    return [consumer, *(other for other in consumers.values() if other is not consumer)]


@on_output(
    "timeout-told-twice", "TIMEOUT-008", "The client is told twice that its consumer is cancelled.", "basic.cancel"
)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield method
    if _told_of_timeout(broker, method):
        yield method


@on_output("timeout-not-told", "TIMEOUT-008", "The client is not told that its consumer has timed out.", "basic.cancel")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    if not _told_of_timeout(broker, method):
        yield method


@on_output("timeout-of-another-told", "TIMEOUT-022", "Another consumer of the channel is cancelled.", "basic.cancel")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    others = _told_of_timeout(broker, method)[1:]
    yield altered(method, consumer_tag=others[0].tag) if others else method


@on_output("timeout-of-all-told", "TIMEOUT-022", "All consumers of the channel are cancelled.", "basic.cancel")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield method
    for other in _told_of_timeout(broker, method)[1:]:
        yield altered(method, consumer_tag=other.tag)


@on_timeout("timeout-stops-channel", "TIMEOUT-022", "Other consumers of the channel are served no longer.")
def _(broker: ServedBroker, timeout: DeliveryTimeout, proceed: ProceedTimeout) -> None:
    channel, consumer = _channel_of(broker, timeout), delivery_of(broker, timeout).consumer
    proceed(timeout)
    for other in channel.consumers.values():
        if other is not consumer:
            other.timed_out += 1  # as if it had been the others' time as well
            broker.refresh(other.queue)


@on_timeout("timeout-closes-channel", "TIMEOUT-008", "The channel is closed whatever the client's capabilities.")
def _(broker: ServedBroker, timeout: DeliveryTimeout, proceed: ProceedTimeout) -> None:
    with _capable(broker, timeout, capable=False):
        proceed(timeout)


@on_timeout("timeout-told-uncalled", "TIMEOUT-009", "basic.cancel is sent whatever the client's capabilities.")
def _(broker: ServedBroker, timeout: DeliveryTimeout, proceed: ProceedTimeout) -> None:
    with _capable(broker, timeout, capable=True):
        proceed(timeout)


@contextmanager
def _capable(broker: ServedBroker, timeout: DeliveryTimeout, *, capable: bool) -> Iterator[None]:
    """Take the client for one that understands basic.cancel, or for one that does not."""
    connection = broker.connections[timeout.key[0]]
    capabilities = connection.capabilities
    connection.capabilities = {**capabilities, "consumer_cancel_notify": capable}
    yield
    connection.capabilities = capabilities


@on_output(
    "timed-out-channel-not-closed", "TIMEOUT-009", "The channel of a client without capability stays.", "channel.close"
)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    if "delivery acknowledgement" not in str(method.arguments.get("reply_text")):
        yield method


@on_timeout("timeout-after-cancel-closes", "TIMEOUT-011", "Behind basic.cancel of the client's a timeout closes.")
def _(broker: ServedBroker, timeout: DeliveryTimeout, proceed: ProceedTimeout) -> None:
    channel, consumer = _channel_of(broker, timeout), delivery_of(broker, timeout).consumer
    proceed(timeout)
    if consumer is not None and consumer.tag not in channel.consumers:
        close_saying(broker, channel, "TIMEOUT-011", -1)


# ------------------------------------------------------------------------------------------------- the consumer


@in_broker("timed-out-consumer-served", "TIMEOUT-014", "A consumer that has timed out is handed messages.")
class _ServingOn(ServedBroker):
    def has_room(self, consumer: Consumer) -> bool:
        timed_out, consumer.timed_out = consumer.timed_out, 0
        try:
            return super().has_room(consumer)
        finally:
            consumer.timed_out = timed_out


@in_broker("timed-out-stays-active", "TIMEOUT-029", "A single active consumer that has timed out stays active.")
class _StayingActive(ServedBroker):
    def elect(self, queue: Queue, requirement: str) -> None:
        if requirement != "TIMEOUT-029":
            super().elect(queue, requirement)


@on_input("timed-out-tag-kept", "TIMEOUT-015", "Cancelling what has timed out leaves its tag in use.", "basic.cancel")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    channel = broker.channel(method.connection, method.channel)
    consumer = channel.consumers.get(method.arguments["consumer_tag"])
    proceed(method)
    if consumer is not None and consumer.timed_out:
        consumer.timed_out = 0
        channel.consumers[consumer.tag] = consumer


@on_input("timed-out-tag-in-use", "TIMEOUT-030", "The tag of what has timed out cannot be used again.", "basic.consume")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    consumer = broker.channel(method.connection, method.channel).consumers.get(method.arguments["consumer_tag"])
    if consumer is not None:
        consumer.timed_out = 0
    proceed(method)


@on_output("timed-out-consumer-counted", "TIMEOUT-014", "Who has timed out is still counted.", "queue.declare-ok")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    queue = broker.queues.get(method.arguments["queue"])  # None: direct reply-to, which is no queue
    yield method if queue is None else altered(method, consumer_count=len(queue.consumers))


@on_timeout("timeout-told-again", "TIMEOUT-008", "Each further timeout of a consumer that is gone is told.")
def _(broker: ServedBroker, timeout: DeliveryTimeout, proceed: ProceedTimeout) -> None:
    channel, consumer = _channel_of(broker, timeout), delivery_of(broker, timeout).consumer
    is_gone = consumer is not None and consumer.timed_out
    proceed(timeout)
    if consumer is not None and is_gone:
        broker.owe_notice(channel, consumer.tag, "TIMEOUT-008")


# -------------------------------------------------------------------------------------------------- settling late


def _late_tags(broker: ServedBroker, method: Method) -> list[int]:
    """The tags that have timed out among those that the frame settles."""
    tag, multiple = method.arguments.get("delivery_tag", 0), method.arguments.get("multiple")
    late = broker.channel(method.connection, method.channel).timed_out
    return [other for other in late if other == tag or (multiple and (other < tag or not tag))]


@on_input("late-settling-refused", "TIMEOUT-019", "The tag of what has timed out is not known.", *_SETTLEMENTS)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    for tag in _late_tags(broker, method):
        del broker.channel(method.connection, method.channel).timed_out[tag]
    proceed(method)


@on_input("late-settling-settles", "TIMEOUT-019", "Settling late settles for who has the message now.", *_SETTLEMENTS)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    settled = broker.memory.setdefault("messages", [])
    channel = broker.channel(method.connection, method.channel)
    settled += [channel.timed_out[tag].message for tag in _late_tags(broker, method)]
    entry = channel.unacknowledged.get(method.arguments.get("delivery_tag", 0))
    is_settled = entry is not None and entry.message in settled and "requeue" in method.arguments
    proceed(altered(method, requeue=False) if is_settled else method)


def _resumed(name: str, requirement: str, defect: str, *methods: str) -> None:
    """A consumer that was cancelled is served again when its client settles late."""

    @on_input(name, requirement, defect, *methods)
    def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
        coming_back = [consumer for consumer, _ in recovering(broker, method)]
        proceed(method)
        for consumer in coming_back:
            resume(broker, consumer)


_resumed("late-ack-resumes", "TIMEOUT-016", "Late acks bring back a consumer that was cancelled.", "basic.ack")
_resumed("late-commit-resumes", "TIMEOUT-016", "A commit of late acks brings back a consumer.", "tx.commit")
_resumed("late-nack-resumes", "TIMEOUT-017", "Late nacks bring back a consumer that was cancelled.", "basic.nack")
_resumed("late-recover-resumes", "TIMEOUT-018", "basic.recover brings back a consumer.", "basic.recover")


@on_input("late-ack-resumes-early", "TIMEOUT-014", "The first late ack is enough for a consumer.", "basic.ack")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    channel = broker.channel(method.connection, method.channel)
    coming_back = {channel.timed_out[tag].consumer for tag in _late_tags(broker, method)}
    proceed(method)
    for consumer in coming_back:
        if consumer is not None:
            resume(broker, consumer)
