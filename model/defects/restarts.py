"""What a restart does otherwise than promised (area DURABLE)."""

from __future__ import annotations

from functools import partial

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.dead_letter_headers import EXCHANGE, is_dead_letter
from amqpspec.model.broker.survival import DURABLE, GIVEN_BACK, HELD, LETTERS, QUORUM
from amqpspec.model.judging.known_defect import OutputDefect
from amqpspec.model.judging.windows import CRASH, EVERYTHING, SERVICE, Difference, Part, Scope, Window, of_any
from amqpspec.model.outputs.mismatch import Mismatch
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.verdict import Shape
from amqpspec.model.protocol.methods import Method, OperatorAction
from amqpspec.model.rules.operator.faults import KILLED

_at_start = partial(Window, kinds=("broker.restart",))
#: Seconds in which the name of a new queue is written down, and in which a kill takes place.
_NOTED_AFTER = 1.5


def _forgets(requirement: str, broker: Broker, method: Method, mismatch: Mismatch) -> bool:
    is_flag = mismatch.shape is Shape.WRONG_ARGUMENT and mismatch.detail.endswith(" redelivered")
    return is_flag and mismatch.requirement == requirement and not method.arguments.get("redelivered")


def _kills_dead_letters(broker: Broker, action: OperatorAction) -> Scope | None:
    quorum = (queue for queue in broker.queues.values() if queue.type is QueueType.QUORUM)
    is_killed = broker.down_by == KILLED
    return EVERYTHING if is_killed and any(EXCHANGE in queue.arguments for queue in quorum) else None


def _has_new_queue(broker: Broker, action: OperatorAction) -> Scope | None:
    if broker.down_by != KILLED:
        return None
    replicated = (queue for queue in broker.queues.values() if queue.type is not QueueType.CLASSIC)
    return of_any(broker, (queue for queue in replicated if broker.now - queue.made_at < _NOTED_AFTER))


def _is_of_letter(broker: Broker, difference: Difference) -> bool:
    """It comes where it has come before; or a number counts it."""
    if difference.part is Part.COUNT:
        return True
    event = difference.event
    return isinstance(event, Method) and event.content is not None and is_dead_letter(event.content)


_forgotten = partial(
    OutputDefect,
    source="v4.3.4 rabbit_variable_queue:set_deliver_flag, maybe_inc_delivery_count (only failed deliveries are kept"
    " over a stop)",
    dialects=("rabbitmq-4.3",),
)

FORGOTTEN_FLAGS: tuple[OutputDefect, ...] = (
    _forgotten(
        name="stop-forgets-redelivered",
        requirement=GIVEN_BACK,
        statement="A message that was given back to a classic queue by basic.nack or basic.recover comes with"
        " redelivered=false when the broker was stopped and started again.",
        explains=partial(_forgets, GIVEN_BACK),
    ),
    _forgotten(
        name="stop-forgets-held",
        requirement=HELD,
        statement="A message of a classic queue that a client holds when the broker is stopped comes with"
        " redelivered=false, where the queue stops before it has heard of the end of the channel.",
        by_chance=True,
        explains=partial(_forgets, HELD),
    ),
)

RESTARTS: tuple[Window, ...] = (
    _at_start(
        name="transient-exchange-survives",
        requirement=DURABLE,
        statement="A transient exchange is there again when the broker was stopped or killed, with its bindings to"
        " durable queues.",
        source="rabbit_db_exchange:recover_in_khepri (the metadata store keeps them all)",
        dialects=("rabbitmq-4.3",),
        spoils=SERVICE | {Part.REPLY, Part.CONFIRM, Part.CHANNEL_CLOSE},
        arms=lambda broker, action: None if all(each.durable for each in broker.exchanges.values()) else EVERYTHING,
        # it is used where it should be gone
        explains=lambda broker, it: it.requirement == DURABLE and it.queue is None,
    ),
    _at_start(
        name="kill-forgets-new-queue",
        requirement=QUORUM,
        statement="A quorum queue or stream that was declared less than half a second before a kill has lost its"
        " messages, also those that were confirmed, or is not served any more.",
        source="ra_directory.erl, auto_save (the names of queues are written every 500 ms)",
        by_chance=True,
        spoils=CRASH,
        arms=_has_new_queue,
    ),
    _at_start(
        name="kill-repeats-dead-letters",
        requirement=LETTERS,
        statement="A dead letter of a quorum queue comes a second time when the broker was killed.",
        source="v3.10.9 rabbit_fifo: the effect that publishes it is part of the log, which is read anew",
        dialects=("rabbitmq-3",),
        by_chance=True,
        arms=_kills_dead_letters,
        explains=_is_of_letter,
    ),
)
