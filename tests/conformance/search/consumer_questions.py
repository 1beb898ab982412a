"""What is asked of the sequences that the search makes about consumers (see `test_search_distribution.py`).

Each question has the least share of all sequences in which the answer must be yes at least once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from amqpspec.conformance.language.command import Command
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.queues import Consumer, Queue
from amqpspec.model.promises.queue_types import QueueType

#: Asked before each command is carried out: the state, and the command. Asked at the end with None.
Question = Callable[[Broker, Command | None], bool]

#: Asked of a command that is in flight, and the next one, which crosses it.
PairQuestion = Callable[[Command, Command], bool]


def exercised(*ids: str) -> Question:
    return lambda broker, command: command is None and any(broker.bookkeeping.exercised[id] for id in ids)


def _channel(broker: Broker, command: Command) -> Channel | None:
    return broker.channels.get((command.connection, command.channel))


def _queues(broker: Broker, *kinds: QueueType) -> Iterator[Queue]:
    """Those with several consumers."""
    for queue in broker.queues.values():
        if len(queue.consumers) > 1 and (not kinds or queue.type in kinds):
            yield queue


def _differ(of: Callable[[Consumer], object]) -> Question:
    """Do the consumers of one queue differ in that?"""
    return lambda broker, _: any(len({of(each) for each in queue.consumers}) > 1 for queue in _queues(broker))


def _one_is_held_back(broker: Broker, command: Command | None) -> bool:
    """Something waits, one consumer may not have it, and it is not alone."""
    return any(
        bool(queue.messages) and not queue.single_active_consumer and any(_is_full(each) for each in queue.consumers)
        for queue in _queues(broker)
    )


def _is_full(consumer: Consumer) -> bool:
    return 0 < consumer.prefetch <= consumer.outstanding


def _limit_changes(broker: Broker, command: Command | None) -> bool:
    if command is None or command.method != "basic.qos":
        return False
    channel = _channel(broker, command)
    return channel is not None and bool(channel.consumers) and bool(channel.unacknowledged)


def _both_limits(broker: Broker, command: Command | None) -> bool:
    return any(
        channel.channel_prefetch and any(consumer.prefetch for consumer in channel.consumers.values())
        for channel in broker.channels.values()
    )


def _channel_limit_holds(broker: Broker, command: Command | None) -> bool:
    """Something waits, and the consumer's own limit is not what keeps it."""
    return any(
        0 < channel.channel_prefetch <= len(channel.unacknowledged)
        and any(consumer.queue.messages and not _is_full(consumer) for consumer in channel.consumers.values())
        for channel in broker.channels.values()
    )


def _deletes(told: bool) -> Question:
    """A queue is deleted whose consumer, on another connection, is told of that or not."""

    def asks(broker: Broker, command: Command | None) -> bool:
        if command is None or command.method != "queue.delete":
            return False
        queue = broker.queues.get(command.arguments["queue"])
        others = {each.channel[0] for each in queue.consumers} - {command.connection} if queue is not None else set()
        return any(broker.connections[name].is_told_of_cancels is told for name in others)

    return asks


def _ends_holding(broker: Broker, command: Command | None) -> bool:
    return (
        command is not None
        and command.method in ("connection.close", "socket.abort")
        and any(key[0] == command.connection and each.unacknowledged for key, each in broker.channels.items())
    )


def _returns_to_several(broker: Broker, command: Command | None) -> bool:
    if command is None or not command.arguments.get("requeue"):
        return False
    channel = _channel(broker, command)
    entry = channel.unacknowledged.get(command.arguments.get("delivery_tag", 0)) if channel is not None else None
    return entry is not None and len(entry.queue.consumers) > 1


def _ends_active(*methods: str) -> Question:
    """The consumer that alone is served ends so, and others wait."""

    def asks(broker: Broker, command: Command | None) -> bool:
        if command is None or command.method not in methods:
            return False
        return any(queue.single_active_consumer and _is_of(queue.consumers[0], command) for queue in _queues(broker))

    return asks


def _is_of(consumer: Consumer, command: Command) -> bool:
    if command.method == "basic.cancel":
        return (*consumer.channel, consumer.tag) == (
            command.connection, command.channel, command.arguments["consumer_tag"]
        )  # fmt: skip
    return consumer.channel[0] == command.connection and command.channel in (0, consumer.channel[1])


def _is_dropped_for_its_returns(broker: Broker, command: Command | None) -> bool:
    """One more return of the same message is too many."""
    if command is None or not command.arguments.get("requeue"):
        return False
    channel = _channel(broker, command)
    entry = channel.unacknowledged.get(command.arguments.get("delivery_tag", 0)) if channel is not None else None
    limit = entry.queue.arguments.get("x-delivery-limit") if entry is not None else None
    return entry is not None and limit is not None and entry.message.delivery_count >= limit


def _priorities_differ(broker: Broker, command: Command | None) -> bool:
    return any(
        len({message.content.properties.get("priority", 0) for message in queue.messages}) > 1
        for queue in broker.queues.values()
        if queue.type is QueueType.QUORUM or queue.arguments.get("x-max-priority")
    )


def _somebody(of: Callable[[Consumer], object]) -> Question:
    return lambda broker, _: any(of(each) for queue in broker.queues.values() for each in queue.consumers)


#: In any dialect.
QUESTIONS: dict[str, tuple[float, Question]] = {
    "consumers of one queue on two channels": (0.1, _differ(lambda each: each.channel)),
    "consumers of one queue on two connections": (0.1, _differ(lambda each: each.channel[0])),
    "consumers of one queue with different limits": (0.1, _differ(lambda each: each.prefetch)),
    "consumers of one queue with different priorities": (0.08, _differ(lambda each: each.arguments.get("x-priority"))),
    "one consumer of several is held back by its limit": (0.02, _one_is_held_back),
    "one consumer of several has reached its limit": (0.1, _differ(_is_full)),
    "several consumers of a quorum queue": (0.1, lambda broker, _: any(_queues(broker, QueueType.QUORUM))),
    "several consumers of a stream": (0.015, lambda broker, _: any(_queues(broker, QueueType.STREAM))),
    "an exclusive consumer": (0.02, _somebody(lambda each: each.exclusive)),
    "a consumer without a limit": (0.2, _somebody(lambda each: not each.prefetch and not each.no_ack)),
    "a consumer without acknowledgements beside another": (0.04, _differ(lambda each: each.no_ack)),
    "another limit while deliveries are out": (0.1, _limit_changes),
    "several consumers, one of which is served alone": (
        0.06, lambda broker, _: any(queue.single_active_consumer for queue in _queues(broker))
    ),
    "the active consumer is cancelled": (0.01, _ends_active("basic.cancel")),
    "the active consumer's channel ends": (0.01, _ends_active("channel.close")),
    "the active consumer's connection ends": (0.005, _ends_active("connection.close", "socket.abort")),
    "another consumer becomes active": (0.01, exercised("SAC-002")),
    "a consumer is told that its queue is gone": (0.03, _deletes(told=True)),
    "a consumer is not told that its queue is gone": (0.01, _deletes(told=False)),
    "a connection ends that holds deliveries": (0.05, _ends_holding),
    "a return to a queue with several consumers": (0.05, _returns_to_several),
    "a return too many": (0.005, _is_dropped_for_its_returns),
    "messages of different priorities wait": (0.04, _priorities_differ),
    "a stream's consumer begins in the middle": (0.01, _somebody(lambda each: _begins_in_the_middle(each))),
}  # fmt: skip

#: Where a channel can have a limit of its own.
QUESTIONS_OF_CHANNEL_LIMITS: dict[str, tuple[float, Question]] = {
    "a limit of the channel beside a consumer's": (0.015, _both_limits),
    "a limit of the channel holds a message back": (0.01, _channel_limit_holds),
}

PAIRS: dict[str, tuple[float, PairQuestion]] = {
    "a publish crosses a cancel": (0.02, lambda first, second: _are(first, second, "publish", "cancel")),
    "a cancel crosses a deletion": (0.005, lambda first, second: _are(first, second, "cancel", "queue.delete")),
    "a deletion crosses a cancel": (0.007, lambda first, second: _are(first, second, "queue.delete", "cancel")),
    "a consume crosses its cancel": (0.01, lambda first, second: _are(first, second, "consume", "cancel")),
    "a settlement crosses a cancel": (0.004, lambda first, second: _settles(first) and _is(second, "cancel")),
    "a cancel crosses the close of its channel": (
        0.004, lambda first, second: _are(first, second, "cancel", "channel.close")
    ),
    "publishes at once": (0.08, lambda first, second: _are(first, second, "publish", "publish")),
}  # fmt: skip


def _begins_in_the_middle(consumer: Consumer) -> bool:
    return type(consumer.arguments.get("x-stream-offset")) is int and len(consumer.queue.log) > 1


def _are(first: Command, second: Command, one: str, other: str) -> bool:
    return _is(first, one) and _is(second, other)


def _is(command: Command, method: str) -> bool:
    return command.method in (method, f"basic.{method}")


def _settles(command: Command) -> bool:
    return command.method in ("basic.ack", "basic.reject", "basic.nack")
