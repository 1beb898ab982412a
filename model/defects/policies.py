"""Policies that change what a queue does with what is too much."""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.length_limits import BYTES, LENGTH, Overflow, overflow
from amqpspec.model.broker.queues import Queue
from amqpspec.model.judging.windows import EVERYTHING, SERVICE, Part, Scope, Window, of_queues
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Method


def _queue_of(broker: Broker, action: Method) -> Queue | None:
    """Whose policy is set or cleared."""
    key = action.arguments.get("virtual_host", "/"), action.arguments.get("policy", "")
    policy = broker.policies.get(key)
    return broker.queues.get(action.arguments.get("queue", "" if policy is None else policy.queue))


def _ends_refusing(broker: Broker, action: Method) -> Scope | None:
    queue = _queue_of(broker, action)
    if queue is None or queue.type is not QueueType.QUORUM or overflow(queue) is Overflow.DROP_HEAD:
        return None
    return of_queues(broker, [queue])


def _begins_refusing(broker: Broker, action: Method) -> Scope | None:
    queue, said = _queue_of(broker, action), action.arguments
    is_refusing = str(said.get("overflow", "")).startswith("reject")
    if queue is None or queue.type is not QueueType.CLASSIC or not is_refusing:
        return None
    if overflow(queue) is not Overflow.DROP_HEAD or not {LENGTH, BYTES} & {f"x-{n.replace('_', '-')}" for n in said}:
        return None
    return EVERYTHING if "dead_letter_exchange" in said else of_queues(broker, [queue])


POLICIES: tuple[Window, ...] = (
    Window(
        name="refuses-on-after-reject-publish",
        requirement="POLICY-002",
        statement="A quorum queue that goes by drop-head again, or on 3.10 has no limit any more, goes on refusing what"
        " comes from channels that it has told to refuse.",
        source="v4.3.5 rabbit_fifo:evaluate_limit0 tells them to go on only where reject-publish holds, or no limit"
        " does; guide: queue length limit, drop-head",
        spoils=SERVICE | {Part.CONFIRM},
        kinds=("operator.set-policy", "operator.clear-policy"),
        arms=_ends_refusing,
    ),
    Window(
        name="limit-comes-before-reject-publish",
        requirement="POLICY-002",
        statement="A policy that sets a limit and reject-publish has a classic queue drop what is beyond the limit.",
        source="rabbit_amqqueue_process:process_args_policy, which takes max-length before overflow; guide: maxlength,"
        " the most recently published messages are discarded",
        kinds=("operator.set-policy",),
        arms=_begins_refusing,
    ),
)
