"""Inputs and frames that cross each other on their way between a channel, a queue and a client."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, ChannelState
from amqpspec.model.broker.internal_events import ChannelCrash, ConnectionTeardown, Teardown
from amqpspec.model.broker.owed import Expected
from amqpspec.model.broker.queues import Arrival, Queue
from amqpspec.model.defects.situations import OFTEN_WRONG, at_queue, named_consumer, on_channel
from amqpspec.model.judging.windows import (
    CRASH,
    SERVICE,
    Difference,
    Part,
    Scope,
    Window,
    of_any,
    of_connection,
    of_connections,
)
from amqpspec.model.outputs.late_deliveries import ends_unseen
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.verdict import Shape
from amqpspec.model.promises.versions import versions
from amqpspec.model.protocol.methods import Method, OperatorAction, TraceEvent

QUORUM = QueueType.QUORUM

# ---------------------------------------------------------------------------------- consume-ok, from queue to channel


def _cancels_before_consume_ok(broker: Broker, method: Method) -> Scope | None:
    consumer = named_consumer(broker, method)
    if consumer is None or consumer.announced:
        return None
    # what the queue has handed to the consumer before it comes to the cancel nobody sees
    return of_connection(broker, method, consumer.queue)


def _cancels_beside(broker: Broker, method: Method) -> Scope | None:
    """The channel has another consumer on the same queue, whose consume-ok has come."""
    consumer = named_consumer(broker, method)
    others = consumer.queue.consumers if consumer is not None else ()
    is_beside = any(each.announced and each.channel == (method.connection, method.channel) for each in others)
    return _cancels_before_consume_ok(broker, method) if is_beside else None


def _consumes_before_consume_ok_of_tag(broker: Broker, method: Method) -> Scope | None:
    channel = broker.open_channel(method)
    tag = method.arguments.get("consumer_tag", "")
    owed = channel.owed if channel is not None else ()
    answers = (each for each in owed if isinstance(each, Expected) and each.method == "basic.consume-ok")
    return of_connection(broker, method) if any(each.arguments["consumer_tag"] == tag for each in answers) else None


# ---------------------------------------------------------------------------------------- a queue that is being deleted


def _cancels_at_deleted(broker: Broker, method: Method) -> Scope | None:
    """The client cancels a consumer of a queue that is being deleted, of which it may have been told or not."""
    channel = broker.open_channel(method)
    is_gone = channel is not None and method.arguments.get("consumer_tag", "") in channel.ended_consumers
    return of_connection(broker, method) if is_gone and QUORUM in broker.deleted_of_late.values() else None


def _publishes_beside_deletion(broker: Broker, method: Method) -> Scope | None:
    is_open = broker.open_channel(method) is not None
    return of_connection(broker, method) if is_open and QUORUM in broker.deleted_of_late.values() else None


def _uses_beside_deletion(broker: Broker, method: Method) -> Scope | None:
    """The deletion comes first, or finds consumers whose consume-ok has not come to their channel."""
    channel = broker.open_channel(method)
    if channel is None:
        return None
    name = method.arguments.get("queue", "") or channel.last_queue or ""
    if method.name != "queue.delete":
        return of_connection(broker, method) if broker.deleted_of_late.get(name) is QUORUM else None
    queue = broker.queues.get(name)
    consumers = queue.consumers if queue is not None and queue.type is QUORUM else ()
    connections = frozenset(each.channel[0] for each in consumers if not each.announced)
    return of_connections(broker, connections) if connections else None


def _ends_while_publishing(broker: Broker, event: Method | Teardown) -> Scope | None:
    """What a channel has published to quorum queues may not be there yet when the channel ends."""
    own = {key for key in broker.channels if key[0] == event.connection}
    quorum = (queue for queue in broker.queues.values() if queue.type is QUORUM)
    under_way = (each for each in quorum if any(m.arrival is Arrival.PUBLISHED and m.via in own for m in each.unproven))
    return of_any(broker, under_way)


@on_channel
def _names_what_was_exclusive(broker: Broker, channel: Channel, method: Method) -> bool:
    """The queue was exclusive to a connection that is closed."""
    name = method.arguments.get("queue", "") or channel.last_queue or ""
    return broker.bookkeeping.ended_queues.get(name) == "QUEUE-020"


# -------------------------------------------------------------------------------------------- the end of a channel


def _is_behind_channel_close(broker: Broker, difference: Difference) -> bool:
    """Does it come for a consumer of a channel that the broker has closed, and before the client has answered?"""
    channel = broker.channels.get(difference.channel)
    if channel is None or channel.state is not ChannelState.CLOSING or difference.event is None:
        return False
    was_there = difference.event.arguments.get("consumer_tag") in channel.ended_consumers
    return was_there and difference.shape is Shape.UNEXPECTED and not ends_unseen(broker, channel)


def _answers_close(broker: Broker, method: Method) -> Scope | None:
    channel = broker.channels.get((method.connection, method.channel))
    is_closing = channel is not None and channel.state is ChannelState.CLOSING
    return Scope(channels=frozenset({channel.key})) if channel is not None and is_closing else None


def _overtakes_deliveries(broker: Broker, difference: Difference) -> bool:
    if difference.frame != "basic.get-ok" or difference.shape is not Shape.UNEXPECTED:
        return False
    queue = broker.queues.get(difference.queue or "")
    own = (each for each in queue.consumers if each.channel == difference.channel) if queue is not None else ()
    return any(map(broker.has_room, own))


def _ends_streams_of_virtual_host(broker: Broker, action: OperatorAction) -> Scope | None:
    name = action.arguments.get("virtual_host", "")
    streams = [each for each in broker.queues.values() if each.vhost == name and each.type is QueueType.STREAM]
    channels = frozenset(consumer.channel for queue in streams for consumer in queue.consumers)
    return Scope(channels=channels) if channels else None


@at_queue(QueueType.STREAM)
def _reads_stream_already(broker: Broker, channel: Channel, queue: Queue, method: Method) -> bool:
    """The channel, which is to have one more consumer of the stream, reads it already."""
    return not method.arguments.get("nowait") and any(each.queue is queue for each in channel.consumers.values())


def _sends_too_long_body(broker: Broker, frame: TraceEvent) -> Scope | None:
    channel = broker.channels.get((frame.connection, frame.channel))
    missing = channel.assembly.missing if channel is not None and channel.assembly is not None else None
    content = getattr(frame, "content", None)
    is_longer = missing is not None and content is not None and len(content.body) > missing
    return of_connection(broker, frame) if is_longer else None


_BEHIND_CLOSE = Window(
    name="delivers-behind-channel-close",
    requirement="CHAN-005",
    statement="What was under way to a consumer when an error closed its channel comes behind channel.close.",
    source="rabbit_channel:handle_cast queue_event, which does not ask whether the channel is closing",
    by_chance=True,
    spoils=frozenset({Part.DELIVERY, Part.CONTENT}),
    explains=_is_behind_channel_close,
)

#: A cancel that something crosses, which shows at once or not at all.
_at_once = partial(Window, kinds=("basic.cancel",), is_brief=True, shows_at_once=True)

CROSSINGS: tuple[Window, ...] = (
    Window(
        name="cancel-before-consume-ok-breaks",
        requirement="CONSUME-005",
        statement="The channel looks for the consumer when consume-ok comes back from the queue; if it was cancelled"
        " meanwhile the channel crashes, and the connection closes with 541.",
        source="v4.0.5 rabbit_channel:consumer_monitor, maps:get of a tag that basic.cancel has removed",
        dialects=("rabbitmq-3", "rabbitmq-4.0"),
        spoils=CRASH,
        kinds=("basic.cancel",),
        arms=_cancels_before_consume_ok,
    ),
    _at_once(
        name="cancel-before-consume-ok-beside-breaks",
        requirement="CONSUME-005",
        statement="A basic.cancel before consume-ok has come crashes the channel if it has another consumer on that"
        " queue: the connection closes with 541.",
        source="v4.3.5 rabbit_channel:cancel_consumer/4, gb_sets:delete of a tag that consume-ok has not noted yet",
        dialects=("rabbitmq-4.3",),
        spoils=CRASH,
        arms=_cancels_beside,
        explains=lambda broker, it: it.part is not Part.REPLY,
    ),
    _at_once(
        name="consume-ok-dropped",
        requirement="CONSUME-005",
        statement="A consume-ok that comes back from the queue when its consumer was cancelled meanwhile is not sent.",
        source="rabbit_channel:handle_cast {command, basic.consume_ok}, second clause",
        dialects=("rabbitmq-4.3",),
        by_chance=True,
        spoils=SERVICE | {Part.REPLY},
        arms=_cancels_before_consume_ok,
    ),
    Window(
        name="reused-tag-before-consume-ok-breaks",
        requirement="CONSUME-004",
        statement="Two consume-oks of one tag reach the channel while its second consumer lives: the second one is"
        " noted twice, the channel crashes, and the connection closes with 541.",
        source="rabbit_channel:consumer_monitor, gb_sets:insert of a tag that is there already",
        dialects=("rabbitmq-4.3",),
        spoils=CRASH,
        kinds=("basic.consume",),
        arms=_consumes_before_consume_ok_of_tag,
        is_brief=True,
    ),
    Window(
        name="cancel-crossing-deletion-answered-twice",
        requirement="CANCEL-006",
        statement="A basic.cancel that comes to its channel while the quorum queue is being deleted is answered by two"
        " cancel-oks.",
        source="v4.0.5 rabbit_quorum_queue:cancel sends one before it asks the queue; when that ends meanwhile"
        " rabbit_channel:handle_method basic.cancel returns another (with_exit_handler, not_found)",
        by_chance=True,
        spoils=frozenset({Part.REPLY}),
        kinds=("basic.cancel",),
        arms=_cancels_at_deleted,
        explains=lambda broker, it: it.frame == "basic.cancel-ok" and it.shape is Shape.UNEXPECTED,
    ),
    _at_once(
        name="cancel-crossing-deletion-breaks",
        requirement="CANCEL-006",
        statement="A basic.cancel that comes to its channel when the quorum queue is gone and the channel has not heard"
        " of that crashes the channel; the connection closes with 541.",
        source="rabbit_channel:cancel_consumer, case_clause {error, noproc} of rabbit_fifo_client:cancel_checkout",
        by_chance=True,
        spoils=CRASH,
        arms=_cancels_at_deleted,
    ),
    Window(
        name="publish-crossing-deletion-breaks",
        requirement="PUBLISH-002",
        statement="A message that is published to a quorum queue while that is deleted crashes the channel: its first"
        " one there, or one behind the news that the queue has ended. The connection closes with 541.",
        source="v4.0.5 rabbit_channel:deliver_to_queues, case_clause {error, {shutdown, delete}} or noproc of"
        " rabbit_fifo_client, which registers with the queue before it sends",
        dialects=("rabbitmq-3", "rabbitmq-4.0"),
        by_chance=True,
        spoils=CRASH,
        kinds=("basic.publish",),
        arms=_publishes_beside_deletion,
        is_brief=True,
    ),
    Window(
        name="use-crossing-deletion-breaks",
        requirement="CONSUME-006",
        statement="A basic.consume, basic.get or queue.purge of a quorum queue that crosses the deletion of the queue"
        " closes the connection with 541.",
        source="v4.0.5 rabbit_quorum_queue:consume, badmatch of {error, noproc} or {error, {shutdown, delete}};"
        " rabbit_channel:consumer_monitor, maps:get of a tag that the end of the queue has removed before consume-ok"
        " came; v4.3.5 rabbit_quorum_queue:consume_error, internal_error; rabbit_channel:handle_method basic.get,"
        " internal_error of {error, noproc}, and queue.purge, which takes no answer but ok",
        by_chance=True,
        spoils=CRASH,
        kinds=("basic.consume", "basic.get", "queue.purge", "queue.delete"),
        arms=_uses_beside_deletion,
        is_brief=True,
    ),
    Window(
        name="closing-overtakes-publishes",
        requirement="PUBLISH-002",
        statement="What a channel publishes to a quorum queue right before it is closed is lost, if it has published"
        " there before.",
        source="v3.10.9 rabbit_fifo_client:enqueue sends with low priority, so that the end of the channel comes first;"
        " rabbit_fifo:handle_down forgets the numbers that it expects, and maybe_enqueue then waits for number 1",
        dialects=("rabbitmq-3",),
        by_chance=True,
        kinds=("channel.close", "connection.close", "socket.abort", ChannelCrash, ConnectionTeardown),
        arms=_ends_while_publishing,
    ),
    Window(
        name="exclusive-queue-outlives-connection",
        requirement="QUEUE-020",
        statement="An exclusive queue is still there, and refused with 405 to others, when the close of its connection"
        " has been answered.",
        source="v4.3.5 rabbit_amqqueue_process:terminate_delete, worker_pool:submit_async; rabbit_queue_collector:"
        "delete_all waits for the queue's process only",
        dialects=("rabbitmq-4.3",),
        by_chance=True,
        spoils=frozenset({Part.CHANNEL_CLOSE}),
        kinds=OFTEN_WRONG,
        arms=_names_what_was_exclusive,
        explains=lambda broker, it: it.event is not None and it.event.arguments.get("reply_code") == 405,
        is_brief=True,
    ),
    _BEHIND_CLOSE,
    # the client has answered meanwhile
    replace(
        _BEHIND_CLOSE,
        kinds=("channel.close-ok",),
        arms=_answers_close,
        explains=lambda broker, it: it.shape is Shape.UNEXPECTED,
        is_brief=True,
    ),
    Window(
        name="get-overtakes-deliveries",
        requirement="PUBLISH-015",
        strength=Strength.ARGUABLE,
        statement="The answer to basic.get comes ahead of older messages that the queue had sent to consumers on the"
        " same channel before.",
        source="rabbit_channel:handle_method basic.get calls the queue, and waits for the answer alone: what the queue"
        " has sent it stays in its mailbox meanwhile",
        spoils=frozenset({Part.DELIVERY}),
        explains=_overtakes_deliveries,
    ),
    Window(
        name="vhost-closes-before-stream-ends",
        requirement="CANCEL-015",
        statement="A virtual host that is deleted may close its connections before consumers of its streams are told.",
        source="rabbit_stream_coordinator:delete_stream returns before the stream's last member is deleted, which is"
        " what consumers are told of (inform_listeners_eol); rabbit_vhost:delete does not wait for that",
        by_chance=True,
        spoils=frozenset({Part.CANCEL}),
        kinds=("operator.delete-vhost",),
        arms=_ends_streams_of_virtual_host,
        explains=lambda broker, it: it.shape is Shape.MISSING,
    ),
    Window(
        name="stream-serves-before-consume-ok",
        requirement="CONSUME-001",
        strength=Strength.CONVENTIONAL,
        statement="When news of a stream that a channel reads crosses a basic.consume of a further consumer there, that"
        " one is handed messages before its consume-ok.",
        source="rabbit_stream_queue:consume casts consume-ok to its own channel, behind what is there already;"
        " handle_event osiris_offset serves all readers",
        by_chance=True,
        spoils=frozenset({Part.DELIVERY}),
        kinds=("basic.consume",),
        arms=_reads_stream_already,
        explains=lambda broker, it: it.requirement == "CONSUME-001" or it.queue is None,
        is_brief=True,
    ),
    Window(
        name="longer-body-unnoticed",
        requirement="CHAN-015",
        statement="A body that is longer than its content header says is not refused: the channel takes bodies for"
        " ever, and publishes nothing.",
        source="v4.2.5 rabbit_command_assembler:process; 0-9-1 section 4.2.6 wants a connection exception",
        dialects=("rabbitmq-3", "rabbitmq-4.0"),
        versions=(versions("3.10.0", "4.2.5"),),
        spoils=CRASH,
        kinds=("frame.body",),
        arms=_sends_too_long_body,
        shows_at_once=True,
    ),
)
