"""Faults of the nodes of a cluster, and what was sent to nodes that need not process it (`model.broker.nodes`).

That waits, in each explanation, until its node takes part again, or something is received on its connection: then some
of it may have been processed.
"""

from __future__ import annotations

from collections.abc import Sequence

from amqpspec.model.broker.connections import ConnectionState
from amqpspec.model.broker.internal_events import Input, kind_of, lane_of
from amqpspec.model.broker.nodes import has_majority, is_mute
from amqpspec.model.broker.nodes_shown import UNANIMOUS
from amqpspec.model.judging.explanation import Explanation
from amqpspec.model.outputs.replies import CONFIRMS
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Method, TraceEvent
from amqpspec.model.rules.inputs import process


def at_nodes(explanations: Sequence[Explanation], fault: TraceEvent) -> None:
    """Something happens to a node, or between nodes."""
    for explanation in explanations:
        broker = explanation.broker
        was_alone = bool(broker.failed) and not has_majority(broker.failed)
        process(broker, fault)
        explanation.expect_internal_events()
        if any(_is_held_up(explanation, event, was_alone) for event in explanation.stalled):
            broker.fired(UNANIMOUS)
        explanation.stall()
        explanation.go_on()
        _forget_ended(explanation)


def _is_held_up(explanation: Explanation, event: Input, was_alone: bool) -> bool:
    """Was it published where no majority could agree, and is it confirmed only now?"""
    if kind_of(event) != "basic.publish" or not isinstance(event, Method):
        return False
    broker = explanation.broker
    channel = broker.channels.get((event.connection, event.channel))
    goes_on = not is_mute(broker.failed, event.connection) and (was_alone or event.connection in broker.shaken)
    return goes_on and channel is not None and channel.confirming and _is_for_quorum_queue(explanation, event)


def go_on_for(explanations: Sequence[Explanation], event: TraceEvent) -> None:
    """Something is received where nobody need answer: what was sent there may have been processed before.

    But for what nobody confirms without a majority.
    """
    for explanation in explanations:
        if event.name in CONFIRMS and _goes_to_quorum_queues(explanation, event):
            continue
        explanation.go_on(event.connection)


def stall(explanations: Sequence[Explanation], event: TraceEvent) -> None:
    """It was judged."""
    for explanation in explanations:
        explanation.stall()
        _forget_ended(explanation)


def _forget_ended(explanation: Explanation) -> None:
    """What was sent on a connection that has ended is not processed any more."""
    connections = explanation.broker.connections

    def is_over(event: Input) -> bool:
        if not isinstance(event, TraceEvent):
            return False
        connection = connections.get(event.connection)
        is_ended = connection is not None and connection.state is ConnectionState.CLOSED
        return is_ended and is_mute(explanation.broker.failed, event.connection)

    explanation.stalled = [event for event in explanation.stalled if not is_over(event)]
    explanation.pending = [event for event in explanation.pending if not is_over(event)]


def _goes_to_quorum_queues(explanation: Explanation, confirm: TraceEvent) -> bool:
    """Does all that the channel published, and that waits, go to quorum queues?"""
    lane = (confirm.connection, confirm.channel)
    waiting = [event for event in explanation.stalled if lane_of(event) == lane and kind_of(event) == "basic.publish"]
    return bool(waiting) and all(_is_for_quorum_queue(explanation, event) for event in waiting)


def _is_for_quorum_queue(explanation: Explanation, event: Input) -> bool:
    if not isinstance(event, Method) or event.arguments.get("exchange"):
        return False
    queue = explanation.broker.queues.get(event.arguments.get("routing_key", ""))
    return queue is not None and queue.type is QueueType.QUORUM
