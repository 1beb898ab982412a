"""Known defects (`model.defects.transitions`) of areas SAC and CHAN: a quorum queue takes the wrong one for its active
consumer.

Who that is, is noted in `model.broker.phantoms`. Such a queue hands its messages to nobody, or to a client's channel
that is gone. So it owes nothing from then on (`Seat.is_stalled`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.consumer_timeouts import LONGEST
from amqpspec.model.broker.phantoms import is_heir_with, namesakes
from amqpspec.model.broker.queues import Consumer, Phantom, Queue
from amqpspec.model.defects.dispatch import ENDS, OFTEN_WRONG, RETURNS, WAITING_CONSUMERS, seats, stall
from amqpspec.model.judging.known_defect import ANY_NUMBER, DefectTransition
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import TEARDOWNS, Frame
from amqpspec.model.rules.extensions.consumer_timeout import TIME_OUT, TIME_OUT_IS_OVER
from amqpspec.model.rules.inputs import process

_ENDS_OF_CHANNELS = ("channel.close", "connection.close", *TEARDOWNS, "socket.abort")
_ANY = (*ENDS, *RETURNS, *OFTEN_WRONG, "basic.publish", "basic.cancel-ok")


def _claimed(broker: Broker, why: Phantom) -> list[Queue]:
    """Queues whose seat is that one's, by a defect of this kind."""
    claims = ((queue, queue.seat.claimant) for queue in seats(broker, QueueType.QUORUM) if not queue.seat.is_stalled)
    return [
        queue
        for queue, claim in claims
        if claim is not None and claim[1] is why
        if why is not Phantom.HEIR or is_heir_with(broker, queue, *claim)
    ]


def _may_claim(why: Phantom) -> Callable[[Broker, Frame], bool]:
    def applies(broker: Broker, frame: Frame) -> bool:
        return any(_is_possible(broker, frame, queue, why) for queue in seats(broker, QueueType.QUORUM))

    return applies


def _is_possible(broker: Broker, frame: Frame, queue: Queue, why: Phantom) -> bool:
    """May the queue's seat be claimed behind the next input?"""
    seat = queue.seat
    if why in seat.phantoms.values() or (seat.claimant is not None and seat.claimant[1] is why):
        return True
    if why is Phantom.CLOSED:
        is_leaving = seat.is_being_left or seat.has_outstayed
        return is_leaving and seat.holder is not None and seat.holder.channel[0] == frame.connection
    if why is Phantom.HEIR:
        return seat.holder is not None and bool(namesakes(broker, seat.holder))
    waiting = (consumer for consumer in queue.consumers if consumer is not seat.holder)
    return why is Phantom.NAMESAKE and any(namesakes(broker, consumer) for consumer in waiting)


def _serve_nobody(why: Phantom) -> Callable[[Broker, Frame], None]:
    def process_(broker: Broker, frame: Frame) -> None:
        earlier = _claimed(broker, why)
        process(broker, frame)
        claimed = _claimed(broker, why)
        stall(broker, claimed)
        if why is Phantom.CLOSED:
            _hand_to_nobody(broker)
        for queue in claimed:
            if why is not Phantom.CLOSED and queue in earlier:
                queue.seat.stalled_at = 1  # by now somebody else may have been chosen

    return process_


def _hand_to_nobody(broker: Broker) -> None:
    """A consumer timeout may bring back what such a queue has handed to one that is gone, which has timed out then."""
    for queue in seats(broker, QueueType.QUORUM):
        phantoms = [each for each, why in queue.seat.phantoms.items() if why is Phantom.CLOSED]
        if queue.seat.is_stalled and any(each.timeout <= LONGEST and not each.no_ack for each in phantoms):
            for message in queue.messages:
                message.recalled = max(message.recalled, 1)


def _mixed_up(broker: Broker) -> Iterator[Consumer]:
    """Consumers that a queue confuses, and that have something outstanding or are still there."""
    for queue in seats(broker, QueueType.QUORUM):
        yield from (consumer for consumer in queue.consumers if consumer.is_mixed_up)
    for channel in broker.channels.values():
        for entry in channel.unacknowledged.values():
            if entry.consumer is not None and entry.consumer.is_mixed_up:
                yield entry.consumer


def _may_mix_up(broker: Broker, frame: Frame) -> bool:
    if any(True for _ in _mixed_up(broker)):
        return True
    channel = broker.channels.get((frame.connection, frame.channel))
    if frame.method != "basic.consume" or channel is None:
        return False
    tag = frame.arguments.get("consumer_tag", "")
    return any(
        entry.consumer is not None and entry.consumer.tag == tag and entry.queue.type is QueueType.QUORUM
        for entry in channel.unacknowledged.values()
    )


def _confuse(broker: Broker, frame: Frame) -> None:
    """Which of the messages that go by one number is settled, and which are lost, nobody can tell."""
    before = any(True for _ in _mixed_up(broker))
    if frame.method in _ENDS_OF_CHANNELS:
        _lose_forgotten(broker, frame)
    process(broker, frame)
    broker.is_astray |= before or any(True for _ in _mixed_up(broker))


def _lose_forgotten(broker: Broker, frame: Frame) -> None:
    """The channels that end give back nothing of what consumers held whose place is taken."""
    for channel in broker.channels.values():
        if channel.connection != frame.connection or frame.channel not in (0, channel.number):
            continue
        for tag, entry in list(channel.unacknowledged.items()):
            consumer = entry.consumer
            if consumer is not None and consumer.is_mixed_up and consumer not in entry.queue.consumers:
                del channel.unacknowledged[tag]
                broker.drop(entry.queue, entry.message, "CANCEL-016")


PHANTOM_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="closed-seat-keeps-messages",
        requirement="CHAN-016",
        statement="When the channel of an active consumer ends that was to leave its seat, and held messages, the queue"
        " goes on to take it for one that waits. When its turn comes it has the seat, and the messages; nobody is"
        " served.",
        source="v4.3.5 rabbit_fifo:return_one, update_or_remove_con: with the last message one that is quiescing is"
        " put among the waiting ones, and handle_down does not take it from there",
        dialects=("rabbitmq-4.3",),
        methods=(*_ANY, TIME_OUT, TIME_OUT_IS_OVER),
        guest=WAITING_CONSUMERS,
        applies=_may_claim(Phantom.CLOSED),
        process=_serve_nobody(Phantom.CLOSED),
        shows_within=ANY_NUMBER,  # what it keeps may come back, which is counted
    ),
    DefectTransition(
        name="cancelled-namesake-waits-on",
        requirement="SAC-002",
        statement="A waiting consumer that is cancelled, and whose channel holds deliveries of an earlier one with its"
        " tag, goes on to wait. When its turn comes it has the seat, and nobody is served.",
        source="rabbit_fifo:cancel_consumer cancels the earlier one again, which is still among the queue's consumers",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=_ANY,
        guest=WAITING_CONSUMERS,
        applies=_may_claim(Phantom.CANCELLED),
        process=_serve_nobody(Phantom.CANCELLED),
    ),
    DefectTransition(
        name="namesake-never-active",
        requirement="SAC-002",
        statement="A waiting consumer whose channel holds deliveries of a cancelled one with its tag takes the seat and"
        " is handed nothing, and nobody else is.",
        source="rabbit_fifo:activate_next_consumer keeps the status of the existing consumer, which is cancelled",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=_ANY,
        guest=WAITING_CONSUMERS,
        applies=_may_claim(Phantom.NAMESAKE),
        process=_serve_nobody(Phantom.NAMESAKE),
    ),
    DefectTransition(
        name="heir-keeps-seat",
        requirement="SAC-004",
        statement="An active consumer whose channel holds deliveries of a cancelled one with its tag does not leave its"
        " seat to one of higher priority until these are settled; meanwhile nobody is served.",
        source="rabbit_fifo:merge_consumer keeps what the cancelled one holds, and activate_next_consumer waits for it",
        dialects=("rabbitmq-4.0", "rabbitmq-4.3"),
        methods=_ANY,
        guest=WAITING_CONSUMERS,
        applies=_may_claim(Phantom.HEIR),
        process=_serve_nobody(Phantom.HEIR),
    ),
    DefectTransition(
        name="takeover-forgets-deliveries",
        requirement="CANCEL-016",
        statement="When a consumer takes the seat over at once from one of lower priority, the queue forgets what a"
        " cancelled one with its tag still held: it is lost. To settle that settles what the new one holds.",
        source="rabbit_fifo:activate_next_consumer puts the new consumer in the place of the one with its key",
        dialects=("rabbitmq-4.0", "rabbitmq-4.3"),
        methods=_ANY,
        guest=WAITING_CONSUMERS,
        applies=_may_mix_up,
        process=_confuse,
    ),
)
