"""Known defects (`model.defects.transitions`) of dead-lettering."""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.copying import copy_broker
from amqpspec.model.broker.dead_letter_headers import EXCHANGE
from amqpspec.model.broker.hooks import Guest, arm
from amqpspec.model.broker.internal_events import (
    ChannelCrash,
    ConnectionTeardown,
    DeliveryLimitExcess,
    Input,
    MessageExpiry,
)
from amqpspec.model.broker.queues import Queue
from amqpspec.model.defects.no_dead_letters import makes_no_dead_letters
from amqpspec.model.judging.known_defect import ANY_NUMBER, DefectTransition
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.rules.inputs import process

#: What can make a dead letter: refusals, returns beyond a limit, also by an error, a full queue, and time.
LETTER_METHODS = (
    "basic.nack", "basic.reject", "basic.recover", "basic.recover-async", "basic.ack", "basic.publish", "basic.consume",
    "basic.get", "basic.qos", "queue.declare", "queue.delete", "channel.open", "channel.close", "connection.close",
    "socket.abort", "tx.commit",
)  # fmt: skip
LETTER_EVENTS = (ChannelCrash, ConnectionTeardown, MessageExpiry, DeliveryLimitExcess)


NAME = "dead letters to streams"


class DeadLettersToStreams(Guest):
    """Matters where there are both a stream and a queue that dead-letters."""

    name = NAME

    def queue_declared(self, broker: Broker, queue: Queue) -> None:
        if _may_send_to_stream(broker):
            arm(broker, NAME)


def _may_send_to_stream(broker: Broker) -> bool:
    return bool(_streams(broker)) and any(EXCHANGE in queue.arguments for queue in broker.queues.values())


def _streams(broker: Broker) -> list[Queue]:
    return [queue for queue in broker.queues.values() if queue.type is QueueType.STREAM]


def _letters(broker: Broker) -> int:
    return sum(bool(message.deaths) for queue in _streams(broker) for message in queue.log)


def _sends_to_stream(broker: Broker, event: Input) -> bool:
    """Does the input bring about a dead letter that goes to a stream?"""
    if not _may_send_to_stream(broker) or makes_no_dead_letters(broker, event):
        return False
    lawful = copy_broker(broker)
    process(lawful, event)
    return _letters(lawful) > _letters(broker)


def _lose_on_the_way_to_stream(broker: Broker, event: Input) -> None:
    ends = {queue: len(queue.log) for queue in _streams(broker)}
    process(broker, event)
    for queue, end in ends.items():
        if any(message.deaths for message in queue.log[end:]):
            queue.log[end:] = [message for message in queue.log[end:] if not message.deaths]
            for offset, message in enumerate(queue.log[end:], end):
                message.position = offset  # what was published by the same commit moves up
            queue.next_position = len(queue.log)
            queue.chunk_starts = {offset: begins for offset, begins in queue.chunk_starts.items() if offset < end}
            broker.refresh(queue)


DEAD_LETTER_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="stream-takes-no-dead-letters",
        requirement="DLX-005",
        strength=Strength.ARGUABLE,
        statement="A dead letter that is routed to a stream is lost.",
        source="v3.10.9 rabbit_stream_queue:deliver does nothing for a delivery without state, which is what"
        " rabbit_dead_letter:publish makes",
        dialects=("rabbitmq-3",),
        methods=LETTER_METHODS,
        internal_events=LETTER_EVENTS,
        guest=NAME,
        applies=_sends_to_stream,
        process=_lose_on_the_way_to_stream,
        shows_within=ANY_NUMBER,
        is_steady=True,
    ),
)
