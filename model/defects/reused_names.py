"""Queues that are declared again under the name of a deleted one, which some process of the broker takes for that one.

A channel settles by the queue's name and by numbers that begin anew with each queue (rabbit_queue_type:settle), keeps
its state of a queue by the name (rabbit_queue_type:get_ctx_with), and up to 3.13 hands consumers of a queue that has
ended over to the next one (rabbit_channel:handle_consuming_queue_down_or_eol).
"""

from __future__ import annotations

from functools import partial

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.dead_letter_headers import EXCHANGE
from amqpspec.model.broker.internal_events import Input, QueueExpiry
from amqpspec.model.broker.owed import Expected
from amqpspec.model.broker.queues import Queue
from amqpspec.model.defects.situations import RECOVERIES, REFUSALS, SETTLING, on_channel, settled
from amqpspec.model.judging.windows import CRASH, EVERYTHING, SERVICE, Part, Scope, Window, of_any, of_connection
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.methods import Method


def _next_queues(broker: Broker, method: Method, *types: QueueType) -> list[Queue]:
    """The queues of these types that have the names of deleted ones of which the input settles something."""
    names = {entry.queue.name for entry in settled(broker, method) if entry.queue.deleted}
    return [queue for name, queue in broker.queues.items() if name in names and queue.type in types]


def _crashes_next(broker: Broker, method: Method) -> Scope | None:
    """A classic queue has to have the number, as a pair if it has priorities, or to find what it dead-letters."""
    queues = _next_queues(broker, method, QueueType.CLASSIC)
    crashing = [queue for queue in queues if {"x-max-priority", EXCHANGE} & queue.in_force.keys()]
    return EVERYTHING if any(queue.consumers for queue in crashing) else of_any(broker, crashing)


def _knows_other_type(broker: Broker, method: Method) -> Scope | None:
    """The channel knows the name of a queue for one of another type."""
    channel = broker.open_channel(method)
    known = channel.known_types if channel is not None else {}
    other = [queue for name, queue in broker.queues.items() if known.get(name, queue.type) is not queue.type]
    return of_connection(broker, method, *other) if other else None


def _leaves_consumers_untold(broker: Broker, event: Input) -> Scope | None:
    """A queue goes, and not all clients hear of the end of their consumers."""
    name = event.arguments.get("queue", "") if isinstance(event, Method) else getattr(event, "queue", "")
    queue = broker.queues.get(name)
    if queue is None or queue.type is QueueType.CLASSIC:
        return None
    channels = {each.channel for each in queue.consumers}
    untold = [key for key in channels if not broker.connections[key[0]].is_told_of_cancels]
    return of_any(broker, [queue], *untold) if untold else None


def _comes_before_notices(broker: Broker, method: Method) -> Scope | None:
    """A queue is declared, and clients are still to hear of the end of their consumers."""
    owing = [(key, each) for key in broker.debtors if key[1] for each in broker.channels[key].owed]
    untold = [key for key, each in owing if isinstance(each, Expected) and each.method == "basic.cancel"]
    return Scope(frozenset({method.arguments.get("queue", "")}), frozenset(untold)) if untold else None


@on_channel
def _cancels_consumers_of_next(broker: Broker, channel: Channel, method: Method) -> bool:
    """A commit publishes to a deleted classic queue, and its channel consumes from one that has the name now."""
    publications = channel.transaction.publications if channel.transaction is not None else ()
    routed = (queue for publication in publications for queue in publication.routes.queues)
    gone = {queue.name for queue in routed if queue.deleted and queue.type is QueueType.CLASSIC}
    return any(each.queue.name in gone for each in channel.consumers.values())


_crashing = partial(Window, by_chance=True, kinds=SETTLING, arms=_crashes_next)
_untold = partial(
    Window, dialects=("rabbitmq-3",), by_chance=True, kinds=("queue.delete", QueueExpiry), arms=_leaves_consumers_untold
)

REUSED_NAMES: tuple[Window, ...] = (
    _crashing(
        name="deleted-queue-crashes-next-queue",
        requirement="ACK-024",
        statement="Settling a delivery of a deleted queue crashes the process of a new classic queue of the same name,"
        " which does not have that number: its consumers and transient messages are gone, and what is asked of it"
        " meanwhile is refused with 404 or closes the connection with 541.",
        source="rabbit_priority_queue:partition_acktags (numbers that are no pairs); rabbit_variable_queue:"
        "lookup_pending_ack, called for each message that is to be dead-lettered",
        spoils=CRASH | {Part.CANCEL, Part.CONFIRM},
        explains=lambda broker, it: it.part not in SERVICE,
    ),
    _crashing(
        name="crashed-next-queue-is-empty",
        requirement="ACK-024",
        statement="When a new classic queue of the name of a deleted one has crashed so and is there again before"
        " somebody asks, its transient messages are gone, those that somebody holds as well, and so are consumers that"
        " are not told.",
        source="rabbit_amqqueue_sup (restart), rabbit_variable_queue:init (recovers persistent messages)",
    ),
    Window(
        name="deleted-queue-settles-in-next-queue",
        requirement="ACK-024",
        statement="Settling a delivery of a deleted queue settles, in a new queue of the same name, a delivery that has"
        " the same number there, if that is a classic queue to whichever channel; of what is settled together with"
        " numbers that it does not have a classic queue forgets some when it counts against limits.",
        source="rabbit_queue_type:settle finds the queue by name; rabbit_classic_queue and rabbit_fifo_client know"
        " messages by numbers that begin anew with each queue; rabbit_queue_consumers:subtract_acks",
        spoils=SERVICE | {Part.CONFIRM},
        kinds=SETTLING,
        arms=lambda broker, it: of_any(broker, _next_queues(broker, it, QueueType.CLASSIC, QueueType.QUORUM)),
    ),
    Window(
        name="next-stream-refuses-settlement",
        requirement="ACK-012",
        strength=Strength.CONVENTIONAL,
        statement="Giving back a delivery of a deleted queue is refused with 540, or crashes the channel if by"
        " basic.recover, when the channel has dealt with a new stream of its name.",
        source="v3.10.9 rabbit_channel:foreach_per_queue (settles by the queue's name), rabbit_stream_queue:settle",
        dialects=("rabbitmq-3",),
        by_chance=True,
        spoils=CRASH,
        kinds=(*REFUSALS, *RECOVERIES, "tx.commit"),
        arms=lambda broker, it: of_connection(broker, it) if _next_queues(broker, it, QueueType.STREAM) else None,
        is_brief=True,
    ),
    Window(
        name="stale-queue-type",
        requirement="QUEUE-029",
        statement="A channel that dealt with a queue, and meets another type under the same name after the queue was"
        " deleted and declared anew, goes on with its state of the old type; the connection closes with 541.",
        source="rabbit_queue_type:get_ctx_with finds the old context by name; rabbit_classic_queue:qpids, case_clause",
        by_chance=True,
        spoils=CRASH | {Part.CONFIRM},
        kinds=("basic.publish", "basic.get", "basic.consume", "tx.commit"),
        arms=_knows_other_type,
    ),
    _untold(
        name="next-queue-keeps-tag",
        requirement="CANCEL-010",
        statement="The tag of a consumer that ended with its queue is refused as in use if the name is used again.",
        source="v3.10.9 rabbit_channel:handle_consuming_queue_down_or_eol, basic_consume of all that are to recover",
        spoils=frozenset({Part.CONNECTION_CLOSE}),
    ),
    _untold(
        name="next-queue-gets-consumers",
        requirement="CANCEL-010",
        statement="Consumers of a quorum queue or stream that ended become consumers of the next queue of that name.",
        source="v3.10.9 rabbit_channel:handle_consuming_queue_down_or_eol; handle_cast queue_event, eol",
    ),
    Window(
        name="next-queue-keeps-consumers",
        requirement="CANCEL-007",
        statement="The client is not told that a quorum queue or a stream ends, if its name is used again right away.",
        source="v3.10.9 rabbit_channel:handle_consuming_queue_down_or_eol",
        dialects=("rabbitmq-3",),
        by_chance=True,
        spoils=SERVICE | {Part.CANCEL},
        kinds=("queue.declare",),
        arms=_comes_before_notices,
    ),
    Window(
        name="commit-cancels-consumers-of-next-queue",
        requirement="CANCEL-007",
        statement="A commit that publishes to a deleted classic queue cancels the channel's consumers of a new queue of"
        " that name, before the channel closes.",
        source="v4.3.5 rabbit_channel:handle_info 'DOWN' of the deleted queue's process, which the publish has had"
        " monitored: handle_consuming_queue_down_or_eol goes by the queue's name",
        dialects=("rabbitmq-4.0", "rabbitmq-4.3"),
        by_chance=True,
        spoils=frozenset({Part.CANCEL}),
        kinds=("tx.commit",),
        arms=_cancels_consumers_of_next,
        is_brief=True,
    ),
)
