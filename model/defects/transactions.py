"""Transactions: what rabbit_channel does while it carries out tx.commit, and what it does not keep back until then."""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.length_limits import Overflow, has_length_limit, overflow
from amqpspec.model.judging.windows import SERVICE, Part, Scope, Window, of_any, of_queues
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Method


def _commits_beside_refusing_quorum_queue(broker: Broker, method: Method) -> Scope | None:
    channel = broker.open_channel(method)
    if channel is None or channel.transaction is None or not channel.transaction.publications:
        return None
    quorum = [queue for queue in broker.queues.values() if queue.type is QueueType.QUORUM]
    refusing = (each for each in quorum if has_length_limit(broker, each) and overflow(each) is Overflow.REJECT)
    return of_any(broker, refusing, channel.key)


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
        arms=_commits_beside_refusing_quorum_queue,
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
