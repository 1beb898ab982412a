"""Facts about messages in queues: what the first stage of `conservation` says, and the second adds up.

A fact is a queue, a message, what became of it there, and when; or something of the queue as a whole (that it was found
empty, that it may lose messages), which is of no message. `message` and `form` are those of `message_identity`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

import pyarrow as pa


class What(IntEnum):
    """Of a message (up to `SETTLED`), or of a queue."""

    PUBLISHED = 0
    #: the broker has confirmed that it is in the queue
    CONFIRMED = 1
    DELIVERED = 2
    #: with the flag `redelivered`
    REDELIVERED = 3
    #: it may come again: given back, or held when its channel ended; `form`: when that was sent, in microseconds
    RETURNED = 4
    #: acknowledged, discarded, or delivered for good
    SETTLED = 5
    #: the recording met the queue, and `form` messages were ready
    MET = 6
    #: found without a ready message, by a request of that time
    EMPTY = 7
    #: a channel that took messages from it ended
    ENDED = 8
    #: purged or deleted
    PURGED = 9
    IS_STREAM = 10
    #: dead letters came to it
    HAS_DEAD_LETTERS = 11
    #: a channel of a consumer was ended by the broker (`form` 0), or its connection was lost (1); of no queue: frames
    #: were sent that are no methods, so that what was published is not known
    BROKE_OFF = 12
    #: it may lose messages by itself; `form`: the number of the reason in `REASONS`
    LOSES = 13
    #: a message may have gone to it, or not; `form`: the number of the reason in `topology.NOT_TOLD`
    UNTOLD = 14
    #: the same of an exchange, which stands in the place of the queue
    EXCHANGE_UNTOLD = 15
    #: a client that takes messages from it has settled a delivery that is not in the recording
    UNRECORDED = 16


#: What a queue, or a message, may have by which messages are gone or passed on.
REASONS = (
    "x-message-ttl", "x-expires", "x-max-length", "x-max-length-bytes", "x-dead-letter-exchange", "x-delivery-limit",
    "auto-delete", "exclusive", "a message with a time to live",
)  # fmt: skip


class Fact(NamedTuple):
    """`queue`: virtual host and name, "" where none is concerned."""

    queue: str
    message: int
    form: int
    what: int
    time: float


SCHEMA = pa.schema(
    [
        pa.field("queue", pa.string(), nullable=False),
        pa.field("message", pa.int64(), nullable=False),
        pa.field("form", pa.int64(), nullable=False),
        pa.field("what", pa.int8(), nullable=False),
        pa.field("time", pa.float64(), nullable=False),
    ]
)
_BATCH = 50_000


def batches(facts: Iterable[Fact]) -> Iterator[pa.RecordBatch]:
    """The facts in columns, in pieces."""
    held: list[Fact] = []
    for fact in facts:
        held.append(fact)
        if len(held) >= _BATCH:
            yield _batch(held)
            held = []
    if held:
        yield _batch(held)


def _batch(facts: list[Fact]) -> pa.RecordBatch:
    columns = zip(*facts, strict=True)
    arrays = [pa.array(column, each.type) for column, each in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
