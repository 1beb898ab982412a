"""What is owed at every point at which the broker may be: seen at once, without going to these points.

It is asked whether something is owed whenever a frame has come. The answer is sure where a frame is owed already, or a
request is under way that is answered, as a publish is where confirms are on, and nothing is under way that takes a debt
back. Whatever else is processed before that, a mistake of the client's too, leads to a frame.
"""

from __future__ import annotations

from collections.abc import Collection

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import ChannelState
from amqpspec.model.broker.connections import ConnectionState
from amqpspec.model.broker.internal_events import Input, PossibleEvent, lane_of
from amqpspec.model.broker.nodes import is_mute
from amqpspec.model.broker.queues import is_behind
from amqpspec.model.judging.explanation import Explanation
from amqpspec.model.protocol.methods import SYNCHRONOUS_METHODS, Method

#: Requests after which what was owed need not come any more: frames of the channel or connection that is closed, a
#: notice for the consumer that is cancelled.
_ENDS = frozenset({"channel.close", "connection.close", "basic.cancel"})


def is_certainly_owed(explanation: Explanation) -> bool:
    """Is a frame owed, lawfully, however the inputs that are under way are processed? False: it may be, or not."""
    if not all(map(_ends_nothing, explanation.pending)):
        return False
    broker = explanation.broker
    return _owes_already(broker) or any(_is_answered(broker, event) for event in explanation.pending)


def is_owed_elsewhere(explanation: Explanation, mute: Collection[str]) -> bool:
    """Is a frame owed on another connection than these, by a request that is processed or under way?"""
    broker = explanation.broker
    return any(connection not in mute for connection, _ in broker.debtors) or any(
        _is_answered(broker, event) for event in explanation.pending if lane_of(event)[0] not in mute
    )


def _ends_nothing(event: Input) -> bool:
    return isinstance(event, PossibleEvent) or (isinstance(event, Method) and event.name not in _ENDS)


def _owes_already(broker: Broker) -> bool:
    """The end of a channel whose commit fails may be put off by what is under way (TX-010)."""
    return any(
        (channel := broker.channels.get(key)) is None or channel.transaction is None
        for key in broker.debtors
        if not is_mute(broker.failed, key[0])
    )


def _is_answered(broker: Broker, event: Input) -> bool:
    """Does the broker answer it, if only with an error? A publish is answered where confirms are on, but for one that
    may have to wait for a mirror.
    """
    if not isinstance(event, Method) or event.arguments.get("nowait"):
        return False
    channel = broker.channels.get((event.connection, event.channel))
    if event.name == "channel.open":
        connection = broker.connections.get(event.connection)
        is_new = channel is None or channel.state is ChannelState.CLOSED
        return is_new and connection is not None and connection.state is ConnectionState.OPEN
    if channel is None or channel.state is not ChannelState.OPEN:
        return False
    if event.name == "basic.publish":
        return channel.confirming and not is_behind(broker.queues.values())
    return event.name in SYNCHRONOUS_METHODS
