"""A quorum queue with a single active consumer that has no active one, or the wrong one: what comes of it where
consumers are not in their places (`model.defects.waiting_consumers`).

Such a queue hands its messages to nobody, or to a client's channel that is gone. So it owes nothing from then on
(`model.defects.stalled_queues`).
"""

from __future__ import annotations

from collections.abc import Callable

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.delivery_timeouts import LONGEST
from amqpspec.model.broker.internal_events import (
    ChannelCrash,
    ConnectionTeardown,
    DeliveryTimeout,
    Input,
    OverdueTimeout,
    Teardown,
    lane_of,
)
from amqpspec.model.broker.queues import Consumer, Queue
from amqpspec.model.defects.stalled_queues import is_stalled, stall, stalled_before
from amqpspec.model.defects.waiting_consumers import (
    NAME,
    Why,
    is_merged_with,
    kept,
    memory_of,
    places_of,
    with_single_active,
)
from amqpspec.model.judging.known_defect import ANY_NUMBER, DefectTransition
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.basic.requeue import former_consumers
from amqpspec.model.rules.inputs import process

_ENDS_OF_CHANNELS = ("channel.close", "connection.close", "socket.abort")
_ENDS = ("basic.cancel", *_ENDS_OF_CHANNELS)
_RETURNS = ("basic.nack", "basic.reject", "basic.recover", "basic.recover-async")
#: In error they end their channel, or all channels of the connection.
OFTEN_WRONG = ("basic.ack", "basic.get", "basic.consume", "basic.qos", "queue.declare", "queue.delete", "queue.purge")
_ANY = (*_ENDS, *_RETURNS, *OFTEN_WRONG, "basic.publish", "basic.cancel-ok")
_TEARDOWNS = (ChannelCrash, ConnectionTeardown)


# ------------------------------------------------------------------------------------ a quiescing active consumer


def _quiescing_on(broker: Broker, method: Method) -> list[Queue]:
    """Queues whose active consumer is quiescing, and has deliveries on the frame's channel."""
    channel = broker.channels.get((method.connection, method.channel))
    held = list(channel.unacknowledged.values()) if channel is not None else []
    return [
        queue
        for queue in with_single_active(broker)
        if queue.active.is_quiescing and any(entry.consumer is queue.active.consumer for entry in held)
    ]


def _activate_nobody(broker: Broker, method: Method) -> None:
    quiescing = _quiescing_on(broker, method)
    process(broker, method)
    stall(broker, [queue for queue in quiescing if not queue.active.is_quiescing])


def _may_outstay(broker: Broker, event: Method | Teardown) -> bool:
    return any(
        (queue.active.is_quiescing and any(each.channel[0] == event.connection for each in queue.consumers))
        or places_of(broker, queue).has_outstayed
        or _successor(broker, queue) is not None
        for queue in with_single_active(broker)
    )


def _outstayed(broker: Broker) -> list[Queue]:
    return [queue for queue in with_single_active(broker) if places_of(broker, queue).has_outstayed]


def _successor(broker: Broker, queue: Queue) -> Consumer | None:
    claim = places_of(broker, queue).claimant
    return claim[0] if claim is not None and claim[1] is Why.SUCCESSOR else None


def _go_on_quiescing(broker: Broker, event: Method | Teardown) -> None:
    """4.0: nobody follows when it gives back the last of what it holds (rabbit_fifo:return)."""
    outstayed = _outstayed(broker)
    active = [queue.active.consumer for queue in outstayed]
    _follow(broker)
    process(broker, event)
    _follow(broker)
    stall(broker, _outstayed(broker))
    if isinstance(event, Method) and event.name in _RETURNS and not broker.dialect.quorum_takeover_after_return:
        pairs = zip(outstayed, active, strict=True)
        stall(broker, [queue for queue, consumer in pairs if consumer in queue.consumers])


def _follow(broker: Broker) -> None:
    """Who has followed one that ought to have stayed is the active consumer."""
    for queue in with_single_active(broker):
        successor = _successor(broker, queue)
        if successor is not None:
            queue.active.consumer, kept(broker, queue).claimant = successor, None
            queue.active.reason = "SAC-004"
            broker.refresh(queue)


# ------------------------------------------------------------------------------------ another consumer is active


def _claimed(broker: Broker, why: Why) -> list[Queue]:
    """Queues of which the claimant is the active consumer, by a defect of this kind."""
    awake = (queue for queue in with_single_active(broker) if not is_stalled(broker, queue))
    claims = ((queue, places_of(broker, queue).claimant) for queue in awake)
    return [
        queue
        for queue, claim in claims
        if claim is not None and claim[1] is why
        if why is not Why.MERGED or is_merged_with(broker, queue, *claim)
    ]


def _may_claim(why: Why) -> Callable[[Broker, Input], bool]:
    def applies(broker: Broker, event: Input) -> bool:
        return any(_is_possible(broker, event, queue, why) for queue in with_single_active(broker))

    return applies


def _is_possible(broker: Broker, event: Input, queue: Queue, why: Why) -> bool:
    """May the queue take another consumer for the active one after the next input?"""
    active, places = queue.active, places_of(broker, queue)
    if why in places.gone.values() or (places.claimant is not None and places.claimant[1] is why):
        return True
    if why is Why.CLOSED:
        is_quiescing = active.is_quiescing or places.has_outstayed
        return is_quiescing and active.consumer is not None and active.consumer.channel[0] == lane_of(event)[0]
    if why is Why.MERGED:
        return active.consumer is not None and bool(former_consumers(broker, active.consumer))
    waiting = (consumer for consumer in queue.consumers if consumer is not active.consumer)
    return why is Why.SAME_TAG and any(former_consumers(broker, consumer) for consumer in waiting)


def _serve_nobody(why: Why) -> Callable[[Broker, Input], None]:
    def process_(broker: Broker, event: Input) -> None:
        earlier = _claimed(broker, why)
        process(broker, event)
        claimed = _claimed(broker, why)
        stall(broker, claimed)
        if why is Why.CLOSED:
            _hand_to_nobody(broker)
        for queue in claimed:
            if why is not Why.CLOSED and queue in earlier:
                stalled_before(broker, queue)  # by now somebody else may have been chosen

    return process_


def _hand_to_nobody(broker: Broker) -> None:
    """A consumer timeout may bring back what such a queue has handed to one that is gone, which has timed out then."""
    for queue in with_single_active(broker):
        gone = [each for each, why in places_of(broker, queue).gone.items() if why is Why.CLOSED]
        if is_stalled(broker, queue) and any(each.timeout <= LONGEST and not each.no_ack for each in gone):
            for message in queue.messages:
                message.recalled = max(message.recalled, 1)


# ------------------------------------------------------------------------------------- two consumers in one place


def _is_any_mixed_up(broker: Broker) -> bool:
    """Is there one that a queue confuses, and that has something outstanding or is still there?"""
    mixed_up = memory_of(broker).mixed_up
    if not mixed_up:
        return False
    if any(not mixed_up.isdisjoint(queue.consumers) for queue in with_single_active(broker)):
        return True
    held = (entry for channel in broker.channels.values() for entry in channel.unacknowledged.values())
    return any(entry.consumer in mixed_up for entry in held)


def _may_mix_up(broker: Broker, event: Method | Teardown) -> bool:
    if NAME in broker.memories and _is_any_mixed_up(broker):
        return True
    if not isinstance(event, Method) or event.name != "basic.consume":
        return False
    channel = broker.channels.get((event.connection, event.channel))
    if channel is None:
        return False
    tag = event.arguments.get("consumer_tag", "")
    return any(
        entry.consumer is not None and entry.consumer.tag == tag and entry.queue.type is QueueType.QUORUM
        for entry in channel.unacknowledged.values()
    )


def _confuse(broker: Broker, event: Method | Teardown) -> None:
    """Which of the messages that go by one number is settled, and which are lost, nobody can tell."""
    before = _is_any_mixed_up(broker)
    if isinstance(event, Teardown) or event.name in _ENDS_OF_CHANNELS:
        _lose_forgotten(broker, event)
    process(broker, event)
    broker.bookkeeping.is_unpredictable |= before or _is_any_mixed_up(broker)


def _lose_forgotten(broker: Broker, event: Method | Teardown) -> None:
    """The channels that end give back nothing of what consumers held whose place is taken."""
    mixed_up = memory_of(broker).mixed_up
    for channel in broker.channels.values():
        if channel.connection != event.connection or event.channel not in (0, channel.number):
            continue
        for tag, entry in list(channel.unacknowledged.items()):
            if entry.consumer in mixed_up and entry.consumer not in entry.queue.consumers:
                del channel.unacknowledged[tag]
                broker.note_gone(entry.queue, entry.message, "CANCEL-016")


WAITING_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="return-activates-nobody",
        requirement="SAC-004",
        strength=Strength.PROMISED,
        statement="When the active consumer gives back the last of what it holds, while one of higher priority waits,"
        " that one does not become active, nor does any other.",
        source="rabbit_fifo:return does not call activate_next_consumer",
        dialects=("rabbitmq-4.0",),
        methods=_RETURNS,
        guest=NAME,
        applies=lambda broker, method: bool(_quiescing_on(broker, method)),
        process=_activate_nobody,
    ),
    DefectTransition(
        name="quiescing-consumer-starves",
        requirement="SAC-004",
        strength=Strength.PROMISED,
        statement="When the consumer of higher priority ends before it became active, the active one is handed nothing"
        " until it has settled everything; then another one of its priority may become active.",
        source="rabbit_fifo:cancel_consumer of a waiting consumer leaves the active one quiescing",
        dialects=("rabbitmq-4.0", "rabbitmq-4.3"),
        by_chance=True,
        methods=(*_ENDS, *_RETURNS, *OFTEN_WRONG, "basic.publish"),
        internal_events=_TEARDOWNS,
        guest=NAME,
        applies=_may_outstay,
        process=_go_on_quiescing,
    ),
    DefectTransition(
        name="closed-consumer-keeps-messages",
        requirement="CHAN-016",
        strength=Strength.PROMISED,
        statement="When the channel of an active consumer ends while one of higher priority waits for it to settle its"
        " messages, the queue goes on to take it for one that waits. When its turn comes it becomes active, and the"
        " messages go to it; nobody is served.",
        source="v4.3.5 rabbit_fifo:return_one, update_or_remove_con: with the last message one that is quiescing is"
        " put among the waiting ones, and handle_down does not take it from there",
        dialects=("rabbitmq-4.3",),
        by_chance=True,
        methods=_ANY,
        internal_events=(*_TEARDOWNS, DeliveryTimeout, OverdueTimeout),
        guest=NAME,
        applies=_may_claim(Why.CLOSED),
        process=_serve_nobody(Why.CLOSED),
        shows_within=ANY_NUMBER,  # what it keeps may come back, which is counted
    ),
    DefectTransition(
        name="consumer-of-same-tag-waits-on",
        requirement="SAC-002",
        strength=Strength.PROMISED,
        statement="A waiting consumer that is cancelled, and whose channel holds deliveries of an earlier one with its"
        " tag, goes on to wait. When its turn comes it becomes the active consumer, and nobody is served.",
        source="rabbit_fifo:cancel_consumer cancels the earlier one again, which is still among the queue's consumers",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        by_chance=True,
        methods=_ANY,
        internal_events=_TEARDOWNS,
        guest=NAME,
        applies=_may_claim(Why.CANCELLED),
        process=_serve_nobody(Why.CANCELLED),
    ),
    DefectTransition(
        name="consumer-of-same-tag-never-active",
        requirement="SAC-002",
        strength=Strength.PROMISED,
        statement="A waiting consumer whose channel holds deliveries of a cancelled one with its tag becomes active"
        " and is handed nothing, and nobody else is.",
        source="rabbit_fifo:activate_next_consumer keeps the status of the existing consumer, which is cancelled",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=_ANY,
        internal_events=_TEARDOWNS,
        guest=NAME,
        applies=_may_claim(Why.SAME_TAG),
        process=_serve_nobody(Why.SAME_TAG),
    ),
    DefectTransition(
        name="consumer-of-same-tag-stays-active",
        requirement="SAC-004",
        strength=Strength.PROMISED,
        statement="An active consumer whose channel holds deliveries of a cancelled one with its tag stays active when"
        " one of higher priority comes, until these are settled; meanwhile nobody is served.",
        source="rabbit_fifo:merge_consumer keeps what the cancelled one holds, and activate_next_consumer waits for it",
        dialects=("rabbitmq-4.0", "rabbitmq-4.3"),
        by_chance=True,
        methods=_ANY,
        internal_events=_TEARDOWNS,
        guest=NAME,
        applies=_may_claim(Why.MERGED),
        process=_serve_nobody(Why.MERGED),
    ),
    DefectTransition(
        name="takeover-forgets-deliveries",
        requirement="CANCEL-016",
        strength=Strength.PROMISED,
        statement="When a consumer takes over at once from an active one of lower priority, the queue forgets what a"
        " cancelled one with its tag still held: it is lost. To settle that settles what the new one holds.",
        source="rabbit_fifo:activate_next_consumer puts the new consumer in the place of the one with its key",
        dialects=("rabbitmq-4.0", "rabbitmq-4.3"),
        by_chance=True,
        methods=_ANY,
        internal_events=_TEARDOWNS,
        guest=NAME,
        begins_with=("basic.consume",),
        applies=_may_mix_up,
        process=_confuse,
    ),
)
