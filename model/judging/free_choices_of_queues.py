"""Free choices of queues: what their arguments mean, how they are compared, and what becomes of one in a transaction.

See `model.judging.free_choices`. What an argument means is chosen when the queue is made, and stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.queues import Queue
from amqpspec.model.judging.free_choice import FreeChoice
from amqpspec.model.promises.deleted_before_commit import DeletedBeforeCommit
from amqpspec.model.promises.queue_arguments import KNOWN_TO_3, KNOWN_TO_4_0, KNOWN_TO_4_3
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import TraceEvent

_FILTER_SIZE, _MAX_AGE, _TYPE = "x-stream-filter-size-bytes", "x-max-age", "x-queue-type"


def _asked(event: TraceEvent) -> Mapping[str, Any]:
    """The arguments of a queue.declare that is not passive."""
    return {} if event.arguments.get("passive") else event.arguments.get("arguments") or {}


def _existing(broker: Broker, channel: Channel | None, event: TraceEvent) -> Queue | None:
    """The queue that is declared again."""
    if channel is None or event.arguments.get("passive"):
        return None
    return broker.queues.get(event.arguments.get("queue", ""))


def _names(argument: str) -> Callable[[Broker, Channel | None, TraceEvent], bool]:
    """Has the declared queue that argument, or the one that there is?"""

    def matters(broker: Broker, channel: Channel | None, event: TraceEvent) -> bool:
        if event.arguments.get("passive"):
            return False
        queue = _existing(broker, channel, event)
        return argument in _asked(event) or (queue is not None and argument in queue.arguments)

    return matters


def _has_other_type(broker: Broker, channel: Channel | None, event: TraceEvent) -> bool:
    """Is the type told that was not given, or may the order of several arguments show?"""
    queue = _existing(broker, channel, event)
    if queue is None:
        return _TYPE not in _asked(event) and len(_asked(event)) > 1
    return str(_asked(event).get(_TYPE, "classic")) != queue.type.value


def _reads_stream(broker: Broker, channel: Channel | None, event: TraceEvent) -> bool:
    """Is it a consumer of a stream that is refused?"""
    if channel is None or (channel.prefetch and not event.arguments.get("no_ack")):
        return False
    queue = broker.queues.get(event.arguments.get("queue", "") or channel.last_queue or "")
    return queue is not None and queue.type is QueueType.STREAM


def _has_no_priorities(broker: Broker, channel: Channel | None, event: TraceEvent) -> bool:
    return _asked(event).get("x-max-priority") == 0 and _existing(broker, channel, event) is None


def _has_negative_limit(broker: Broker, channel: Channel | None, event: TraceEvent) -> bool:
    limit = _asked(event).get("x-delivery-limit")
    return isinstance(limit, int) and limit < 0 and _existing(broker, channel, event) is None


def _publishes_to_changed(broker: Broker, channel: Channel | None, event: TraceEvent) -> bool:
    """Does the transaction publish to a queue that is gone, or to the name of one that there was not yet?"""
    if channel is None or channel.transaction is None:
        return False
    return any(
        any(queue.deleted for queue in publication.routes.queues)
        or (not publication.pattern.exchange and _is_new(broker, publication.pattern.routing_key, publication.routes))
        for publication in channel.transaction.publications
    )


def _is_new(broker: Broker, name: str, routes: Any) -> bool:
    return name in broker.queues and broker.queues[name] not in routes.queues


_DECLARE = ("queue.declare",)
_TEXT, _THREE, _FOUR, _NEWEST = "amqp-0-9-1", "rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"
_OF_RABBITMQ = (DeletedBeforeCommit.LOOKED_UP, DeletedBeforeCommit.KEPT, DeletedBeforeCommit.MISSED)
_SIZE_TEXTS = (KNOWN_TO_4_0.filter_size_text, KNOWN_TO_4_3.filter_size_text)

CHOICES_OF_QUEUES: tuple[FreeChoice, ...] = (
    FreeChoice(
        "deleted_before_commit", _OF_RABBITMQ, "TX-002", ("tx.commit",), _publishes_to_changed, (_THREE, _FOUR, _NEWEST)
    ),
    FreeChoice(
        "deleted_before_commit", tuple(DeletedBeforeCommit), "TX-002", ("tx.commit",), _publishes_to_changed, (_TEXT,)
    ),
    FreeChoice("least_max_priority", (0, 1), "PRIORITY-003", _DECLARE, _has_no_priorities),
    FreeChoice("negative_delivery_limit_is_none", (True, False), "QUORUM-004", _DECLARE, _has_negative_limit),
    FreeChoice("default_queue_type_in_errors", (None, "classic"), "QUEUE-012", _DECLARE, _has_other_type),
    FreeChoice("first_stream_texts", (True, False), "STREAM-002", ("basic.consume",), _reads_stream),
    FreeChoice(
        "queue_arguments.age_is_compared_by_length", (True, False), "QUEUE-010", _DECLARE, _names(_MAX_AGE)
    ),
    FreeChoice(
        "queue_arguments.leader_locators", (KNOWN_TO_3.leader_locators, KNOWN_TO_4_0.leader_locators), "QUEUE-013",
        _DECLARE, _names("x-queue-leader-locator"),
    ),
    FreeChoice(
        "queue_arguments.stream", (KNOWN_TO_3.stream, KNOWN_TO_4_3.stream), "QUEUE-010", _DECLARE, _names(_FILTER_SIZE)
    ),
    FreeChoice(
        "queue_arguments.filter_size_text", (None, *_SIZE_TEXTS), "QUEUE-013", _DECLARE, _names(_FILTER_SIZE), (_THREE,)
    ),
    FreeChoice(
        "queue_arguments.filter_size_text", _SIZE_TEXTS, "QUEUE-013", _DECLARE, _names(_FILTER_SIZE), (_FOUR, _NEWEST)
    ),
)  # fmt: skip
