"""Barriers: how the suite knows that a broker is quiet, by round trips and not by waiting.

After a command and what it owed have come, for each queue that it touched: `basic.get` on the channel that touched it
where the model says that nothing is ready (it goes the way of the acknowledgements, and its answer comes behind the
deliveries that they caused); else a passive declare, again until the numbers are the model's. Then `basic.qos` with the
present value on every channel concerned, which flushes the channel. Only what the command touched takes part.
All of this is judged like any other traffic, but counts as exercise of nothing.
"""

from __future__ import annotations

import time

from conformance.command import Command
from conformance.session import SERVICE_CHANNEL, Session
from model.alphabet import Frame
from model.state import ChannelKey, Queue, QueueType


def complete_barrier(session: Session, command: Command) -> None:
    """Run the barrier after `command`; at its end the model's broker and the target are both at rest."""
    # by name: the objects are others as soon as explanations part
    touched = [(key, queue.name) for key, queue in session.judge.acceptor.broker.touched]
    names = list(dict.fromkeys(name for _, name in touched))
    session.mark("barrier")
    for key, name in touched:
        queue = _queue(session, name)
        if queue is not None and _can_get(session, key, queue):
            session.request(Frame(*key, "basic.get", {"queue": name}, sent=True))
    for name in names:
        _compare_counts(session, name)
    for key in _channels(session, command, touched):
        if key[1] and session.channel_is_open(key) and not session.over:
            session.request(_flush(session, key))
    while not session.over and session.receive(0) is not None:
        pass
    session.mark("quiescent")


def _flush(session: Session, key: ChannelKey) -> Frame:
    """A request that the channel answers itself, and that changes nothing.

    Where the channel has a limit of its own that is channel.flow: up to RabbitMQ 4.2 basic.qos with global=false would
    lift that limit (rabbit_channel:handle_method, rabbit_limiter:unlimit_prefetch).
    """
    channel = session.judge.acceptor.broker.channels[key]
    if channel.channel_prefetch:
        return Frame(*key, "channel.flow", {"active": True}, sent=True)
    return Frame(*key, "basic.qos", {"prefetch_count": channel.prefetch}, sent=True)


def _queue(session: Session, name: str) -> Queue | None:
    return session.judge.acceptor.broker.queues.get(name)


def _channels(session: Session, command: Command, touched: list[tuple[ChannelKey, str]]) -> list[ChannelKey]:
    """Those that touched a queue, that consume from it, and that of the command."""
    channels = dict.fromkeys(key for key, _ in touched)
    channels[(command.connection, command.channel)] = None
    for _, name in touched:
        queue = _queue(session, name)
        if queue is not None:
            channels.update(dict.fromkeys(consumer.channel for consumer in queue.consumers))
    return list(channels)


def _can_get(session: Session, key: ChannelKey, queue: Queue) -> bool:
    """May the barrier's get be sent, without taking a message and without an error?"""
    return (
        not session.over
        and session.channel_is_open(key)
        and not queue.messages
        and queue.type is not QueueType.STREAM
        and not (queue.type is QueueType.QUORUM and queue.single_active_consumer)
        and queue.owner in (None, key[0])
    )


def _compare_counts(session: Session, name: str) -> None:
    """Ask for the numbers of messages and consumers until they are the model's, or the deadline has passed."""
    queue = _queue(session, name)
    if queue is None or queue.type is QueueType.STREAM or not (queue.messages or queue.unproven or queue.leaving):
        return
    connections = [connection for connection in session.open_connections() if queue.owner in (None, connection)]
    if not connections:
        return
    deadline = time.monotonic() + session.target.deadline
    while not session.over and queue is not None:
        session.ensure_channel(connections[0], SERVICE_CHANNEL)
        declare = {"queue": name, "passive": True}
        session.request(Frame(connections[0], SERVICE_CHANNEL, "queue.declare", declare, sent=True))
        queue = _queue(session, name)
        # a quorum queue counts those who hold its deliveries as consumers, so their number never becomes the model's
        if queue is None or (
            not queue.unproven and (not queue.leaving or session.judge.acceptor.broker.holders(queue))
        ):
            return
        if time.monotonic() > deadline:
            session.mark("overdue", session.target.deadline)
            return
