"""Numbers that RabbitMQ tells wrongly: of messages and consumers (rabbit_queue_type:stat), and of direct replies.

rabbit_fifo:query_stat gives the size of its map of consumers. In there is whoever has unsettled deliveries, cancelled
consumers and basic.get as well, and the waiting ones of a single-active-consumer queue are not. After 250 ms
rabbit_quorum_queue:stat gives up, and says 0 and 0. rabbit_stream_queue:stat never counts consumers.
"""

from __future__ import annotations

from functools import partial

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.effects import CountsTold
from amqpspec.model.broker.owed import Expected
from amqpspec.model.broker.queues import Queue
from amqpspec.model.judging.known_defect import OutputDefect
from amqpspec.model.outputs.late_counts import COUNTING_SECONDS, is_late_and_empty
from amqpspec.model.outputs.mismatch import Mismatch
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.versions import versions
from amqpspec.model.protocol.methods import Method


def _is_told_wrong(name: str, broker: Broker, method: Method, mismatch: Mismatch) -> bool:
    """Is it a wrong number in a declare-ok, and wrong by that known defect?"""
    owed = mismatch.about
    if not isinstance(owed, Expected) or not isinstance(owed.effect, CountsTold):
        return False
    return _why(broker, owed.effect.queue, method, mismatch) == name


def _why(broker: Broker, queue: Queue, method: Method, mismatch: Mismatch) -> str:
    """The name of the known defect by which the number is wrong; "": by none."""
    if mismatch.argument in ("message_count", "consumer_count") and is_late_and_empty(broker, method):
        return "late-counts-are-zero"
    if mismatch.argument != "consumer_count":
        return ""
    told = method.arguments["consumer_count"]
    if queue.type is QueueType.STREAM:
        return "" if told else "stream-consumer-count"
    # who has settled what it held a moment ago may be counted yet, and each basic.get is one
    most = len(queue.consumers) + broker.holders(queue) + queue.still_counted + queue.next_position
    least = 0 if queue.single_active_consumer else len(queue.present_consumers)
    if queue.type is not QueueType.QUORUM or not least <= told <= most:
        return ""
    is_timed_out = len(queue.present_consumers) < len(queue.consumers)
    return "timed-out-consumer-counted" if is_timed_out else "quorum-consumer-count"


def _is_late(broker: Broker, method: Method, mismatch: Mismatch) -> bool:
    """Is it what `rabbit_quorum_queue:stat` says who has not been answered in time?"""
    if method.name != "queue.delete-ok":
        return _is_told_wrong("late-counts-are-zero", broker, method, mismatch)
    is_none = mismatch.argument == "message_count" and not method.arguments["message_count"]
    took = method.time - broker.now
    return is_none and took >= COUNTING_SECONDS and QueueType.QUORUM in broker.deleted_of_late.values()


def _is_counted_right(broker: Broker, method: Method, kind: QueueType) -> bool:
    """Is it the number of consumers of a queue of that type, where the defect would give another one?"""
    queue = broker.queues.get(method.arguments.get("queue", "")) if method.name == "queue.declare-ok" else None
    if queue is None or queue.type is not kind or method.arguments["consumer_count"] != len(queue.consumers):
        return False
    return bool(queue.consumers) if kind is QueueType.STREAM else broker.holders(queue) > 0


def _leaves_out_replies(broker: Broker, method: Method, mismatch: Mismatch) -> bool:
    channel = broker.channels.get((method.connection, method.channel))
    if mismatch.argument != "delivery_tag" or channel is None or not channel.direct_replies:
        return False
    tag = method.arguments["delivery_tag"]
    if tag != channel.next_tag - channel.direct_replies:
        return False
    channel.next_tag, channel.direct_replies = tag, 0
    return True


def _has_own_tag(broker: Broker, method: Method) -> bool:
    """Did a delivery after a reply come with the next tag?"""
    channel = broker.channels.get((method.connection, method.channel))
    return method.name == "basic.deliver" and channel is not None and channel.direct_replies > 1


TOLD_NUMBERS: tuple[OutputDefect, ...] = (
    OutputDefect(
        name="quorum-consumer-count",
        requirement="QUEUE-026",
        statement="A quorum queue counts whoever holds messages of it as a consumer (cancelled consumers, basic.get),"
        " and does not count the waiting consumers of a single-active-consumer queue.",
        source="rabbit_fifo:query_stat, the size of its map of consumers",
        explains=partial(_is_told_wrong, "quorum-consumer-count"),
        is_refuted_by=lambda broker, method: _is_counted_right(broker, method, QueueType.QUORUM),
    ),
    OutputDefect(
        name="timed-out-consumer-counted",
        requirement="TIMEOUT-014",
        statement="A consumer of which the client was told by basic.cancel that it is gone is still counted.",
        source="rabbit_fifo:query_stat; rabbit_channel:handle_queue_actions released, which leaves it at its queue",
        dialects=("rabbitmq-4.3",),
        versions=(versions("4.3.0", "4.3.6"),),
        explains=partial(_is_told_wrong, "timed-out-consumer-counted"),
    ),
    OutputDefect(
        name="late-counts-are-zero",
        requirement="QUEUE-001",
        statement="A quorum queue that has not told its numbers within 250 ms is said to have no messages and no"
        " consumers, also when it is deleted.",
        source="rabbit_quorum_queue:stat, {ok, 0, 0} for a timeout of rabbit_fifo_client:stat",
        by_chance=True,
        explains=_is_late,
    ),
    OutputDefect(
        name="stream-consumer-count",
        requirement="QUEUE-026",
        statement="A stream counts none of its consumers: declare-ok says 0.",
        source="rabbit_stream_queue:stat",
        explains=partial(_is_told_wrong, "stream-consumer-count"),
        is_refuted_by=lambda broker, method: _is_counted_right(broker, method, QueueType.STREAM),
    ),
    OutputDefect(
        name="direct-replies-not-counted",
        requirement="REPLY-006",
        statement="A direct reply has the delivery tag that the next delivery has as well.",
        source="v4.0.5 rabbit_channel:handle_cast deliver_reply, which leaves next_tag as it is",
        dialects=("rabbitmq-3", "rabbitmq-4.0"),
        goes_on=_leaves_out_replies,
        is_refuted_by=_has_own_tag,
    ),
)
