"""Transactions: what rabbit_channel does while it carries out tx.commit, and what it does not keep back until then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.hooks import Guest, arm, once_awake
from amqpspec.model.broker.overflow import Overflow, has_length_limit, overflow
from amqpspec.model.broker.owed import Expected
from amqpspec.model.broker.queues import Consumer, Queue
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import ChannelKey, Method
from amqpspec.model.rules.basic.publish import deliver
from amqpspec.model.rules.inputs import process
from amqpspec.model.rules.tx.commit import reached_now

NAME = "transactions"


@dataclass(slots=True)
class TransactionsMemory:
    #: channels that are carrying out a commit and forget what quorum queues refuse
    forgetting: set[ChannelKey] = field(default_factory=set)


class Transactions(Guest):
    """Armed when a channel is in transaction mode."""

    name = NAME

    def new_memory(self) -> TransactionsMemory:
        return TransactionsMemory()

    def transaction_selected(self, broker: Broker, channel: Channel) -> None:
        arm(broker, NAME)

    @once_awake
    def hears_refusals(self, broker: Broker, channel: Channel, refusing: Sequence[Queue]) -> bool | None:
        """Who forgets what a quorum queue says waits no longer for the others that the message went to."""
        if channel.key not in broker.remembered(NAME).forgetting:
            return None
        return False if any(queue.type is QueueType.QUORUM for queue in refusing) else None

    def fingerprint(self, broker: Broker) -> object:
        return ()


def _memory(broker: Broker) -> TransactionsMemory:
    memory: TransactionsMemory = broker.remembered(NAME)
    return memory


@contextmanager
def forgetting_refusals(broker: Broker, channel: ChannelKey) -> Iterator[None]:
    """What quorum queues refuse is known, and forgotten, before the commit begins to wait for what others say."""
    forgetting = _memory(broker).forgetting
    forgetting.add(channel)
    try:
        yield
    finally:
        forgetting.discard(channel)


def _publishes_to_refusing_quorum_queue(broker: Broker, method: Method) -> bool:
    channel = broker.open_channel(method)
    if channel is None or channel.transaction is None:
        return False
    try:
        reached = [reached_now(broker, channel, publication) for publication in channel.transaction.publications]
    except ProtocolError:
        return False  # the commit breaks the connection
    return any(
        queue.type is QueueType.QUORUM and has_length_limit(broker, queue) and overflow(queue) is Overflow.REJECT
        for queues in reached
        for queue in queues
    )


def _forget_refusals(broker: Broker, method: Method) -> None:
    with forgetting_refusals(broker, (method.connection, method.channel)):
        process(broker, method)


def _consumers_of_next_queues(broker: Broker, method: Method) -> list[Consumer]:
    """Consumers of the channel that will be told, whose queues have the names of deleted ones that it publishes to."""
    channel = broker.open_channel(method)
    if channel is None or channel.transaction is None:
        return []
    if not broker.connections[channel.connection].is_told_of_cancels:
        return []
    routed = [queue for publication in channel.transaction.publications for queue in publication.routes.queues]
    gone = {queue.name for queue in routed if queue.deleted and queue.type is QueueType.CLASSIC}
    return [consumer for consumer in channel.consumers.values() if consumer.queue.name in gone]


def _cancel_consumers_of_next_queues(broker: Broker, method: Method) -> None:
    """The channel hears that the queue is down before it says that the commit was refused."""
    channel = broker.channels[(method.connection, method.channel)]
    tags = sorted(consumer.tag for consumer in _consumers_of_next_queues(broker, method))
    process(broker, method)
    notices = (Expected("basic.cancel", {"consumer_tag": tag, "nowait": True}, ("CANCEL-007",)) for tag in tags)
    said = [place for place, owed in enumerate(channel.owed) if getattr(owed, "method", "") == "channel.close"]
    place = said[0] if said else 0
    channel.owed[place:place] = notices


def _replies(broker: Broker, method: Method) -> bool:
    channel = broker.open_channel(method)
    if channel is None or channel.transaction is None:
        return False
    name = method.arguments.get("routing_key", "")
    return not method.arguments.get("exchange") and name in broker.queues and broker.queues[name].reply_address


def _reply_at_once(broker: Broker, method: Method) -> None:
    """Who asked has the reply; what is kept goes to other queues only."""
    channel = broker.channels[(method.connection, method.channel)]
    process(broker, method)
    if channel.transaction is None or not channel.transaction.publications:
        return  # the message was refused
    kept = channel.transaction.publications.pop()
    replies = {queue: reason for queue, reason in kept.routes.queues.items() if queue.reply_address}
    others = {queue: reason for queue, reason in kept.routes.queues.items() if not queue.reply_address}
    deliver(broker, channel, replace(kept, routes=replace(kept.routes, queues=replies), mandatory=False))
    channel.transaction.publications.append(replace(kept, routes=replace(kept.routes, queues=others)))


TRANSACTION_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="commit-cancels-consumers-of-next-queue",
        requirement="CANCEL-007",
        strength=Strength.PROMISED,
        statement="A commit that publishes to a deleted classic queue cancels the channel's consumers of a new queue of"
        " that name, before the channel closes.",
        source="v4.3.5 rabbit_channel:handle_info 'DOWN' of the deleted queue's process, which the publish has had"
        " monitored: handle_consuming_queue_down_or_eol goes by the queue's name",
        dialects=("rabbitmq-4.0", "rabbitmq-4.3"),
        by_chance=True,
        methods=("tx.commit",),
        guest=NAME,
        applies=lambda broker, method: bool(_consumers_of_next_queues(broker, method)),
        process=_cancel_consumers_of_next_queues,
    ),
    DefectTransition(
        name="commit-forgets-refusals",
        requirement="TX-008",
        strength=Strength.PROMISED,
        statement="A transaction is committed with commit-ok although a quorum queue has refused what it published.",
        source="rabbit_channel:handle_method tx.commit: the refusal of a quorum queue comes while the publishes are"
        " carried out, where record_rejects notes tx = failed, and tx = committing is noted behind that",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        by_chance=True,
        methods=("tx.commit",),
        guest=NAME,
        applies=_publishes_to_refusing_quorum_queue,
        process=_forget_refusals,
    ),
    DefectTransition(
        name="transaction-replies-at-once",
        requirement="TX-002",
        strength=Strength.PROMISED,
        statement="A direct reply is delivered when it is published in a transaction, and no rollback takes it back.",
        source="v4.0.5 rabbit_channel:handle_method basic.publish, deliver_reply as soon as the message is routed",
        dialects=("rabbitmq-3", "rabbitmq-4.0"),
        methods=("basic.publish",),
        guest=NAME,
        applies=_replies,
        process=_reply_at_once,
    ),
)
