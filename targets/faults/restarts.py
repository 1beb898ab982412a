"""Faults of restarts (area DURABLE): what is there again that was not to be, and what is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from amqpspec.model.broker.owed import Expected
from amqpspec.model.broker.queues import Message, Queue
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Content, OperatorAction, TraceEvent
from amqpspec.model.rules.operator.faults import KILLED
from amqpspec.model.rules.operator.operator import force_close
from amqpspec.targets.embedded.hooks import Chapter, Proceed
from amqpspec.targets.embedded.served_broker import ServedBroker

RESTARTS = Chapter()

#: What goes wrong with a queue that is there again.
Spoils = Callable[[ServedBroker, Queue], None]


def _spoiled(name: str, requirement: str, defect: str, spoil: Spoils, *kinds: QueueType, killed: bool = False) -> None:
    """A fault that spoils queues of these types after each restart; `killed`: only after a kill."""

    @RESTARTS.on_input(name, requirement, defect, "broker.restart")
    def _(broker: ServedBroker, action: OperatorAction, proceed: Proceed) -> None:
        is_killed = broker.down_by == KILLED
        proceed(action)
        for queue in broker.queues.values() if is_killed or not killed else ():
            if queue.type in kinds:
                spoil(broker, queue)
                queue.returned = min(queue.returned, len(queue.messages))


def _lose(place: int) -> Spoils:
    def lose(broker: ServedBroker, queue: Queue) -> None:
        if queue.messages:
            del queue.messages[place]

    return lose


def _double(broker: ServedBroker, queue: Queue) -> None:
    if queue.messages:
        queue.messages.append(replace(queue.messages[0]))


def _turn_around(broker: ServedBroker, queue: Queue) -> None:
    queue.messages.reverse()


def _of_each(change: Callable[[Message], None]) -> Spoils:
    def spoil(broker: ServedBroker, queue: Queue) -> None:
        for message in queue.messages:
            change(message)

    return spoil


def _forget_flag(message: Message) -> None:
    message.redelivered = False


def _flag(message: Message) -> None:
    message.redelivered = True


def _count_anew(message: Message) -> None:
    message.delivery_count = message.acquired_count = message.failures = 0


def _lose_first_of_stream(broker: ServedBroker, queue: Queue) -> None:
    """All others move up: in a log the position of a message is its place (`model.broker.stream_log`)."""
    del queue.log[:1]
    for place, message in enumerate(queue.log):
        message.position = place
    queue.next_position = len(queue.log)
    queue.chunk_starts = {at - 1: begins for at, begins in queue.chunk_starts.items() if at}


def _double_letters(broker: ServedBroker, queue: Queue) -> None:
    queue.messages.extend([replace(message) for message in queue.messages if message.deaths])


_BOTH = (QueueType.CLASSIC, QueueType.QUORUM)

_spoiled("stop-forgets-message", "DURABLE-001", "A restart loses the oldest message of a classic queue.",
         _lose(0), QueueType.CLASSIC)  # fmt: skip
_spoiled("stop-forgets-quorum-message", "DURABLE-002", "A restart loses the oldest of a quorum queue.",
         _lose(0), QueueType.QUORUM)  # fmt: skip
_spoiled("kill-forgets-quorum-message", "DURABLE-002", "A kill loses what came last to a quorum queue.",
         _lose(-1), QueueType.QUORUM, killed=True)  # fmt: skip
_spoiled("confirms-before-disk", "DURABLE-004", "What is confirmed last is on no disk yet: a kill loses it.",
         _lose(-1), QueueType.CLASSIC, killed=True)  # fmt: skip
_spoiled("restart-forgets-redelivered", "DURABLE-003", "What was held comes with redelivered=false after a restart.",
         _of_each(_forget_flag), *_BOTH)  # fmt: skip
_spoiled("restart-counts-anew", "DURABLE-010", "The counts of a quorum queue begin anew with a restart.",
         _of_each(_count_anew), QueueType.QUORUM)  # fmt: skip
_spoiled("restart-doubles-message", "DURABLE-012", "After a restart the first message of a queue is there twice.",
         _double, *_BOTH)  # fmt: skip
_spoiled("restart-turns-around", "DURABLE-009", "After a restart the latest message of a queue comes first.",
         _turn_around, *_BOTH)  # fmt: skip
_spoiled("restart-flags-all", "DURABLE-013", "After a stop all messages of a queue are said to be redelivered.",
         _of_each(_flag), *_BOTH)  # fmt: skip
_spoiled("restart-shifts-stream", "DURABLE-008", "A restart loses the first message of a stream.",
         _lose_first_of_stream, QueueType.STREAM)  # fmt: skip
_spoiled("restart-doubles-letters", "DURABLE-016", "After a restart each dead letter is there twice.", _double_letters,
         *_BOTH)  # fmt: skip


@RESTARTS.on_input("restart-keeps-transient", "DURABLE-001", "Transient messages survive a restart.", "broker.restart")
def _(broker: ServedBroker, action: OperatorAction, proceed: Proceed) -> None:
    before = {name: list(queue.messages) for name, queue in broker.queues.items()}
    proceed(action)
    for name, queue in broker.queues.items():
        queue.messages.extend([each for each in before[name] if each not in queue.messages])


@RESTARTS.on_input(
    "restart-keeps-exclusive-queue", "DURABLE-006", "A durable exclusive queue survives a restart.", "broker.restart"
)
def _(broker: ServedBroker, action: OperatorAction, proceed: Proceed) -> None:
    for queue in broker.queues.values():
        if queue.owner is not None:
            queue.owner, queue.durable = None, True
    proceed(action)


@RESTARTS.on_input(
    "restart-keeps-transient-queue", "DURABLE-001", "A transient queue survives a restart.", "broker.restart"
)
def _(broker: ServedBroker, action: OperatorAction, proceed: Proceed) -> None:
    transient = [queue for queue in broker.queues.values() if not queue.durable]
    for queue in transient:
        queue.durable = True
    proceed(action)
    for queue in transient:
        queue.durable = False


@RESTARTS.on_input(
    "restart-deletes-unused-queue", "DURABLE-015", "An auto-delete queue that never had a consumer is gone after a"
    " restart.", "broker.restart"
)  # fmt: skip
def _(broker: ServedBroker, action: OperatorAction, proceed: Proceed) -> None:
    proceed(action)
    for queue in [each for each in broker.queues.values() if each.auto_delete]:
        broker.delete_queue(queue, "DURABLE-015")


@RESTARTS.on_input(
    "restart-expires-queues", "DURABLE-018", "A queue with x-expires is gone after a restart.", "broker.restart"
)
def _(broker: ServedBroker, action: OperatorAction, proceed: Proceed) -> None:
    proceed(action)
    for queue in [each for each in broker.queues.values() if "x-expires" in each.arguments]:
        broker.delete_queue(queue, "DURABLE-018")


@RESTARTS.on_input(
    "restart-keeps-consumer", "DURABLE-006", "After a restart a queue counts the consumer that it had.",
    "broker.restart", "queue.declare",
)  # fmt: skip
def _(broker: ServedBroker, event: TraceEvent, proceed: Proceed) -> None:
    if event.name == "broker.restart":
        broker.memory.update({name: True for name, queue in broker.queues.items() if queue.consumers})
        proceed(event)
        return
    proceed(event)
    owed = broker.channel(event.connection, event.channel).owed
    if event.arguments.get("queue") in broker.memory and owed and isinstance(owed[-1], Expected):
        owed[-1] = replace(owed[-1], arguments={**owed[-1].arguments, "consumer_count": 1})


@RESTARTS.on_input("restart-loses-bindings", "DURABLE-005", "A restart loses a binding.", "broker.restart")
def _(broker: ServedBroker, action: OperatorAction, proceed: Proceed) -> None:
    proceed(action)
    for name, exchange in broker.exchanges.items():
        broker.exchanges[name] = replace(exchange, bindings=exchange.bindings[1:])


@RESTARTS.on_input(
    "restart-commits", "DURABLE-007", "What was not committed is there after a restart.", "broker.restart"
)
def _(broker: ServedBroker, action: OperatorAction, proceed: Proceed) -> None:
    open_ones = [each.transaction for each in broker.channels.values() if each.transaction is not None]
    left = [(queue, publication.pattern) for each in open_ones for publication in each.publications
            for queue in publication.routes.queues]  # fmt: skip
    proceed(action)
    for queue, pattern in left:
        if not queue.deleted:
            broker.enqueue(queue, replace(pattern))


@RESTARTS.on_input(
    "restart-renews-time", "DURABLE-011", "A time to live begins anew with a restart.", "broker.restart"
)
def _(broker: ServedBroker, action: OperatorAction, proceed: Proceed) -> None:
    proceed(action)
    for queue in broker.queues.values():
        for message in queue.messages:
            if message.deadline is not None:
                message.deadline = replace(message.deadline, since=broker.now, by=broker.now)


@RESTARTS.on_input(
    "restart-forgets-given-back", "DURABLE-020", "After a restart what was given back before comes with"
    " redelivered=false.", "broker.stop", "broker.kill", "broker.restart",
)  # fmt: skip
def _(broker: ServedBroker, action: OperatorAction, proceed: Proceed) -> None:
    """What clients held comes back as the broker goes down, and is none of it."""
    if not broker.down_by:
        given_back = [each for queue in broker.queues.values() for each in queue.messages if each.redelivered]
        broker.memory["given back"] = given_back
    proceed(action)
    if action.name == "broker.restart":
        for message in broker.memory.pop("given back", ()):
            message.redelivered = False


@RESTARTS.on_input(
    "restart-publishes-half", "DURABLE-019", "After a restart a publish is there whose content was not complete.",
    "broker.restart",
)  # fmt: skip
def _(broker: ServedBroker, action: OperatorAction, proceed: Proceed) -> None:
    halves = [each.assembly for each in broker.channels.values() if each.assembly is not None and each.assembly.pieces]
    proceed(action)
    for half in halves:
        routing_key = half.method.arguments.get("routing_key", "")
        if not half.method.arguments.get("exchange") and routing_key in broker.queues:
            content = Content({"delivery_mode": 2, **(half.properties or {})}, b"".join(half.pieces))
            broker.enqueue(broker.queues[routing_key], Message(content, "", routing_key, 0))


@RESTARTS.on_input(
    "restart-forgets-permissions", "DURABLE-017", "After a restart nobody has the permissions that the operator gave.",
    "broker.restart",
)  # fmt: skip
def _(broker: ServedBroker, action: OperatorAction, proceed: Proceed) -> None:
    proceed(action)
    for name, user in broker.users.items():
        broker.users[name] = replace(user, permissions={})


@RESTARTS.on_input(
    "resume-ends-connections", "DURABLE-014", "A broker that was paused ends all connections when it goes on.",
    "broker.resume",
)  # fmt: skip
def _(broker: ServedBroker, action: OperatorAction, proceed: Proceed) -> None:
    proceed(action)
    for connection in list(broker.connections.values()):
        force_close(broker, connection, "it was paused")
