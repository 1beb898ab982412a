"""Chapter queue: declare, purge, delete (0-9-1 section 1.7; area QUEUE)."""

from __future__ import annotations

from model.alphabet import Frame, Table
from model.broker import Broker
from model.errors import ProtocolError
from model.patterns import Generated, between
from model.rules.answer import answer
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
        _declare_passive(broker, channel, name, frame)
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
        if wanted.arguments.get("x-queue-type") != queue.arguments.get("x-queue-type"):
            requirement = "QUEUE-012"
        elif wanted.arguments != queue.arguments:
            requirement = "QUEUE-011"  # only arguments that do not count may differ by now
    else:
        if name.startswith("amq."):
            raise ProtocolError("QUEUE-005", 403, f"queue name '{name}' contains reserved prefix 'amq.*'")
        check_arguments(broker, channel, wanted)
        queue = broker.queues[wanted.name] = wanted
        requirement = "QUEUE-006" if generated else "QUEUE-001"
        if "x-consumer-timeout" in wanted.arguments and wanted.type is QueueType.CLASSIC:
            requirement = "QUEUE-016"
    if name != arguments.get("queue", ""):
        requirement = "QUEUE-028"
    channel.last_queue = queue.name
    _answer_declare(broker, channel, frame, queue, requirement, generated)


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


def _declare_passive(broker: Broker, channel: Channel, name: str, frame: Frame) -> None:
    """QUEUE-003, QUEUE-004. An empty name is not expanded here (CHAN-017)."""
    queue = broker.queues.get(name)
    if queue is None:
        requirement = "QUEUE-003" if name else "CHAN-017"
        raise ProtocolError(requirement, 404, f"no {queue_text(broker, channel, name)}")
    check_owner(broker, channel, queue)
    channel.last_queue = queue.name
    differs = False
    if not frame.arguments.keys().isdisjoint(("durable", "exclusive", "auto_delete", "arguments")):
        asked = _wanted(channel, name, frame.arguments)
        differs = (asked.durable, asked.owner, asked.auto_delete, asked.arguments) != (
            queue.durable, queue.owner, queue.auto_delete, queue.arguments
        )  # fmt: skip
    _answer_declare(broker, channel, frame, queue, "QUEUE-004" if differs else "QUEUE-001", False)


def _answer_declare(
    broker: Broker, channel: Channel, frame: Frame, queue: Queue, requirement: str, generated: bool
) -> None:
    low, high = broker.ready_range(queue)
    requirements: tuple[str, ...] = (requirement,)
    if low < high and queue.unproven and queue.type is not QueueType.STREAM:
        requirements += ("QUEUE-002",)
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
    if requirement == "QUEUE-028":
        blame["queue"] = requirement
    if queue.type is QueueType.QUORUM:
        blame["consumer_count"] = "QUEUE-026"
        if queue.consumers or broker.holders(queue):
            requirements += ("QUEUE-026",)
        counted = min(len(queue.consumers), 1) if queue.single_active_consumer else len(queue.consumers)
        counted += broker.holders(queue)
        departures["consumer_count"] = (
            between(counted, counted + queue.leaving + queue.settling),
            HOLDERS_COUNTED,
        )
    answer(
        broker, channel, frame, "queue.declare-ok", arguments, *requirements,
        blame=blame, effect=effect, departures=departures,
    )  # fmt: skip


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
    queue.unproven.clear()
    queue.returned = 0
    queue.reason = "QUEUE-024"
    broker.refresh(queue)
    broker.touch(channel, queue, keeps_state=False)
    answer(broker, channel, frame, "queue.purge-ok", {"message_count": between(low, high)}, "QUEUE-024")


def delete(broker: Broker, channel: Channel, frame: Frame) -> None:
    """QUEUE-022, QUEUE-023, QUEUE-024; rabbit_amqqueue:delete_with."""
    name = without_line_breaks(shortcut(broker, channel, frame.arguments.get("queue", "")))
    queue = broker.queues.get(name)
    count: object = 0
    if queue is not None:
        check_owner(broker, channel, queue)
        _check_conditions(broker, channel, queue, frame)
        count = 0 if queue.type is QueueType.STREAM else between(*broker.ready_range(queue))
    requirement = "QUEUE-022" if queue is None else "QUEUE-024"
    if queue is not None and (frame.arguments.get("if_unused") or frame.arguments.get("if_empty")):
        requirement = "QUEUE-023"
    tags = () if queue is None else tuple(sorted(c.tag for c in queue.consumers if c.channel == channel.key))
    effect = ("tell_of_deletion", (channel.key, tags)) if tags else None
    blame = {"message_count": "QUEUE-024"}
    answer(
        broker, channel, frame, "queue.delete-ok", {"message_count": count}, requirement, blame=blame, effect=effect
    )
    if queue is not None:
        # CANCEL-011: consumers on this channel are told after delete-ok, the others at any time from now on
        later = channel.key if effect is not None and not frame.arguments.get("nowait") else None
        broker.delete_queue(queue, "QUEUE-024", told_later=later)


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
