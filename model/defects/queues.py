"""Queues that by their arguments do something else than promised: limits, priorities, exclusive use, dead letters."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from amqpspec.model.broker.administration import definition_of
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.dead_letter_headers import CYCLES, EXCHANGE, HISTORY, REJECTED
from amqpspec.model.broker.length_limits import BYTES, LENGTH, has_length_limit
from amqpspec.model.broker.queues import Queue
from amqpspec.model.defects.situations import Arms, at_queue
from amqpspec.model.judging.windows import EVERYTHING, SERVICE, Difference, Part, Scope, Window
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.versions import versions
from amqpspec.model.protocol.methods import EMPTY_CONTENT, Content, Method, Table

SET_POLICY = "operator.set-policy"


def _declares(kind: str, wanted: Callable[[Table], Any], *by_policy: str) -> Arms:
    """Such a queue is declared, and not only asked for, or a policy says one of those arguments, of whatever queue."""

    def arms(broker: Broker, method: Method) -> Scope | None:
        if method.name == SET_POLICY:
            return EVERYTHING if set(by_policy) & {f"x-{key}" for key in definition_of(method.arguments)} else None
        table: Table = method.arguments.get("arguments") or {}
        is_declared = broker.open_channel(method) is not None and not method.arguments.get("passive")
        if not is_declared or table.get("x-queue-type", "classic") != kind or not wanted(table):
            return None
        name = method.arguments.get("queue", "")
        return EVERYTHING if EXCHANGE in table or not name else Scope(frozenset({name}))

    return arms


@at_queue(QueueType.QUORUM, QueueType.STREAM)
def _consumes_beside(broker: Broker, channel: Channel, queue: Queue, method: Method) -> bool:
    return any(method.arguments.get("exclusive") or each.exclusive for each in queue.consumers)


def _gets_dead_letters(broker: Broker, difference: Difference) -> bool:
    """Is it about a stream that has got some, or about a queue that may send some to a stream?"""
    queue = broker.queues.get(difference.queue or "")
    if queue is None:
        return False
    if queue.type is QueueType.STREAM:
        return any(message.deaths for message in queue.log)
    return EXCHANGE in queue.in_force and any(each.type is QueueType.STREAM for each in broker.queues.values())


def _goes_round(broker: Broker, difference: Difference) -> bool:
    """Is it about a queue whose message may have been dropped as one that goes round by itself? Or does one go round
    that should have been dropped?
    """
    queue = broker.queues.get(difference.queue or "")
    present = (message.content for message in queue.messages) if queue is not None else ()
    dropped = (it.message.content for each in broker.queues.values() for it in each.gone if it.requirement == CYCLES)
    came = difference.event.content if isinstance(difference.event, Method) else None
    contents = (*present, *dropped, came or EMPTY_CONTENT)
    return any(_is_mistakable(difference.queue, content) for content in contents)


def _is_mistakable(queue: str | None, content: Content) -> bool:
    """Has it come back to a queue, by a rejection and by other deaths, so many that their order was turned around?"""
    told = (content.properties.get("headers") or {}).get(HISTORY)
    deaths = [entry for entry in told if isinstance(entry, dict)] if isinstance(told, list | tuple) else []
    names = [queue, *(death.get("queue") for death in deaths)]
    has_come_back = len({*names}) < len(names) or any(death.get("count") != 1 for death in deaths)
    reasons = {death.get("reason") for death in deaths}
    return has_come_back and len(deaths) > 2 and REJECTED in reasons and len(reasons) > 1


def _routes_by_time_stamp(broker: Broker, method: Method) -> Scope | None:
    """By headers: one that is matched wrongly may go anywhere, to an alternate exchange as well."""
    headers = (method.content or EMPTY_CONTENT).properties.get("headers") or {}
    exchange = broker.exchanges.get(method.arguments.get("exchange", ""))
    if exchange is None or exchange.type in ("direct", "fanout", "topic") or broker.open_channel(method) is None:
        return None
    return EVERYTHING if any(isinstance(value, datetime) for value in headers.values()) else None


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
        kinds=("queue.declare", SET_POLICY),
        arms=_declares("quorum", lambda table: BYTES in table, BYTES),
    ),
    Window(
        name="drops-latest-letter-first",
        requirement="DLX-009",
        statement="Of what a quorum queue drops at one time for its limit, the latest is dead-lettered first.",
        source="v4.0.5 rabbit_fifo:drop_head, DlxEffects ++ Effects; release notes of 4.2.1 and 4.3.0",
        dialects=("rabbitmq-3", "rabbitmq-4.0"),
        spoils=frozenset({Part.DELIVERY, Part.COUNT}),
        kinds=("queue.declare", SET_POLICY),
        arms=_declares(
            "quorum", lambda table: {BYTES, LENGTH} & table.keys() and EXCHANGE in table, BYTES, LENGTH, EXCHANGE
        ),
        explains=lambda broker, it: it.requirement.startswith(("DLX", "PUBLISH-015"))
        or (it.queue in broker.queues and has_length_limit(broker, broker.queues[it.queue])),
        versions=(versions("3.10.0", "4.2.0"),),
    ),
    Window(
        name="expired-priority-message-delivered",
        requirement="TTL-001",
        statement="A message that goes in front of others by its priority does not expire in a classic queue: it stays,"
        " and is handed over however late.",
        source="rabbit_amqqueue_process:deliver_or_enqueue looks in front only when it is alone, fetch takes before",
        kinds=("queue.declare",),
        arms=_declares("classic", lambda table: "x-max-priority" in table),
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
        arms=_consumes_beside,
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
        explains=_gets_dead_letters,
    ),
    Window(
        name="turned-history-mistakes-cycles",
        requirement="DLX-008",
        statement="As each further death turns the history of a dead letter around, a message that a client rejects in"
        " each round may be dropped as one that goes round by itself, and the other way about.",
        source="v3.12.14 rabbit_dead_letter:is_cycle reads what group_by_queue_and_reason has turned; mended in 3.13.0",
        dialects=("rabbitmq-3",),
        versions=(versions("3.10.0", "3.12.14"),),
        explains=_goes_round,
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
