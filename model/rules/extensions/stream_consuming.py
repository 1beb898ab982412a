"""basic.consume on a RabbitMQ stream: what it needs, and where it begins to read (area STREAM).

rabbit_stream_queue:consume and parse_offset_arg, rabbit_amqqueue:check_max_age, osiris_log:init_offset_reader.

Requirements:

* STREAM-001: Prefetch required. Consuming from a stream without a prefetch limit is a soft 406.
  [rabbit_stream_queue:consume]
* STREAM-002: no_ack refused. Consuming from a stream with no_ack=true is a hard error 540. [rabbit_stream_queue]
* STREAM-004: Default offset is next. Without x-stream-offset only messages published after the consume arrive.
  [RabbitMQ guide: streams]
* STREAM-005: Bad offset. An offset that is not valid is refused with 406: text that is neither first, last or next nor
  an interval (a number above 0 and one of Y, M, D, h, m, s), and values that are no whole number, time stamp or text.
  In rabbitmq-3: broken: 541 for text that begins with no digit, and for what is no number, time stamp or text. In
  rabbitmq-4.0: broken: 541 for text that begins with no digit (mended in 4.2.7), and for what is no number, time stamp
  or text. In rabbitmq-4.3: broken: 541 for text that begins with no digit (mended in 4.3.1), and for what is no number,
  time stamp or text. [rabbit_stream_queue:parse_offset_arg, rabbit_amqqueue:check_max_age, check_stream_offset_arg]
* STREAM-008: Where an offset begins. x-stream-offset says where reading begins: first (the oldest message), last (the
  last chunk), next (what is published from now on), a number (the message of that offset; beyond the end nothing until
  there is one), a time stamp or an interval back from now (the first chunk written since then). Below 0 is the oldest
  message. [RabbitMQ guide: streams (consuming); rabbit_stream_queue:parse_offset_arg; osiris_log:init_offset_reader]
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.queues import Consumer, Queue
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.erlang_wording import term, wire_type
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Table
from amqpspec.model.rules.common.lookup import queue_text

OFFSET = "x-stream-offset"
#: Seconds in each unit of an interval.
UNITS = {"Y": 31_536_000, "M": 2_592_000, "D": 86_400, "h": 3600, "m": 60, "s": 1}
#: Before this moment there were no streams (RabbitMQ 3.9), and no broker's clock has come to the other one.
STREAMS_BEGAN, FAR_FUTURE = datetime(2021, 7, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
#: Seconds by which an interval must be longer than the stream is old, for what is on its way and for clocks.
MARGIN = 60


def check_stream(broker: Broker, channel: Channel, queue: Queue, no_ack: bool, table: Table) -> None:
    """STREAM-001, STREAM-002. A limit of the whole channel is none: it is refused like that of a quorum queue."""
    if queue.type is not QueueType.STREAM:
        return
    where = queue_text(broker, channel, queue.name)
    first = broker.dialect.first_stream_texts
    named = f"'{where}'" if first else f"stream {where}"
    if not (channel.prefetch or broker.dialect.prefetch_is_shared):
        raise ProtocolError("STREAM-001", 406, f"consumer prefetch count is not set for {named}")
    if no_ack:
        raise ProtocolError(
            "STREAM-002", 540, f"automatic acknowledgement not supported by stream {'queues ' if first else ''}{where}"
        )


def check_offset_text(broker: Broker, channel: Channel, queue: Queue, table: dict[str, Any]) -> None:
    """STREAM-005, where the values of all arguments are checked: what is text must be a word or an interval."""
    offset = table.get(OFFSET)
    if not isinstance(offset, str | bytes) or isinstance(offset, bytearray) or _word(offset):
        return
    text = offset if isinstance(offset, str) else offset.decode("latin-1")
    if interval(text) is None:
        raise refused_offset(broker, channel, queue, offset)


def begin_reading(broker: Broker, channel: Channel, consumer: Consumer) -> None:
    """A consumer of a stream begins at an offset, which is looked at last of all."""
    queue, table = consumer.queue, consumer.arguments
    if queue.type is QueueType.STREAM:
        _check_offset_type(broker, channel, queue, table)
        consumer.next_offset, consumer.latest_offset = broker.may_begin(*_first_offsets(broker, queue, table))


def _check_offset_type(broker: Broker, channel: Channel, queue: Queue, table: dict[str, Any]) -> None:
    """STREAM-005: an offset is a whole number, a time stamp or text."""
    if not offset_has_wrong_type(table):
        return
    raise refused_offset(broker, channel, queue, table[OFFSET])


def offset_has_wrong_type(table: dict[str, Any]) -> bool:
    offset = table.get(OFFSET, "next")
    if isinstance(offset, bool) or not isinstance(offset, int | str | bytes | datetime):
        return not _word(offset)
    return isinstance(offset, bytearray) and not _word(offset)


def refused_offset(broker: Broker, channel: Channel, queue: Queue, offset: Any) -> ProtocolError:
    reason = f"{{invalid_stream_offset_arg,{{{wire_type(offset)},{term(offset)}}}}}"
    text = f"invalid arg '{OFFSET}' for {queue_text(broker, channel, queue.name)}: {reason}"
    # terms that are long are laid out in lines (io_lib ~p), and octets beyond ASCII as numbers
    return ProtocolError("STREAM-005", 406, text, any_text=len(reason) > 60 or not reason.isascii())


def _first_offsets(broker: Broker, queue: Queue, table: dict[str, Any]) -> tuple[int, int]:
    """STREAM-004, STREAM-008: the earliest and the latest offset at which the consumer may begin.

    A time means the first chunk that was written since then, by the broker's clock; `last` the last chunk.
    """
    offset = table.get(OFFSET, "next")
    end = len(queue.log)
    word = _word(offset)
    if word == "next":
        return end, end
    if word == "first":
        return 0, 0
    if word == "last":
        return max((start for start, begins in queue.chunk_starts.items() if begins), default=0), max(end - 1, 0)
    if isinstance(offset, int):
        return max(offset, 0), max(offset, 0)
    if isinstance(offset, datetime):
        moment = offset if offset.tzinfo is not None else offset.replace(tzinfo=UTC)
        return (0, 0) if moment < STREAMS_BEGAN else (end, end) if moment > FAR_FUTURE else (0, end)
    seconds = interval(offset if isinstance(offset, str) else offset.decode("latin-1"))
    is_older = seconds is not None and seconds > broker.latest - queue.log_began + MARGIN
    return (0, 0) if is_older else (0, end)


def interval(text: str) -> int | None:
    """The seconds of an interval such as `1h`, if it is one."""
    found = re.match("([0-9]+)(.*)", text)
    if found is None or found.group(2) not in UNITS or not int(found.group(1)):
        return None
    return int(found.group(1)) * UNITS[found.group(2)]


def _word(offset: Any) -> str | None:
    """`first`, `last` or `next`, whatever the type of the field that says it."""
    if isinstance(offset, bytes | bytearray):
        offset = bytes(offset).decode("latin-1")
    return offset if offset in ("first", "last", "next") else None
