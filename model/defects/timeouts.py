"""Known defects of consumer timeouts, all of them RabbitMQ's from 4.3 on (area TIMEOUT)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass, field, replace

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, ChannelState, Unacknowledged
from amqpspec.model.broker.connections import Connection, ConnectionState
from amqpspec.model.broker.deadlines import NEVER, Deadline
from amqpspec.model.broker.hooks import Guest, arm
from amqpspec.model.broker.internal_events import DeliveryTimeout, OverdueTimeout
from amqpspec.model.broker.owed import Expected
from amqpspec.model.broker.queues import Consumer, Message, Queue
from amqpspec.model.broker.transaction import Outcome
from amqpspec.model.defects.channel_closing import note_closed
from amqpspec.model.judging.known_defect import ANY_NUMBER, DefectTransition, OutputDefect
from amqpspec.model.outputs.mismatch import Mismatch, Mismatches
from amqpspec.model.promises.choices import ConsumerTimeouts
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import ChannelKey, Method
from amqpspec.model.protocol.patterns import matches
from amqpspec.model.rules.extensions.consumer_timeout import close_saying, close_text, is_told
from amqpspec.model.rules.extensions.timeouts import doubted_delivery
from amqpspec.model.rules.inputs import process

NAME = "consumer timeouts"

_DIALECTS = ("rabbitmq-4.3",)


TEXT_WITHOUT_VALUE = "timeout-text-without-value"
NEXT_DEADLINE_FORGOTTEN = "next-deadline-forgotten"


@dataclass(slots=True)
class Place:
    """That of a consumer of which something has timed out, among those whom its queue serves."""

    #: of a single-active-consumer queue: it held more when it timed out, so that its place is not free
    is_kept: bool = False
    #: it was to leave the seat when it timed out
    was_leaving: bool = False
    #: somebody else had room when it timed out: perhaps it was not come to, and stays among those to be served
    stays_queued: bool = False
    #: it is not served, until it settles something
    is_forgotten: bool = False
    #: of a single-active-consumer queue: it is served beside who has the seat by now
    is_beside: bool = False


@dataclass(slots=True)
class TimeoutMemory:
    places: dict[Consumer, Place] = field(default_factory=dict)
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
            _memory(broker).forgettable.add((channel.key, entry.deadline))
        consumer = entry.consumer
        if consumer is not None and channel.consumers.get(consumer.tag) is consumer:
            _note_places(broker, entry.queue, consumer)

    def consumer_served(self, broker: Broker, consumer: Consumer) -> None:
        place = _memory(broker).places.get(consumer)
        if place is not None and place.stays_queued:
            place.is_forgotten = False

    def delivery_released(self, broker: Broker, consumer: Consumer) -> None:
        place = _memory(broker).places.get(consumer)
        if place is not None:
            place.is_forgotten = False

    def rests(self, broker: Broker, consumer: Consumer) -> bool | None:
        place = _memory(broker).places.get(consumer)
        return True if place is not None and place.is_forgotten else None

    def is_beside(self, broker: Broker, consumer: Consumer) -> bool | None:
        place = _memory(broker).places.get(consumer)
        return True if place is not None and place.is_beside else None

    def debt_paid(self, broker: Broker, holder: Channel | Connection, expected: Expected, method: Method) -> None:
        if expected.counted and _names_a_value(broker, holder, expected):
            told = method.arguments.get("reply_text")
            if matches(expected.arguments["reply_text"], told) and told != _text_without_value(method):
                broker.bookkeeping.refuted.add(TEXT_WITHOUT_VALUE)

    def came_to_rest(self, broker: Broker) -> None:
        memory = _memory(broker)
        memory.forgettable.clear()
        if memory.places:
            memory.places = {each: place for each, place in memory.places.items() if each in each.queue.consumers}

    def fingerprint(self, broker: Broker) -> object:
        places = _memory(broker).places.items()
        return tuple(sorted((c.channel, c.tag, *astuple(p)) for c, p in places))


def _memory(broker: Broker) -> TimeoutMemory:
    memory = broker.memories[NAME]
    assert isinstance(memory, TimeoutMemory)
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
        place.was_leaving |= queue.seat.holder is consumer and queue.seat.is_being_left
        for other in queue.consumers:
            if other in places:
                places[other].is_kept &= other.outstanding > 0


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
    return consumer is not None and channel.consumers.get(consumer.tag) is not consumer and is_told(broker, channel)


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


# -------------------------------------------------------------------------------------- given back, and not served


def settled_late(channel: Channel, method: Method) -> Iterator[tuple[Outcome, list[int]]]:
    """What has timed out and is settled by the input at once, and in what way."""
    if method.name == "tx.commit":
        for ruling, tags in channel.transaction.batches() if channel.transaction is not None else ():
            yield ruling.outcome, [tag for tag in tags if tag in channel.timed_out]
    elif method.name.startswith("basic.recover"):
        yield Outcome.REQUEUED, list(channel.timed_out)
    elif channel.transaction is None:
        tag, multiple = method.arguments.get("delivery_tag", 0), method.arguments.get("multiple")
        outcome = Outcome.REQUEUED if method.arguments.get("requeue") else Outcome.DONE
        yield outcome, [late for late in channel.timed_out if late == tag or (multiple and (late < tag or not tag))]


def _recovering(broker: Broker, method: Method) -> Iterator[tuple[Consumer, Outcome]]:
    """Consumers that have timed out, all of whose late deliveries the input settles; and how it settles the last."""
    channel = _channel(broker, method)
    if channel is None or not channel.timed_out:
        return
    left = {
        consumer: {tag for tag, entry in channel.timed_out.items() if entry.consumer is consumer}
        for consumer in channel.consumers.values()
        if consumer.timed_out
    }
    for outcome, tags in settled_late(channel, method):
        for consumer, late in left.items():
            if late:
                late.difference_update(tags)
                if not late:
                    yield consumer, outcome


def _given_back(broker: Broker, method: Method) -> list[Consumer]:
    return [
        consumer
        for consumer, outcome in _recovering(broker, method)
        if outcome is Outcome.REQUEUED and not consumer.queue.single_active_consumer
    ]


def _forget_consumer(broker: Broker, method: Method) -> None:
    forgotten = _given_back(broker, method)
    process(broker, method)
    for consumer in forgotten:
        _kept(broker, consumer).is_forgotten = True
        broker.refresh(consumer.queue)


# ------------------------------------------------------------------------------------------ two in place of one


def _returning(broker: Broker, method: Method) -> list[Consumer]:
    """Consumers that come back to a place of their own beside the seat."""
    return [
        consumer
        for consumer, outcome in _recovering(broker, method)
        if outcome is not Outcome.REQUEUED
        and _place(broker, consumer).is_kept
        and consumer.queue.seat.holder is not None
    ]


def _serve_both(broker: Broker, method: Method) -> None:
    returning = _returning(broker, method)
    process(broker, method)
    for consumer in returning:
        _kept(broker, consumer).is_beside = True
        broker.refresh(consumer.queue)


# -------------------------------------------------------------------------------------- leaving for ever


def _leaving_for_ever(broker: Broker, method: Method) -> list[Consumer]:
    recovering = (consumer for consumer, _ in _recovering(broker, method))
    return [each for each in recovering if (place := _place(broker, each)).was_leaving and not place.is_kept]


def _leave_for_ever(broker: Broker, method: Method) -> None:
    for consumer in _leaving_for_ever(broker, method):
        _kept(broker, consumer).is_forgotten = True
    process(broker, method)


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
)

TIMEOUT_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="timeout-after-cancel-closes-channel",
        requirement="TIMEOUT-011",
        strength=Strength.PROMISED,
        statement="When the client has cancelled its consumer and holds a delivery of it until its time is up, its"
        " channel is closed, with the capability consumer_cancel_notify as without.",
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
        strength=Strength.ARGUABLE,
        statement="The tag of a consumer whose client was told by basic.cancel that it has timed out is still in use:"
        " to consume with it again closes the connection (530).",
        source="rabbit_channel:handle_queue_actions released, which leaves consumer_mapping as it is",
        dialects=_DIALECTS,
        methods=("basic.consume",),
        guest=NAME,
        applies=lambda broker, method: _timed_out_consumer_of_same_tag(broker, method) is not None,
        process=_refuse_tag,
    ),
    DefectTransition(
        name="given-back-late-not-served",
        requirement="TIMEOUT-018",
        strength=Strength.ARGUABLE,
        statement="A consumer that has timed out, and whose client gives back what timed out, is handed nothing any"
        " more, until it settles something that it still holds.",
        source="rabbit_fifo:return, return_multiple pass over messages that are not checked out, and do not put the"
        " consumer among those to be served again (as complete does)",
        dialects=_DIALECTS,
        methods=("basic.nack", "basic.reject", "basic.recover", "basic.recover-async", "tx.commit"),
        guest=NAME,
        applies=lambda broker, method: bool(_given_back(broker, method)),
        process=_forget_consumer,
        shows_within=ANY_NUMBER,
    ),
    DefectTransition(
        name="timed-out-leaver-never-active",
        requirement="TIMEOUT-016",
        strength=Strength.ARGUABLE,
        statement="A single active consumer that was to leave its seat to one of higher priority when it timed out"
        " never becomes active again, though its client settles what timed out.",
        source="rabbit_fifo:handle_waiting_timedout_consumers gives it back the status that it had, quiescing, and"
        " activate_next_consumer takes only those that are up",
        dialects=_DIALECTS,
        methods=("basic.ack", "basic.nack", "basic.reject", "basic.recover", "basic.recover-async", "tx.commit"),
        guest=NAME,
        applies=lambda broker, method: bool(_leaving_for_ever(broker, method)),
        process=_leave_for_ever,
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
        methods=(),
        internal_events=(OverdueTimeout,),
        guest=NAME,
        applies=_is_next,
        process=_forget_next,
        shows_within=ANY_NUMBER,
    ),
)
