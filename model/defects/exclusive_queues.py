"""Exclusive queues after the end of their connection.

From 4.3 on a classic queue removes its record in another process (rabbit_amqqueue_process:terminate_delete), for which
the collector of the connection's queues does not wait.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.hooks import Guest, arm, once_awake
from amqpspec.model.broker.queues import Queue
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.inputs import process

NAME = "exclusive queues"

#: The methods that name a queue as theirs.
_NAMING = (
    "queue.declare", "queue.delete", "queue.bind", "queue.unbind", "queue.purge", "basic.consume", "basic.get",
)  # fmt: skip

#: Seconds after the close of a connection by which the queues that were exclusive to it are certainly gone.
_MOMENT = 1.0


@dataclass(slots=True)
class ExclusiveQueuesMemory:
    #: queues that went with the connection which they were exclusive to, by name, and when (of `TraceEvent.time`)
    left_behind: dict[str, float] = field(default_factory=dict)


class ExclusiveQueues(Guest):
    """Knows what connections have left behind. Armed when one that is closed had such a queue."""

    name = NAME

    def new_memory(self) -> ExclusiveQueuesMemory:
        return ExclusiveQueuesMemory()

    def queue_deleted(self, broker: Broker, queue: Queue) -> None:
        if queue.owner is not None and broker.bookkeeping.ended_queues.get(queue.name) == "QUEUE-020":
            broker.remembered(NAME).left_behind[queue.name] = broker.now
            arm(broker, NAME)

    @once_awake
    def came_to_rest(self, broker: Broker) -> None:
        memory: ExclusiveQueuesMemory = broker.remembered(NAME)
        if memory.left_behind:
            late = broker.latest - _MOMENT
            memory.left_behind = {name: when for name, when in memory.left_behind.items() if when > late}

    def fingerprint(self, broker: Broker) -> object:
        return ()


def _memory(broker: Broker) -> ExclusiveQueuesMemory:
    memory: ExclusiveQueuesMemory = broker.remembered(NAME)
    return memory


def _name_left_behind(broker: Broker, method: Method) -> str:
    """The name of a queue that was exclusive to a connection that was closed a moment ago; "": the input names none."""
    channel = broker.open_channel(method)
    if channel is None:
        return ""
    name = method.arguments.get("queue", "") or channel.last_queue or ""
    moment = _memory(broker).left_behind.get(name)
    return name if moment is not None and name not in broker.queues and method.time - moment < _MOMENT else ""


def _find_it_locked(broker: Broker, method: Method) -> None:
    """It goes right afterwards."""
    name = _name_left_behind(broker, method)
    left = broker.queues[name] = Queue(name, owner=" of a connection that is closed")
    process(broker, method)
    if broker.queues.get(name) is left:
        del broker.queues[name]
    broker.fired("QUEUE-020")


EXCLUSIVE_QUEUE_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="exclusive-queue-outlives-connection",
        requirement="QUEUE-020",
        strength=Strength.PROMISED,
        statement="An exclusive queue is still there, and refused with 405 to others, when the close of its connection"
        " has been answered.",
        source="v4.3.5 rabbit_amqqueue_process:terminate_delete, worker_pool:submit_async; rabbit_queue_collector:"
        "delete_all waits for the queue's process only",
        dialects=("rabbitmq-4.3",),
        by_chance=True,
        methods=_NAMING,
        guest=NAME,
        applies=lambda broker, method: bool(_name_left_behind(broker, method)),
        process=_find_it_locked,
    ),
)
