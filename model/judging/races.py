"""Races that the model does not follow: what they may have brought about is undecided, and blames nobody.

Each is an order between processes of a broker that nothing promises (docs/limits.md), where following every order would
cost more than it finds.
"""

from __future__ import annotations

from collections.abc import Iterator

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, Unacknowledged
from amqpspec.model.broker.internal_events import ChannelCrash, ConnectionTeardown, Teardown
from amqpspec.model.broker.length_limits import has_length_limit
from amqpspec.model.broker.owed import Expected
from amqpspec.model.broker.queues import Queue
from amqpspec.model.broker.ruling import Outcome
from amqpspec.model.broker.time_to_live import ARGUMENT
from amqpspec.model.judging.windows import SERVICE, Part, Race, Scope, of_any
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import ChannelKey, Method, TraceEvent
from amqpspec.model.rules.basic.settlement import tags_meant
from amqpspec.model.rules.extensions.dead_letter import letters_go_to, sender


def _returns_race_limit(broker: Broker, event: TraceEvent | Teardown) -> Scope | None:
    queues = [queue for queue in broker.queues.values() if has_length_limit(broker, queue)]
    racing = [queue for queue in queues if _is_raced(queue, list(_ended_with(broker, event)))]
    return of_any(broker, racing)


def _ended_with(broker: Broker, event: TraceEvent | Teardown) -> Iterator[Channel]:
    for channel in broker.channels.values():
        if channel.connection == event.connection and event.channel in (0, channel.number):
            yield channel


def _is_raced(queue: Queue, ending: list[Channel]) -> bool:
    """Do several channels give back what they hold of the queue, or does one while something else is on its way?"""
    holding = [each for each in ending if any(entry.queue is queue for entry in each.unacknowledged.values())]
    taking = [each for each in ending if any(consumer.queue is queue for consumer in each.consumers.values())]
    return bool(holding) and (len({id(each) for each in (*holding, *taking)}) > 1 or bool(queue.unproven))


def _overtakes_publishes(broker: Broker, method: Method) -> Scope | None:
    """Something has come to a classic queue with a limit since the broker was last at rest."""
    channel = broker.open_channel(method)
    held = {} if channel is None else {entry.queue.name: entry.queue for entry in channel.unacknowledged.values()}
    raced = [
        queue
        for queue in held.values()
        if queue.type is QueueType.CLASSIC and queue.next_position > queue.at_rest and has_length_limit(broker, queue)
    ]
    return of_any(broker, raced)


def _letters_race_limit(broker: Broker, method: Method) -> Scope | None:
    """Dead letters of different queues come to a queue with a limit."""
    senders: dict[Queue, set[ChannelKey | None]] = {}
    for entry in _discarded(broker, method):
        for queue in letters_go_to(broker, entry.queue, entry.message):
            if has_length_limit(broker, queue):
                under_way = {each.via for each in queue.unproven if each.deaths}
                senders.setdefault(queue, under_way).add(sender(entry.queue))
    raced = [queue for queue, found in senders.items() if len(found) > 1]
    return of_any(broker, raced)


def _discarded(broker: Broker, method: Method) -> list[Unacknowledged]:
    """The deliveries that the input has dropped or dead-lettered."""
    channel = broker.open_channel(method)
    if channel is None or not channel.unacknowledged:
        return []
    if method.name != "tx.commit":
        tags = [] if method.arguments.get("requeue") else tags_meant(channel, method)
    else:
        rulings = channel.transaction.rulings if channel.transaction is not None else []
        tags = [tag for ruling, tags in rulings if ruling.outcome is Outcome.DISCARDED for tag in tags]
    return [channel.unacknowledged[tag] for tag in tags if tag in channel.unacknowledged]


def _returns_by_consumers(broker: Broker, method: Method) -> Scope | None:
    """What several consumers of a classic queue with a limit held is given back at one time."""
    channel = broker.open_channel(method)
    if channel is None or method.arguments.get("requeue") is False:
        return None
    is_all = method.name.startswith("basic.recover")
    tags = list(channel.unacknowledged) if is_all else tags_meant(channel, method)
    holders: dict[Queue, set[str]] = {}
    for entry in map(channel.unacknowledged.__getitem__, tags):
        holders.setdefault(entry.queue, set()).add(entry.consumer.tag if entry.consumer is not None else "")
    raced = [
        queue
        for queue, found in holders.items()
        if len(found) > 1 and queue.type is QueueType.CLASSIC and queue.consumers and has_length_limit(broker, queue)
    ]
    return of_any(broker, raced)


def _expires_before_returns(broker: Broker, method: Method) -> Scope | None:
    """A commit publishes what is gone at once to a queue of which its channel holds something."""
    channel = broker.open_channel(method)
    if channel is None or channel.transaction is None:
        return None
    held = {entry.queue for entry in channel.unacknowledged.values()}
    raced = [
        queue
        for publication in channel.transaction.publications
        for queue in publication.routes.queues
        if queue in held
        and (publication.pattern.content.properties.get("expiration") == "0" or queue.in_force.get(ARGUMENT) == 0)
    ]
    return of_any(broker, raced)


def _before_name_is_free(broker: Broker, method: Method) -> Scope | None:
    """The name is that of a quorum queue whose deletion is not answered yet."""
    name = method.arguments.get("queue", "")
    if broker.deleted_of_late.get(name) is not QueueType.QUORUM or name in broker.queues:
        return None
    owed = (each for key in broker.debtors if key[1] for each in broker.channels[key].owed)
    if not any(isinstance(each, Expected) and each.method == "queue.delete-ok" for each in owed):
        return None
    return Scope(frozenset({name}), frozenset({(method.connection, method.channel)}))


def _leaves_auto_delete(broker: Broker, event: TraceEvent) -> Scope | None:
    """The client is gone without a word, and had the last consumers of queues that are deleted with these."""
    own = (each for each in broker.queues.values() if each.auto_delete and each.consumers)
    return of_any(broker, (q for q in own if all(each.channel[0] == event.connection for each in q.consumers)))


RACES: tuple[Race, ...] = (
    Race(
        name="acknowledgements overtake publishes",
        # v4.3.0 rabbit_amqqueue_process:prioritise_cast: {complete, _, _} has 4, what is published and rejected 0; seen
        # of 3.10, 4.0 and 4.3: what is published right before an acknowledgement is delivered in spite of a limit of 0
        statement="an acknowledgement comes to a classic queue with a limit before what was published there ahead of"
        " it: what is dropped is open",
        spoils=SERVICE | {Part.CONFIRM},
        kinds=("basic.ack",),
        arms=_overtakes_publishes,
        is_brief=True,
    ),
    Race(
        name="returns race a limit",
        # rabbit_fifo:apply {down, Pid, _}: once for each channel, each time with checkout and evaluate_limit
        statement="channels that hold messages of a queue with a limit end at one time, or while others come to it:"
        " in which order these are there, and what is dropped, is open",
        spoils=SERVICE | {Part.CONFIRM},
        kinds=("channel.close", "connection.close", "socket.abort", ChannelCrash, ConnectionTeardown),
        arms=_returns_race_limit,
    ),
    Race(
        name="dead letters race a limit",
        # rabbit_dead_letter:publish by each queue for itself (rabbit_amqqueue_process; rabbit_fifo_dlx: mod_call); seen
        # of 3.10, 4.0 and 4.3: what a classic queue sends itself is there before what a quorum queue sends it
        statement="dead letters of different queues come to a queue with a limit at one time: in which order these are"
        " there, and what is dropped, is open",
        spoils=SERVICE | {Part.CONFIRM},
        kinds=("basic.nack", "basic.reject", "tx.commit"),
        arms=_letters_race_limit,
    ),
    Race(
        name="returns of several consumers race a limit",
        # v3.10.9, v4.3.5 rabbit_channel:foreach_per_queue, by {QRef, CTag}; rabbit_amqqueue_process:requeue_and_run for
        # each, with maybe_drop_or_expire_msgs and run_message_queue; seen of 3.10
        statement="what several consumers of a queue with a limit held is given back one consumer after the other: what"
        " is dropped, and handed over in between, is open",
        spoils=SERVICE | {Part.CONFIRM},
        kinds=("basic.nack", "basic.recover", "basic.recover-async"),
        arms=_returns_by_consumers,
    ),
    Race(
        name="a refused commit races its returns",
        # rabbit_amqqueue_process:maybe_deliver_or_enqueue drops what is expired at once; what the channel held comes
        # back when it has ended (TX-008); seen of 4.0 and 4.3
        statement="what a refused commit has published without any time to live is gone before what the channel held is"
        " back, or stays behind it: that is open",
        kinds=("tx.commit",),
        arms=_expires_before_returns,
    ),
    Race(
        name="declarations race a deletion",
        # v4.3.5 rabbit_quorum_queue:delete: ra:delete_cluster ends the queue, of which its consumers hear, and then
        # delete_queue_data frees the name; seen of 4.3: 406 for other arguments behind the consumer's basic.cancel
        statement="consumers of a quorum queue hear of its end before its name is free: what a queue.declare finds that"
        " comes before delete-ok is open",
        spoils=frozenset({Part.CHANNEL_CLOSE, Part.REPLY, Part.COUNT}),
        kinds=("queue.declare",),
        arms=_before_name_is_free,
        is_brief=True,
    ),
    Race(
        name="questions overtake the end of a client",
        # v4.0.5 rabbit_amqqueue_process:handle_info 'DOWN' of the channel, which ends some time after the TCP
        # connection; seen of 4.0 on a busy machine
        statement="a client that had the last consumer of an auto-delete queue is gone without a word: whether what"
        " comes right after that finds the queue is open",
        spoils=frozenset({Part.CHANNEL_CLOSE, Part.REPLY, Part.COUNT}),
        kinds=("socket.abort",),
        arms=_leaves_auto_delete,
        is_brief=True,
    ),
)
