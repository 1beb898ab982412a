"""Departures (`model.departures`) of transactions."""

from __future__ import annotations

from dataclasses import replace

from model.alphabet import Frame
from model.broker import Broker
from model.departure import Departure
from model.errors import ProtocolError
from model.inputs import process
from model.overflow import Overflow, is_limited, overflow
from model.queues import QueueType
from model.rules.commit import reached_now
from model.rules.publish import deliver
from model.state import ChannelState


def _publishes_to_refusing_quorum_queue(broker: Broker, frame: Frame) -> bool:
    channel = broker.channels.get((frame.connection, frame.channel))
    if channel is None or channel.state is not ChannelState.OPEN or channel.transaction is None:
        return False
    try:
        reached = [reached_now(broker, channel, publication) for publication in channel.transaction.publications]
    except ProtocolError:
        return False  # the commit breaks the connection
    return any(
        queue.type is QueueType.QUORUM and is_limited(broker, queue) and overflow(queue) is Overflow.REJECT
        for queues in reached
        for queue in queues
    )


def _forget_refusals(broker: Broker, frame: Frame) -> None:
    """What quorum queues refuse is known, and forgotten, before the commit begins to wait for what others say."""
    channel = broker.channels[(frame.connection, frame.channel)]
    assert channel.transaction is not None
    channel.transaction.forgets_refusals = True
    process(broker, frame)


def _replies(broker: Broker, frame: Frame) -> bool:
    channel = broker.channels.get((frame.connection, frame.channel))
    if channel is None or channel.state is not ChannelState.OPEN or channel.transaction is None:
        return False
    name = frame.arguments.get("routing_key", "")
    return not frame.arguments.get("exchange") and name in broker.queues and broker.queues[name].reply_address


def _reply_at_once(broker: Broker, frame: Frame) -> None:
    """Who asked has the reply; what is kept goes to other queues only."""
    channel = broker.channels[(frame.connection, frame.channel)]
    process(broker, frame)
    if channel.transaction is None or not channel.transaction.publications:
        return  # the message was refused
    kept = channel.transaction.publications.pop()
    replies = {queue: reason for queue, reason in kept.routes.queues.items() if queue.reply_address}
    others = {queue: reason for queue, reason in kept.routes.queues.items() if not queue.reply_address}
    deliver(broker, channel, replace(kept, routes=replace(kept.routes, queues=replies), mandatory=False))
    channel.transaction.publications.append(replace(kept, routes=replace(kept.routes, queues=others)))


TRANSACTION_DEPARTURES: tuple[Departure, ...] = (
    Departure(
        name="commit-forgets-refusals",
        requirement="TX-008",
        statement="A transaction is committed with commit-ok although a quorum queue has refused what it published.",
        source="rabbit_channel:handle_method tx.commit: the refusal of a quorum queue comes while the publishes are"
        " carried out, where record_rejects notes tx = failed, and tx = committing is noted behind that",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=("tx.commit",),
        applies=_publishes_to_refusing_quorum_queue,
        process=_forget_refusals,
    ),
    Departure(
        name="transaction-replies-at-once",
        requirement="TX-002",
        statement="A direct reply is delivered when it is published in a transaction, and no rollback takes it back.",
        source="v4.0.5 rabbit_channel:handle_method basic.publish, deliver_reply as soon as the message is routed",
        dialects=("rabbitmq-3", "rabbitmq-4.0"),
        methods=("basic.publish",),
        applies=_replies,
        process=_reply_at_once,
    ),
)
