"""A broker that goes down: what was sent before may have been processed, or not.

Until it is up again it owes nothing, and whatever it owed may come yet. Then each thing that was under way has happened
or not: a publish and an acknowledgement for themselves, as doubts of one message (`model.broker.survival`); what else
was sent by points, each an explanation of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import ChannelState
from amqpspec.model.broker.internal_events import Input, InternalEvent
from amqpspec.model.broker.survival import SETTLED
from amqpspec.model.judging.defects_followed import DefectsFollowed
from amqpspec.model.judging.explanation import Explanation
from amqpspec.model.judging.merging import merged
from amqpspec.model.judging.points import points
from amqpspec.model.judging.processing import processed
from amqpspec.model.protocol.methods import HeaderEvent, Method, SocketEvent, TraceEvent
from amqpspec.model.rules.basic.settlement import tags_meant
from amqpspec.model.rules.inputs import process

GOES_DOWN = ("broker.stop", "broker.kill")
COMES_BACK = "broker.restart"

#: What leaves nothing behind that a restart does not end.
_FORGOTTEN = frozenset(
    {
        "channel.open", "channel.close-ok", "channel.flow", "channel.flow-ok", "connection.close-ok",
        "connection.open", "connection.start-ok", "connection.tune-ok", "basic.qos", "confirm.select", "tx.select",
        "tx.rollback",
    }
)  # fmt: skip


def gone_down(explanations: Iterable[Explanation], event: TraceEvent) -> None:
    """From now on it may be down, whatever is under way."""
    for explanation in explanations:
        process(explanation.broker, event)


def come_back(
    explanations: Iterable[Explanation], event: TraceEvent, defects: DefectsFollowed, bound: int
) -> list[Explanation]:
    """It is up again. Raises `TooManyExplanations`."""
    found: list[Explanation] = []
    for explanation in explanations:
        explanation.pending = [each for each in explanation.pending if not isinstance(each, InternalEvent)]
        if all(map(_is_one_doubt, explanation.pending)):
            found.append(explanation)
            continue
        for point in points(explanation, defects, bound):
            found.append(point.fork())
    for explanation in found:
        for each in explanation.pending:
            if isinstance(each, Method):
                _doubt(explanation.broker, each)
        explanation.pending.clear()
        explanation.defect = explanation.defective_input = None
    return merged(processed(found, event, defects))


def _is_one_doubt(event: Input) -> bool:
    if isinstance(event, Method):
        return event.name in ("basic.publish", "basic.ack") or event.name in _FORGOTTEN
    return isinstance(event, (SocketEvent, HeaderEvent))


def _doubt(broker: Broker, method: Method) -> None:
    """It may have been processed."""
    channel = broker.channels.get((method.connection, method.channel))
    if channel is None or channel.state is not ChannelState.OPEN or channel.transaction is not None:
        return
    if method.name == "basic.publish":
        process(broker, method)
    elif method.name == "basic.ack":
        for tag in tags_meant(channel, method):
            if tag in channel.unacknowledged:
                channel.unacknowledged[tag].message.may_be_absent = True
                broker.fired(SETTLED)
