"""Quorum queues that forget the next deadline of what they have delivered: RabbitMQ's from 4.3 on (TIMEOUT-021)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, Unacknowledged
from amqpspec.model.broker.connections import ConnectionState
from amqpspec.model.broker.deadlines import NEVER, Deadline
from amqpspec.model.broker.hooks import Guest, once_awake
from amqpspec.model.broker.internal_events import OverdueTimeout
from amqpspec.model.broker.owed import Expected
from amqpspec.model.defects import timed_deliveries
from amqpspec.model.defects.timed_deliveries import DIALECTS
from amqpspec.model.judging.known_defect import ANY_NUMBER, DefectTransition
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.methods import ChannelKey, Method
from amqpspec.model.rules.extensions.timeout_schedule import doubted_delivery

NAME = "forgotten deadlines"

NEXT_DEADLINE_FORGOTTEN = "next-deadline-forgotten"


@dataclass(slots=True)
class DeadlineMemory:
    #: deadlines, by channel, that are over and may have been forgotten
    forgettable: set[tuple[ChannelKey, Deadline]] = field(default_factory=set)


class ForgottenDeadlines(Guest):
    """A queue that has several deadlines may have forgotten the next one."""

    name = NAME

    def new_memory(self) -> DeadlineMemory:
        return DeadlineMemory()

    def delivery_timed_out(self, broker: Broker, channel: Channel, entry: Unacknowledged) -> None:
        if entry.queue.deadlines > 1 and entry.deadline is not None:
            broker.remembered(NAME).forgettable.add((channel.key, entry.deadline))

    @once_awake
    def came_to_rest(self, broker: Broker) -> None:
        broker.remembered(NAME).forgettable.clear()

    def fingerprint(self, broker: Broker) -> object:
        """Which ones is of no matter but to the frame that does not come."""
        return bool(broker.remembered(NAME).forgettable)


def _is_next(broker: Broker, event: OverdueTimeout) -> bool:
    """Had the queue another deadline before?"""
    found = doubted_delivery(broker, event)
    return found is not None and found[1].queue.deadlines > 1


def _forget_next(broker: Broker, event: OverdueTimeout) -> None:
    """With it all of the queue's that came after it: the next delivery, or what else happens there, may remind it."""
    found = doubted_delivery(broker, event)
    if found is None:
        return
    for channel in broker.channels.values():
        for entry in channel.unacknowledged.values():
            if entry.queue is found[1].queue and entry.deadline is not None:
                entry.deadline = replace(entry.deadline, by=NEVER)


def is_forgotten(broker: Broker, method: Method) -> bool:
    """Is the frame that does not come to tell of a deadline which the queue may have forgotten?"""
    channel = broker.channels.get((method.connection, method.channel))
    if channel is None or broker.connections[method.connection].state is not ConnectionState.OPEN:
        return False
    tag = method.arguments.get("consumer_tag")  # notices of several consumers may be owed
    for owed in channel.owed:
        if isinstance(owed, Expected) and owed.method == method.name and owed.arguments.get("consumer_tag") == tag:
            return owed.due is not None and (channel.key, owed.due.deadline) in broker.remembered(NAME).forgettable
    return False


FORGOTTEN_DEADLINE_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name=NEXT_DEADLINE_FORGOTTEN,
        requirement="TIMEOUT-021",
        strength=Strength.PROMISED,
        statement="When a deadline is over, whether its delivery was settled or not, the next one of the queue may be"
        " forgotten: nothing happens when it has passed, until something else happens to the queue.",
        source="rabbit_fifo:handle_aux eval: no timer is set if the last one was for this very millisecond"
        " (LastConTimeout0 < Ts), and the next deadline is not earlier",
        dialects=DIALECTS,
        by_chance=True,
        methods=(),
        internal_events=(OverdueTimeout,),
        guest=timed_deliveries.NAME,
        applies=_is_next,
        process=_forget_next,
        shows_within=ANY_NUMBER,
    ),
)
