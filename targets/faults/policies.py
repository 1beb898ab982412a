"""Faults of policies (area POLICY): what they say is ignored, or holds where something else should."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace

from amqpspec.model.broker.dead_letter_headers import EXCHANGE, ROUTING_KEY
from amqpspec.model.broker.length_limits import OVERFLOW
from amqpspec.model.broker.policies import EXPIRES, LIMIT
from amqpspec.model.broker.queues import Queue
from amqpspec.model.broker.time_to_live import ARGUMENT, begin_time_to_live
from amqpspec.model.protocol.methods import Method, Table
from amqpspec.targets.embedded.hooks import Chapter, Proceed
from amqpspec.targets.embedded.served_broker import ServedBroker

POLICIES = Chapter()
on_input = POLICIES.on_input

#: What the queue goes by in place of what it should.
Otherwise = Callable[[ServedBroker, Queue, Table], Table]


def _goes_by(name: str, requirement: str, defect: str) -> Callable[[Otherwise], Otherwise]:
    """Queues with policies go by something else than they should."""

    def declare(otherwise: Otherwise) -> Otherwise:
        @on_input(name, requirement, defect, "operator.set-policy", "operator.clear-policy", "queue.declare")
        def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
            before = {queue.name: queue.in_force for queue in broker.queues.values()}
            proceed(method)
            for queue in broker.queues.values():
                if queue.policies is not None and queue.in_force is not before.get(queue.name):
                    queue.policies = replace(queue.policies, in_force=otherwise(broker, queue, queue.in_force))

        return otherwise

    return declare


def _ignored(name: str, requirement: str, defect: str, *arguments: str) -> None:
    @_goes_by(name, requirement, defect)
    def _(broker: ServedBroker, queue: Queue, in_force: Table) -> Table:
        left = {key: value for key, value in in_force.items() if key not in arguments}
        return {**left, **queue.arguments}


@on_input("policy-ignored", "POLICY-001", "Policies say nothing.", "operator.set-policy")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    pass


_ignored("policy-overflow-ignored", "POLICY-002", "A queue that a policy limits drops its head always.", OVERFLOW)
_ignored("policy-time-to-live-ignored", "POLICY-003", "Policies give messages no time.", ARGUMENT)
_ignored("policy-expiry-ignored", "POLICY-004", "No queue is deleted by a policy.", EXPIRES)
_ignored("policy-dead-letters-ignored", "POLICY-005", "Policies make no dead letters.", EXCHANGE, ROUTING_KEY)
_ignored("policy-delivery-limit-ignored", "POLICY-006", "Policies do not say how often messages come back.", LIMIT)


@_goes_by("argument-prevails", "POLICY-007", "An argument holds where a policy has a lower limit.")
def _(broker: ServedBroker, queue: Queue, in_force: Table) -> Table:
    return {**in_force, **queue.arguments}


@_goes_by("policy-prevails", "POLICY-008", "A policy holds where an argument says where dead letters go.")
def _(broker: ServedBroker, queue: Queue, in_force: Table) -> Table:
    said = next((each.definition for each in broker.policies.values() if each.queue == queue.name), {})
    return {**in_force, **{key: said[key] for key in (EXCHANGE, ROUTING_KEY) if key in said}}


@on_input("new-limit-waits", "POLICY-009", "A new limit is looked at with the next message.", "operator.set-policy")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    ready = {queue: queue.messages for queue in broker.queues.values()}
    for queue in ready:
        queue.messages = deque()
    proceed(method)
    for queue, messages in ready.items():
        queue.messages = messages
        broker.refresh(queue)


@on_input("new-time-for-all", "POLICY-010", "A new time to live holds for what is there too.", "operator.set-policy")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(method)
    for queue in broker.queues.values():
        for message in queue.messages:
            if begin_time_to_live(broker.dialect, queue, message, broker.now, broker.now):
                broker.ageing[queue] = None


@on_input(
    "dead-letters-by-first-policy",
    "POLICY-011",
    "Where dead letters of a queue go is by the first policy that said it.",
    "operator.set-policy",
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    first = {queue: queue.in_force for queue in broker.queues.values() if EXCHANGE in queue.in_force}
    proceed(method)
    for queue, before in first.items():
        if queue.policies is not None:
            kept = {key: before[key] for key in (EXCHANGE, ROUTING_KEY) if key in before}
            queue.policies = replace(queue.policies, in_force={**queue.in_force, **kept})


@on_input("policy-never-cleared", "POLICY-012", "A policy that is cleared goes on.", "operator.clear-policy")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    pass


@on_input("lowest-policy-applies", "POLICY-013", "Of several policies the lowest one applies.", "operator.set-policy")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(replace(method, arguments={**method.arguments, "priority": -method.arguments.get("priority", 0)}))


@on_input("policy-is-argument", "POLICY-014", "A queue has what its policy says as arguments.", "queue.declare")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    queue = broker.queues.get(method.arguments.get("queue", ""))
    if queue is None:
        proceed(method)
        return
    arguments, queue.arguments = queue.arguments, queue.in_force
    proceed(method)
    queue.arguments = arguments
