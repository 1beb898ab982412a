"""Alternatives: what a broker may do in place of the usual, as its build or its configuration has it.

Both are right. The acceptor follows an alternative beside the usual behaviour, as another explanation, until what the
broker sends tells which it was. Unlike a departure (`model.departures`) it is no failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from model.alphabet import Frame
from model.broker import Broker
from model.dialects import TransientQueues
from model.inputs import process
from model.limits import counted, room_on
from model.queues import QueueType
from model.rules.cancel import crosses_notice, withdraw_notice
from model.rules.closing import is_said_by_queue
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


def _cancel_in_time(broker: Broker, frame: Frame) -> None:
    process(broker, frame)
    withdraw_notice(broker, frame)


def _closes_before_queues_answer(broker: Broker, frame: Frame) -> bool:
    channel = broker.channels.get((frame.connection, frame.channel))
    return channel is not None and channel.state is ChannelState.OPEN and any(map(is_said_by_queue, channel.owed))


def _close_at_once(broker: Broker, frame: Frame) -> None:
    channel = broker.channels[(frame.connection, frame.channel)]
    channel.owed = [owed for owed in channel.owed if not is_said_by_queue(owed)]
    process(broker, frame)


ALTERNATIVES: tuple[Alternative, ...] = (
    Alternative(
        name="transient queue refused",
        requirement="QUEUE-018",
        source="rabbit_amqqueue:declare, is_queue_args_combination_permitted",
        methods=("queue.declare",),
        applies=_declares_transient,
        process=_refuse_transient,
    ),
    Alternative(
        name="consumer cancelled before its channel heard of the queue's end",
        requirement="CANCEL-005",
        source="rabbit_channel:handle_method basic.cancel, handle_consuming_queue_down_or_eol",
        methods=("basic.cancel",),
        applies=crosses_notice,
        process=_cancel_in_time,
    ),
    Alternative(
        name="channel closed before its queues have answered",
        requirement="CHAN-003",
        source="rabbit_channel:handle_cast {command, …} comes behind the client's channel.close; 0-9-1 section 1.5.2.5",
        methods=("channel.close",),
        applies=_closes_before_queues_answer,
        process=_close_at_once,
    ),
)


def alternatives_to(broker: Broker, frame: Frame) -> tuple[Alternative, ...]:
    """The alternatives to the usual processing of this input, in this state."""
    usual = tuple(a for a in ALTERNATIVES if frame.method in a.methods and a.applies(broker, frame))
    return (*usual, *_deliveries_under_way(broker, frame)) if frame.method == "basic.qos" else usual


def _deliveries_under_way(broker: Broker, frame: Frame) -> Iterator[Alternative]:
    """QOS-011: a limit does not take back what is on its way from the queues to the channel, however much that is."""
    channel = broker.channels.get((frame.connection, frame.channel))
    limit = frame.arguments.get("prefetch_count", 0)
    if channel is None or channel.state is not ChannelState.OPEN or not frame.arguments.get("global_") or not limit:
        return
    if not broker.dialect.channel_prefetch or broker.dialect.prefetch_is_shared:
        return
    most = sum(
        min(len(queue.messages), room_on(broker, channel, queue))
        for queue in broker.deliverable
        if queue.type is QueueType.CLASSIC
    )
    for number in range(max(limit - counted(broker, channel), 0) + 1, int(most) + 1):
        yield Alternative(
            name=f"{number} deliveries under way",
            requirement="QOS-011",
            source="rabbit_channel: the limiter is told at once, the queues by activate_limit_all",
            methods=("basic.qos",),
            applies=lambda broker, frame: True,
            process=partial(_limit_behind, number=number),
        )


def _limit_behind(broker: Broker, frame: Frame, number: int) -> None:
    process(broker, frame)
    channel = broker.channels[(frame.connection, frame.channel)]
    channel.under_way = number
    broker.refresh_sharing(channel)
