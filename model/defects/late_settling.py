"""A known defect of settling what has timed out: RabbitMQ's from 4.3 on (area TIMEOUT)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, TimedOut, Unacknowledged
from amqpspec.model.broker.hooks import arm
from amqpspec.model.broker.queues import Queue
from amqpspec.model.broker.ruling import Outcome
from amqpspec.model.defects import delivery_numbers
from amqpspec.model.defects.delivery_numbers import number_of
from amqpspec.model.defects.timed_deliveries import DIALECTS, NAME
from amqpspec.model.judging.known_defect import ANY_NUMBER, DefectTransition
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.basic.requeue import give_back
from amqpspec.model.rules.extensions.timed_out_consumer_still_known import resume, settled_late
from amqpspec.model.rules.inputs import process

_Delivery = Unacknowledged | TimedOut
_Hit = tuple[int, _Delivery, Outcome]


def _hits(broker: Broker, method: Method) -> Iterator[_Hit]:
    """Deliveries to other consumers of the tags to which the late ones were made: they have the same numbers."""
    channel = broker.open_channel(method)
    if channel is None or not channel.timed_out:
        return
    for outcome, tags in settled_late(channel, method):
        for late in tags:
            yield from ((tag, entry, outcome) for tag, entry in _of_same_number(broker, channel, late))


def _of_same_number(broker: Broker, channel: Channel, late: int) -> Iterator[tuple[int, _Delivery]]:
    old = channel.timed_out[late]
    number = number_of(broker, channel, late)
    held: list[tuple[int, _Delivery]] = [*channel.unacknowledged.items(), *channel.timed_out.items()]
    for tag, entry in held:
        if entry.consumer is None or old.consumer is None or entry.consumer is old.consumer:
            continue
        is_same = entry.consumer.tag == old.consumer.tag and entry.queue.name == old.queue.name
        if is_same and entry.queue.type is QueueType.QUORUM and number_of(broker, channel, tag) == number:
            yield tag, entry


def _may_hit_what_comes_back(broker: Broker, method: Method) -> bool:
    """Is something given back together with what timed out, to a consumer that has the tag of the one which timed out?
    The queue may hand it over before it hears of the rest, which has the same numbers.
    """
    channel = broker.open_channel(method)
    if channel is None or not channel.timed_out:
        return False
    is_given_back = method.arguments.get("requeue") and (
        method.arguments.get("multiple") or method.name.startswith("basic.recover")
    )
    if not is_given_back or not channel.unacknowledged:
        return False
    late = [tag for _, tags in settled_late(channel, method) for tag in tags]
    former = (channel.timed_out[tag].consumer for tag in late)
    living = (
        channel.consumers.get(each.tag) for each in former if each is not None and each not in each.queue.consumers
    )
    return any(
        each is not None and any(entry.queue is each.queue for entry in channel.unacknowledged.values())
        for each in living
    )


def _settle_deliveries_of_same_number(broker: Broker, method: Method) -> None:
    if _may_hit_what_comes_back(broker, method):
        # what is handed over meanwhile is given back, or settled
        process(broker, method)
        broker.bookkeeping.is_unpredictable = True
        return
    channel = broker.channels[(method.connection, method.channel)]
    hits = list(_hits(broker, method))
    process(broker, method)
    for tag, entry, outcome in hits:
        if isinstance(entry, TimedOut):
            _recover_at_queue(broker, channel, tag, entry)
        elif channel.unacknowledged.get(tag) is not entry:
            # settled as well: a quorum queue takes back what it is given back by both, and has it twice
            if outcome is Outcome.REQUEUED:
                broker.bookkeeping.is_unpredictable = True
                return
        else:
            _settle_at_queue(broker, channel, tag, entry, outcome, method)


def _recover_at_queue(broker: Broker, channel: Channel, tag: int, entry: TimedOut) -> None:
    """It has timed out as well: for the queue it is settled now, and the consumer perhaps served again."""
    if channel.timed_out.get(tag) is not entry or entry.consumer is None:
        return
    channel.timed_out[tag] = replace(entry, consumer=None)
    consumer = entry.consumer
    if consumer.timed_out and not any(late.consumer is consumer for late in channel.timed_out.values()):
        resume(broker, consumer)
    broker.touch(channel, entry.queue)


def _settle_at_queue(
    broker: Broker, channel: Channel, tag: int, entry: Unacknowledged, outcome: Outcome, method: Method
) -> None:
    """For the client the delivery is outstanding as before, and settling it will find nothing."""
    queue = entry.queue
    nowhere = Queue(queue.name, queue.type, deleted=True, arguments=queue.arguments)
    channel.unacknowledged[tag] = Unacknowledged(replace(entry.message), nowhere, None)
    arm(broker, delivery_numbers.NAME)
    if entry.consumer is not None:
        entry.consumer.outstanding -= 1
    broker.touch(channel, queue)
    if outcome is Outcome.REQUEUED:
        failed = method.name == "basic.reject" or not broker.dialect.quorum_nack_has_not_failed
        give_back(broker, queue, [entry.message], "TIMEOUT-019", failed=failed, holder=channel.key)
    else:
        broker.note_gone(queue, entry.message, "TIMEOUT-019")
    broker.refresh(queue)


LATE_SETTLING_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="late-settlement-settles-for-next-consumer",
        requirement="TIMEOUT-019",
        strength=Strength.PROMISED,
        statement="When a consumer has timed out and was cancelled, and another one was made with its tag, to settle a"
        " delivery of the first settles the delivery of the second that has the same number: the message is lost.",
        source="rabbit_channel settles by queue name, consumer tag and number; rabbit_fifo_client:settle looks up the"
        " consumer's key by the tag; rabbit_fifo counts anew for each consumer (next_msg_id)",
        dialects=DIALECTS,
        by_chance=True,
        methods=("basic.ack", "basic.nack", "basic.reject", "basic.recover", "basic.recover-async", "tx.commit"),
        guest=NAME,
        applies=lambda broker, method: (
            any(True for _ in _hits(broker, method)) or _may_hit_what_comes_back(broker, method)
        ),
        process=_settle_deliveries_of_same_number,
        shows_within=ANY_NUMBER,
    ),
)
