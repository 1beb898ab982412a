"""Known defects (`model.defects.transitions`) of chapter queue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.hooks import arm
from amqpspec.model.broker.queues import Consumer, Queue
from amqpspec.model.broker.state import ChannelState, Expected
from amqpspec.model.defects import classic_active_consumer
from amqpspec.model.defects.crash import crash_with
from amqpspec.model.defects.stalled_queues import is_stalled, stall
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import EMPTY_CONTENT, Frame
from amqpspec.model.rules.basic.publish import routes_of
from amqpspec.model.rules.connection.closing import break_connection
from amqpspec.model.rules.inputs import process

#: The methods that name a queue as theirs.
_NAMING = (
    "queue.declare", "queue.delete", "queue.bind", "queue.unbind", "queue.purge", "basic.consume", "basic.get",
)  # fmt: skip

#: Seconds after the close of a connection by which the queues that were exclusive to it are certainly gone.
_MOMENT = 1.0


def _uses_name_of_other_type(broker: Broker, frame: Frame) -> bool:
    """Does the input deal with a queue whose name the channel knows for one of another type?"""
    channel = broker.channels.get((frame.connection, frame.channel))
    if channel is None or not channel.known_types or channel.state is not ChannelState.OPEN:
        return False
    if frame.method == "tx.commit":
        kept = channel.transaction.publications if channel.transaction is not None else ()
        routed = [queue for publication in kept for queue in publication.routes.queues]
        queues = [*routed, *(broker.queues[queue.name] for queue in routed if queue.name in broker.queues)]
    elif frame.method == "basic.publish":
        exchange = broker.exchanges.get(frame.arguments.get("exchange", ""))
        if exchange is None or channel.transaction is not None:
            return False  # what is kept back comes to its queue at commit
        content = frame.content or EMPTY_CONTENT
        queues = list(routes_of(broker, exchange, frame.arguments.get("routing_key", ""), content).queues)
    elif frame.method in ("basic.get", "basic.consume"):
        named = broker.queues.get(frame.arguments.get("queue", "") or channel.last_queue or "")
        queues = [named] if named is not None else []
    else:
        return False
    return any(channel.known_types.get(queue.name, queue.type) is not queue.type for queue in queues)


def _crosses_deletion(broker: Broker, frame: Frame) -> bool:
    """Is the quorum queue being deleted to which the message goes by its name, the channel's first one to it?"""
    channel = broker.channels.get((frame.connection, frame.channel))
    name = frame.arguments.get("routing_key", "")
    if frame.method != "basic.publish" or frame.arguments.get("exchange") or name in broker.queues:
        return False
    if channel is None or channel.state is not ChannelState.OPEN or name in channel.registered_with:
        return False
    return broker.deleted_of_late.get(name) is QueueType.QUORUM


def _declared_table(broker: Broker, frame: Frame) -> dict[str, Any] | None:
    """The argument table of a queue.declare that is not passive, on an open channel."""
    channel = broker.channels.get((frame.connection, frame.channel))
    if channel is None or channel.state is not ChannelState.OPEN or frame.arguments.get("passive"):
        return None
    return frame.arguments.get("arguments") or {}


def _unknown_type_for_server_name(broker: Broker, frame: Frame) -> bool:
    table = _declared_table(broker, frame)
    if not table or frame.arguments.get("queue") or "x-queue-type" not in table:
        return False
    named_type = table["x-queue-type"]
    if isinstance(named_type, str) and broker.dialect.refuses_unknown_type_for_server_name:
        return False
    return named_type not in [queue_type.value for queue_type in QueueType]


def _age_without_number(broker: Broker, frame: Frame) -> bool:
    age = (_declared_table(broker, frame) or {}).get("x-max-age")
    return isinstance(age, str) and not age[:1].isdecimal() and frame.arguments.get("queue") not in broker.queues


def _crash_over_type(broker: Broker, frame: Frame) -> None:
    """In 4.3 a consumer reaches the classic queue, which hands it messages that nobody sees; without acknowledgements
    they are lost.
    """
    channel = broker.channels[(frame.connection, frame.channel)]
    queue = broker.queues.get(frame.arguments.get("queue", "") or channel.last_queue or "")
    crash_with("QUEUE-029")(broker, frame)
    if frame.method != "basic.consume" or not broker.dialect.stale_type_consumer_is_served:
        return
    if queue is None or queue.type is not QueueType.CLASSIC or (queue.single_active_consumer and queue.consumers):
        return
    if frame.arguments.get("no_ack"):
        broker.remove_ready(queue, "QUEUE-029")
    else:
        for message in list(queue.messages)[: channel.prefetch or None]:
            message.redelivered = True


def _haunted(broker: Broker) -> Iterator[Queue]:
    """Queues that may have got the consumers of the deleted ones of their names."""
    for channel in broker.channels.values():
        for consumer in channel.bereft.values():
            queue = broker.queues.get(consumer.queue.name)
            if queue is None or queue.type is QueueType.STREAM or is_stalled(broker, queue):
                continue
            if queue.owner in (None, channel.connection):
                yield queue


def _haunt(broker: Broker, frame: Frame) -> None:
    """Who is served from now on, and with what, nobody can tell."""
    for queue in list(_haunted(broker)):
        queue.leaving += 1
        queue.is_haunted = queue.type is QueueType.QUORUM
        stall(broker, [queue])
        arm(broker, classic_active_consumer.NAME)
    process(broker, frame)


def _found_again(broker: Broker) -> Iterator[tuple[Consumer, Queue]]:
    """Consumers of deleted queues that may be those of the classic queue which has the name now."""
    for queue in _haunted(broker):
        if queue.type is QueueType.CLASSIC:
            for channel in broker.channels.values():
                yield from ((each, queue) for each in channel.bereft.values() if each.queue.name == queue.name)


def _serve_again(broker: Broker, frame: Frame) -> None:
    for former, queue in list(_found_again(broker)):
        channel = broker.channels[former.channel]
        if channel.bereft.pop(former.tag, None) is None:
            continue  # several of one queue are found several times
        consumer = Consumer(
            former.tag, former.channel, queue, former.no_ack, former.prefetch, former.exclusive, former.arguments,
            created=broker.stamp, announced=True, stamp=broker.stamp, prefetch_from=former.prefetch_from,
        )  # fmt: skip
        channel.consumers[former.tag] = consumer
        queue.consumers.append(consumer)
        broker.elect(queue, "SAC-001")
        broker.refresh(queue)
    process(broker, frame)


def _uses_tag_of_gone_consumer(broker: Broker, frame: Frame) -> bool:
    """Is it the tag of a consumer that ended with its queue, of which the client was not told?"""
    channel = broker.channels.get((frame.connection, frame.channel))
    if channel is None or channel.state is not ChannelState.OPEN:
        return False
    return frame.arguments.get("consumer_tag", "") in channel.bereft


def _refuse_tag(broker: Broker, frame: Frame) -> None:
    broker.stamp += 1
    broker.fired("CANCEL-010")
    text = f"NOT_ALLOWED - attempt to reuse consumer tag '{frame.arguments['consumer_tag']}'"
    arguments = {"reply_code": 530, "reply_text": text, "class_id": 60, "method_id": 20}
    close = Expected("connection.close", arguments, ("CHAN-007",), counted=False)
    break_connection(broker, broker.channels[(frame.connection, frame.channel)], close)


def _name_left_behind(broker: Broker, frame: Frame) -> str:
    """The name of a queue that was exclusive to a connection that was closed a moment ago; "": the input names none."""
    channel = broker.channels.get((frame.connection, frame.channel))
    if channel is None or channel.state is not ChannelState.OPEN:
        return ""
    name = frame.arguments.get("queue", "") or channel.last_queue or ""
    moment = broker.left_behind.get(name)
    return name if moment is not None and name not in broker.queues and frame.time - moment < _MOMENT else ""


def _find_it_locked(broker: Broker, frame: Frame) -> None:
    """It goes right afterwards."""
    name = _name_left_behind(broker, frame)
    left = broker.queues[name] = Queue(name, owner=" of a connection that is closed")
    process(broker, frame)
    if broker.queues.get(name) is left:
        del broker.queues[name]
    broker.fired("QUEUE-020")


QUEUE_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="exclusive-queue-outlives-connection",
        requirement="QUEUE-020",
        statement="An exclusive queue is still there, and refused with 405 to others, when the close of its connection"
        " has been answered.",
        source="v4.3.5 rabbit_amqqueue_process:terminate_delete, worker_pool:submit_async; rabbit_queue_collector:"
        "delete_all waits for the queue's process only",
        dialects=("rabbitmq-4.3",),
        methods=_NAMING,
        applies=lambda broker, frame: bool(_name_left_behind(broker, frame)),
        process=_find_it_locked,
    ),
    DefectTransition(
        name="next-queue-keeps-tag",
        requirement="CANCEL-010",
        statement="The tag of a consumer that ended with its queue, of which the client is not told, is refused as one"
        " in use if a queue of that name was declared again right away.",
        source="v3.10.9 rabbit_channel:handle_consuming_queue_down_or_eol, basic_consume of all that are to recover",
        dialects=("rabbitmq-3",),
        methods=("basic.consume",),
        applies=_uses_tag_of_gone_consumer,
        process=_refuse_tag,
    ),
    DefectTransition(
        name="stale-queue-type",
        requirement="QUEUE-029",
        statement="A channel that dealt with a queue, and meets another type under the same name after the queue was"
        " deleted and declared anew, goes on with its state of the old type; the connection closes with 541.",
        source="rabbit_queue_type:get_ctx_with finds the old context by name; rabbit_classic_queue:qpids, case_clause",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=("basic.publish", "basic.get", "basic.consume", "tx.commit"),
        applies=_uses_name_of_other_type,
        process=_crash_over_type,
    ),
    DefectTransition(
        name="next-queue-gets-consumers",
        requirement="CANCEL-010",
        statement="A channel that hears of the end of a quorum queue when a queue of that name exists again makes its"
        " consumers consumers of that one, which hands them messages that nobody sees.",
        source="v3.10.9 rabbit_channel:handle_consuming_queue_down_or_eol, basic_consume of all that are to recover;"
        " handle_cast queue_event, eol: drops the state of the new queue with that of the old",
        dialects=("rabbitmq-3",),
        methods=("basic.publish", "basic.get", "basic.consume", "queue.declare", "queue.purge"),
        applies=lambda broker, frame: any(True for _ in _haunted(broker)),
        process=_haunt,
    ),
    DefectTransition(
        name="next-queue-serves-consumers",
        requirement="CANCEL-010",
        statement="A channel that hears of the end of a quorum queue or a stream when there is a classic queue of that"
        " name makes its consumers consumers of that one.",
        source="v3.10.9 rabbit_channel:handle_consuming_queue_down_or_eol, basic_consume of all that are to recover",
        dialects=("rabbitmq-3",),
        methods=("basic.publish", "basic.get", "basic.consume", "queue.declare", "queue.purge"),
        applies=lambda broker, frame: any(True for _ in _found_again(broker)),
        process=_serve_again,
    ),
    DefectTransition(
        name="publish-crossing-deletion-breaks",
        requirement="PUBLISH-002",
        statement="The first message that a channel publishes to a quorum queue, and that crosses the queue's deletion,"
        " crashes the channel; the connection closes with 541.",
        source="v4.0.5 rabbit_channel:deliver_to_queues, case_clause {error, {shutdown, delete}} or noproc of"
        " rabbit_fifo_client, which registers with the queue before it sends",
        dialects=("rabbitmq-3", "rabbitmq-4.0"),
        methods=("basic.publish",),
        applies=_crosses_deletion,
        process=crash_with("PUBLISH-002"),
    ),
    DefectTransition(
        name="server-named-unknown-type-breaks",
        requirement="QUEUE-013",
        statement="queue.declare without a name and with an x-queue-type that does not exist crashes the channel, and"
        " the connection closes with 541. In 4.3 only an x-queue-type that is no text does.",
        source="rabbit_amqqueue:is_server_named_allowed asks rabbit_queue_type:discover before any check",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=("queue.declare",),
        applies=_unknown_type_for_server_name,
        process=crash_with("QUEUE-013"),
    ),
    DefectTransition(
        name="age-without-number-breaks",
        requirement="QUEUE-013",
        statement="An x-max-age that does not begin with a digit crashes the channel, and the connection closes with"
        " 541.",
        source="rabbit_amqqueue:check_max_age, list_to_integer of no digits",
        dialects=("rabbitmq-3", "rabbitmq-4.0"),
        methods=("queue.declare",),
        applies=_age_without_number,
        process=crash_with("QUEUE-013"),
    ),
)
