"""Happenings: what a broker does by itself at a moment of its choice, as inputs that no client sends.

A rule puts one on `Broker.happenings`. The acceptor keeps it beside the inputs that are under way, and tries at every
point whether it has come about already. Unlike an input it may stay open when the broker is at rest.
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.protocol.methods import Frame
from amqpspec.model.rules.basic.unseen import GIVE_UP, LOSE, doubted, drop_over_limit, lose_message, lost_message
from amqpspec.model.rules.connection.closing import CLEAN_UP, clean_up
from amqpspec.model.rules.extensions.consumer_timeout import TIME_OUT, TIME_OUT_IS_OVER
from amqpspec.model.rules.extensions.message_expiry import EXPIRE as EXPIRE_MESSAGE
from amqpspec.model.rules.extensions.message_expiry import doubted_message, process_message_expiry
from amqpspec.model.rules.extensions.queue_expiry import EXPIRE, is_outstanding, process_expiry
from amqpspec.model.rules.extensions.timeouts import doubted_delivery, process_timeout


def is_happening(frame: Frame) -> bool:
    return frame.method in (EXPIRE, EXPIRE_MESSAGE, TIME_OUT, TIME_OUT_IS_OVER, CLEAN_UP, GIVE_UP, LOSE)


def come_about(broker: Broker, frame: Frame) -> None:
    """It happens now."""
    if frame.method == EXPIRE:
        process_expiry(broker, frame)
    elif frame.method == EXPIRE_MESSAGE:
        process_message_expiry(broker, frame)
    elif frame.method in (TIME_OUT, TIME_OUT_IS_OVER):
        process_timeout(broker, frame)
    elif frame.method == GIVE_UP:
        drop_over_limit(broker, frame)
    elif frame.method == LOSE:
        lose_message(broker, frame)
    else:
        clean_up(broker, frame.connection)


def all_come_about(broker: Broker) -> None:
    """For a broker that is no judge of another: what it may do it does, at once; it delivers nothing unseen."""
    while broker.happenings:
        happening = broker.happenings.pop(0)
        if happening.method not in (GIVE_UP, LOSE):
            come_about(broker, happening)


def can_come_about(broker: Broker, frame: Frame) -> bool:
    """Would it still make a difference?"""
    if frame.method == EXPIRE:
        return is_outstanding(broker, frame)
    if frame.method == EXPIRE_MESSAGE:
        return doubted_message(broker, frame) is not None
    if frame.method == TIME_OUT:
        return doubted_delivery(broker, frame) is not None
    if frame.method == GIVE_UP:
        return doubted(broker, frame) is not None
    if frame.method == LOSE:
        return lost_message(broker, frame) is not None
    return any(queue.owner == frame.connection for queue in broker.queues.values())
