"""Departures: known wrong behaviour of brokers, each a way to go on after a failure.

A departure never makes a run green. Where it applies, the judge follows it beside the lawful explanation. When the
lawful one dies and the departure explains what was seen, the failure is recorded with the departure's name, and
judging goes on from the state that the departure leads to: so a known defect does not hide unknown ones behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from model.alphabet import Frame
from model.broker import Broker
from model.dialects import Dialect, ExclusiveQuorumConsumer
from model.inputs import process
from model.rules.closing import break_connection
from model.rules.publish import route
from model.state import (
    ChannelState,
    ConnectionState,
    Consumer,
    Expected,
    PendingGet,
    QueueType,
    Unacknowledged,
)


@dataclass(frozen=True, slots=True)
class Departure:
    """One known wrong behaviour: the promise it breaks, who does it, and where that was read or seen."""

    name: str
    requirement: str
    statement: str
    source: str
    #: names of the dialects whose brokers do it
    dialects: tuple[str, ...]
    #: the methods that can come under it
    methods: tuple[str, ...]
    #: does this input, of one of these methods, in this state, come under it?
    applies: Callable[[Broker, Frame], bool]
    #: processes the input as the broker does
    process: Callable[[Broker, Frame], None]


def _consumes_exclusively_beside(broker: Broker, frame: Frame) -> bool:
    if frame.method != "basic.consume":
        return False
    channel = broker.channels.get((frame.connection, frame.channel))
    if channel is None or channel.state is not ChannelState.OPEN:
        return False
    queue = broker.queues.get(frame.arguments.get("queue", "") or channel.last_queue or "")
    if queue is None or queue.type is QueueType.CLASSIC or not queue.consumers:
        return False
    return bool(frame.arguments.get("exclusive")) or any(consumer.exclusive for consumer in queue.consumers)


def _consume_all_the_same(broker: Broker, frame: Frame) -> None:
    dialect = broker.dialect
    broker.dialect = replace(dialect, exclusive_quorum_consumer=ExclusiveQuorumConsumer.IGNORED)
    process(broker, frame)
    broker.dialect = dialect
    broker.fired("CONSUME-008")


def _uses_name_of_other_type(broker: Broker, frame: Frame) -> bool:
    """Does the input deal with a queue whose name the channel knows for one of another type?"""
    channel = broker.channels.get((frame.connection, frame.channel))
    if channel is None or not channel.known_types or channel.state is not ChannelState.OPEN:
        return False
    if frame.method == "basic.publish":
        exchange = broker.exchanges.get(frame.arguments.get("exchange", ""))
        if exchange is None:
            return False
        queues = [queue for queue, _ in route(broker, exchange, frame.arguments.get("routing_key", ""))]
    elif frame.method in ("basic.get", "basic.consume"):
        named = broker.queues.get(frame.arguments.get("queue", "") or channel.last_queue or "")
        queues = [named] if named is not None else []
    else:
        return False
    return any(channel.known_types.get(queue.name, queue.type) is not queue.type for queue in queues)


def _close_with_internal_error(broker: Broker, frame: Frame) -> None:
    broker.stamp += 1
    broker.fired("QUEUE-029")
    break_connection(broker, broker.channels[(frame.connection, frame.channel)], _internal_error())


def _internal_error() -> Expected:
    arguments = {"reply_code": 541, "reply_text": "INTERNAL_ERROR", "class_id": 0, "method_id": 0}
    return Expected("connection.close", arguments, ("CHAN-007",), counted=False)


def _own_consumer(broker: Broker, frame: Frame) -> Consumer | None:
    """The live consumer that a basic.cancel names."""
    channel = broker.channels.get((frame.connection, frame.channel))
    if frame.method != "basic.cancel" or channel is None or channel.state is not ChannelState.OPEN:
        return None
    return channel.consumers.get(frame.arguments.get("consumer_tag", ""))


def _cancels_before_consume_ok(broker: Broker, frame: Frame) -> bool:
    consumer = _own_consumer(broker, frame)
    return consumer is not None and not consumer.announced


def _without_consume_ok(broker: Broker, frame: Frame) -> None:
    channel = broker.channels[(frame.connection, frame.channel)]
    channel.owed = [owed for owed in channel.owed if not _is_consume_ok(owed, frame)]
    process(broker, frame)


def _is_consume_ok(owed: Expected | PendingGet, frame: Frame) -> bool:
    tag = frame.arguments.get("consumer_tag", "")
    if not isinstance(owed, Expected) or owed.method != "basic.consume-ok":
        return False
    return bool(owed.arguments["consumer_tag"] == tag)


def _consumes_before_consume_ok_of_tag(broker: Broker, frame: Frame) -> bool:
    channel = broker.channels.get((frame.connection, frame.channel))
    if frame.method != "basic.consume" or channel is None or channel.state is not ChannelState.OPEN:
        return False
    return any(_is_consume_ok(owed, frame) for owed in channel.owed)


def _break_after_it(broker: Broker, frame: Frame) -> None:
    """The input is processed, and at some time from then on the connection closes with 541."""
    process(broker, frame)
    connection = broker.connections[frame.connection]
    if connection.state is ConnectionState.OPEN:
        connection.owed.append(_internal_error())
        broker.debtors[(connection.name, 0)] = None


def _former_deliveries(broker: Broker, frame: Frame) -> list[Unacknowledged]:
    """Unacknowledged deliveries of a cancelled consumer whose tag and quorum queue a basic.consume names again."""
    channel = broker.channels.get((frame.connection, frame.channel))
    if frame.method != "basic.consume" or channel is None or channel.state is not ChannelState.OPEN:
        return []
    tag = frame.arguments.get("consumer_tag", "")
    queue = broker.queues.get(frame.arguments.get("queue", "") or channel.last_queue or "")
    if not tag or tag in channel.consumers or queue is None or queue.type is not QueueType.QUORUM:
        return []
    return [
        entry
        for entry in channel.unacknowledged.values()
        if entry.queue is queue and entry.consumer is not None and entry.consumer.tag == tag
    ]


def _inherit_deliveries(broker: Broker, frame: Frame) -> None:
    former = _former_deliveries(broker, frame)
    process(broker, frame)
    channel = broker.channels[(frame.connection, frame.channel)]
    consumer = channel.consumers.get(frame.arguments.get("consumer_tag", ""))
    if consumer is not None:
        for entry in former:
            entry.consumer = consumer
            consumer.outstanding += 1
        broker.refresh(consumer.queue)


DEPARTURES: tuple[Departure, ...] = (
    Departure(
        name="exclusive-consumer-ignored",
        requirement="CONSUME-008",
        statement="Quorum queues and streams take the exclusive flag of basic.consume and do not act on it.",
        source="rabbit_quorum_queue:consume, rabbit_stream_queue:consume (exclusive_consume only enters the metrics)",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=("basic.consume",),
        applies=_consumes_exclusively_beside,
        process=_consume_all_the_same,
    ),
    Departure(
        name="cancel-before-consume-ok-breaks",
        requirement="CONSUME-005",
        statement="The channel looks for the consumer when consume-ok comes back from the queue; if it was cancelled"
        " meanwhile the channel crashes, and the connection closes with 541.",
        source="v4.0.5 rabbit_channel:consumer_monitor, maps:get of a tag that basic.cancel has removed",
        dialects=("rabbitmq-3", "rabbitmq-4.0"),
        methods=("basic.cancel",),
        applies=_cancels_before_consume_ok,
        process=_break_after_it,
    ),
    Departure(
        name="consume-ok-dropped",
        requirement="CONSUME-005",
        statement="A consume-ok that comes back from the queue when its consumer was cancelled meanwhile is not sent.",
        source="rabbit_channel:handle_cast {command, basic.consume_ok}, second clause",
        dialects=("rabbitmq-4.3",),
        methods=("basic.cancel",),
        applies=_cancels_before_consume_ok,
        process=_without_consume_ok,
    ),
    Departure(
        name="reused-tag-before-consume-ok-breaks",
        requirement="CONSUME-004",
        statement="Two consume-oks of one tag reach the channel while its second consumer lives: the second one is"
        " noted twice, the channel crashes, and the connection closes with 541.",
        source="rabbit_channel:consumer_monitor, gb_sets:insert of a tag that is there already",
        dialects=("rabbitmq-4.3",),
        methods=("basic.consume",),
        applies=_consumes_before_consume_ok_of_tag,
        process=_break_after_it,
    ),
    Departure(
        name="reused-tag-inherits-deliveries",
        requirement="CONSUME-016",
        statement="A quorum queue takes a consumer with the tag of a cancelled one for that one: what is still"
        " unacknowledged of the old one counts against the limit of the new one.",
        source="rabbit_fifo:merge_consumer, consumers are known by tag and channel as long as they hold messages",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=("basic.consume",),
        applies=lambda broker, frame: bool(_former_deliveries(broker, frame)),
        process=_inherit_deliveries,
    ),
    Departure(
        name="stale-queue-type",
        requirement="QUEUE-029",
        statement="A channel that dealt with a queue, and meets another type under the same name after the queue was"
        " deleted and declared anew, goes on with its state of the old type; the connection closes with 541.",
        source="rabbit_queue_type:get_ctx_with finds the old context by name; rabbit_classic_queue:qpids, case_clause",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=("basic.publish", "basic.get", "basic.consume"),
        applies=_uses_name_of_other_type,
        process=_close_with_internal_error,
    ),
)


def departures_of(dialect: Dialect) -> dict[str, tuple[Departure, ...]]:
    """The departures of a dialect's brokers, by the methods that can come under them."""
    own = [departure for departure in DEPARTURES if dialect.name in departure.dialects]
    methods = {method for departure in own for method in departure.methods}
    return {method: tuple(d for d in own if method in d.methods) for method in methods}
