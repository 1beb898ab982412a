"""Transactions: what rabbit_channel does while it carries out tx.commit, and what it does not keep back until then."""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.overflow import Overflow, has_length_limit, overflow
from amqpspec.model.judging.windows import SERVICE, Part, Scope, Window, of_queues
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.tx.commit import reached_now


def _publishes_to_refusing_quorum_queue(broker: Broker, method: Method) -> Scope | None:
    channel = broker.open_channel(method)
    if channel is None or channel.transaction is None:
        return None
    try:
        reached = [reached_now(broker, channel, publication) for publication in channel.transaction.publications]
    except ProtocolError:
        return None  # the commit breaks the connection
    refusing = [
        queue
        for queues in reached
        for queue in queues
        if queue.type is QueueType.QUORUM and has_length_limit(broker, queue) and overflow(queue) is Overflow.REJECT
    ]
    return of_queues(broker, refusing, channel.key) if refusing else None


def _replies(broker: Broker, method: Method) -> Scope | None:
    channel = broker.open_channel(method)
    if channel is None or channel.transaction is None or method.arguments.get("exchange"):
        return None
    queue = broker.queues.get(method.arguments.get("routing_key", ""))
    if queue is None or not queue.reply_address:
        return None
    return of_queues(broker, [queue], *(each.channel for each in queue.consumers))


TRANSACTIONS: tuple[Window, ...] = (
    Window(
        name="commit-forgets-refusals",
        requirement="TX-008",
        statement="A transaction is committed with commit-ok although a quorum queue has refused what it published.",
        source="rabbit_channel:handle_method tx.commit: the refusal of a quorum queue comes while the publishes are"
        " carried out, where record_rejects notes tx = failed, and tx = committing is noted behind that",
        by_chance=True,
        spoils=SERVICE | {Part.REPLY, Part.CHANNEL_CLOSE},
        kinds=("tx.commit",),
        arms=_publishes_to_refusing_quorum_queue,
        is_brief=True,
    ),
    Window(
        name="transaction-replies-at-once",
        requirement="TX-002",
        statement="A direct reply is delivered when it is published in a transaction, and no rollback takes it back.",
        source="v4.0.5 rabbit_channel:handle_method basic.publish, deliver_reply as soon as the message is routed",
        dialects=("rabbitmq-3", "rabbitmq-4.0"),
        spoils=frozenset({Part.DELIVERY, Part.CONTENT}),
        kinds=("basic.publish",),
        arms=_replies,
        is_brief=True,
        shows_at_once=True,
    ),
)
