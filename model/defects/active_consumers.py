"""Queues with a single active consumer that have none, or the wrong one, when that changes.

An active consumer of a quorum queue is `quiescing` (rabbit_fifo) while one of higher priority waits for it to settle
everything; it stays so when the waiting one is gone. RabbitMQ 3 makes another consumer of a classic queue active and
does not run the queue (rabbit_amqqueue_process).
"""

from __future__ import annotations

from functools import partial

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.internal_events import DeliveryTimeout
from amqpspec.model.defects.situations import ENDS, OFTEN_WRONG, RECOVERIES, REFUSALS, named_consumer, single_active
from amqpspec.model.judging.windows import CRASH, Part, Scope, Window, of_any, of_queues
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Method

_ANY = tuple(dict.fromkeys((*ENDS, *OFTEN_WRONG)))


def _leaves_backlog(broker: Broker, method: Method) -> Scope | None:
    consumer = named_consumer(broker, method)
    if consumer is None or consumer.queue not in single_active(broker, QueueType.CLASSIC):
        return None
    others = [each.channel for each in consumer.queue.consumers if each is not consumer]
    if consumer.queue.active.consumer is not consumer or not others:
        return None
    where = of_queues(broker, [consumer.queue], *others)
    # the next publish may crash the queue, of which the publisher hears as well
    return Scope(where.queues, where.channels, frozenset(broker.connections), where.is_everything)


_quiescing = partial(
    Window, arms=lambda broker, _: of_any(broker, (each for each in single_active(broker) if each.active.is_quiescing))
)

ACTIVE_CONSUMERS: tuple[Window, ...] = (
    Window(
        name="cancel-leaves-backlog",
        requirement="SAC-002",
        statement="When the active consumer of a classic queue is cancelled, the one that follows it is not handed what"
        " is ready. The next publish hands it the new message first, or crashes the queue.",
        source="rabbit_amqqueue_process:handle_call basic_cancel does not run the queue; attempt_delivery, badmatch",
        dialects=("rabbitmq-3",),
        spoils=CRASH | {Part.CANCEL, Part.CONFIRM},
        kinds=("basic.cancel",),
        arms=_leaves_backlog,
    ),
    _quiescing(
        name="return-activates-nobody",
        requirement="SAC-004",
        statement="When the active consumer gives back the last of what it holds, while one of higher priority waits,"
        " that one does not become active, nor does any other.",
        source="rabbit_fifo:return does not call activate_next_consumer",
        dialects=("rabbitmq-4.0",),
        kinds=(*REFUSALS, *RECOVERIES),
    ),
    _quiescing(
        name="quiescing-consumer-starves",
        requirement="SAC-004",
        statement="When the consumer of higher priority ends before it became active, the active one is handed nothing"
        " until it has settled everything; then another one of its priority may become active.",
        source="rabbit_fifo:cancel_consumer of a waiting consumer leaves the active one quiescing",
        dialects=("rabbitmq-4.0", "rabbitmq-4.3"),
        by_chance=True,
        kinds=_ANY,
    ),
    _quiescing(
        name="closed-consumer-keeps-messages",
        requirement="CHAN-016",
        statement="When the channel of an active consumer ends while one of higher priority waits for it to settle its"
        " messages, the queue goes on to take it for one that waits. When its turn comes it becomes active, and the"
        " messages go to it; nobody is served.",
        source="v4.3.5 rabbit_fifo:return_one, update_or_remove_con: with the last message one that is quiescing is"
        " put among the waiting ones, and handle_down does not take it from there",
        dialects=("rabbitmq-4.3",),
        by_chance=True,
        kinds=(*_ANY, DeliveryTimeout),
    ),
)
