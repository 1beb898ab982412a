"""What 3.10 to 3.12 make of deliveries of a stream that are given back (rabbit_stream_queue:settle).

There a stream knows acknowledgements only. It refuses basic.nack and basic.reject with 540, an answer that the way of
basic.recover does not look for (rabbit_channel:handle_method basic.recover_async), so that the channel crashes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, Unacknowledged
from amqpspec.model.broker.hooks import Guest, once_awake
from amqpspec.model.broker.queues import Queue
from amqpspec.model.broker.ruling import Outcome, Ruling
from amqpspec.model.defects.settled_tags import settles
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.versions import versions
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.basic.requeue import by_consumer, give_back, return_order
from amqpspec.model.rules.basic.settlement import Settled
from amqpspec.model.rules.common.lookup import queue_text
from amqpspec.model.rules.extensions.dead_letter import discard_message
from amqpspec.model.rules.extensions.stream_settlement import is_of_stream
from amqpspec.model.rules.inputs import process

NAME = "stream settlement"
_RECOVERIES = ("basic.recover", "basic.recover-async")
_MENDED = (versions("3.10.0", "3.12.14"),)


@dataclass(slots=True)
class SettlementMemory:
    #: streams refuse what is being processed
    is_refusing: bool = False


class StreamSettlement(Guest):
    """Refuses where a broker with the defect is followed."""

    name = NAME

    def new_memory(self) -> SettlementMemory:
        return SettlementMemory()

    @once_awake
    def streams_settled(
        self, broker: Broker, channel: Channel, settled: Sequence[tuple[int, Unacknowledged]], ruling: Ruling | None
    ) -> None:
        if not broker.remembered(NAME).is_refusing:
            return
        first = min((entry.queue.name for _, entry in settled if is_of_stream(entry)), key=str.encode)
        if ruling is None:
            _hold_again(broker, channel, list(settled), first, requeue=True, failed=True)
            raise ProtocolError("STREAM-007", 541, "", identifiers=(0, 0))
        is_requeued = ruling.outcome is Outcome.REQUEUED
        _hold_again(broker, channel, list(settled), first, requeue=is_requeued, failed=ruling.failed)
        where = queue_text(broker, channel, first)
        raise ProtocolError("ACK-021", 540, f"basic.nack and basic.reject not supported by stream queues {where}")

    def fingerprint(self, broker: Broker) -> object:
        return None  # it is empty but for a moment


def _memory(broker: Broker) -> SettlementMemory:
    memory: SettlementMemory = broker.remembered(NAME)
    return memory


def _hold_again(
    broker: Broker,
    channel: Channel,
    settled: Settled,
    first: str,
    *,
    requeue: bool,
    failed: bool,
) -> None:
    """The queues are told one by one in the order of their names (rabbit_channel:foreach_per_queue).

    What the stream's refusal comes before is still held when the connection ends, and goes back to its queue then.
    """
    told: dict[Queue, Settled] = {}
    for tag, entry in settled:
        if entry.queue.name.encode() >= first.encode():
            channel.unacknowledged[tag] = entry
        else:
            told.setdefault(entry.queue, []).append((tag, entry))
    channel.unacknowledged = dict(sorted(channel.unacknowledged.items()))
    counts = not broker.dialect.quorum_nack_has_not_failed
    for queue, entries in told.items():
        broker.touch(channel, queue)
        if requeue:
            give_back(broker, queue, return_order(queue, entries), "ACK-013", failed=counts, holder=channel.key)
        else:
            for _, entry in entries:
                broker.note_gone(queue, entry.message, "ACK-013")
            for message in by_consumer(entries):
                discard_message(broker, queue, message, channel.key, failed)
        # its consumer has room now, and may be handed more before the channel ends (model.rules.basic.unseen)
        broker.refresh(queue)


def process_refusing(broker: Broker, method: Method) -> None:
    """Process an input that gives back deliveries of streams, as these versions do."""
    memory = _memory(broker)
    memory.is_refusing = True
    process(broker, method)
    memory.is_refusing = False


def _gives_back(broker: Broker, method: Method) -> bool:
    """Does the input give back a delivery of a stream, at once?"""
    channel = broker.open_channel(method)
    if channel is None:
        return False
    if channel.transaction is not None and method.name in ("basic.nack", "basic.reject"):
        return False
    if method.name in _RECOVERIES and not method.arguments.get("requeue"):
        return False
    return any(is_of_stream(entry) and settles(channel, method, tag) for tag, entry in channel.unacknowledged.items())


STREAM_SETTLEMENT_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="stream-refuses-rejection",
        requirement="ACK-021",
        strength=Strength.CONVENTIONAL,
        statement="basic.nack and basic.reject of a delivery from a stream, also in a transaction, close the connection"
        " with 540.",
        source="v3.12.14 rabbit_stream_queue:settle; mended in 3.13.0",
        dialects=("rabbitmq-3",),
        versions=_MENDED,
        methods=("basic.nack", "basic.reject", "tx.commit"),
        applies=_gives_back,
        process=process_refusing,
    ),
    DefectTransition(
        name="recover-breaks-on-stream",
        requirement="STREAM-007",
        strength=Strength.PROMISED,
        statement="basic.recover and basic.recover-async on a channel that holds a delivery from a stream crash it; the"
        " connection closes with 541.",
        source="v3.12.14 rabbit_channel:handle_method basic.recover_async, rabbit_stream_queue:settle; up to 3.12",
        dialects=("rabbitmq-3",),
        versions=_MENDED,
        methods=_RECOVERIES,
        applies=_gives_back,
        process=process_refusing,
    ),
)
