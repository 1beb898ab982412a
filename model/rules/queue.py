"""Chapter queue: declare, purge, delete (0-9-1 section 1.7; area QUEUE)."""

from __future__ import annotations

from model.alphabet import Frame, Table
from model.broker import Broker
from model.errors import ProtocolError
from model.patterns import Generated, between
from model.rules.lookup import check_owner, find_queue, locked, queue_text, shortcut, without_line_breaks
from model.rules.queue_arguments import check_arguments, check_equivalence
from model.state import Channel, Queue, QueueType

#: Known departure: rabbit_fifo:query_stat gives the size of its map of consumers, which holds whoever has unsettled
#: deliveries (cancelled consumers, basic.get) and does not hold the waiting ones of a single-active-consumer queue.
HOLDERS_COUNTED = "quorum-consumer-count"


def declare(broker: Broker, channel: Channel, frame: Frame) -> None:
    """rabbit_channel:handle_method queue.declare; the order of the checks is RabbitMQ's."""
    arguments = frame.arguments
    name = without_line_breaks(arguments.get("queue", ""))
    if arguments.get("passive"):
        _declare_passive(broker, channel, name, bool(arguments.get("nowait")))
        return
    wanted = _wanted(channel, name, arguments)
    generated = not name
    if generated:
        if wanted.type is not QueueType.CLASSIC:
            raise ProtocolError(
                "QUEUE-006",
                406,
                f"Cannot declare a server-named queue for type rabbit_{wanted.type.value}_queue",
            )
        broker.serial += 1
        wanted.name = f"amq.gen-?{broker.serial}"
    queue = broker.queues.get(name) if name else None
    if queue is not None:
        check_same_owner(broker, channel, queue, wanted)
        check_equivalence(broker, channel, queue, wanted)
        requirement = "QUEUE-009" if wanted.owner and arguments.get("durable") else "QUEUE-001"
        if set(wanted.arguments) ^ set(queue.arguments):
            # only arguments that do not count may differ by now
            requirement = "QUEUE-012" if "x-queue-type" in wanted.arguments | queue.arguments else "QUEUE-011"
    else:
        if name.startswith("amq."):
            raise ProtocolError("QUEUE-005", 403, f"queue name '{name}' contains reserved prefix 'amq.*'")
        check_arguments(broker, channel, wanted)
        queue = broker.queues[wanted.name] = wanted
        requirement = "QUEUE-006" if generated else "QUEUE-001"
    channel.last_queue = queue.name
    if not arguments.get("nowait"):
        _owe_declare_ok(broker, channel, queue, requirement, generated)


def _wanted(channel: Channel, name: str, arguments: Table) -> Queue:
    """The queue that the arguments ask for. An unknown type is refused later, with the other arguments."""
    table: Table = dict(arguments.get("arguments") or {})
    named_type = table.get("x-queue-type", "classic")
    exclusive = bool(arguments.get("exclusive"))
    return Queue(
        name,
        type=QueueType(named_type) if named_type in {t.value for t in QueueType} else QueueType.CLASSIC,
        # QUEUE-009: an exclusive queue is never durable
        durable=bool(arguments.get("durable")) and not exclusive,
        owner=channel.connection if exclusive else None,
        auto_delete=bool(arguments.get("auto_delete")),
        arguments=table,
    )


def check_same_owner(broker: Broker, channel: Channel, queue: Queue, wanted: Queue) -> None:
    """QUEUE-008: exclusive or not must match, whoever asks (rabbit_amqqueue:check_exclusive_access, strict)."""
    if queue.owner != wanted.owner:
        other_connections = queue.owner is not None and queue.owner != channel.connection
        raise locked(broker, channel, queue, "QUEUE-019" if other_connections else "QUEUE-008")


def _declare_passive(broker: Broker, channel: Channel, name: str, nowait: bool) -> None:
    """QUEUE-003, QUEUE-004. An empty name is not expanded here (CHAN-017)."""
    queue = broker.queues.get(name)
    if queue is None:
        raise ProtocolError("QUEUE-003", 404, f"no {queue_text(broker, channel, name)}")
    check_owner(broker, channel, queue)
    channel.last_queue = queue.name
    if not nowait:
        _owe_declare_ok(broker, channel, queue, "QUEUE-001", False)


def _owe_declare_ok(broker: Broker, channel: Channel, queue: Queue, requirement: str, generated: bool) -> None:
    low, high = broker.ready_range(queue)
    count = between(0, 0) if queue.type is QueueType.STREAM else between(low, high)
    arguments = {
        "queue": Generated("amq.gen-", broker.serial) if generated else queue.name,
        "message_count": count,
        "consumer_count": between(len(queue.consumers), len(queue.consumers) + queue.leaving),
    }
    effect = ("rename_queue", queue) if generated else ("counts_seen", queue)
    # a wrong number is the doing of whatever changed it last
    blame = {"message_count": queue.reason, "consumer_count": "QUEUE-001"}
    departures: dict[str, tuple[object, str]] = {}
    if queue.type is QueueType.QUORUM:
        blame["consumer_count"] = "QUEUE-026"
        counted = min(len(queue.consumers), 1) if queue.single_active_consumer else len(queue.consumers)
        counted += broker.holders(queue)
        departures["consumer_count"] = (
            between(counted, counted + queue.leaving + queue.settling),
            HOLDERS_COUNTED,
        )
    broker.owe(
        channel, "queue.declare-ok", arguments, requirement, blame=blame, effect=effect, departures=departures
    )


def purge(broker: Broker, channel: Channel, frame: Frame) -> None:
    """QUEUE-024: ready messages go, unacknowledged ones stay with their holders."""
    name = shortcut(broker, channel, frame.arguments.get("queue", ""))
    queue = find_queue(broker, channel, name, "QUEUE-025")
    if queue.type is QueueType.STREAM:
        raise ProtocolError(
            "QUEUE-025", 540, f"queue.purge not supported by stream queues {queue_text(broker, channel, name)}"
        )
    low, high = broker.ready_range(queue)
    for message in queue.messages:
        broker.drop(queue, message, "QUEUE-024")
    queue.messages.clear()
    queue.unproven = queue.returned = 0
    queue.reason = "QUEUE-024"
    broker.refresh(queue)
    broker.touch(channel, queue)
    if not frame.arguments.get("nowait"):
        broker.owe(channel, "queue.purge-ok", {"message_count": between(low, high)}, "QUEUE-024")


def delete(broker: Broker, channel: Channel, frame: Frame) -> None:
    """QUEUE-022, QUEUE-023, QUEUE-024; rabbit_amqqueue:delete_with."""
    name = without_line_breaks(shortcut(broker, channel, frame.arguments.get("queue", "")))
    queue = broker.queues.get(name)
    count: object = 0
    if queue is not None:
        check_owner(broker, channel, queue)
        _check_conditions(broker, channel, queue, frame)
        count = 0 if queue.type is QueueType.STREAM else between(*broker.ready_range(queue))
    if not frame.arguments.get("nowait"):
        requirement = "QUEUE-022" if queue is None else "QUEUE-024"
        broker.owe(channel, "queue.delete-ok", {"message_count": count}, requirement)
    if queue is not None:
        # after delete-ok, so that a consumer on this channel is told in RabbitMQ's order (CANCEL-011)
        broker.delete_queue(queue, "QUEUE-024")


def _check_conditions(broker: Broker, channel: Channel, queue: Queue, frame: Frame) -> None:
    for flag, violated, words in (
        ("if_unused", bool(queue.consumers), "in use"),
        ("if_empty", bool(queue.messages), "not empty"),
    ):
        if not frame.arguments.get(flag):
            continue
        if queue.type is not QueueType.CLASSIC:
            raise ProtocolError(
                "QUEUE-023",
                540,
                f"cannot delete {queue_text(broker, channel, queue.name)}. queue.delete operations with"
                f" {flag.replace('_', '-')} flag set are not supported by {queue.type.value} queues",
            )
        if violated:
            raise ProtocolError("QUEUE-023", 406, f"{queue_text(broker, channel, queue.name)} {words}")
