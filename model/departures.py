"""Departures: known wrong behaviour of brokers, each a way to go on after a failure.

A departure never makes a run green. Where it applies, the judge follows it beside the lawful explanation. When the
lawful one dies and the departure explains what was seen, the failure is recorded with the departure's name, and
judging goes on from the state that the departure leads to: so a known defect does not hide unknown ones behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from model.alphabet import Frame
from model.broker import Broker
from model.dialects import Dialect, ExclusiveQuorumConsumer
from model.state import ChannelState, QueueType


@dataclass(frozen=True, slots=True)
class Departure:
    """One known wrong behaviour: the promise it breaks, who does it, and where that was read or seen."""

    name: str
    requirement: str
    statement: str
    source: str
    #: names of the dialects whose brokers do it
    dialects: tuple[str, ...]
    #: does this input, in this state, come under it?
    applies: Callable[[Broker, Frame], bool]
    #: the choices of the dialect that it changes while the input is processed
    choices: tuple[tuple[str, Any], ...]

    def dialect(self, dialect: Dialect) -> Dialect:
        return replace(dialect, **dict(self.choices))


def _consumes_exclusively_beside(broker: Broker, frame: Frame) -> bool:
    if frame.method != "basic.consume":
        return False
    channel = broker.channels.get((frame.connection, frame.channel))
    if channel is None or channel.state is not ChannelState.OPEN:
        return False
    queue = broker.queues.get(frame.arguments.get("queue", "") or channel.last_queue or "")
    if queue is None or queue.type is QueueType.CLASSIC or not queue.consumers:
        return False
    return bool(frame.arguments.get("exclusive")) or any(consumer.exclusive for consumer in queue.consumers)


DEPARTURES: tuple[Departure, ...] = (
    Departure(
        name="exclusive-consumer-ignored",
        requirement="CONSUME-008",
        statement="Quorum queues and streams take the exclusive flag of basic.consume and do not act on it.",
        source="rabbit_quorum_queue:consume, rabbit_stream_queue:consume (exclusive_consume only enters the metrics)",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        applies=_consumes_exclusively_beside,
        choices=(("exclusive_quorum_consumer", ExclusiveQuorumConsumer.IGNORED),),
    ),
)


def departures_of(dialect: Dialect) -> tuple[Departure, ...]:
    return tuple(departure for departure in DEPARTURES if dialect.name in departure.dialects)
