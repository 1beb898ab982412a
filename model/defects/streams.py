"""Streams as a channel reads and settles them (rabbit_stream_queue, whose state is kept by the channel's process)."""

from __future__ import annotations

from functools import partial

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.queues import Consumer
from amqpspec.model.defects.situations import RECOVERIES, REFUSALS, settled
from amqpspec.model.judging.windows import CRASH, Difference, Part, Window, of_connection
from amqpspec.model.outputs.stream_deliveries import BEYOND_LIMIT
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.versions import versions
from amqpspec.model.rules.extensions.stream_settlement import is_of_stream


def _is_rest_of_chunk(broker: Broker, difference: Difference) -> bool:
    """Is a consumer that has begun handed more than its limit?"""
    mismatch = difference.mismatch
    about = mismatch.about if mismatch is not None and mismatch.detail == BEYOND_LIMIT else None
    return isinstance(about, Consumer) and about.has_begun


_giving_back = partial(
    Window,
    dialects=("rabbitmq-3",),
    versions=(versions("3.10.0", "3.12.14"),),
    spoils=CRASH,
    arms=lambda broker, it: of_connection(broker, it) if any(map(is_of_stream, settled(broker, it))) else None,
    is_brief=True,
    shows_at_once=True,
)

STREAMS: tuple[Window, ...] = (
    Window(
        name="stream-serves-chunks",
        requirement="STREAM-006",
        statement="A consumer of a stream that has begun a chunk (messages that were written together) is handed all of"
        " it, beyond its limit if it is longer. The excess counts.",
        source="v3.10.9 rabbit_stream_queue:stream_entries; mended in 4.0",
        dialects=("rabbitmq-3",),
        versions=(versions("3.10.0", "3.13.7"),),
        spoils=frozenset({Part.DELIVERY}),
        explains=_is_rest_of_chunk,
    ),
    _giving_back(
        name="stream-refuses-rejection",
        requirement="ACK-021",
        strength=Strength.CONVENTIONAL,
        statement="basic.nack and basic.reject of a delivery from a stream, also in a transaction, close the connection"
        " with 540.",
        source="v3.12.14 rabbit_stream_queue:settle; mended in 3.13.0",
        kinds=(*REFUSALS, "tx.commit"),
    ),
    _giving_back(
        name="recover-breaks-on-stream",
        requirement="STREAM-007",
        statement="basic.recover and basic.recover-async on a channel that holds a delivery from a stream crash it; the"
        " connection closes with 541.",
        source="v3.12.14 rabbit_channel:handle_method basic.recover_async, rabbit_stream_queue:settle; up to 3.12",
        kinds=RECOVERIES,
    ),
)
