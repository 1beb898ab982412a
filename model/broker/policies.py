"""What holds for a queue: its arguments, and the policy of the operator that applies to it (area POLICY).

Source: RabbitMQ guide, policies. RabbitMQ: rabbit_queue_type_util:args_policy_lookup, with the functions that settle
which of both values holds in rabbit_amqqueue_process:process_args_policy and rabbit_quorum_queue:gather_policy_config.

Requirements:

* POLICY-001: Limits of length. max-length and max-length-bytes of the policy that applies to a queue limit it as
  x-max-length and x-max-length- bytes do. [RabbitMQ guide: policies; guide: queue length limit;
  rabbit_queue_type_util:args_policy_lookup]
* POLICY-002: Overflow. overflow of the policy says what becomes of what is too much, as x-overflow does. With
  reject-publish nothing that is there is dropped, and once drop-head holds, or no limit, nothing is refused any more.
  In rabbitmq-3: broken: a quorum queue with drop-head goes on refusing to channels that it has refused to, and so does
  one without a limit; a classic queue drops what is beyond a limit that comes with reject-publish. In rabbitmq-4.0:
  broken: a quorum queue with drop-head goes on refusing to channels that it has refused to; a classic queue drops what
  is beyond a limit that comes with reject-publish. In rabbitmq-4.3: broken: a quorum queue with drop-head goes on
  refusing to channels that it has refused to; a classic queue drops what is beyond a limit that comes with
  reject-publish. [RabbitMQ guide: policies; guide: queue length limit; rabbit_queue_type_util:args_policy_lookup]
* POLICY-003: Time to live. message-ttl of the policy is the time of what comes to the queue, as x-message-ttl is, and a
  message's own expiration holds if it is less. [RabbitMQ guide: policies; guide: ttl;
  rabbit_queue_type_util:args_policy_lookup]
* POLICY-004: Expiry of the queue. expires of the policy is the time after which the queue is deleted if it is unused,
  as x-expires is. It begins anew when policies change, but for quorum queues from 4.3 on. [RabbitMQ guide: policies;
  guide: ttl; rabbit_amqqueue_process:init_exp; rabbit_fifo:update_config]
* POLICY-005: Dead letters. dead-letter-exchange and dead-letter-routing-key of the policy say where dead letters go, as
  the arguments do, each where the other is an argument as well. [RabbitMQ guide: policies; guide: dead letter
  exchanges; rabbit_queue_type_util:args_policy_lookup]
* POLICY-006: Delivery limit. delivery-limit of the policy limits how often a message may come back to a quorum queue,
  as x-delivery-limit does. [RabbitMQ guide: policies; guide: quorum-queues; rabbit_quorum_queue:gather_policy_config]
* POLICY-007: Both, of numbers. Where a policy and an argument of the queue both give a limit, a time to live, an expiry
  or a delivery limit, the lower one holds. A negative delivery limit, which is none, does not hold if the other one is
  a limit. In rabbitmq-3: but for the expiry of quorum queues: there the policy's holds (v3.13.0
  rabbit_quorum_queue:ra_machine_config); a negative delivery limit is the lower one. [RabbitMQ guide: policies (the
  lower value of optional arguments and policies); rabbit_amqqueue_process:res_min;
  rabbit_quorum_queue:resolve_delivery_limit]
* POLICY-008: Both, of other values. Where a policy and an argument both say where dead letters go, or what becomes of
  what is too much, the argument holds; but a quorum queue goes by the overflow of the policy.
  [rabbit_amqqueue_process:res_arg; rabbit_quorum_queue:queue_arg_has_precedence, policy_has_precedence]
* POLICY-009: A new limit holds at once. A policy that is set or changed while the queue lives is in force when the
  operator has been answered. What is beyond a new limit is dropped from the head, and is dead-lettered, at once and not
  with the next message. [RabbitMQ guide: policies (are matched against queues whenever they change);
  rabbit_amqqueue_process:init_max_length; rabbit_fifo: #update_config{}]
* POLICY-010: A new time to live is for later messages. Messages that are in the queue when message-ttl changes keep the
  time that they have, or have none; those that come later have the new one. [RabbitMQ guide: ttl;
  rabbit_amqqueue_process:init_ttl (the time is stored with the message); rabbit_fifo:apply_enqueue]
* POLICY-011: What holds when a message goes. Where a message goes that is given up, and how often it may come back, is
  by the policy that applies at that moment, whatever it was when the message came. [rabbit_amqqueue_process:init_dlx;
  rabbit_fifo: #update_config{}]
* POLICY-012: A policy that is cleared. When a policy is cleared, what it said holds no more, and the arguments alone
  do, or the next policy. [RabbitMQ guide: policies; rabbit_policy:notify_clear]
* POLICY-013: The highest one alone. Of the policies that match a queue the one of the highest priority applies, and
  nothing of the others. [RabbitMQ guide: policies, Combining Policy Definitions (at most one policy applies);
  rabbit_policy:match]
* POLICY-014: A policy is no argument. A policy does not change what the queue was declared with: it may be declared
  again with the arguments that it has, and not with those that the policy gives. [RabbitMQ guide: policies;
  rabbit_amqqueue:assert_args_equivalence]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from amqpspec.model.broker.administration import Policy
from amqpspec.model.broker.broker_state import BrokerState
from amqpspec.model.broker.openness import open_queue
from amqpspec.model.broker.queues import Policies, Queue
from amqpspec.model.promises.queue_types import QueueType

LIMIT, EXPIRES, OVERFLOW = "x-delivery-limit", "x-expires", "x-overflow"
#: No argument says it, only a policy (`model.broker.mirrors`).
MIRRORS = "x-ha-mode"

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
#: The requirements by which a message goes that is beyond a limit of length, or has come back too often.
BEYOND_LENGTH = frozenset({"POLICY-001", BOTH_NUMBERS, HIGHEST})
BEYOND_RETURNS = frozenset({"POLICY-006", BOTH_NUMBERS, HIGHEST})
#: Of policies that change: a new limit holds at once, a time to live for what comes later, for what goes and comes back
#: what holds then; what is cleared holds no more. And a policy is no argument.
AT_ONCE, LATER_ONES, AT_THAT_MOMENT, CLEARED, NO_ARGUMENT = (
    "POLICY-009", "POLICY-010", "POLICY-011", "POLICY-012", "POLICY-014",
)  # fmt: skip


def put_in_force(broker: BrokerState, queue: Queue) -> None:
    """What the policies say of the queue holds from now on."""
    before, matching = queue.in_force, _matching(broker, queue)
    if not matching and queue.policies is None:
        return
    if not broker.is_punctual and (doubt := _doubt(queue, matching)):
        open_queue(broker, queue, doubt)
    matching = [each for each in matching if _fits(queue, each)]
    definition = matching[0].definition if matching else {}
    in_force = {**definition, **queue.arguments}
    for name in definition.keys() & queue.arguments.keys():
        in_force[name] = _of_both(broker, queue, name, definition[name], queue.arguments[name])
    decided_by = {name: tuple(_requirements(queue, name, in_force[name], matching)) for name in definition}
    cleared = {name: value for name, value in before.items() if name not in in_force}
    queue.policies = Policies(in_force, decided_by, cleared, queue.next_position)


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
    return (MIRRORS if queue.type is QueueType.QUORUM else LIMIT) not in said


def _of_both(broker: BrokerState, queue: Queue, name: str, of_policy: Any, of_argument: Any) -> Any:
    by_policy = (OVERFLOW, EXPIRES) if broker.dialect.quorum_expires_by_policy else (OVERFLOW,)
    if name in by_policy and queue.type is QueueType.QUORUM:
        return of_policy  # rabbit_quorum_queue:policy_has_precedence
    if name not in LOWER:
        return of_argument
    if name == LIMIT and queue.negative_limit_is_none and min(of_policy, of_argument) < 0:
        return max(of_policy, of_argument)  # rabbit_quorum_queue:resolve_delivery_limit
    return min(of_policy, of_argument)


def _requirements(queue: Queue, name: str, in_force: Any, matching: Sequence[Policy]) -> Iterator[str]:
    """By which the queue goes by that value: because both policy and argument say something, because this policy is
    the highest one, because there is a policy at all. The first is to blame.
    """
    value, given = matching[0].definition[name], queue.arguments.get(name)
    if given is not None and given != value:
        yield BOTH_NUMBERS if name in LOWER else BOTH_TEXTS
    if in_force != given and name in BY_POLICY:
        if any(each.definition.get(name) != value for each in matching[1:]):
            yield HIGHEST
        yield BY_POLICY[name]
