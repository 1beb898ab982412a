"""Departures (`model.departures`) of limits on queues."""

from __future__ import annotations

from collections.abc import Iterator

from model.alphabet import Frame
from model.broker import Broker
from model.content_size import properties_size
from model.departure import Departure
from model.inputs import process
from model.overflow import BYTES, tell_publishers
from model.queues import Message, Queue, QueueType
from model.state import ChannelState

_METHODS = (
    "basic.publish", "tx.commit", "basic.nack", "basic.reject", "basic.recover", "basic.recover-async",
    "channel.close", "connection.close",
)  # fmt: skip


def _weight(messages: Iterator[Message]) -> int:
    return sum(properties_size(message.content.properties) + len(message.content.body) for message in messages)


def _at_stake(broker: Broker, frame: Frame) -> int:
    """Octets that the input may bring into queues."""
    if frame.content is not None:
        return properties_size(frame.content.properties) + len(frame.content.body)
    return _weight(_kept(broker, frame))


def _kept(broker: Broker, frame: Frame) -> Iterator[Message]:
    """What the connection holds, and what its transactions have kept back."""
    for channel in broker.channels.values():
        if channel.connection == frame.connection:
            yield from (entry.message for entry in channel.unacknowledged.values())
            if channel.transaction is not None:
                yield from (publication.pattern for publication in channel.transaction.publications)


def _overweight(broker: Broker, frame: Frame) -> Iterator[Queue]:
    """Quorum queues that the input may bring beyond their limit, if properties count."""
    for queue in broker.queues.values():
        most = queue.arguments.get(BYTES)
        if most is None or queue.type is not QueueType.QUORUM or queue.weighs_properties:
            continue
        if _weight(iter(queue.messages)) + _at_stake(broker, frame) > most:
            yield queue


def _brings_too_much(broker: Broker, frame: Frame) -> bool:
    channel = broker.channels.get((frame.connection, frame.channel))
    if frame.channel and (channel is None or channel.state is not ChannelState.OPEN):
        return False
    return any(True for _ in _overweight(broker, frame))


def _weigh_properties(broker: Broker, frame: Frame) -> None:
    for queue in list(_overweight(broker, frame)):
        queue.weighs_properties = True
        # what it has now, it had before: whoever publishes to it has been told
        tell_publishers(broker, queue)
        for channel in broker.channels.values():
            if queue in channel.admissions:
                channel.admissions[queue] = channel.admissions[queue].heard
    process(broker, frame)


OVERFLOW_DEPARTURES: tuple[Departure, ...] = (
    Departure(
        name="quorum-bytes-count-properties",
        requirement="OVERFLOW-004",
        statement="A quorum queue with x-max-length-bytes counts the octets of the properties as well: two more for a"
        " message that has none.",
        source="v4.3.5 rabbit_fifo:maybe_enqueue, Size = MetaSize + BodySize of mc:size; guide: queue length limit,"
        " 'ignoring message properties and any overheads'",
        dialects=("rabbitmq-4.3",),
        methods=_METHODS,
        applies=_brings_too_much,
        process=_weigh_properties,
    ),
)
