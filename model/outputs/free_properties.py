"""Properties that a delivery may have or not, as versions differ or nobody promises it (`Difference.either_in`).

Requirements:

* QUORUM-001: x-delivery-count header. Counts earlier failed deliveries; absent on the first delivery from 4.0 on, 0 on
  basic.get in 3.10. A client's own header of that name comes through as long as the broker has no count. Classic queues
  count nothing. The counts are long-long-ints (l). In rabbitmq-3: 0 or absent on first get, as versions differ (absent
  from 3.12.0 on), absent on first deliver. In rabbitmq-4.0: absent first, then 1,2.. In rabbitmq-4.3: absent unless
  failed; x-acquired-count counts every return. [rabbit_fifo_client:add_delivery_count_header]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amqpspec.model.broker.queues import Message, Queue
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialect_names import base_of
from amqpspec.model.promises.differences_of_choices import CHOICES
from amqpspec.model.promises.queue_types import QueueType

#: The choices that are free here; others are in `model.judging.free_choices`.
FIRST_COUNT, DELIVERY_MODE = "quorum_count_on_first_get", "stream_names_delivery_mode"
_COUNT = "x-delivery-count"


def as_free(
    dialect: Dialect, queue: Queue, message: Message, expected: Mapping[str, Any], observed: Mapping[str, Any]
) -> Mapping[str, Any]:
    """What is expected, with what was observed where that is free."""
    if queue.type is QueueType.QUORUM and _is_free(dialect, FIRST_COUNT):
        return _with_count_as_seen(message, expected, observed)
    if queue.type is QueueType.STREAM and _is_free(dialect, DELIVERY_MODE):
        return _with_mode_as_seen(message, expected, observed)
    return expected


def _is_free(dialect: Dialect, choice: str) -> bool:
    return base_of(dialect.name) in CHOICES[choice].either_in


def _with_count_as_seen(
    message: Message, expected: Mapping[str, Any], observed: Mapping[str, Any]
) -> Mapping[str, Any]:
    """QUORUM-001: that nothing has failed is told by 0, or by no header."""
    headers = dict(expected.get("headers") or {})
    if headers.get(_COUNT) != 0 or _COUNT in (observed.get("headers") or {}):
        return expected
    del headers[_COUNT]
    without = {name: value for name, value in expected.items() if name != "headers"}
    return {**without, "headers": headers} if headers or "headers" in message.content.properties else without


def _with_mode_as_seen(message: Message, expected: Mapping[str, Any], observed: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message without delivery mode comes out of a stream with none, or with 1, which means the same."""
    mode = observed.get("delivery_mode")
    if message.content.properties.get("delivery_mode") is not None or mode not in (None, 1):
        return expected
    without = {name: value for name, value in expected.items() if name != "delivery_mode"}
    return without if mode is None else {**without, "delivery_mode": mode}
