"""Alternatives: what a broker may do in place of the usual, as its build or its configuration has it.

Both are right. The acceptor follows an alternative beside the usual behaviour, as another explanation, until what the
broker sends tells which it was. Unlike a departure (`model.departures`) it is no failure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from model.alphabet import Frame
from model.broker import Broker
from model.dialects import TransientQueues
from model.inputs import process
from model.state import ChannelState


@dataclass(frozen=True, slots=True)
class Alternative:
    """One behaviour that is right as well, and where that was read."""

    name: str
    requirement: str
    source: str
    #: the methods that can come under it
    methods: tuple[str, ...]
    #: does this input, of one of these methods, in this state, come under it?
    applies: Callable[[Broker, Frame], bool]
    #: processes the input in the other way
    process: Callable[[Broker, Frame], None]


def _declares_transient(broker: Broker, frame: Frame) -> bool:
    if broker.dialect.transient_queues is not TransientQueues.EITHER:
        return False
    arguments = frame.arguments
    channel = broker.channels.get((frame.connection, frame.channel))
    if channel is None or channel.state is not ChannelState.OPEN or arguments.get("passive"):
        return False
    return not (arguments.get("durable") or arguments.get("exclusive") or arguments.get("queue") in broker.queues)


def _refuse_transient(broker: Broker, frame: Frame) -> None:
    dialect = broker.dialect
    broker.dialect = replace(dialect, transient_queues=TransientQueues.REFUSED)
    process(broker, frame)
    broker.dialect = dialect


ALTERNATIVES: tuple[Alternative, ...] = (
    Alternative(
        name="transient queue refused",
        requirement="QUEUE-018",
        source="rabbit_amqqueue:declare, is_queue_args_combination_permitted",
        methods=("queue.declare",),
        applies=_declares_transient,
        process=_refuse_transient,
    ),
)


def alternatives_to(broker: Broker, frame: Frame) -> tuple[Alternative, ...]:
    """The alternatives to the usual processing of this input, in this state."""
    return tuple(a for a in ALTERNATIVES if frame.method in a.methods and a.applies(broker, frame))
