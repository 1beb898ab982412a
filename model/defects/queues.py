"""Queues that by their arguments do something else than promised: limits, priorities, exclusive use, dead letters."""

from __future__ import annotations

from datetime import datetime

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import ChannelState
from amqpspec.model.broker.dead_letter_headers import EXCHANGE
from amqpspec.model.broker.overflow import BYTES, LENGTH
from amqpspec.model.defects.situations import named_queue
from amqpspec.model.judging.windows import EVERYTHING, SERVICE, Difference, Part, Scope, Window, of_queues
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.versions import versions
from amqpspec.model.protocol.methods import EMPTY_CONTENT, Method, Table
from amqpspec.model.rules.basic.publish import routes_of


def _declared(broker: Broker, method: Method) -> Table:
    """The arguments of a queue that is declared; none where it is only asked for."""
    if broker.open_channel(method) is None or method.arguments.get("passive"):
        return {}
    table: Table = method.arguments.get("arguments") or {}
    return table


def _limits_octets(broker: Broker, method: Method) -> Scope | None:
    table = _declared(broker, method)
    if table.get("x-queue-type") != "quorum" or BYTES not in table:
        return None
    name = method.arguments.get("queue", "")
    return EVERYTHING if EXCHANGE in table or not name else Scope(frozenset({name}))


def _drops_letters(broker: Broker, method: Method) -> Scope | None:
    table = _declared(broker, method)
    is_limited = BYTES in table or LENGTH in table
    return EVERYTHING if table.get("x-queue-type") == "quorum" and is_limited and EXCHANGE in table else None


def _has_priorities(broker: Broker, method: Method) -> Scope | None:
    table = _declared(broker, method)
    if "x-max-priority" not in table or table.get("x-queue-type", "classic") != "classic":
        return None
    name = method.arguments.get("queue", "")
    return EVERYTHING if EXCHANGE in table or not name else Scope(frozenset({name}))


def _consumes_exclusively_beside(broker: Broker, method: Method) -> Scope | None:
    found = named_queue(broker, method)
    if found is None or found[1].type is QueueType.CLASSIC or not found[1].consumers:
        return None
    channel, queue = found
    is_exclusive = method.arguments.get("exclusive") or any(consumer.exclusive for consumer in queue.consumers)
    if not is_exclusive:
        return None
    where = of_queues(broker, [queue], channel.key)
    return Scope(where.queues, where.channels, frozenset({method.connection}), where.is_everything)


def _gets_dead_letters(broker: Broker, difference: Difference) -> bool:
    """Is it about a stream that has got some, or about a queue that may send some to a stream?"""
    queue = broker.queues.get(difference.queue or "")
    if queue is None:
        return False
    if queue.type is QueueType.STREAM:
        return any(message.deaths for message in queue.log)
    return EXCHANGE in queue.arguments and any(each.type is QueueType.STREAM for each in broker.queues.values())


def _routes_by_time_stamp(broker: Broker, method: Method) -> Scope | None:
    content = method.content or EMPTY_CONTENT
    headers = content.properties.get("headers") or {}
    channel = broker.channels.get((method.connection, method.channel))
    exchange = broker.exchanges.get(method.arguments.get("exchange", ""))
    if exchange is None or channel is None or channel.state is not ChannelState.OPEN:
        return None
    if not any(isinstance(value, datetime) for value in headers.values()):
        return None
    # one that is matched wrongly may go to an alternate exchange as well
    queues = routes_of(broker, exchange, method.arguments.get("routing_key", ""), content).queues
    is_direct = exchange.type in ("direct", "fanout", "topic")
    return None if is_direct else Scope(of_queues(broker, queues).queues, frozenset({channel.key}), is_everything=True)


QUEUES: tuple[Window, ...] = (
    Window(
        name="quorum-bytes-count-properties",
        requirement="OVERFLOW-004",
        statement="A quorum queue with x-max-length-bytes counts the octets of the properties as well: two more for a"
        " message that has none.",
        source="v4.3.5 rabbit_fifo:maybe_enqueue, Size = MetaSize + BodySize of mc:size; guide: queue length limit,"
        " 'ignoring message properties and any overheads'",
        dialects=("rabbitmq-4.3",),
        spoils=SERVICE | {Part.CONFIRM},
        kinds=("queue.declare",),
        arms=_limits_octets,
    ),
    Window(
        name="drops-latest-letter-first",
        requirement="DLX-009",
        statement="Of what a quorum queue drops at one time for its limit, the latest is dead-lettered first.",
        source="v4.0.5 rabbit_fifo:drop_head, DlxEffects ++ Effects; release notes of 4.2.1 and 4.3.0",
        dialects=("rabbitmq-3", "rabbitmq-4.0"),
        spoils=frozenset({Part.DELIVERY}),
        kinds=("queue.declare",),
        arms=_drops_letters,
        explains=lambda broker, it: it.requirement.startswith("DLX") or it.requirement == "PUBLISH-015",
        versions=(versions("3.10.0", "4.2.0"),),
    ),
    Window(
        name="expired-priority-message-delivered",
        requirement="TTL-001",
        statement="A message that goes in front of others by its priority does not expire in a classic queue: it stays,"
        " and is handed over however late.",
        source="rabbit_amqqueue_process:deliver_or_enqueue looks at what is in front only when it is alone, and fetch"
        " takes a message before it looks",
        spoils=SERVICE,
        kinds=("queue.declare",),
        arms=_has_priorities,
        explains=lambda broker, it: it.requirement.startswith("TTL"),
    ),
    Window(
        name="exclusive-consumer-ignored",
        requirement="CONSUME-008",
        statement="Quorum queues and streams take the exclusive flag of basic.consume and do not act on it.",
        source="rabbit_quorum_queue:consume, rabbit_stream_queue:consume (exclusive_consume only enters the metrics)",
        by_chance=True,
        spoils=SERVICE | {Part.REPLY, Part.CHANNEL_CLOSE},
        kinds=("basic.consume",),
        arms=_consumes_exclusively_beside,
        shows_at_once=True,
    ),
    Window(
        name="stream-takes-no-dead-letters",
        requirement="DLX-005",
        strength=Strength.ARGUABLE,
        statement="A dead letter that is routed to a stream is lost.",
        source="v3.10.9 rabbit_stream_queue:deliver does nothing for a delivery without state, which is what"
        " rabbit_dead_letter:publish makes",
        dialects=("rabbitmq-3",),
        spoils=SERVICE,
        explains=_gets_dead_letters,
    ),
    Window(
        name="timestamp-headers-never-match",
        requirement="PUBLISH-018",
        statement="A headers exchange compares a time stamp in milliseconds, the message's, with one in seconds, the"
        " binding's, so no two are equal.",
        source="mc_amqpl:routing_value multiplies by 1000; rabbit_exchange_type_headers takes the argument as it is",
        dialects=("rabbitmq-4.0", "rabbitmq-4.3"),
        spoils=SERVICE | {Part.CONFIRM},
        kinds=("basic.publish",),
        arms=_routes_by_time_stamp,
    ),
)
