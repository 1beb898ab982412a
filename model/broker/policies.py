"""What holds for a queue: its arguments, and the policy of the operator that applies to it (area POLICY).

Source: RabbitMQ guide, policies. RabbitMQ: rabbit_queue_type_util:args_policy_lookup, with the functions that settle
which of both values holds in rabbit_amqqueue_process:process_args_policy and rabbit_quorum_queue:gather_policy_config.

Requirements:
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from amqpspec.model.broker.administration import Policy
from amqpspec.model.broker.broker_state import BrokerState
from amqpspec.model.broker.openness import open_queue
from amqpspec.model.broker.queues import Queue
from amqpspec.model.promises.queue_types import QueueType

LIMIT, EXPIRES, OVERFLOW = "x-delivery-limit", "x-expires", "x-overflow"

#: Of which the lower value holds, if argument and policy both say something.
LOWER = frozenset({"x-consumer-timeout", "x-max-length", "x-max-length-bytes", "x-message-ttl", EXPIRES, LIMIT})

#: The requirement by which a policy says that.
BY_POLICY: Mapping[str, str] = {
    "x-max-length": "POLICY-001",
    "x-max-length-bytes": "POLICY-001",
    OVERFLOW: "POLICY-002",
    "x-message-ttl": "POLICY-003",
    EXPIRES: "POLICY-004",
    "x-dead-letter-exchange": "POLICY-005",
    "x-dead-letter-routing-key": "POLICY-005",
    LIMIT: "POLICY-006",
}
BOTH_NUMBERS, BOTH_TEXTS, HIGHEST = "POLICY-007", "POLICY-008", "POLICY-013"


def put_in_force(broker: BrokerState, queue: Queue) -> None:
    """What the policies say of the queue holds from now on."""
    before, matching = queue.in_force, _matching(broker, queue)
    if not broker.is_punctual and (doubt := _doubt(queue, matching)):
        open_queue(broker, queue, doubt)
    matching = [each for each in matching if _fits(queue, each)]
    definition = matching[0].definition if matching else {}
    queue.with_policy = {**definition, **queue.arguments} if definition else None
    for name in definition.keys() & queue.arguments.keys():
        queue.in_force[name] = _of_both(broker, queue, name, definition[name], queue.arguments[name])
    queue.decided_by = {name: tuple(_requirements(queue, name, matching)) for name in definition}
    queue.cleared = {name: value for name, value in before.items() if name not in queue.in_force}
    queue.policies_since = queue.next_position


def _doubt(queue: Queue, matching: Sequence[Policy]) -> str:
    """The word for what keeps it from being told which of the policies applies; "": nothing does.

    Of equal ones any may. A policy that says what the queue's type does not know applies not at all from 4.0 on, before
    at one time and not at another (rabbit_amqqueue:is_policy_applicable).
    """
    if len(matching) > 1 and matching[0].priority == matching[1].priority:
        return "order of policies of one priority"
    return "" if all(_fits(queue, each) for each in matching) else "policy for another type of queues"


def _matching(broker: BrokerState, queue: Queue) -> list[Policy]:
    """The highest one first."""
    if not broker.policies:
        return []
    found = (each for each in broker.policies.values() if (each.queue, each.virtual_host) == (queue.name, queue.vhost))
    return sorted(found, key=lambda each: -each.priority)


def _fits(queue: Queue, policy: Policy) -> bool:
    """Does it say only what the queue's type knows?"""
    said = policy.definition.keys()
    if queue.type is QueueType.STREAM:
        return said <= {"x-consumer-timeout", "x-max-length-bytes"}
    return queue.type is QueueType.QUORUM or LIMIT not in said


def _of_both(broker: BrokerState, queue: Queue, name: str, of_policy: Any, of_argument: Any) -> Any:
    by_policy = (OVERFLOW, EXPIRES) if broker.dialect.quorum_expires_by_policy else (OVERFLOW,)
    if name in by_policy and queue.type is QueueType.QUORUM:
        return of_policy  # rabbit_quorum_queue:policy_has_precedence
    if name not in LOWER:
        return of_argument
    if name == LIMIT and queue.negative_limit_is_none and min(of_policy, of_argument) < 0:
        return max(of_policy, of_argument)  # rabbit_quorum_queue:resolve_delivery_limit
    return min(of_policy, of_argument)


def _requirements(queue: Queue, name: str, matching: Sequence[Policy]) -> Iterator[str]:
    """By which the queue goes by that value: because both policy and argument say something, because this policy is
    the highest one, because there is a policy at all. The first is to blame.
    """
    value, given = matching[0].definition[name], queue.arguments.get(name)
    if given is not None and given != value:
        yield BOTH_NUMBERS if name in LOWER else BOTH_TEXTS
    if queue.in_force[name] != given and name in BY_POLICY:
        if any(each.definition.get(name) != value for each in matching[1:]):
            yield HIGHEST
        yield BY_POLICY[name]
