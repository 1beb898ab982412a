"""Settling what a deleted queue delivered, where another one has its name (rabbit_queue_type:settle goes by that).

The new queue takes the numbers for its own (`model.defects.delivery_numbers`): it settles, gives back or dead-letters
other deliveries than those which the client means, and what it counts against limits is wrong from then on
(rabbit_queue_consumers:subtract_acks).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, Unacknowledged
from amqpspec.model.broker.queues import Queue
from amqpspec.model.broker.ruling import Outcome, Ruling
from amqpspec.model.defects.channel_limiter import follow_limiters, note_out
from amqpspec.model.defects.delivery_numbers import (
    NAME,
    SettledForQueue,
    has_priorities,
    note_settled_for_queue,
    note_still_counted,
    number_of,
    settled_for_queue,
    told_as,
)
from amqpspec.model.judging.known_defect import ANY_NUMBER, DefectTransition
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.methods import ChannelKey, Method
from amqpspec.model.rules.basic.requeue import give_back
from amqpspec.model.rules.basic.settlement import tags_meant
from amqpspec.model.rules.extensions.dead_letter import discard_message
from amqpspec.model.rules.inputs import process

RECOVERS = ("basic.recover", "basic.recover-async")


@dataclass(frozen=True, slots=True)
class _Hit:
    """A delivery from a living queue, to whichever channel, that a number from a deleted one means there."""

    holder: Channel
    tag: int
    entry: Unacknowledged
    number: int
    #: what was meant for the other one
    ruling: Ruling


def _settled_tags(channel: Channel, method: Method) -> list[int]:
    """Those that are settled now, by the method or with the transaction that it commits."""
    if method.name != "tx.commit":
        return tags_meant(channel, method)
    reserved = channel.transaction.reserved if channel.transaction is not None else ()
    return sorted(tag for tag in reserved if tag in channel.unacknowledged)


def _ruling(broker: Broker, channel: Channel, method: Method, tag: int) -> Ruling:
    if method.name == "tx.commit" and channel.transaction is not None:
        return next(ruling for ruling, tags in channel.transaction.rulings if tag in tags)
    if method.name == "basic.ack":
        return Ruling(Outcome.ACKNOWLEDGED)
    failed = method.name == "basic.reject" or not broker.dialect.quorum_nack_has_not_failed
    return Ruling(Outcome.REQUEUED if method.arguments.get("requeue") else Outcome.DISCARDED, failed)


def knows(broker: Broker, channel: Channel, living: Queue, without: int | None = None) -> bool:
    """Does the queue know the channel? Else it does not listen. `without` a delivery: once that one is settled."""
    if any(consumer.queue is living for consumer in channel.consumers.values()):
        return True
    return any(
        entry.queue is living or (entry.queue.name == living.name and _is_still_counted(broker, channel, tag))
        for tag, entry in channel.unacknowledged.items()
        if tag != without
    )


def _is_still_counted(broker: Broker, channel: Channel, tag: int) -> bool:
    settled = settled_for_queue(broker, channel, tag)
    return settled is not None and settled.is_still_counted


def _hits(broker: Broker, method: Method) -> Iterator[_Hit]:
    """Deliveries from living queues that the channel settles when it settles those of deleted ones of their names.

    To a classic queue a number means the same whoever says it; a quorum queue asks whose it is.
    """
    channel = broker.open_channel(method)
    settled = set(_settled_tags(channel, method)) if channel is not None else set()
    if channel is None or not any(channel.unacknowledged[tag].queue.deleted for tag in settled):
        return
    taken: set[tuple[ChannelKey, int]] = {(channel.key, tag) for tag in settled}
    for tag in sorted(settled):
        old = channel.unacknowledged[tag]
        living = broker.queues.get(old.queue.name)
        if not old.queue.deleted or living is None or not knows(broker, channel, living):
            continue
        holders = broker.channels.values() if living.type is QueueType.CLASSIC else (channel,)
        for holder, held, entry in meant(broker, holders, (channel, tag), living):
            if (holder.key, held) not in taken:
                taken.add((holder.key, held))
                number = number_of(broker, holder, held, entry)
                yield _Hit(holder, held, entry, number, _ruling(broker, channel, method, tag))
                break


def meant(
    broker: Broker, holders: Iterable[Channel], old: tuple[Channel, int], living: Queue
) -> Iterator[tuple[Channel, int, Unacknowledged]]:
    """Deliveries from the living queue, with whom they are and their tags, that have the number of the old one, which
    is given by its channel and tag.
    """
    for holder in holders:
        for tag, entry in holder.unacknowledged.items():
            if entry.queue is living and _means(broker, old, living, (holder, tag)):
                yield holder, tag, entry


def _means(broker: Broker, old: tuple[Channel, int], living: Queue, other: tuple[Channel, int]) -> bool:
    """Does the number of a delivery that a channel settles mean the other one, of the queue `living`, there?"""
    settled, entry = (channel.unacknowledged[tag] for channel, tag in (old, other))
    if number_of(broker, *old, settled) != number_of(broker, *other, entry):
        return False
    if has_priorities(settled.queue) is not has_priorities(living):
        return False
    if has_priorities(living):
        return settled.message.priority == entry.message.priority
    return living.type is not QueueType.QUORUM or _tag(settled) == _tag(entry)


def _tag(entry: Unacknowledged) -> str | None:
    return entry.consumer.tag if entry.consumer is not None else None


def _counted(broker: Broker, channel: Channel, settled: list[int], living: Queue) -> set[int]:
    """The channel's deliveries from a classic queue that give room to their consumers, by their tags.

    The queue looks for the numbers in the order in which it delivered to the channel; after one that it does not find
    there it stops looking (rabbit_queue_consumers:subtract_acks).
    """
    told: dict[tuple[bool, str, int], list[int]] = {}
    for tag in settled:
        entry = channel.unacknowledged[tag]
        if entry.queue is living or (entry.queue.deleted and entry.queue.name == living.name):
            name = told_as(broker, channel, tag)
            key = (True, name, 0) if name else (False, "", tag)
            told.setdefault(key, []).append(tag)
    outstanding = [(tag, entry) for tag, entry in channel.unacknowledged.items() if entry.queue is living]
    found: set[int] = set()
    for key in sorted(told):
        place = 0
        for ruled in told[key]:
            entry = channel.unacknowledged[ruled]
            while place < len(outstanding):
                tag, other = outstanding[place]
                place += 1
                if tag not in found and (
                    other is entry
                    or (entry.queue.deleted and _means(broker, (channel, ruled), living, (channel, tag)))
                ):
                    found.add(tag)
                    break
    return found


def _recovers_with_next_queue(broker: Broker, method: Method) -> bool:
    """Does basic.recover give back deliveries of a deleted queue, and are there some of a new one of its name?"""
    channel = broker.open_channel(method)
    if method.name not in RECOVERS or channel is None:
        return False
    old = {entry.queue.name for entry in channel.unacknowledged.values() if entry.queue.deleted}
    living = [queue for name in old if (queue := broker.queues.get(name)) is not None and knows(broker, channel, queue)]
    held = {entry.queue for holder in broker.channels.values() for entry in holder.unacknowledged.values()}
    return not held.isdisjoint(living)


def _gives_back_twice(broker: Broker, method: Method) -> bool:
    """Is a delivery settled together with one of a deleted queue that has its number, and by that twice?

    A quorum queue takes it for two, and so does a classic one that dead-letters. A classic queue with consumers is told
    of what it takes back by one consumer after the other, and has delivered it again meanwhile
    (rabbit_channel:foreach_per_queue).
    """
    channel = broker.open_channel(method)
    if channel is None or method.name != "basic.nack" or not method.arguments.get("multiple"):
        return False
    settled = tags_meant(channel, method)
    for old in [tag for tag in settled if channel.unacknowledged[tag].queue.deleted]:
        living = broker.queues.get(channel.unacknowledged[old].queue.name)
        same = meant(broker, (channel,), (channel, old), living) if living is not None else ()
        twice = [tag for _, tag, _ in same if tag in settled]
        if living is None or not twice:
            continue
        is_discarded = not method.arguments.get("requeue")
        if (
            not is_discarded
            and living.consumers
            and any(
                _is_told_apart(broker, channel, old, tag) and knows(broker, channel, living, without=tag)
                for tag in twice
            )
        ):
            return True
        if living.type is QueueType.QUORUM or (is_discarded and "x-dead-letter-exchange" in living.arguments):
            return True
    return False


def _is_told_apart(broker: Broker, channel: Channel, one: int, other: int) -> bool:
    """Does the queue learn of the two one after the other? Each basic.get is a consumer of its own."""
    name = told_as(broker, channel, one)
    return not name or name != told_as(broker, channel, other)


def _settles_at_next_queue(broker: Broker, method: Method) -> bool:
    if _recovers_with_next_queue(broker, method) or _gives_back_twice(broker, method):
        return True
    return any(True for _ in _hits(broker, method)) or _takes_room(broker, method)


def _takes_room(broker: Broker, method: Method) -> bool:
    """Does a new queue stop counting at a number that it does not have?"""
    channel = broker.open_channel(method)
    if channel is None or method.name in RECOVERS:
        return False
    settled = _settled_tags(channel, method)
    return any(_uncounted(broker, channel, settled))


def _uncounted(broker: Broker, channel: Channel, settled: list[int]) -> Iterator[tuple[int, Unacknowledged]]:
    """Deliveries from classic queues, with their numbers, that are settled together with some of deleted queues of
    their names, and give no room.
    """
    old = {channel.unacknowledged[tag].queue.name for tag in settled if channel.unacknowledged[tag].queue.deleted}
    for living in [queue for name in old if (queue := broker.queues.get(name)) is not None]:
        if living.type is QueueType.CLASSIC:
            counted = _counted(broker, channel, settled, living)
            for tag in settled:
                entry = channel.unacknowledged[tag]
                if entry.queue is living and entry.consumer is not None and tag not in counted:
                    yield number_of(broker, channel, tag, entry), entry


def _settle_at_next_queue(broker: Broker, method: Method) -> None:
    if method.name in RECOVERS or _gives_back_twice(broker, method):
        # the same delivery is given back twice, the second time perhaps from whoever was handed it meanwhile
        process(broker, method)
        broker.fired("ACK-024")
        broker.bookkeeping.is_unpredictable = True
        return
    follow_limiters(broker)  # the room that a lost settlement makes is counted as RabbitMQ counts it
    channel = broker.channels[(method.connection, method.channel)]
    settled = _settled_tags(channel, method)
    hits, uncounted = list(_hits(broker, method)), list(_uncounted(broker, channel, settled))
    counted = {id(hit): _gives_room(broker, channel, settled, hit) for hit in hits}
    process(broker, method)
    broker.fired("ACK-024")
    for number, entry in uncounted:
        if entry.consumer is not None:
            entry.consumer.outstanding += 1
            note_still_counted(broker, channel, entry.queue, number)
            broker.refresh(entry.queue)
    for hit in hits:
        _settle_hit(broker, channel, hit, counted[id(hit)])


def _gives_room(broker: Broker, channel: Channel, settled: list[int], hit: _Hit) -> bool:
    """Is it no longer counted against the limit of its consumer?"""
    if hit.entry.queue.type is QueueType.QUORUM:
        return True
    return hit.holder is channel and hit.tag in _counted(broker, channel, settled, hit.entry.queue)


def _settle_hit(broker: Broker, channel: Channel, hit: _Hit, gives_room: bool) -> None:
    """For its channel the delivery is outstanding as before, and settling it will find nothing; for the queue it is
    none any more.
    """
    entry, queue = hit.entry, hit.entry.queue
    nowhere = Queue(queue.name, queue.type, deleted=True, arguments=queue.arguments)
    consumer = None if gives_room else entry.consumer
    is_given_back = hit.ruling.outcome is Outcome.REQUEUED and queue.type is QueueType.CLASSIC
    former = SettledForQueue(
        hit.number,
        entry.consumer.tag if entry.consumer is not None else "",
        is_still_counted=not gives_room,
        given_back_at=queue if is_given_back else None,
    )
    note_settled_for_queue(broker, hit.holder, hit.tag, former)
    hit.holder.unacknowledged[hit.tag] = Unacknowledged(replace(entry.message), nowhere, consumer)
    if gives_room and entry.consumer is not None:
        note_out(broker, hit.holder, hit.tag)
        entry.consumer.outstanding -= 1
        broker.refresh(queue)
    broker.touch(channel, queue)
    ruling = hit.ruling
    if ruling.outcome is Outcome.REQUEUED:
        give_back(broker, queue, [entry.message], "ACK-024", failed=ruling.failed, holder=channel.key)
    else:
        broker.note_gone(queue, entry.message, "ACK-024")
        if ruling.outcome is Outcome.DISCARDED:
            discard_message(broker, queue, entry.message, channel.key, ruling.failed)


SETTLING_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="deleted-queue-settles-in-next-queue",
        requirement="ACK-024",
        strength=Strength.PROMISED,
        statement="Settling a delivery of a deleted queue settles, in a new queue of the same name, a delivery that has"
        " the same number there, if that is a classic queue to whichever channel; of what is settled together with"
        " numbers that it does not have a classic queue forgets some when it counts against limits.",
        source="rabbit_queue_type:settle finds the queue by name; rabbit_classic_queue and rabbit_fifo_client know"
        " messages by numbers that begin anew with each queue; rabbit_queue_consumers:subtract_acks",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=("basic.ack", "basic.nack", "basic.reject", "tx.commit", *RECOVERS),
        guest=NAME,
        applies=_settles_at_next_queue,
        process=_settle_at_next_queue,
        shows_within=ANY_NUMBER,
    ),
)
