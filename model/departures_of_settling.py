"""Departures (`model.departures`) of settling."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from model.alphabet import Frame
from model.broker import Broker
from model.departure import Departure, internal_error
from model.inputs import process
from model.queues import Queue, QueueType
from model.rules.closing import break_connection
from model.rules.dead_letter import give_up
from model.rules.requeue import give_back
from model.rules.settlement import tags_meant
from model.state import Channel, ChannelState, Unacknowledged

_RECOVERS = ("basic.recover", "basic.recover-async")


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


def _recovers_namesakes(broker: Broker, frame: Frame) -> bool:
    """Does basic.recover give back deliveries of a deleted queue, and some of a new one of its name?"""
    channel = broker.channels.get((frame.connection, frame.channel))
    if frame.method not in _RECOVERS or channel is None or channel.state is not ChannelState.OPEN:
        return False
    held = [entry.queue for entry in channel.unacknowledged.values()]
    return any(queue.deleted and broker.queues.get(queue.name) in held for queue in held)


def _settle_namesakes(broker: Broker, frame: Frame) -> None:
    if frame.method in _RECOVERS:
        # the same delivery is given back twice, the second time perhaps from whoever was handed it meanwhile
        process(broker, frame)
        broker.fired("ACK-024")
        broker.is_astray = True
        return
    channel = broker.channels[(frame.connection, frame.channel)]
    hit = list(_hit(broker, frame))
    process(broker, frame)
    broker.fired("ACK-024")
    for tag, entry in hit:
        queue = entry.queue
        # for the channel the delivery is outstanding as before, and settling it will find nothing; for the queue it is
        # none any more, and does not count against the limit of its consumer
        nowhere = Queue(queue.name, queue.type, deleted=True)
        channel.unacknowledged[tag] = Unacknowledged(replace(entry.message), nowhere, None)
        if entry.consumer is not None:
            entry.consumer.outstanding -= 1
            broker.refresh(queue)
        broker.touch(channel, queue)
        if frame.method != "basic.ack" and frame.arguments.get("requeue"):
            give_back(broker, queue, [entry.message], "ACK-024", failed=True, holder=channel.key)
        else:
            broker.drop(queue, entry.message, "ACK-024")
            if frame.method != "basic.ack":
                failed = frame.method == "basic.reject" or not broker.dialect.quorum_nack_keeps_count
                give_up(broker, queue, entry.message, channel.key, failed=failed)


# ---------------------------------------------------------------- numbers that the new queue's process cannot take


def _settles(channel: Channel, frame: Frame) -> list[Unacknowledged]:
    if frame.method == "basic.recover":
        return list(channel.unacknowledged.values())
    return [channel.unacknowledged[tag] for tag in tags_meant(channel, frame)]


def _crashes_namesake(broker: Broker, frame: Frame) -> bool:
    """Does a living classic queue learn of the settlement, and does it crash over the number?"""
    channel = broker.channels.get((frame.connection, frame.channel))
    if channel is None or channel.state is not ChannelState.OPEN:
        return False
    return any(_cannot_take(broker, channel, frame, entry.queue) for entry in _settles(channel, frame))


def _cannot_take(broker: Broker, channel: Channel, frame: Frame, old: Queue) -> bool:
    living = broker.queues.get(old.name)
    if not old.deleted or living is None or living.type is not QueueType.CLASSIC:
        return False
    held = (entry.queue for entry in channel.unacknowledged.values())
    if living not in held and all(consumer.queue is not living for consumer in channel.consumers.values()):
        return False  # it does not know the channel, and does not listen
    if living.arguments.get("x-max-priority"):
        # its numbers are pairs: of the priority, and of the number in the queue of that priority
        return old.type is not QueueType.CLASSIC or not old.arguments.get("x-max-priority")
    is_discarded = frame.method in ("basic.nack", "basic.reject") and not frame.arguments.get("requeue")
    return is_discarded and "x-dead-letter-exchange" in living.arguments


def _crash_namesake(broker: Broker, frame: Frame) -> None:
    """Commonest: the channel has asked the crashing queue for something, or does so next."""
    process(broker, frame)
    broker.fired("ACK-024")
    break_connection(broker, broker.channels[(frame.connection, frame.channel)], internal_error())
    broker.is_astray = True


SETTLING_DEPARTURES: tuple[Departure, ...] = (
    Departure(
        name="deleted-queue-settles-namesake",
        requirement="ACK-024",
        statement="Settling a delivery of a deleted queue settles, in a new queue of the same name, a delivery to the"
        " same channel that has the same number there.",
        source="rabbit_queue_type:settle finds the queue by name; rabbit_classic_queue and rabbit_fifo_client know"
        " messages by numbers that begin anew with each queue",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=("basic.ack", "basic.nack", "basic.reject", *_RECOVERS),
        applies=lambda broker, frame: any(True for _ in _hit(broker, frame)) or _recovers_namesakes(broker, frame),
        process=_settle_namesakes,
    ),
    Departure(
        name="deleted-queue-crashes-namesake",
        requirement="ACK-024",
        statement="Settling a delivery of a deleted queue crashes the process of a new classic queue of the same name,"
        " which does not have that number: its consumers and transient messages are gone, and what is asked of it"
        " meanwhile is refused with 404 or closes the connection with 541.",
        source="rabbit_priority_queue:partition_acktags (numbers that are no pairs); rabbit_variable_queue:"
        "lookup_pending_ack, called for each message that is to be dead-lettered",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=("basic.ack", "basic.nack", "basic.reject", "basic.recover"),
        applies=_crashes_namesake,
        process=_crash_namesake,
    ),
)
