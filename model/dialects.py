"""Dialects: what brokers of one family and version range chose where the text leaves, or history took, a choice.

A dialect is data. Model code asks it, and never asks for a version. Each choice names its source; sources of the
form `module:function` are RabbitMQ's, at the newest tag of the range.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any


class QuorumRequeue(Enum):
    """Where a message goes that a client gives back to a quorum queue (`rabbit_fifo:return`)."""

    #: in front of all ready messages when the queue has a delivery limit, else to the tail
    FRONT_WITH_LIMIT = "front with a delivery limit"
    #: in front of all ready messages, always
    FRONT = "front"


class ExclusiveQuorumConsumer(Enum):
    """What `basic.consume` with `exclusive` means on quorum queues and streams (CONSUME-008)."""

    ENFORCED = "enforced"
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class Dialect:
    """The named choices of one broker family and version range."""

    name: str
    title: str
    #: reply texts are part of the contract (RabbitMQ's clients match on them); the bare text leaves them open
    fixed_reply_texts: bool
    #: RabbitMQ's own methods and queue types exist: basic.nack, confirm.select, quorum queues, streams
    extensions: bool
    #: exchange.declare with an unknown type: reply code (406 closes the channel, 503 the connection);
    #: rabbit_exchange:check_type
    unknown_exchange_type: int
    #: basic.recover and basic.recover-async with requeue=false are implemented; rabbit_channel refuses with 540
    recover_to_original_recipient: bool
    #: rabbit_fifo:return
    quorum_requeue: QuorumRequeue
    #: times a quorum message may come back before it is dropped; None: no limit; rabbit_quorum_queue defaults
    quorum_delivery_limit: int | None
    #: a negative `x-delivery-limit` means no limit; else it is exceeded at the first return (QUORUM-004)
    negative_delivery_limit_is_none: bool
    #: only reject and a lost holder count as failed deliveries, nack and recover do not (rabbit_fifo, 4.3)
    quorum_nack_keeps_count: bool
    #: the header `x-acquired-count` exists (rabbit_fifo, 4.3)
    quorum_acquired_count: bool
    #: basic.get-ok carries `x-delivery-count` 0 on a first delivery (rabbit_fifo of 3.10)
    quorum_count_on_first_get: bool
    #: deliveries of a lost channel go back consumer by consumer: in the order in which these were created, gets
    #: last, or all by their tags as text (rabbit_fifo: the key of a consumer is its index in the log from 4.0)
    lost_consumers_by_creation: bool
    #: how the queue type is named where basic.get is refused (rabbit_channel:unsupported_single_active_consumer_error)
    queue_type_in_get_error: str
    #: deliveries from a stream always name a delivery mode, 1 if the publish named none (mc_amqpl, from 4.0)
    stream_names_delivery_mode: bool
    #: the name that the queue type has in redeclare errors when it was not given: "classic", or None: "none"
    default_queue_type_in_errors: str | None
    #: `x-consumer-timeout` is an argument of classic queues (rabbit_classic_queue:capabilities)
    classic_queue_timeout_argument: bool
    #: `x-consumer-timeout` of basic.consume is checked (rabbit_queue_type:consume)
    consumer_timeout_checked: bool
    #: nack and reject on a stream: accepted as a return of credit, or 540 (rabbit_stream_queue:settle)
    stream_reject: bool
    #: refusals of stream consumers name the stream as 3 did (rabbit_stream_queue:consume)
    first_stream_texts: bool
    #: qos(global=true) limits the whole channel; otherwise it is read as global=false (rabbit_channel, 4.3)
    channel_prefetch: bool
    #: basic.cancel-ok sent by the client: accepted, or 503 (rabbit_channel:handle_method)
    client_cancel_ok: bool
    #: what an exclusive consumer of a quorum queue or stream is promised to be
    exclusive_quorum_consumer: ExclusiveQuorumConsumer = ExclusiveQuorumConsumer.ENFORCED

    def __deepcopy__(self, memo: object) -> Dialect:
        return self


AMQP_0_9_1 = Dialect(
    name="amqp-0-9-1",
    title="the bare AMQP 0-9-1 text",
    fixed_reply_texts=False,
    extensions=False,
    unknown_exchange_type=503,
    recover_to_original_recipient=True,
    quorum_requeue=QuorumRequeue.FRONT,
    quorum_delivery_limit=None,
    negative_delivery_limit_is_none=True,
    quorum_nack_keeps_count=False,
    quorum_acquired_count=False,
    quorum_count_on_first_get=False,
    lost_consumers_by_creation=False,
    queue_type_in_get_error="quorum",
    stream_names_delivery_mode=False,
    default_queue_type_in_errors=None,
    classic_queue_timeout_argument=False,
    consumer_timeout_checked=False,
    stream_reject=True,
    first_stream_texts=False,
    channel_prefetch=True,
    client_cancel_ok=False,
)

RABBITMQ_3 = replace(
    AMQP_0_9_1,
    name="rabbitmq-3",
    title="RabbitMQ 3.10 to 3.13",
    fixed_reply_texts=True,
    extensions=True,
    recover_to_original_recipient=False,
    quorum_requeue=QuorumRequeue.FRONT_WITH_LIMIT,
    negative_delivery_limit_is_none=False,
    quorum_count_on_first_get=True,
    classic_queue_timeout_argument=True,
    stream_reject=False,
    first_stream_texts=True,
)

RABBITMQ_4_0 = replace(
    RABBITMQ_3,
    name="rabbitmq-4.0",
    title="RabbitMQ 4.0 to 4.2",
    unknown_exchange_type=406,
    quorum_requeue=QuorumRequeue.FRONT_WITH_LIMIT,
    quorum_delivery_limit=20,
    negative_delivery_limit_is_none=True,
    quorum_count_on_first_get=False,
    lost_consumers_by_creation=True,
    stream_names_delivery_mode=True,
    default_queue_type_in_errors="classic",
    stream_reject=True,
    first_stream_texts=False,
)

RABBITMQ_4_3 = replace(
    RABBITMQ_4_0,
    name="rabbitmq-4.3",
    title="RabbitMQ 4.3",
    quorum_requeue=QuorumRequeue.FRONT,
    quorum_nack_keeps_count=True,
    quorum_acquired_count=True,
    queue_type_in_get_error='<<"quorum">>',
    classic_queue_timeout_argument=False,
    consumer_timeout_checked=True,
    channel_prefetch=False,
    client_cancel_ok=True,
)

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect for dialect in (AMQP_0_9_1, RABBITMQ_3, RABBITMQ_4_0, RABBITMQ_4_3)
}

#: The dialect of the embedded broker, and of a broker that says of itself what we do not know.
DEFAULT_DIALECT = RABBITMQ_4_3


class UnknownDialect(ValueError):
    """A dialect was asked for that does not exist."""


def dialect_named(name: str) -> Dialect:
    """The dialect of that name; `UnknownDialect` with the known names otherwise."""
    try:
        return DIALECTS[name]
    except KeyError:
        raise UnknownDialect(f"unknown dialect {name!r}: choose from {', '.join(DIALECTS)}") from None


def dialect_of(server_properties: Mapping[str, Any]) -> Dialect:
    """The dialect that fits what a broker says of itself in connection.start.

    RabbitMQ by its version; a broker of another product is held to RabbitMQ's newest dialect, which is what its
    clients expect of it.
    """
    if server_properties.get("product") != "RabbitMQ":
        return DEFAULT_DIALECT
    found = re.match(r"(\d+)\.(\d+)", str(server_properties.get("version", "")))
    version = (int(found[1]), int(found[2])) if found else (9, 9)
    if version < (4, 0):
        return RABBITMQ_3
    return RABBITMQ_4_0 if version < (4, 3) else RABBITMQ_4_3
