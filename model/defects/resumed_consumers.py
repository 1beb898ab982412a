"""Timed out consumers that are served again when their client settles late: RabbitMQ's from 4.3 on (area TIMEOUT).

The client was told that the consumer is cancelled, and its queue has kept it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass, field

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, Unacknowledged
from amqpspec.model.broker.hooks import Guest, once_awake
from amqpspec.model.broker.queues import Consumer, Queue
from amqpspec.model.broker.ruling import Outcome
from amqpspec.model.defects import timed_deliveries
from amqpspec.model.defects.timed_deliveries import DIALECTS, MENDED
from amqpspec.model.judging.known_defect import ANY_NUMBER, DefectTransition
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.extensions.timed_out_consumer_still_known import recovering, resume
from amqpspec.model.rules.inputs import process

NAME = "resumed consumers"

_REFUSALS = ("basic.nack", "basic.reject", "tx.commit")
_RECOVERS = ("basic.recover", "basic.recover-async")


@dataclass(slots=True)
class Place:
    """That of a consumer of which something has timed out, among those whom its queue serves."""

    #: of a single-active-consumer queue: it held more when it timed out, so that its place is not free
    is_kept: bool = False
    #: somebody else had room when it timed out: perhaps it was not come to, and stays among those to be served
    stays_queued: bool = False
    #: it is not served, until it settles something
    is_forgotten: bool = False
    #: of a single-active-consumer queue: it is served beside the one that is active by now
    is_beside: bool = False


@dataclass(slots=True)
class PlaceMemory:
    places: dict[Consumer, Place] = field(default_factory=dict)
    #: consumers that are served again as soon as all that timed out of them is settled
    resuming: list[Consumer] = field(default_factory=list)


class ResumedConsumers(Guest):
    """The places that timed out consumers keep at their queues."""

    name = NAME

    def new_memory(self) -> PlaceMemory:
        return PlaceMemory()

    def delivery_timed_out(self, broker: Broker, channel: Channel, entry: Unacknowledged) -> None:
        consumer = entry.consumer
        if consumer is not None and channel.consumers.get(consumer.tag) is consumer:
            _note_places(broker, entry.queue, consumer)

    @once_awake
    def settled_late(self, broker: Broker, consumer: Consumer) -> None:
        if consumer in broker.remembered(NAME).resuming:
            resume(broker, consumer)

    @once_awake
    def consumer_served(self, broker: Broker, consumer: Consumer) -> None:
        place = broker.remembered(NAME).places.get(consumer)
        if place is not None and place.stays_queued:
            place.is_forgotten = False

    @once_awake
    def delivery_released(self, broker: Broker, consumer: Consumer) -> None:
        place = broker.remembered(NAME).places.get(consumer)
        if place is not None:
            place.is_forgotten = False

    @once_awake
    def rests(self, broker: Broker, consumer: Consumer) -> bool | None:
        place = broker.remembered(NAME).places.get(consumer)
        return True if place is not None and place.is_forgotten else None

    @once_awake
    def is_beside(self, broker: Broker, consumer: Consumer) -> bool | None:
        place = broker.remembered(NAME).places.get(consumer)
        return True if place is not None and place.is_beside else None

    @once_awake
    def came_to_rest(self, broker: Broker) -> None:
        memory: PlaceMemory = broker.remembered(NAME)
        if memory.places:
            memory.places = {each: place for each, place in memory.places.items() if each in each.queue.consumers}

    def fingerprint(self, broker: Broker) -> object:
        places = broker.remembered(NAME).places
        return tuple(sorted((c.channel, c.tag, *astuple(place)) for c, place in places.items()))


def _memory(broker: Broker) -> PlaceMemory:
    memory: PlaceMemory = broker.remembered(NAME)
    return memory


def _note_places(broker: Broker, queue: Queue, consumer: Consumer) -> None:
    """Who has timed out leaves its place when it holds nothing, which is looked at whenever something times out."""
    places, place = _memory(broker).places, _kept(broker, consumer)
    place.stays_queued = any(other is not consumer for other in broker.with_room(queue))
    if queue.single_active_consumer:
        place.is_kept, place.is_beside = True, False
        for other in queue.consumers:
            if other in places:
                places[other].is_kept &= other.outstanding > 0


def _kept(broker: Broker, consumer: Consumer) -> Place:
    """What is noted about the consumer, to be changed."""
    return _memory(broker).places.setdefault(consumer, Place())


def _place(broker: Broker, consumer: Consumer) -> Place:
    """What is noted about the consumer, to be read."""
    return _memory(broker).places.get(consumer, Place())


def _recovering_by(outcome: Outcome) -> Callable[[Broker, Method], bool]:
    return lambda broker, method: any(
        by is outcome and (outcome is not Outcome.REQUEUED or _stays_queued(broker, consumer))
        for consumer, by in recovering(broker, method)
    )


def _stays_queued(broker: Broker, consumer: Consumer) -> bool:
    """Is it, or may it be, among those to be served, though its client gives back all that timed out?"""
    return consumer.queue.single_active_consumer or _place(broker, consumer).stays_queued


def _resume_all(broker: Broker, method: Method) -> None:
    memory = _memory(broker)
    memory.resuming = [consumer for consumer, _ in recovering(broker, method)]
    process(broker, method)
    memory.resuming = []


def _given_back(broker: Broker, method: Method) -> list[Consumer]:
    return [
        consumer
        for consumer, outcome in recovering(broker, method)
        if outcome is Outcome.REQUEUED and not consumer.queue.single_active_consumer
    ]


def _resume_later(broker: Broker, method: Method) -> None:
    """Those whose client gives back what timed out are among those who are served only when they settle more."""
    forgotten = _given_back(broker, method)
    _resume_all(broker, method)
    for consumer in forgotten:
        _kept(broker, consumer).is_forgotten = True
        broker.refresh(consumer.queue)


# ------------------------------------------------------------------------------------------ two in place of one


def _returning(broker: Broker, method: Method) -> list[Consumer]:
    """Consumers that come back to a place of their own, and are served beside the active one."""
    return [
        consumer
        for consumer, outcome in recovering(broker, method)
        if outcome is not Outcome.REQUEUED
        and _place(broker, consumer).is_kept
        and consumer.queue.active.consumer is not None
    ]


def _serve_both(broker: Broker, method: Method) -> None:
    returning = _returning(broker, method)
    _resume_all(broker, method)
    for consumer in returning:
        _kept(broker, consumer).is_beside = True
        broker.refresh(consumer.queue)


RESUMING_DEFECTS: tuple[DefectTransition, ...] = (
    *(
        DefectTransition(
            name=name,
            requirement=requirement,
            strength=Strength.PROMISED,
            statement="A consumer of which the client was told by basic.cancel that it is gone is handed messages"
            f" again, under its tag, when the client has {how} all that timed out.",
            source="rabbit_fifo:complete_and_checkout, maybe_untimeout; rabbit_channel:handle_queue_actions released,"
            " which leaves the consumer at its queue",
            dialects=DIALECTS,
            versions=MENDED,
            by_chance=True,
            methods=methods,
            guest=timed_deliveries.NAME,
            applies=_recovering_by(outcome),
            process=_resume_all,
            shows_within=ANY_NUMBER,
        )
        for name, requirement, how, outcome, methods in (
            (
                "late-ack-resumes-consumer", "TIMEOUT-016", "acknowledged", Outcome.ACKNOWLEDGED,
                ("basic.ack", "tx.commit"),
            ),
            ("late-reject-resumes-consumer", "TIMEOUT-017", "rejected", Outcome.DISCARDED, _REFUSALS),
            ("late-requeue-resumes-consumer", "TIMEOUT-018", "given back", Outcome.REQUEUED, (*_REFUSALS, *_RECOVERS)),
        )
    ),
    DefectTransition(
        name="late-requeue-resumes-consumer-later",
        requirement="TIMEOUT-018",
        strength=Strength.PROMISED,
        statement="A consumer of which the client was told by basic.cancel that it is gone, and whose client has given"
        " back all that timed out, is handed messages again when it settles something else that it still holds.",
        source="rabbit_fifo:return, return_multiple pass over messages that are not checked out, and do not put the"
        " consumer among those to be served again (as complete does)",
        dialects=DIALECTS,
        versions=MENDED,
        by_chance=True,
        methods=(*_REFUSALS, *_RECOVERS),
        guest=timed_deliveries.NAME,
        applies=lambda broker, method: bool(_given_back(broker, method)),
        process=_resume_later,
        shows_within=ANY_NUMBER,
    ),
    DefectTransition(
        name="two-active-consumers-after-timeout",
        requirement="SAC-001",
        strength=Strength.PROMISED,
        statement="A single active consumer that timed out while it held another message, which has not, and whose"
        " client then settles what timed out, is served beside the one that has followed it.",
        source="rabbit_fifo:apply {timeout, evaluate_consumer_timeout} leaves it among the consumers while it holds"
        " something, and activates the next one; complete_and_checkout, maybe_untimeout have it be up again there",
        dialects=DIALECTS,
        versions=MENDED,
        by_chance=True,
        methods=("basic.ack", "basic.nack", "basic.reject", "tx.commit"),
        guest=timed_deliveries.NAME,
        applies=lambda broker, method: bool(_returning(broker, method)),
        process=_serve_both,
        shows_within=ANY_NUMBER,
    ),
)
