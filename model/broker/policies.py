"""What holds for a queue: its arguments, and the policy of the operator that applies to it (area POLICY).

Source: RabbitMQ guide, policies. RabbitMQ: rabbit_queue_type_util:args_policy_lookup, with the functions that settle
which of both values holds in rabbit_amqqueue_process:process_args_policy and rabbit_quorum_queue:gather_policy_config.

Requirements:
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amqpspec.model.broker.administration import Policy
from amqpspec.model.broker.broker_state import BrokerState
from amqpspec.model.broker.openness import open_queue
from amqpspec.model.broker.queues import Queue
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Table

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


def put_in_force(broker: BrokerState, queue: Queue) -> bool:
    """What the policies say of the queue holds from now on. Does something else hold than before?"""
    before = queue.in_force
    matching = _matching(broker, queue)
    queue.policy = matching[0] if matching else None
    if queue.policy is None:
        queue.with_policy = None
        return queue.in_force != before
    if len(matching) > 1 and matching[1].priority == queue.policy.priority:
        open_queue(broker, queue, "policies of one priority")
    elif not _fits(queue, queue.policy):
        open_queue(broker, queue, "a policy that is not for its type")
    queue.with_policy = {**queue.policy.definition, **queue.arguments}
    for name in queue.policy.definition.keys() & queue.arguments.keys():
        queue.with_policy[name] = _of_both(queue, name, queue.policy.definition[name], queue.arguments[name])
    return queue.in_force != before


def _matching(broker: BrokerState, queue: Queue) -> list[Policy]:
    """The highest one first."""
    if not broker.policies:
        return []
    found = (each for each in broker.policies.values() if (each.queue, each.virtual_host) == (queue.name, queue.vhost))
    return sorted(found, key=lambda each: -each.priority)


def _fits(queue: Queue, policy: Policy) -> bool:
    """From 4.0 on a policy that says what the queue's type does not know applies to it not at all, before at one time
    and not at another (rabbit_amqqueue:is_policy_applicable).
    """
    said = policy.definition.keys()
    if queue.type is QueueType.STREAM:
        return said <= {"x-consumer-timeout", "x-max-length-bytes"}
    return queue.type is QueueType.QUORUM or LIMIT not in said


def _of_both(queue: Queue, name: str, of_policy: Any, of_argument: Any) -> Any:
    if name == OVERFLOW and queue.type is QueueType.QUORUM:
        return of_policy  # rabbit_quorum_queue:policy_has_precedence
    if name not in LOWER:
        return of_argument
    if name == LIMIT and queue.negative_limit_is_none and min(of_policy, of_argument) < 0:
        return max(of_policy, of_argument)  # rabbit_quorum_queue:resolve_delivery_limit
    return min(of_policy, of_argument)


def decided_by(broker: BrokerState, queue: Queue, *names: str) -> tuple[str, ...]:
    """The requirements by which what the queue goes by, of these names, is another than its arguments alone say, or
    than another policy does; the first of them is to blame.
    """
    policy = queue.policy
    if policy is None:
        return ()
    found: dict[str, None] = {}
    for name in names:
        if name not in policy.definition:
            continue
        given = queue.arguments.get(name)
        if given is not None and given != policy.definition[name]:
            found[BOTH_NUMBERS if name in LOWER else BOTH_TEXTS] = None
        if queue.in_force[name] != given:
            others = [each.definition.get(name) for each in _matching(broker, queue)[1:]]
            if any(each != policy.definition[name] for each in others):
                found[HIGHEST] = None
            found[BY_POLICY[name]] = None
    return tuple(found)
