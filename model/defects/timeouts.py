"""Known defects of consumer timeouts, all of them RabbitMQ's from 4.3 on (area TIMEOUT)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass, field, replace

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, ChannelState, Unacknowledged
from amqpspec.model.broker.connections import Connection, ConnectionState
from amqpspec.model.broker.deadlines import NEVER, Deadline
from amqpspec.model.broker.hooks import Guest, arm, once_awake
from amqpspec.model.broker.internal_events import DeliveryTimeout, OverdueTimeout
from amqpspec.model.broker.owed import Expected
from amqpspec.model.broker.queues import Consumer, Message, Queue
from amqpspec.model.broker.timed_out_consumers import waits_for_answer
from amqpspec.model.broker.transaction import Outcome
from amqpspec.model.defects.channel_closing import note_closed
from amqpspec.model.judging.known_defect import ANY_NUMBER, DefectTransition, OutputDefect
from amqpspec.model.outputs.mismatch import Mismatch, Mismatches
from amqpspec.model.promises.choices import ConsumerTimeouts
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.verdict import Shape
from amqpspec.model.promises.versions import versions
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import ChannelKey, Method
from amqpspec.model.protocol.patterns import matches
from amqpspec.model.rules.extensions.consumer_timeout import close_saying, close_text, is_told
from amqpspec.model.rules.extensions.timed_out_consumer import recovering, resume
from amqpspec.model.rules.extensions.timeouts import doubted_delivery
from amqpspec.model.rules.inputs import process

NAME = "consumer timeouts"

_DIALECTS = ("rabbitmq-4.3",)
#: What the release notes of 4.3.7 say was mended: a consumer stayed, of which the client was told that it is cancelled.
_MENDED = (versions("4.3.0", "4.3.6"),)

_REFUSALS = ("basic.nack", "basic.reject", "tx.commit")
_RECOVERS = ("basic.recover", "basic.recover-async")


TEXT_WITHOUT_VALUE = "timeout-text-without-value"
NEXT_DEADLINE_FORGOTTEN = "next-deadline-forgotten"
TOLD_AGAIN = "timeout-told-again"


@dataclass(slots=True)
class Place:
    """That of a consumer of which something has timed out, among those whom its queue serves."""

    #: of a single-active-consumer queue: it held more when it timed out, so that its place is not free
    is_kept: bool = False
    #: somebody else had room when it timed out: perhaps it was not come to, and stays among those to be served
    stays_queued: bool = False
    #: it is not served, until it settles something
    is_forgotten: bool = False
    #: of a single-active-consumer queue: it is served beside who has the seat by now
    is_beside: bool = False


@dataclass(slots=True)
class TimeoutMemory:
    places: dict[Consumer, Place] = field(default_factory=dict)
    #: consumers of whose end the client may be told once more, by channel and tag, and how often
    told_again: dict[tuple[ChannelKey, str], int] = field(default_factory=dict)
    #: consumers that are served again as soon as all that timed out of them is settled
    resuming: list[Consumer] = field(default_factory=list)
    #: deadlines, by channel, that are over and may have been forgotten
    forgettable: set[tuple[ChannelKey, Deadline]] = field(default_factory=set)


class TimedDeliveries(Guest):
    """Nothing times out before something was delivered that is to be settled in time."""

    name = NAME

    def new_memory(self) -> TimeoutMemory:
        return TimeoutMemory()

    def message_handed_over(
        self, broker: Broker, queue: Queue, message: Message, consumer: Consumer | None, entry: Unacknowledged | None
    ) -> None:
        if entry is not None and entry.deadline is not None:
            arm(broker, NAME)

    def delivery_timed_out(self, broker: Broker, channel: Channel, entry: Unacknowledged) -> None:
        if entry.queue.deadlines > 1 and entry.deadline is not None:
            broker.remembered(NAME).forgettable.add((channel.key, entry.deadline))
        consumer = entry.consumer
        if consumer is not None and channel.consumers.get(consumer.tag) is consumer:
            _note_places(broker, entry.queue, consumer)
            _note_told_again(broker, consumer)

    @once_awake
    def queue_deleted(self, broker: Broker, queue: Queue) -> None:
        for consumer in queue.consumers:
            _note_told_again(broker, consumer)

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

    def debt_paid(self, broker: Broker, holder: Channel | Connection, expected: Expected, method: Method) -> None:
        if expected.counted and _names_a_value(broker, holder, expected):
            told = method.arguments.get("reply_text")
            if matches(expected.arguments["reply_text"], told) and told != _text_without_value(method):
                broker.bookkeeping.refuted.add(TEXT_WITHOUT_VALUE)

    @once_awake
    def came_to_rest(self, broker: Broker) -> None:
        memory: TimeoutMemory = broker.remembered(NAME)
        memory.forgettable.clear()
        memory.told_again.clear()
        if memory.places:
            memory.places = {each: place for each, place in memory.places.items() if each in each.queue.consumers}

    def fingerprint(self, broker: Broker) -> object:
        memory: TimeoutMemory = broker.remembered(NAME)
        places = sorted((c.channel, c.tag, *astuple(p)) for c, p in memory.places.items())
        return tuple(places), tuple(sorted(memory.told_again.items()))


def _memory(broker: Broker) -> TimeoutMemory:
    memory: TimeoutMemory = broker.remembered(NAME)
    return memory


def _channel(broker: Broker, method: Method) -> Channel | None:
    channel = broker.channels.get((method.connection, method.channel))
    return channel if channel is not None and channel.state is ChannelState.OPEN else None


def _note_places(broker: Broker, queue: Queue, consumer: Consumer) -> None:
    """Who has timed out leaves its place when it holds nothing, which is looked at whenever something times out."""
    places, place = _memory(broker).places, _kept(broker, consumer)
    place.stays_queued = any(other is not consumer for other in broker.with_room(queue))
    if queue.single_active_consumer:
        place.is_kept, place.is_beside = True, False
        for other in queue.consumers:
            if other in places:
                places[other].is_kept &= other.outstanding > 0


def _note_told_again(broker: Broker, consumer: Consumer) -> None:
    """Something more happens to a consumer of which the client was told that it is cancelled."""
    channel = broker.channels[consumer.channel]
    if consumer.timed_out and is_told(broker, channel):
        told, key = _memory(broker).told_again, (consumer.channel, consumer.tag)
        told[key] = told.get(key, 0) + 1


def _kept(broker: Broker, consumer: Consumer) -> Place:
    """What is noted about the consumer, to be changed."""
    return _memory(broker).places.setdefault(consumer, Place())


def _place(broker: Broker, consumer: Consumer) -> Place:
    """What is noted about the consumer, to be read."""
    return _memory(broker).places.get(consumer, Place())


# ------------------------------------------------------------------------ the client has cancelled its consumer


def _is_cancelled(broker: Broker, event: DeliveryTimeout) -> bool:
    found = doubted_delivery(broker, event)
    if found is None:
        return False
    channel, entry = found
    consumer = entry.consumer
    if consumer is None or not is_told(broker, channel):
        return False
    is_present = channel.consumers.get(consumer.tag) is consumer
    return not is_present or (consumer.timed_out > 0 and waits_for_answer(broker, channel.key))


def _close_all_the_same(broker: Broker, event: DeliveryTimeout) -> None:
    found = doubted_delivery(broker, event)
    process(broker, event)
    if found is not None:
        close_saying(broker, found[0], "TIMEOUT-011", -1)
        note_closed(broker, found[0], for_timeout=True)


# ------------------------------------------------------------------------------------- the tag is still in use


def _timed_out_consumer_of_same_tag(broker: Broker, method: Method) -> Consumer | None:
    channel = _channel(broker, method)
    consumer = channel.consumers.get(method.arguments.get("consumer_tag", "")) if channel is not None else None
    return consumer if consumer is not None and consumer.timed_out else None


def _refuse_tag(broker: Broker, method: Method) -> None:
    consumer = _timed_out_consumer_of_same_tag(broker, method)
    if consumer is not None:
        consumer.timed_out = 0
    process(broker, method)


# ------------------------------------------------------------------------------------------ settled late, and served


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
    """Consumers that come back to a place of their own beside the seat."""
    return [
        consumer
        for consumer, outcome in recovering(broker, method)
        if outcome is not Outcome.REQUEUED
        and _place(broker, consumer).is_kept
        and consumer.queue.seat.holder is not None
    ]


def _serve_both(broker: Broker, method: Method) -> None:
    returning = _returning(broker, method)
    _resume_all(broker, method)
    for consumer in returning:
        _kept(broker, consumer).is_beside = True
        broker.refresh(consumer.queue)


# ------------------------------------------------------------------------------------------------- told once more


def _tells_again(broker: Broker, method: Method, mismatch: Mismatch) -> Mismatches | None:
    """The broker says once more that it has cancelled the consumer, when something happens to it."""
    if method.name != "basic.cancel" or mismatch.shape is not Shape.UNEXPECTED:
        return None
    key = (method.connection, method.channel), method.arguments.get("consumer_tag", "")
    told = _memory(broker).told_again if NAME in broker.memories else {}
    if not told.get(key):
        return None
    told[key] -= 1
    return (replace(mismatch, requirement="TIMEOUT-008", fatal=False, defect=TOLD_AGAIN),)


# --------------------------------------------------------------------------------------- the next deadline is lost


def _is_next(broker: Broker, event: OverdueTimeout) -> bool:
    """Had the queue another deadline before?"""
    found = doubted_delivery(broker, event)
    return found is not None and found[1].queue.deadlines > 1


def _forget_next(broker: Broker, event: OverdueTimeout) -> None:
    """With it all of the queue's that came behind it: the next delivery, or what else happens there, may remind it."""
    found = doubted_delivery(broker, event)
    if found is None:
        return
    for channel in broker.channels.values():
        for entry in channel.unacknowledged.values():
            if entry.queue is found[1].queue and entry.deadline is not None:
                entry.deadline = replace(entry.deadline, by=NEVER)


def is_forgotten(broker: Broker, method: Method) -> bool:
    """Is the frame that does not come to tell of a deadline which the queue may have forgotten?"""
    channel = broker.channels.get((method.connection, method.channel))
    if channel is None or broker.connections[method.connection].state is not ConnectionState.OPEN:
        return False
    tag = method.arguments.get("consumer_tag")  # notices of several consumers may be owed
    for owed in channel.owed:
        if isinstance(owed, Expected) and owed.method == method.name and owed.arguments.get("consumer_tag") == tag:
            return owed.due is not None and (channel.key, owed.due.deadline) in _memory(broker).forgettable
    return False


# ------------------------------------------------------------------------------------- the text without a value


def _names_a_value(broker: Broker, holder: Channel | Connection, expected: Expected) -> bool:
    """Is it the close of a channel that names the time which was up?"""
    is_known = broker.dialect.consumer_timeouts is ConsumerTimeouts.OF_QUORUM_QUEUES
    return is_known and expected.method == "channel.close" and expected.due is not None


def _text_without_value(method: Method) -> str:
    return ProtocolError("TIMEOUT-009", 406, close_text(method.channel, -1)).text


def _names_no_value(broker: Broker, method: Method, mismatch: Mismatch) -> Mismatches | None:
    owed = mismatch.about
    if mismatch.argument != "reply_text" or not isinstance(owed, Expected):
        return None
    if owed.method != "channel.close" or owed.due is None or "reply_text" not in owed.arguments:
        return None
    if broker.dialect.consumer_timeouts is not ConsumerTimeouts.OF_QUORUM_QUEUES:
        return None
    if method.arguments.get("reply_text") != _text_without_value(method):
        return None
    return (replace(mismatch, defect=TEXT_WITHOUT_VALUE),) if owed.counted else ()


TIMEOUT_OUTPUT_DEFECTS: tuple[OutputDefect, ...] = (
    OutputDefect(
        name=TEXT_WITHOUT_VALUE,
        requirement="TIMEOUT-009",
        strength=Strength.CONVENTIONAL,
        statement="The text of the close names -1 ms, and not the time that was up.",
        source="rabbit_channel:handle_queue_actions released, handle_consumer_timed_out(-1, ...)",
        dialects=("rabbitmq-4.3",),
        names=_names_no_value,
    ),
    OutputDefect(
        name=TOLD_AGAIN,
        requirement="TIMEOUT-008",
        strength=Strength.PROMISED,
        statement="A client that was told that its consumer is cancelled is told so once more when another delivery of"
        " the consumer times out, and when its queue is deleted.",
        source="rabbit_channel:handle_queue_actions released, handle_eol: the tag is still in consumer_mapping",
        dialects=_DIALECTS,
        versions=_MENDED,
        goes_on=_tells_again,
    ),
)

TIMEOUT_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="timeout-after-cancel-closes-channel",
        requirement="TIMEOUT-011",
        strength=Strength.PROMISED,
        statement="When the client has cancelled its consumer, or the broker has forgotten one whose time was up, and"
        " the client holds a delivery of it until its time is up, its channel is closed, with the capability"
        " consumer_cancel_notify as without.",
        source="rabbit_channel:handle_queue_actions released, where the tag is none of consumer_mapping",
        dialects=_DIALECTS,
        methods=(),
        internal_events=(DeliveryTimeout,),
        guest=NAME,
        applies=_is_cancelled,
        process=_close_all_the_same,
    ),
    DefectTransition(
        name="timed-out-tag-stays-in-use",
        requirement="TIMEOUT-030",
        strength=Strength.CONVENTIONAL,
        statement="The tag of a consumer whose client was told by basic.cancel that it has timed out is still in use:"
        " to consume with it again closes the connection (530).",
        source="rabbit_channel:handle_queue_actions released, which leaves consumer_mapping as it is",
        dialects=_DIALECTS,
        versions=_MENDED,
        methods=("basic.consume",),
        guest=NAME,
        applies=lambda broker, method: _timed_out_consumer_of_same_tag(broker, method) is not None,
        process=_refuse_tag,
    ),
    *(
        DefectTransition(
            name=name,
            requirement=requirement,
            strength=Strength.PROMISED,
            statement="A consumer of which the client was told by basic.cancel that it is gone is handed messages"
            f" again, under its tag, when the client has {how} all that timed out.",
            source="rabbit_fifo:complete_and_checkout, maybe_untimeout; rabbit_channel:handle_queue_actions released,"
            " which leaves the consumer at its queue",
            dialects=_DIALECTS,
            versions=_MENDED,
            by_chance=True,
            methods=methods,
            guest=NAME,
            applies=_recovering_by(outcome),
            process=_resume_all,
            shows_within=ANY_NUMBER,
        )
        for name, requirement, how, outcome, methods in (
            ("late-ack-resumes-consumer", "TIMEOUT-016", "acknowledged", Outcome.DONE, ("basic.ack", "tx.commit")),
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
        dialects=_DIALECTS,
        versions=_MENDED,
        by_chance=True,
        methods=(*_REFUSALS, *_RECOVERS),
        guest=NAME,
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
        dialects=_DIALECTS,
        versions=_MENDED,
        by_chance=True,
        methods=("basic.ack", "basic.nack", "basic.reject", "tx.commit"),
        guest=NAME,
        applies=lambda broker, method: bool(_returning(broker, method)),
        process=_serve_both,
        shows_within=ANY_NUMBER,
    ),
    DefectTransition(
        name=NEXT_DEADLINE_FORGOTTEN,
        requirement="TIMEOUT-021",
        strength=Strength.PROMISED,
        statement="When a deadline is over, whether its delivery was settled or not, the next one of the queue may be"
        " forgotten: nothing happens when it has passed, until something else happens to the queue.",
        source="rabbit_fifo:handle_aux eval: no timer is set if the last one was for this very millisecond"
        " (LastConTimeout0 < Ts), and the next deadline is not earlier",
        dialects=_DIALECTS,
        by_chance=True,
        methods=(),
        internal_events=(OverdueTimeout,),
        guest=NAME,
        applies=_is_next,
        process=_forget_next,
        shows_within=ANY_NUMBER,
    ),
)
