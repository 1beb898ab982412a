"""Departures (`model.departures`) of settling."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from model.alphabet import Frame
from model.broker import Broker
from model.departure import Departure
from model.inputs import process
from model.queues import Queue
from model.rules.dead_letter import give_up
from model.rules.requeue import give_back
from model.rules.settlement import tags_meant
from model.state import ChannelState, Unacknowledged


def _hit(broker: Broker, frame: Frame) -> Iterator[tuple[int, Unacknowledged]]:
    """Deliveries from living queues that the channel settles when it settles those of deleted namesakes.

    The channel tells a queue's process the numbers that messages have there, and the new queue begins to count anew.
    """
    channel = broker.channels.get((frame.connection, frame.channel))
    if channel is None or channel.state is not ChannelState.OPEN:
        return
    settled = set(tags_meant(channel, frame))
    if not settled or not any(channel.unacknowledged[tag].queue.deleted for tag in settled):
        return
    taken: set[int] = set()
    for tag in sorted(settled):
        old = channel.unacknowledged[tag]
        living = broker.queues.get(old.queue.name)
        if not old.queue.deleted or living is None:
            continue
        others = [
            (other, entry)
            for other, entry in channel.unacknowledged.items()
            if entry.queue is living and other not in settled and other not in taken
        ]
        others.sort(key=lambda pair: pair[1].message.position != old.message.position)
        if others:
            taken.add(others[0][0])
            yield others[0]


def _settle_namesakes(broker: Broker, frame: Frame) -> None:
    channel = broker.channels[(frame.connection, frame.channel)]
    hit = list(_hit(broker, frame))
    process(broker, frame)
    broker.fired("ACK-024")
    for tag, entry in hit:
        queue = entry.queue
        # for the channel the delivery is outstanding as before, and settling it will find nothing
        nowhere = Queue(queue.name, queue.type, deleted=True)
        channel.unacknowledged[tag] = Unacknowledged(replace(entry.message), nowhere, entry.consumer)
        broker.touch(channel, queue)
        if frame.method != "basic.ack" and frame.arguments.get("requeue"):
            give_back(broker, queue, [entry.message], "ACK-024", failed=True, holder=channel.key)
        else:
            broker.drop(queue, entry.message, "ACK-024")
            if frame.method != "basic.ack":
                failed = frame.method == "basic.reject" or not broker.dialect.quorum_nack_keeps_count
                give_up(broker, queue, entry.message, channel.key, failed=failed)


SETTLING_DEPARTURES: tuple[Departure, ...] = (
    Departure(
        name="deleted-queue-settles-namesake",
        requirement="ACK-024",
        statement="Settling a delivery of a deleted queue settles, in a new queue of the same name, a delivery to the"
        " same channel that has the same number there.",
        source="rabbit_queue_type:settle finds the queue by name; rabbit_classic_queue and rabbit_fifo_client know"
        " messages by numbers that begin anew with each queue",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=("basic.ack", "basic.nack", "basic.reject"),
        applies=lambda broker, frame: any(True for _ in _hit(broker, frame)),
        process=_settle_namesakes,
    ),
)
