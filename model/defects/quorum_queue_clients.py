"""rabbit_fifo_client: what a channel's process keeps of a quorum queue that it publishes to, and how it meets a queue
that is going or a channel that is.

It registers with the queue before it sends its first message there, and again once it has heard that the queue has
ended; and from then on numbers what it sends, by which the queue knows what it has missed (rabbit_fifo:maybe_enqueue).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.hooks import Guest, arm
from amqpspec.model.broker.internal_events import ChannelCrash, ConnectionTeardown, Teardown
from amqpspec.model.broker.owed import Expected
from amqpspec.model.broker.queues import Arrival, Message, Queue
from amqpspec.model.defects.consumers_of_ended_queues import untold_of
from amqpspec.model.defects.crash import crash_with, internal_error
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.methods import ChannelKey, Method
from amqpspec.model.rules.basic.cancel import crossing_of, withdraw_notice
from amqpspec.model.rules.connection.closing import break_connection
from amqpspec.model.rules.inputs import process

NAME = "quorum queue clients"

_ENDS = ("channel.close", "connection.close", "socket.abort")


@dataclass(slots=True)
class ClientsMemory:
    #: by the name of a queue that was deleted of late: the exchanges that it was bound to
    bound_to: dict[str, tuple[str, ...]] = field(default_factory=dict)
    #: by the same: the channel that its client deleted it on
    deleted_on: dict[str, ChannelKey] = field(default_factory=dict)


class QuorumQueueClients(Guest):
    """Knows what went to quorum queues that were deleted of late. Armed when one is deleted."""

    name = NAME

    def new_memory(self) -> ClientsMemory:
        return ClientsMemory()

    def queue_deleted(self, broker: Broker, queue: Queue) -> None:
        if queue.type is not QueueType.QUORUM:
            return
        memory = _memory(broker)
        for name in [name for name in memory.bound_to if name not in broker.deleted_of_late]:
            del memory.bound_to[name]
            memory.deleted_on.pop(name, None)
        memory.bound_to[queue.name] = tuple(
            [each.name for each in broker.exchanges.values() if any(way.leads_to(queue) for way in each.bindings)]
        )
        arm(broker, NAME)

    def deleted_by_client(self, broker: Broker, channel: Channel, queue: Queue) -> None:
        """It hears of the end first: nothing of its own crosses that."""
        if queue.type is QueueType.QUORUM:
            _memory(broker).deleted_on[queue.name] = channel.key

    def fingerprint(self, broker: Broker) -> object:
        memory = _memory(broker)
        of_late = [name for name in memory.bound_to if name in broker.deleted_of_late]
        return tuple(sorted((name, memory.bound_to[name], memory.deleted_on.get(name, ())) for name in of_late))


def _memory(broker: Broker) -> ClientsMemory:
    memory: ClientsMemory = broker.remembered(NAME)
    return memory


def _publishes_to_deleted(broker: Broker, method: Method) -> bool:
    """Is a quorum queue being deleted to which the message goes, by its name or by the exchange, from another channel
    than the one that deletes it?
    """
    channel = broker.open_channel(method)
    if channel is None or not broker.deleted_of_late:
        return False
    memory = _memory(broker)
    exchange, names = method.arguments.get("exchange"), [method.arguments.get("routing_key", "")]
    if exchange:
        names = [name for name, bound_to in memory.bound_to.items() if exchange in bound_to]
    return any(
        broker.deleted_of_late.get(name) is QueueType.QUORUM
        and name not in broker.queues
        and memory.deleted_on.get(name) != channel.key
        for name in names
    )


def _cancels_at_deleted(broker: Broker, method: Method) -> bool:
    """Does the client cancel a consumer of a quorum queue that is being deleted?"""
    return crossing_of(broker, method) == "CANCEL-006" or _crosses_untold(broker, method)


def _crosses_untold(broker: Broker, method: Method) -> bool:
    """The same of a client that is not told of the end of its consumers: who deletes has not been answered yet."""
    channel = broker.open_channel(method)
    if channel is None:
        return False
    if method.arguments.get("consumer_tag", "") not in untold_of(broker, channel):
        return False
    return any(
        isinstance(owed, Expected) and owed.method == "queue.delete-ok"
        for other in broker.channels.values()
        for owed in other.owed
    )


def _break_instead(broker: Broker, method: Method) -> None:
    """What the channel would have said of other consumers of the queue is lost with it."""
    broker.stamp += 1
    broker.fired("CANCEL-006")
    channel = broker.channels[(method.connection, method.channel)]
    channel.owed = [o for o in channel.owed if not (isinstance(o, Expected) and o.method == "basic.cancel")]
    break_connection(broker, channel, internal_error())


def _answer_twice(broker: Broker, method: Method) -> None:
    process(broker, method)
    withdraw_notice(broker, method)
    channel = broker.channels[(method.connection, method.channel)]
    tag = method.arguments.get("consumer_tag", "")
    for owed in channel.owed:
        if isinstance(owed, Expected) and owed.method == "basic.cancel-ok" and owed.arguments["consumer_tag"] == tag:
            channel.owed.append(owed)
            break


def _on_their_way(broker: Broker, event: Method | Teardown) -> list[tuple[Queue, Message]]:
    """Messages that the channels which the input ends have published to quorum queues, and may not be there yet."""
    return [
        (queue, message)
        for queue in broker.queues.values()
        if queue.type is QueueType.QUORUM
        for message in queue.unproven
        if message.arrival is Arrival.PUBLISHED and _is_ended(message.via, event)
    ]


def _is_ended(channel: ChannelKey | None, event: Method | Teardown) -> bool:
    return channel is not None and channel[0] == event.connection and event.channel in (0, channel[1])


def _lose(broker: Broker, event: Method | Teardown) -> None:
    on_their_way = _on_their_way(broker, event)
    process(broker, event)
    for queue, message in on_their_way:
        if message in queue.messages:
            broker.take(queue, queue.messages.index(message))
            broker.note_gone(queue, message, message.reason)
            broker.refresh(queue)


QUORUM_CLIENT_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="cancel-crossing-deletion-breaks",
        requirement="CANCEL-006",
        strength=Strength.PROMISED,
        statement="A basic.cancel that comes to its channel when the quorum queue is gone and the channel has not heard"
        " of that crashes the channel; the connection closes with 541.",
        source="rabbit_channel:cancel_consumer, case_clause {error, noproc} of rabbit_fifo_client:cancel_checkout",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        by_chance=True,
        methods=("basic.cancel",),
        guest=NAME,
        applies=_cancels_at_deleted,
        process=_break_instead,
    ),
    DefectTransition(
        name="cancel-crossing-deletion-answered-twice",
        requirement="CANCEL-006",
        strength=Strength.PROMISED,
        statement="A basic.cancel that comes to its channel while the quorum queue is being deleted is answered by two"
        " cancel-oks.",
        source="v4.0.5 rabbit_quorum_queue:cancel sends one before it asks the queue; when that ends meanwhile"
        " rabbit_channel:handle_method basic.cancel returns another (with_exit_handler, not_found)",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        by_chance=True,
        methods=("basic.cancel",),
        guest=NAME,
        applies=_cancels_at_deleted,
        process=_answer_twice,
    ),
    DefectTransition(
        name="closing-overtakes-publishes",
        requirement="PUBLISH-002",
        strength=Strength.PROMISED,
        statement="What a channel publishes to a quorum queue right before it is closed is lost, if it has published"
        " there before.",
        source="v3.10.9 rabbit_fifo_client:enqueue sends with low priority, so that the end of the channel comes first;"
        " rabbit_fifo:handle_down forgets the numbers that it expects, and maybe_enqueue then waits for number 1",
        dialects=("rabbitmq-3",),
        by_chance=True,
        methods=_ENDS,
        internal_events=(ChannelCrash, ConnectionTeardown),
        applies=lambda broker, event: bool(_on_their_way(broker, event)),
        process=_lose,
    ),
    DefectTransition(
        name="publish-crossing-deletion-breaks",
        requirement="PUBLISH-002",
        strength=Strength.PROMISED,
        statement="A message that is published to a quorum queue while that is deleted crashes the channel: its first"
        " one there, or one behind the news that the queue has ended. The connection closes with 541.",
        source="v4.0.5 rabbit_channel:deliver_to_queues, case_clause {error, {shutdown, delete}} or noproc of"
        " rabbit_fifo_client, which registers with the queue before it sends",
        dialects=("rabbitmq-3", "rabbitmq-4.0"),
        by_chance=True,
        methods=("basic.publish",),
        guest=NAME,
        applies=_publishes_to_deleted,
        process=crash_with("PUBLISH-002"),
    ),
)
