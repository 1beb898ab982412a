"""Departures (`model.departures`) of settling."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from model.alphabet import ChannelKey, Frame
from model.broker import Broker
from model.departure import ANY_NUMBER, Departure, internal_error
from model.inputs import process
from model.namesakes import has_priorities, means
from model.queues import Queue, QueueType
from model.rules.closing import break_connection
from model.rules.dead_letter import give_up
from model.rules.requeue import give_back
from model.rules.settlement import tags_meant
from model.state import Channel, ChannelState, Unacknowledged

_PERSISTENT = 2

_RECOVERS = ("basic.recover", "basic.recover-async")


@dataclass(frozen=True, slots=True)
class _Hit:
    """A delivery from a living queue, to whichever channel, that a number from a deleted one means there."""

    holder: Channel
    tag: int
    entry: Unacknowledged


def _settling_channel(broker: Broker, frame: Frame) -> Channel | None:
    channel = broker.channels.get((frame.connection, frame.channel))
    return channel if channel is not None and channel.state is ChannelState.OPEN else None


def _knows(channel: Channel, living: Queue, without: int | None = None) -> bool:
    """Does the queue know the channel? Else it does not listen. `without` a delivery: once that one is settled."""
    if any(consumer.queue is living for consumer in channel.consumers.values()):
        return True
    return any(
        entry.queue is living or (entry.is_still_counted and entry.queue.name == living.name)
        for tag, entry in channel.unacknowledged.items()
        if tag != without
    )


def _hits(broker: Broker, frame: Frame) -> Iterator[_Hit]:
    """Deliveries from living queues that the channel settles when it settles those of deleted namesakes.

    To a classic queue a number means the same whoever says it; a quorum queue asks whose it is.
    """
    channel = _settling_channel(broker, frame)
    settled = set(tags_meant(channel, frame)) if channel is not None else set()
    if channel is None or not any(channel.unacknowledged[tag].queue.deleted for tag in settled):
        return
    taken: set[tuple[ChannelKey, int]] = {(channel.key, tag) for tag in settled}
    for tag in sorted(settled):
        old = channel.unacknowledged[tag]
        living = broker.queues.get(old.queue.name)
        if not old.queue.deleted or living is None or not _knows(channel, living):
            continue
        holders = broker.channels.values() if living.type is QueueType.CLASSIC else (channel,)
        hit = next((each for each in _meant(holders, old, living) if (each.holder.key, each.tag) not in taken), None)
        if hit is not None:
            taken.add((hit.holder.key, hit.tag))
            yield hit


def _meant(holders: Iterable[Channel], old: Unacknowledged, living: Queue) -> Iterator[_Hit]:
    for holder in holders:
        for tag, entry in holder.unacknowledged.items():
            if entry.queue is living and means(old, living, entry):
                yield _Hit(holder, tag, entry)


def _counted(channel: Channel, settled: list[int], living: Queue) -> set[int]:
    """The channel's deliveries from a classic queue that give room to their consumers, by their tags.

    The queue looks for the numbers in the order in which it delivered to the channel; behind one that it does not find
    there it stops looking (rabbit_queue_consumers:subtract_acks).
    """
    told: dict[tuple[bool, str, int], list[Unacknowledged]] = {}
    for tag in settled:
        entry = channel.unacknowledged[tag]
        if entry.queue is living or (entry.queue.deleted and entry.queue.name == living.name):
            key = (True, entry.consumer.tag, 0) if entry.consumer is not None else (False, "", tag)
            told.setdefault(key, []).append(entry)
    outstanding = [(tag, entry) for tag, entry in channel.unacknowledged.items() if entry.queue is living]
    found: set[int] = set()
    for key in sorted(told):
        place = 0
        for entry in told[key]:
            while place < len(outstanding):
                tag, other = outstanding[place]
                place += 1
                if tag not in found and (other is entry or (entry.queue.deleted and means(entry, living, other))):
                    found.add(tag)
                    break
    return found


def _recovers_namesakes(broker: Broker, frame: Frame) -> bool:
    """Does basic.recover give back deliveries of a deleted queue, and are there some of a new one of its name?"""
    channel = _settling_channel(broker, frame)
    if frame.method not in _RECOVERS or channel is None:
        return False
    old = {entry.queue.name for entry in channel.unacknowledged.values() if entry.queue.deleted}
    living = [queue for name in old if (queue := broker.queues.get(name)) is not None and _knows(channel, queue)]
    held = {entry.queue for holder in broker.channels.values() for entry in holder.unacknowledged.values()}
    return not held.isdisjoint(living)


def _gives_back_twice(broker: Broker, frame: Frame) -> bool:
    """Is a delivery settled together with one of a deleted queue that has its number, and by that twice?

    A quorum queue takes it for two, and so does a classic one that dead-letters. A classic queue with consumers is told
    of what it takes back by one consumer after the other, and has delivered it again meanwhile
    (rabbit_channel:foreach_per_queue).
    """
    channel = _settling_channel(broker, frame)
    if channel is None or frame.method != "basic.nack" or not frame.arguments.get("multiple"):
        return False
    settled = tags_meant(channel, frame)
    for old in [entry for tag in settled if (entry := channel.unacknowledged[tag]).queue.deleted]:
        living = broker.queues.get(old.queue.name)
        twice = [hit for hit in _meant((channel,), old, living) if hit.tag in settled] if living is not None else []
        if living is None or not twice:
            continue
        is_discarded = not frame.arguments.get("requeue")
        if (
            not is_discarded
            and living.consumers
            and any(_is_told_apart(old, hit.entry) and _knows(channel, living, without=hit.tag) for hit in twice)
        ):
            return True
        if living.type is QueueType.QUORUM or (is_discarded and "x-dead-letter-exchange" in living.arguments):
            return True
    return False


def _is_told_apart(one: Unacknowledged, other: Unacknowledged) -> bool:
    """Does the queue learn of the two one after the other? Each basic.get is a consumer of its own."""
    return one.consumer is None or other.consumer is None or one.consumer.tag != other.consumer.tag


def _settles_namesakes(broker: Broker, frame: Frame) -> bool:
    if _recovers_namesakes(broker, frame) or _gives_back_twice(broker, frame):
        return True
    return any(True for _ in _hits(broker, frame)) or _takes_room(broker, frame)


def _takes_room(broker: Broker, frame: Frame) -> bool:
    """Does a new queue stop counting at a number that it does not have?"""
    channel = _settling_channel(broker, frame)
    if channel is None or frame.method in _RECOVERS:
        return False
    settled = tags_meant(channel, frame)
    return any(_uncounted(broker, channel, settled))


def _uncounted(broker: Broker, channel: Channel, settled: list[int]) -> Iterator[Unacknowledged]:
    """Deliveries from classic queues that are settled together with some of deleted namesakes, and give no room."""
    old = {channel.unacknowledged[tag].queue.name for tag in settled if channel.unacknowledged[tag].queue.deleted}
    for living in [queue for name in old if (queue := broker.queues.get(name)) is not None]:
        if living.type is QueueType.CLASSIC:
            counted = _counted(channel, settled, living)
            for tag in settled:
                entry = channel.unacknowledged[tag]
                if entry.queue is living and entry.consumer is not None and tag not in counted:
                    yield entry


def _settle_namesakes(broker: Broker, frame: Frame) -> None:
    if frame.method in _RECOVERS or _gives_back_twice(broker, frame):
        # the same delivery is given back twice, the second time perhaps from whoever was handed it meanwhile
        process(broker, frame)
        broker.fired("ACK-024")
        broker.is_astray = True
        return
    channel = broker.channels[(frame.connection, frame.channel)]
    settled = tags_meant(channel, frame)
    hits, uncounted = list(_hits(broker, frame)), list(_uncounted(broker, channel, settled))
    counted = {id(hit): _gives_room(channel, settled, hit) for hit in hits}
    process(broker, frame)
    broker.fired("ACK-024")
    for entry in uncounted:
        if entry.consumer is not None:
            entry.consumer.outstanding += 1
            broker.refresh(entry.queue)
    for hit in hits:
        _settle_at_namesake(broker, frame, channel, hit, counted[id(hit)])


def _gives_room(channel: Channel, settled: list[int], hit: _Hit) -> bool:
    """Is it no longer counted against the limit of its consumer?"""
    if hit.entry.queue.type is QueueType.QUORUM:
        return True
    return hit.holder is channel and hit.tag in _counted(channel, settled, hit.entry.queue)


def _settle_at_namesake(broker: Broker, frame: Frame, channel: Channel, hit: _Hit, gives_room: bool) -> None:
    """For its channel the delivery is outstanding as before, and settling it will find nothing; for the queue it is
    none any more.
    """
    entry, queue = hit.entry, hit.entry.queue
    nowhere = Queue(queue.name, queue.type, deleted=True, arguments=queue.arguments)
    consumer = None if gives_room else entry.consumer
    hit.holder.unacknowledged[hit.tag] = Unacknowledged(
        replace(entry.message), nowhere, consumer, entry.number, is_still_counted=not gives_room
    )
    if gives_room and entry.consumer is not None:
        entry.consumer.outstanding -= 1
        broker.refresh(queue)
    broker.touch(channel, queue)
    failed = frame.method == "basic.reject" or not broker.dialect.quorum_nack_keeps_count
    if frame.method != "basic.ack" and frame.arguments.get("requeue"):
        give_back(broker, queue, [entry.message], "ACK-024", failed=failed, holder=channel.key)
    else:
        broker.drop(queue, entry.message, "ACK-024")
        if frame.method != "basic.ack":
            give_up(broker, queue, entry.message, channel.key, failed=failed)


# ---------------------------------------------------------------- numbers that the new queue's process cannot take


def _settles(channel: Channel, frame: Frame) -> list[Unacknowledged]:
    if frame.method in _RECOVERS:
        return list(channel.unacknowledged.values())
    return [channel.unacknowledged[tag] for tag in tags_meant(channel, frame)]


def _crashes_namesake(broker: Broker, frame: Frame) -> bool:
    """Does a living classic queue learn of the settlement, and does it crash over the number?"""
    channel = _settling_channel(broker, frame)
    if channel is None:
        return False
    return any(_cannot_take(broker, channel, frame, entry) for entry in _settles(channel, frame))


def _cannot_take(broker: Broker, channel: Channel, frame: Frame, old: Unacknowledged) -> bool:
    living = broker.queues.get(old.queue.name)
    if not old.queue.deleted or living is None or living.type is not QueueType.CLASSIC:
        return False
    if not _knows(channel, living):
        return False
    if has_priorities(living) and not has_priorities(old.queue):
        return True
    if frame.method not in ("basic.nack", "basic.reject") or frame.arguments.get("requeue"):
        return False
    # what is to be dead-lettered is read, and has to be there
    return "x-dead-letter-exchange" in living.arguments and not any(_meant(broker.channels.values(), old, living))


def _crash_namesake(broker: Broker, frame: Frame) -> None:
    """Commonest: the channel has asked the crashing queue for something, or does so next."""
    process(broker, frame)
    broker.fired("ACK-024")
    break_connection(broker, broker.channels[(frame.connection, frame.channel)], internal_error())
    broker.is_astray = True


def _crashes_unseen(broker: Broker, frame: Frame) -> bool:
    """Is nobody told of the crash?"""
    return _crashes_namesake(broker, frame) and not any(
        broker.connections[consumer.channel[0]].is_told_of_cancels
        for queue in _crashing(broker, frame)
        for consumer in queue.consumers
    )


def _crashing(broker: Broker, frame: Frame) -> list[Queue]:
    channel = broker.channels[(frame.connection, frame.channel)]
    entries = [entry for entry in _settles(channel, frame) if _cannot_take(broker, channel, frame, entry)]
    return [broker.queues[name] for name in dict.fromkeys(entry.queue.name for entry in entries)]


def _start_namesake_again(broker: Broker, frame: Frame) -> None:
    """The queue is there again, without consumers, without what it waited for, and without messages: of those that are
    persistent nobody knows which.
    """
    crashing = _crashing(broker, frame)
    process(broker, frame)
    broker.fired("ACK-024")
    for queue in crashing:
        for consumer in list(queue.consumers):
            broker.channels[consumer.channel].consumers.pop(consumer.tag, None)
        queue.consumers.clear()
        held = [each for c in broker.channels.values() for each in c.unacknowledged.values() if each.queue is queue]
        broker.is_astray |= any(
            message.content.properties.get("delivery_mode") == _PERSISTENT
            for message in (*queue.messages, *(entry.message for entry in held))
        )
        nowhere = Queue(queue.name, queue.type, deleted=True, arguments=queue.arguments)
        for entry in held:
            entry.queue = nowhere
        broker.remove_ready(queue, "ACK-024")


SETTLING_DEPARTURES: tuple[Departure, ...] = (
    Departure(
        name="deleted-queue-settles-namesake",
        requirement="ACK-024",
        statement="Settling a delivery of a deleted queue settles, in a new queue of the same name, a delivery that has"
        " the same number there, if that is a classic queue to whichever channel; of what is settled together with"
        " numbers that it does not have a classic queue forgets some when it counts against limits.",
        source="rabbit_queue_type:settle finds the queue by name; rabbit_classic_queue and rabbit_fifo_client know"
        " messages by numbers that begin anew with each queue; rabbit_queue_consumers:subtract_acks",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=("basic.ack", "basic.nack", "basic.reject", *_RECOVERS),
        applies=_settles_namesakes,
        process=_settle_namesakes,
        shows_within=ANY_NUMBER,
    ),
    Departure(
        name="crashed-namesake-is-empty",
        requirement="ACK-024",
        statement="When a new classic queue of the name of a deleted one has crashed so and is there again before"
        " somebody asks, its transient messages are gone, those that somebody holds as well, and so are consumers that"
        " are not told.",
        source="rabbit_amqqueue_sup (restart), rabbit_variable_queue:init (recovers persistent messages)",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=("basic.ack", "basic.nack", "basic.reject", *_RECOVERS),
        applies=_crashes_unseen,
        process=_start_namesake_again,
        shows_within=ANY_NUMBER,
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
        methods=("basic.ack", "basic.nack", "basic.reject", *_RECOVERS),
        applies=_crashes_namesake,
        process=_crash_namesake,
    ),
)
