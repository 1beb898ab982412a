"""Barriers: how the suite knows that a broker is quiet, by round trips and not by waiting.

After a command and what it owed have come, for each queue that it touched: `basic.get` on the channel that touched it
where the model says that nothing is ready (it goes the way of the acknowledgements, and its answer comes behind the
deliveries that they caused); else a passive declare, again until the numbers are the model's. Then `basic.qos` with the
present value on every channel concerned, which flushes the channel; where one has ended, a round trip of its
connection on a channel of the suite's own. Only what the command touched takes part.
All of this is judged like any other traffic, but counts as exercise of nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.dispatch import owes_nothing
from amqpspec.model.broker.queues import Queue
from amqpspec.model.broker.state import ChannelState, Connection, ConnectionState
from amqpspec.model.judging.doubts import may_give_up, unprocessed
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import ChannelKey, Frame
from amqpspec.model.protocol.patterns import UNKNOWN_NAME
from amqpspec.model.rules.extensions.dead_letter import EXCHANGE

if TYPE_CHECKING:
    from amqpspec.conformance.language.command import Command
    from amqpspec.conformance.session.session import Session

#: Seconds of which no more may pass between a question and its answer.
SOON = 1.0

#: Rounds of questions about numbers that there are at least, however long the judge takes over the answers.
LEAST_ROUNDS = 5

#: The channel on which the suite itself looks at queues.
SERVICE_CHANNEL = 2000


def complete_barrier(session: Session, command: Command) -> None:
    """Run the barrier after `command`; at its end the model's broker and the target are both at rest."""
    session.mark("barrier")
    key = (command.connection, command.channel)
    if command.arguments.get("nowait") and _is_open(session, key):
        # nothing has told that its channel has come to it, and others are asked about what it did
        session.request(_flush(session, key))
    for waiting in unprocessed(session.judge.acceptor.explanations):
        if _is_open(session, waiting):
            session.request(_flush(session, waiting))
    # by name: the objects are others as soon as explanations part
    touched = [(key, queue.name) for key, queue in session.judge.acceptor.broker.touched]
    names = list(dict.fromkeys(name for _, name in touched))
    _await_clean_up(session)
    for key, name in touched:
        queue = _queue(session, name)
        if queue is not None and _can_get(session, key, queue):
            # a name that the broker has not told yet (queue.declare with nowait) is the channel's last one
            told = "" if name.startswith(UNKNOWN_NAME) else name
            session.request(Frame(*key, "basic.get", {"queue": told}, sent=True))
    for name in _unproven_elsewhere(session):
        _ask_once(session, name)
    for name in names:
        _await_auto_delete(session, name)
    _compare_counts(session, names)
    for name in _doubtful(session):
        _ask_once(session, name)
    _clear_doubts(session)
    ended: dict[str, None] = {}
    for key in _channels(session, command, touched):
        if not key[1] or session.over:
            continue
        if _is_open(session, key):
            session.request(_flush(session, key))
        else:
            ended[key[0]] = None
    for key in _served_elsewhere(session):
        if not session.over and _is_open(session, key):
            session.request(_flush(session, key))
    for connection in ended:
        _await_rest(session, connection)
    session.drain()
    session.collect()  # what that had us answer may be answered in turn
    session.mark("quiescent")


def _flush(session: Session, key: ChannelKey) -> Frame:
    """A request that the channel answers itself, and that changes nothing.

    Where the channel has a limit of its own that is channel.flow: up to RabbitMQ 4.2 basic.qos with global=false lifts
    that limit, against the promise (the known defect consumer-limit-lifts-channel-limit). The flag of the last
    basic.qos is kept: it would else be the barrier's that is seen to work.
    """
    channel = session.judge.acceptor.broker.channels[key]
    if channel.channel_prefetch:
        return Frame(*key, "channel.flow", {"active": True}, sent=True)
    is_global = channel.prefetch_from in ("QOS-009", "QOS-010")
    return Frame(*key, "basic.qos", {"prefetch_count": channel.prefetch, "global_": is_global}, sent=True)


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
    name = queue.name
    return (
        not session.over
        and _is_open(session, key)
        and not queue.messages
        and not queue.dropping
        and queue.type is not QueueType.STREAM
        and not (queue.type is QueueType.QUORUM and queue.single_active_consumer)
        and not _may_fill(session, queue)
        and _may_ask_about(session, key[0], queue)
        and (not name.startswith(UNKNOWN_NAME) or session.judge.acceptor.broker.channels[key].last_queue == name)
    )


def _may_fill(session: Session, queue: Queue) -> bool:
    """May there be a message in it all the same? Not all is known while messages expire."""
    brokers = _brokers(session)
    if any(broker.ageing and _has_letters_coming(broker) for broker in brokers):
        return True
    if len(brokers) == 1:
        return False
    others = (broker.queues.get(queue.name) for broker in brokers)
    return any(other is not None and other.messages for other in others)


def _has_letters_coming(broker: Broker) -> bool:
    """Will messages expire, now or soon, that go to another queue then? Which one is not looked at."""
    return any(
        EXCHANGE in queue.arguments
        and any(m.deadline is not None and m.deadline.earliest < broker.latest + SOON for m in queue.messages)
        for queue in broker.ageing
    )


def _deadline(session: Session) -> Callable[[], bool]:
    """Is the time up, asked once a round? Not before some rounds: where there are many explanations it is the judge who
    takes the time, and the broker has answered long ago.
    """
    latest = time.monotonic() + session.target.deadline
    rounds = count(1)
    return lambda: next(rounds) > LEAST_ROUNDS and time.monotonic() > latest


def _clear_doubts(session: Session) -> None:
    """Where it is not known which messages have expired, or which deliveries have timed out: ask for all that these may
    have come to, until it is there.
    """
    is_over = _deadline(session)
    while _is_doubtful(session) and not session.over:
        names = [name for name in session.judge.acceptor.unproven_queues() if _can_be_asked(session, name)]
        if not names:
            return
        if is_over():
            session.mark("overdue", session.target.deadline)
            return
        for name in names:
            _ask_once(session, name)


def _is_doubtful(session: Session) -> bool:
    """Do queues lose messages by themselves, or get them back: as time passes, or by deliveries that nobody saw?"""
    if may_give_up(session.judge.acceptor.explanations):
        return True
    return any(broker.ageing or any(queue.timeouts for queue in broker.queues.values()) for broker in _brokers(session))


def _doubtful(session: Session) -> list[str]:
    """Queues of which it is not known now how many of their messages have expired."""
    names: dict[str, None] = {}
    for broker in _brokers(session):
        for queue in broker.ageing:
            if any(m.deadline is not None and m.deadline.earliest < broker.latest for m in queue.messages):
                names[queue.name] = None
    return list(names)


def _unproven_elsewhere(session: Session) -> list[str]:
    """Queues that something is on its way to by another explanation only."""
    usual = session.judge.acceptor.broker
    unproven = dict.fromkeys(
        name
        for broker in _brokers(session)
        if broker is not usual
        for name, queue in broker.queues.items()
        if queue.unproven
    )
    return [name for name in unproven if name not in usual.queues or not usual.queues[name].unproven]


def _served_elsewhere(session: Session) -> list[ChannelKey]:
    """Channels that are handed something by another explanation only, which has come when they have answered."""
    usual = session.judge.acceptor.broker
    others = (broker for broker in _brokers(session) if broker is not usual)
    served = {queue.name: queue for broker in others for queue in broker.deliverable}
    known = {queue.name for queue in usual.deliverable}
    consumers = (consumer for name, queue in served.items() if name not in known for consumer in queue.consumers)
    return list(dict.fromkeys(consumer.channel for consumer in consumers))


def _ask_once(session: Session, name: str) -> None:
    """Ask for the numbers of messages and consumers: they say which of several explanations is right."""
    if _can_be_asked(session, name) and not session.over:
        _ask(session, _who_can_ask(session, name)[0], name)


def _can_be_asked(session: Session, name: str) -> bool:
    return bool(_who_can_ask(session, name)) and not name.startswith(UNKNOWN_NAME)


def _who_can_ask(session: Session, name: str) -> list[str]:
    """The connections on which the queue can be asked for its numbers, by whichever explanation it is there."""
    queue = next((b.queues[name] for b in _brokers(session) if name in b.queues), None)
    return [] if queue is None else _askers(session, queue)


def _brokers(session: Session) -> list[Broker]:
    return [explanation.broker for explanation in session.judge.acceptor.explanations]


def _await_clean_up(session: Session) -> None:
    """Ask for queues whose connection was lost until they are gone (CONN-021), or the deadline has passed."""
    is_over = _deadline(session)
    connections = _open_connections(session)
    while connections and not session.over and (name := _abandoned(session)) is not None:
        _ask(session, connections[0], name)
        if is_over():
            session.mark("overdue", session.target.deadline)
            _ask(session, connections[0], name)  # what it says now is the verdict
            return


def _await_auto_delete(session: Session, name: str) -> None:
    """An auto-delete queue that goes with its last consumer takes its bindings with it some time after cancel-ok, and
    the answer to a passive declare comes behind that.
    """
    broker = session.judge.acceptor.broker
    if name in broker.queues or broker.ended_queues.get(name) != "QUEUE-021" or session.over:
        return
    connections = [each for each in _open_connections(session) if _has_channels_to_spare(session, each)]
    if connections:
        _ask(session, connections[0], name)


def _abandoned(session: Session) -> str | None:
    """A queue that may still be there though the connection that it is exclusive to is lost."""
    broker = session.judge.acceptor.broker
    for queue in broker.queues.values():
        if queue.owner is not None and broker.connections[queue.owner].state is ConnectionState.CLOSED:
            return queue.name
    return None


def _ask(session: Session, connection: str, name: str) -> None:
    """Declare the queue passively, on the service channel, which an error may have closed before."""
    if not _is_open(session, (connection, SERVICE_CHANNEL)):
        session.request(Frame(connection, SERVICE_CHANNEL, "channel.open", {}, sent=True))
    declare = {"queue": name, "passive": True}
    session.request(Frame(connection, SERVICE_CHANNEL, "queue.declare", declare, sent=True))


def _await_rest(session: Session, connection: str) -> None:
    """A round trip of the connection where a channel has ended: what the broker says behind its close came before."""
    if session.over or connection not in _open_connections(session) or not _has_channels_to_spare(session, connection):
        return
    service = (connection, SERVICE_CHANNEL)
    if _is_open(session, service):
        session.request(_flush(session, service))
    else:
        session.request(Frame(*service, "channel.open", {}, sent=True))


def _has_channels_to_spare(session: Session, name: str) -> bool:
    """Not where the client asked for fewer than the broker offers: the sequence is about their number then."""
    connection = session.judge.acceptor.broker.connections[name]
    return bool(connection.channel_max == connection.offered.get("channel_max", connection.channel_max))


def _counts_holders(session: Session, queue: Queue) -> bool:
    return queue.type is QueueType.QUORUM and session.judge.acceptor.broker.holders(queue) > 0


def _compare_counts(session: Session, names: list[str]) -> None:
    """Ask for the numbers of messages and consumers until they are the model's, or the deadline has passed.

    In turns: what has come to one queue may be told by the next, which gave it up.
    """
    is_over = _deadline(session)
    left = [name for name in names if _is_to_be_counted(session, name)]
    while left and not session.over:
        left = [name for name in left if not _is_as_counted(session, name)]
        if left and is_over():
            # if a known defect explains it, what it drives out of the queue may have come to another one
            for name in _unproven_elsewhere(session):
                _ask_once(session, name)
            session.mark("overdue", session.target.deadline)
            return


def _is_to_be_counted(session: Session, name: str) -> bool:
    queue = _queue(session, name)
    # nobody can ask for a queue of unknown name on another channel
    if queue is None or queue.type is QueueType.STREAM or name.startswith(UNKNOWN_NAME):
        return False
    return bool(queue.messages or queue.unproven or queue.dropping or queue.leaving)


def _is_as_counted(session: Session, name: str) -> bool:
    """Ask once. Are the numbers the model's, or is there nobody to ask?"""
    queue = _queue(session, name)
    if queue is None:
        return True
    connections = _askers(session, queue)
    if not connections:
        return True
    _ask(session, connections[0], name)
    queue = _queue(session, name)
    if queue is None or owes_nothing(session.judge.acceptor.broker, queue):
        return True
    if _is_doubtful(session) and session.judge.acceptor.may_be_proven(name):
        return True
    # a quorum queue counts those who hold its deliveries as consumers, so their number never becomes the model's
    return not queue.unproven and not queue.dropping and (not queue.leaving or _counts_holders(session, queue))


def _askers(session: Session, queue: Queue) -> list[str]:
    """The connections on which the queue can be asked for its numbers."""
    return [
        each
        for each in _open_connections(session)
        if _may_ask_about(session, each, queue) and _has_channels_to_spare(session, each)
    ]


# ----------------------------------------------------------------------------------- who can be asked what


def _open_connections(session: Session) -> list[str]:
    return [
        name
        for name, connection in session.judge.acceptor.broker.connections.items()
        if connection.state is ConnectionState.OPEN and _answers(session, connection)
    ]


def _is_open(session: Session, key: ChannelKey) -> bool:
    broker = session.judge.acceptor.broker
    channel = broker.channels.get(key)
    if channel is None or channel.state is not ChannelState.OPEN or channel.assembly is not None:
        return False
    return _answers(session, broker.connections[key[0]])


def _answers(session: Session, connection: Connection) -> bool:
    """May it be asked questions? The broker does not read a blocked connection, and takes what follows a lie about
    a frame's size for something else.
    """
    return session.is_usable(connection.name) and not connection.blocked and not connection.out_of_step


def _may_ask_about(session: Session, connection: str, queue: Queue) -> bool:
    """May whoever has the connection ask about the queue?"""
    broker = session.judge.acceptor.broker
    asking = broker.connections[connection]
    return queue.owner in (None, connection) and asking.vhost == queue.vhost and asking.user not in broker.users
