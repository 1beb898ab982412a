"""Which arguments of queue.declare a broker's queue types know: data, one record for each range of versions.

From `capabilities/0` of rabbit_classic_queue, rabbit_quorum_queue, rabbit_stream_queue. The order is the one in which
`rabbit_amqqueue:assert_args_equivalence` compares them. An argument that no queue type knows is ignored by all.
"""

from __future__ import annotations

from dataclasses import dataclass

from amqpspec.model.promises.queue_types import QueueType


@dataclass(frozen=True, slots=True)
class KnownArguments:
    """The arguments that each queue type knows, and how the values of some are checked."""

    classic: tuple[str, ...]
    quorum: tuple[str, ...]
    stream: tuple[str, ...]
    #: right values of `x-queue-version`
    queue_versions: tuple[int, ...]
    #: right values of `x-queue-mode` (rabbit_amqqueue:check_queue_mode); none from 4.3 on
    queue_modes: tuple[str, ...]
    #: right values of `x-queue-leader-locator` (rabbit_queue_location)
    leader_locators: tuple[str, ...]
    #: `x-max-age` is compared by its length, "7D" is "168h" (rabbit_amqqueue:normalize_max_age, from 4.3.6 on)
    age_is_compared_by_length: bool
    #: what is said of an `x-stream-filter-size-bytes` outside 16 to 255 (rabbit_stream_queue:check_filter_size)
    filter_size_text: str | None

    def of(self, queue_type: QueueType) -> tuple[str, ...]:
        known: tuple[str, ...] = getattr(self, queue_type.value)
        return known

    def unsupported(self, queue_type: QueueType) -> frozenset[str]:
        """What other queue types know and this one does not (rabbit_amqqueue:check_declare_arguments)."""
        return frozenset((*self.classic, *self.quorum, *self.stream)).difference(self.of(queue_type))


_CLASSIC = (
    "x-expires", "x-message-ttl", "x-dead-letter-exchange", "x-dead-letter-routing-key", "x-max-length",
    "x-max-length-bytes", "x-max-priority", "x-overflow", "x-queue-mode", "x-queue-version", "x-single-active-consumer",
    "x-queue-type", "x-queue-master-locator",
)  # fmt: skip
_QUORUM = (
    "x-dead-letter-exchange", "x-dead-letter-routing-key", "x-dead-letter-strategy", "x-expires", "x-max-length",
    "x-max-length-bytes", "x-max-in-memory-length", "x-max-in-memory-bytes", "x-overflow", "x-single-active-consumer",
    "x-queue-type", "x-quorum-initial-group-size", "x-delivery-limit", "x-message-ttl", "x-queue-leader-locator",
)  # fmt: skip
_STREAM = (
    "x-max-length-bytes", "x-queue-type", "x-max-age", "x-stream-max-segment-size-bytes", "x-initial-cluster-size",
    "x-queue-leader-locator",
)  # fmt: skip

_LOCATORS = ("client-local", "balanced", "random", "least-leaders")

KNOWN_TO_3 = KnownArguments(
    classic=_CLASSIC,
    quorum=_QUORUM,
    stream=_STREAM,
    queue_versions=(1, 2),
    queue_modes=("default", "lazy"),
    leader_locators=_LOCATORS,
    age_is_compared_by_length=False,
    filter_size_text=None,
)

KNOWN_TO_4_0 = KnownArguments(
    classic=(*_CLASSIC, "x-queue-leader-locator"),
    quorum=_QUORUM,
    stream=_STREAM,
    queue_versions=(1, 2),
    queue_modes=("default", "lazy"),
    leader_locators=(*_LOCATORS, "min-masters"),
    age_is_compared_by_length=False,
    # the argument is looked at, though it is none of the known ones; two blanks
    filter_size_text="Invalid value for  x-stream-filter-size-bytes",
)

KNOWN_TO_4_3 = KnownArguments(
    classic=(*_CLASSIC, "x-queue-leader-locator"),
    quorum=(
        *_QUORUM, "x-consumer-disconnected-timeout", "x-consumer-timeout", "x-delayed-retry-type",
        "x-delayed-retry-min", "x-delayed-retry-max",
    ),
    stream=(*_STREAM[:4], "x-stream-filter-size-bytes", *_STREAM[4:]),
    queue_versions=(2,),
    queue_modes=(),
    leader_locators=(*_LOCATORS, "min-masters"),
    age_is_compared_by_length=True,
    filter_size_text="Invalid value for x-stream-filter-size-bytes",
)  # fmt: skip
