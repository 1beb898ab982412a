"""What is open: exchanges and queues that do what nobody can follow, because of a word that the model does not know.

A plugin may add a type of exchanges, an argument or an exchange of its own. What such a word makes of a message no rule
says: where it goes, when, and whether it is kept. So an exchange that is open may send anything to whatever is bound to
it, and a queue that it may send to is open as well: in an open queue any message may be ready, or none, and nothing is
owed because it is there. What a channel promises is judged all the same: replies and their order, tags, limits,
settlements, and that each publish is confirmed once.

`open_by` names the word, of an exchange or a queue. Once a queue is open it stays so as long as it is there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from amqpspec.model.broker.broker_state import BrokerState
from amqpspec.model.broker.message_order import note_all_left
from amqpspec.model.broker.queues import Message, Queue, is_behind
from amqpspec.model.broker.routing import reachable
from amqpspec.model.broker.stream_log import may_have_begun
from amqpspec.model.broker.survival import may_hand_out, note_doubts
from amqpspec.model.protocol.methods import EMPTY_CONTENT, Method, Table

#: Begins the words of this kind: the text keeps it for types of exchanges that are not its own (0-9-1 section 3.1.3.6),
#: RabbitMQ and its plugins have it before their arguments.
EXTENSION = "x-"


def unknown_argument(table: Table, known: Collection[str]) -> str | None:
    """The first argument that may mean something and that the model does not know."""
    return next((name for name in table if name.startswith(EXTENSION) and name not in known), None)


def note_undecided(broker: BrokerState, word: str) -> None:
    """What depends on this word is not judged."""
    broker.bookkeeping.undecided[f"the model does not know the {word}, so what depends on it was not judged"] = None


def open_queue(broker: BrokerState, queue: Queue, word: str) -> None:
    """From now on nobody can tell what the queue does, because of this word."""
    if not queue.open_by:
        begin_openness(broker, queue, word)
        note_undecided(broker, word)


def begin_openness(broker: BrokerState, queue: Queue, why: str) -> None:
    """From now on nobody can tell what the queue does."""
    queue.open_by = why
    broker.has_open = True
    note_all_left(queue)
    queue.unproven.clear()
    note_doubts(broker)
    queue.dropping.clear()
    queue.still_counted = 0
    broker.deliverable.pop(queue, None)
    broker.ageing.pop(queue, None)
    broker.expiring.pop(queue.name, None)


def spread(broker: BrokerState) -> None:
    """Whatever an open exchange or queue may send something to is open."""
    # an exchange is open for nothing else
    words = {exchange.open_by for exchange in broker.exchanges.values()}
    is_growing = True
    while is_growing:
        is_growing = False
        for queue, why in list(_reached(broker)):
            if not queue.open_by:
                begin_openness(broker, queue, why)
                if why in words:
                    note_undecided(broker, why)
                is_growing = True


def _reached(broker: BrokerState) -> Iterator[tuple[Queue, str]]:
    for exchange in broker.exchanges.values():
        if exchange.open_by:
            for queue in reachable(broker.exchanges, broker.queues, exchange):
                yield queue, exchange.open_by
    for source in broker.queues.values():
        name = source.in_force.get("x-dead-letter-exchange")
        if not source.open_by or not isinstance(name, str):
            continue
        key = source.in_force.get("x-dead-letter-routing-key")
        if name in broker.exchanges and name:
            targets = reachable(broker.exchanges, broker.queues, broker.exchanges[name])
        else:
            # a message that nobody knows may have any key
            targets = [each for each in broker.queues.values() if not name and key in (None, each.name)]
        for queue in targets:
            yield queue, source.open_by


def message_of(method: Method, queue: Queue) -> Message:
    """What came out of an open queue: it is what it says of itself."""
    arguments = method.arguments
    message = Message(
        method.content or EMPTY_CONTENT,
        arguments.get("exchange", ""),
        arguments.get("routing_key", ""),
        queue.next_position,
        redelivered=bool(arguments.get("redelivered")),
    )
    queue.next_position += 1
    return message


def may_speak(broker: BrokerState) -> bool:
    """May the broker send a delivery that it does not owe?"""
    if broker.has_doubts and may_hand_out(broker):
        return True
    if broker.failed and is_behind(broker.queues.values()):
        return True
    if any(queue.log and any(map(may_have_begun, queue.consumers)) for queue in broker.queues.values()):
        return True
    return broker.has_open and any(queue.open_by and queue.consumers for queue in broker.queues.values())
