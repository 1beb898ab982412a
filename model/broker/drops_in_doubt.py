"""What was dropped from the head of a queue with a limit while that which drives it out may not have come yet.

It may still be seen there (`model.broker.queues.Dropping`); then its dead letters have never been, and have driven out
nothing elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from amqpspec.model.broker.broker_state import BrokerState
from amqpspec.model.broker.length_limits import LENGTH, exceeded, handed_over_at_once, size, waiting_in
from amqpspec.model.broker.owed import PendingGet
from amqpspec.model.broker.queues import Dropping, Message, Queue


def forget_dropped(queue: Queue, message: Message, gets: Iterable[PendingGet] = ()) -> None:
    """The message has come to the queue, and so has what its channel published before it.

    `gets`: to which the answers may be under way yet, and were given before it came.
    """
    queue.dropping[:] = [
        each
        for each in queue.dropping
        if (each.cause is not message and (each.cause.via != message.via or each.cause.position > message.position))
        or any(get.position_limit <= each.cause.position for get in gets)
    ]


def most_ready(queue: Queue) -> int:
    """How many messages there may be, if none of those that are to drive others out has come yet."""
    if not queue.dropping:
        return len(queue.messages)
    most = len(queue.messages) + len(queue.dropping)
    limit: int = queue.in_force.get(LENGTH, most)
    return max(min(most, limit), len(queue.messages))


def undo_drop(broker: BrokerState, queue: Queue, message: Message) -> None:
    """The message was seen to leave the queue in another way, before what would have driven it out had come."""
    place = next(place for place, each in enumerate(queue.dropping) if each.message is message)
    _take_back(broker, queue, queue.dropping[place])
    del queue.dropping[: place + 1]  # the earlier ones have been driven out


def _take_back(broker: BrokerState, queue: Queue, dropping: Dropping) -> None:
    """The message is ready, and its dead letters have never been."""
    for target, letter in dropping.letters:
        if letter in target.messages:
            target.messages.remove(letter)
            target.unproven.pop(letter, None)
            _make_room(broker, target, letter)
            continue
        # it was driven out itself: what it had driven out has made room for that later one
        later = next((each for each in target.dropping if each.message is letter), None)
        if later is not None:
            _forget_going(target, letter)
            target.dropping.remove(later)
            target.dropping[:] = [
                replace(each, cause=later.cause) if each.cause is letter else each for each in target.dropping
            ]
    _forget_going(queue, dropping.message)
    queue.messages.insert(queue.returned, dropping.message)


def _forget_going(queue: Queue, message: Message) -> None:
    """It has never gone. That it had is known only if it was of late."""
    message.had_no_room = False
    queue.gone = tuple([each for each in queue.gone if not each.is_of(message)])


def _make_room(broker: BrokerState, queue: Queue, absent: Message) -> None:
    """What was driven out last comes back that would not have been without the absent message."""
    while queue.dropping and queue.dropping[-1].cause.position >= absent.position:
        last = queue.dropping[-1]
        waiting, octets = waiting_in(broker, queue, handed_over_at_once(broker, queue))
        if exceeded(queue, waiting + 1, octets + size(broker, queue, [last.message])):
            return
        queue.dropping.remove(last)
        _take_back(broker, queue, last)
