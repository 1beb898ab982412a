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
from model.rules.closing import end_connection
from model.rules.publish import route
from model.state import ChannelState, ConnectionState, Expected, QueueType


@dataclass(frozen=True, slots=True)
class Departure:
    """One known wrong behaviour: the promise it breaks, who does it, and where that was read or seen."""

    name: str
    requirement: str
    statement: str
    source: str
    #: names of the dialects whose brokers do it
    dialects: tuple[str, ...]
    #: does this input, in this state, come under it?
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
    connection = broker.connections[frame.connection]
    end_connection(broker, connection)
    connection.state = ConnectionState.CLOSING
    connection.may_end = True
    arguments = {"reply_code": 541, "reply_text": "INTERNAL_ERROR", "class_id": 0, "method_id": 0}
    connection.owed.append(Expected("connection.close", arguments, ("CHAN-007",), counted=False))
    broker.debtors[(connection.name, 0)] = None


DEPARTURES: tuple[Departure, ...] = (
    Departure(
        name="exclusive-consumer-ignored",
        requirement="CONSUME-008",
        statement="Quorum queues and streams take the exclusive flag of basic.consume and do not act on it.",
        source="rabbit_quorum_queue:consume, rabbit_stream_queue:consume (exclusive_consume only enters the metrics)",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        applies=_consumes_exclusively_beside,
        process=_consume_all_the_same,
    ),
    Departure(
        name="stale-queue-type",
        requirement="QUEUE-029",
        statement="A channel that dealt with a queue, and meets another type under the same name after the queue was"
        " deleted and declared anew, goes on with its state of the old type; the connection closes with 541.",
        source="rabbit_queue_type:get_ctx_with finds the old context by name; rabbit_classic_queue:qpids, case_clause",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        applies=_uses_name_of_other_type,
        process=_close_with_internal_error,
    ),
)


def departures_of(dialect: Dialect) -> tuple[Departure, ...]:
    return tuple(departure for departure in DEPARTURES if dialect.name in departure.dialects)
