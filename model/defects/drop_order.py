"""The order in which a quorum queue dead-letters what it drops at one time (v4.0.5 rabbit_fifo:drop_head).

It goes through what is too much from the oldest on, and puts the effects of each drop in front of those of the earlier
ones: the latest is the first to be dead-lettered. Mended in 4.2.1 and 4.3.0, as their release notes say.
"""

from __future__ import annotations

from dataclasses import dataclass

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.copying import copy_broker
from amqpspec.model.broker.dead_letter_headers import EXCHANGE
from amqpspec.model.broker.hooks import Guest, arm, once_awake
from amqpspec.model.broker.internal_events import Input
from amqpspec.model.broker.queues import Queue
from amqpspec.model.defects.dead_letters import LETTER_EVENTS, LETTER_METHODS
from amqpspec.model.defects.no_dead_letters import makes_no_dead_letters
from amqpspec.model.judging.known_defect import ANY_NUMBER, DefectTransition
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.versions import versions
from amqpspec.model.rules.inputs import process

NAME = "drop order"

#: The limits of a queue.
_LIMITS = ("x-max-length", "x-max-length-bytes")


@dataclass(slots=True)
class DropMemory:
    """Nothing of it outlasts an input."""

    #: the letters of one drop go in the opposite order now
    turns: bool = False
    #: looks whether there are several, and finds some
    watches: bool = False
    several: bool = False


class DropOrder(Guest):
    """Matters where a quorum queue with a limit dead-letters what is too much."""

    name = NAME

    def new_memory(self) -> DropMemory:
        return DropMemory()

    def queue_declared(self, broker: Broker, queue: Queue) -> None:
        arguments = queue.arguments
        if queue.type is QueueType.QUORUM and EXCHANGE in arguments and any(name in arguments for name in _LIMITS):
            arm(broker, NAME)

    @once_awake
    def letters_turn_around(self, broker: Broker, queue: Queue, is_of_several: bool) -> bool | None:
        if queue.type is not QueueType.QUORUM or EXCHANGE not in queue.arguments:
            return None
        memory = broker.remembered(NAME)
        memory.several |= memory.watches and is_of_several
        return True if memory.turns else None


def _drops_several(broker: Broker, event: Input) -> bool:
    if makes_no_dead_letters(broker, event):
        return False
    lawful = copy_broker(broker)
    lawful.remembered(NAME).watches = True
    process(lawful, event)
    return bool(lawful.remembered(NAME).several)


def _drop_latest_letter_first(broker: Broker, event: Input) -> None:
    memory = broker.remembered(NAME)
    memory.turns = True
    process(broker, event)
    memory.turns = False


DROP_ORDER_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="drops-latest-letter-first",
        requirement="DLX-009",
        strength=Strength.PROMISED,
        statement="Of what a quorum queue drops at one time for its limit, the latest is dead-lettered first.",
        source="v4.0.5 rabbit_fifo:drop_head, DlxEffects ++ Effects; release notes of 4.2.1 and 4.3.0",
        dialects=("rabbitmq-3", "rabbitmq-4.0"),
        methods=LETTER_METHODS,
        internal_events=LETTER_EVENTS,
        guest=NAME,
        applies=_drops_several,
        process=_drop_latest_letter_first,
        shows_within=ANY_NUMBER,
        is_steady=True,
        versions=(versions("3.10.0", "4.2.0"),),
    ),
)
