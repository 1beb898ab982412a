"""Choices that are free: what a dialect has is usual, and another value is right as well (`Difference.either_in`).

Either the versions of the dialect's range differ in it, or nobody promises one of the two. An input that comes under
such a choice is processed with each of its values, as alternatives (`model.judging.alternatives`); under several, with
each combination. Where they lead to one state, that is one explanation; elsewhere what the broker sends tells which it
was.

Where one value owes a frame and the other owes silence, a round trip after the input has to tell them apart. Where
none can follow (within an unfinished content) the barrier may be complete before the frame: there the other value has
to permit the frame at any time after it, as CHAN-022 does (`model.rules.connection.assembly`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import product
from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.topic_matching import ANY_WORDS, words
from amqpspec.model.judging.alternative import Alternative
from amqpspec.model.judging.free_choice import FreeChoice, with_value
from amqpspec.model.judging.free_choices_of_frames import CHOICES_OF_FRAMES
from amqpspec.model.judging.free_choices_of_queues import CHOICES_OF_QUEUES
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.passive_declare_permission import PassiveDeclarePermission
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Method, TraceEvent
from amqpspec.model.rules.inputs import process

#: The methods that need a permission.
_PERMITTED = (
    "exchange.declare", "exchange.delete", "exchange.bind", "exchange.unbind", "queue.declare", "queue.bind",
    "queue.unbind", "queue.purge", "queue.delete", "basic.consume", "basic.get", "basic.publish",
)  # fmt: skip


def _is_restricted(broker: Broker, channel: Channel | None, event: TraceEvent) -> bool:
    return channel is not None and broker.connections[channel.connection].user in broker.users


def _is_passive_and_restricted(broker: Broker, channel: Channel | None, event: TraceEvent) -> bool:
    return bool(event.arguments.get("passive")) and _is_restricted(broker, channel, event)


def _has_consumers(broker: Broker, channel: Channel | None, event: TraceEvent) -> bool:
    """Has the user of the connection, who may not do everything, any consumers there?"""
    if broker.connections[event.connection].user not in broker.users:
        return False
    return any(each.consumers for key, each in broker.channels.items() if key[0] == event.connection)


def _is_mandatory_reply(broker: Broker, channel: Channel | None, event: TraceEvent) -> bool:
    if channel is None or not broker.reply_addresses:
        return False
    if event.name == "basic.publish":
        return bool(event.arguments.get("mandatory"))
    transaction = channel.transaction
    return transaction is not None and any(publication.mandatory for publication in transaction.publications)


def _wants_small_frames(broker: Broker, channel: Channel | None, event: TraceEvent) -> bool:
    return bool(0 < event.arguments.get("frame_max", 0) < _SMALL_FRAMES)


def _declares_unknown_type(broker: Broker, channel: Channel | None, event: TraceEvent) -> bool:
    return not event.arguments.get("passive") and event.arguments.get("type") not in _EXCHANGE_TYPES


def _gets_from_active_consumers(broker: Broker, channel: Channel | None, event: TraceEvent) -> bool:
    if channel is None:
        return False
    queue = broker.queues.get(event.arguments.get("queue", "") or channel.last_queue or "")
    return queue is not None and queue.type is QueueType.QUORUM and queue.single_active_consumer


def _names_user(broker: Broker, channel: Channel | None, event: TraceEvent) -> bool:
    properties = _properties(event)
    headers = properties.get("headers") or {}
    return "user_id" in properties and ("expiration" in properties or "CC" in headers or "BCC" in headers)


def _has_numbers(broker: Broker, channel: Channel | None, event: TraceEvent) -> bool:
    headers = _properties(event).get("headers")
    if not headers or not any(each.type == "headers" and each.bindings for each in broker.exchanges.values()):
        return False
    return any(isinstance(value, int | float) and not isinstance(value, bool) for value in headers.values())


def _properties(event: TraceEvent) -> Mapping[str, Any]:
    return event.content.properties if isinstance(event, Method) and event.content is not None else {}


def _has_many_wildcards(broker: Broker, channel: Channel | None, event: TraceEvent) -> bool:
    return words(event.arguments.get("routing_key", "")).count(ANY_WORDS) > _MOST_WILDCARDS


_SMALL_FRAMES, _MOST_WILDCARDS = 8192, 2
_EXCHANGE_TYPES = ("direct", "fanout", "topic", "headers")

FREE_CHOICES: tuple[FreeChoice, ...] = (
    *CHOICES_OF_FRAMES,
    *CHOICES_OF_QUEUES,
    FreeChoice(
        "passive_declare_permission", tuple(PassiveDeclarePermission), "PERMISSION-003",
        ("queue.declare", "exchange.declare"), _is_passive_and_restricted, ("rabbitmq-4.0",),
    ),
    FreeChoice(
        "passive_declare_permission", (PassiveDeclarePermission.CONFIGURE, PassiveDeclarePermission.ANY),
        "PERMISSION-003", ("queue.declare", "exchange.declare"), _is_passive_and_restricted, ("rabbitmq-4.3",),
    ),
    FreeChoice("refusals_name_permission", (True, False), "PERMISSION-001", _PERMITTED, _is_restricted),
    FreeChoice("rechecks_consumers", (True, False), "CANCEL-018", ("connection.update-secret",), _has_consumers),
    FreeChoice(
        "reply_address_is_routable", (True, False), "REPLY-003", ("basic.publish", "tx.commit"), _is_mandatory_reply
    ),
    FreeChoice("least_frame_max", (4096, _SMALL_FRAMES), "CONN-012", ("connection.tune-ok",), _wants_small_frames),
    FreeChoice("unknown_exchange_type", (503, 406), "EXCHANGE-004", ("exchange.declare",), _declares_unknown_type),
    FreeChoice(
        "queue_type_in_get_error", ("quorum", '<<"quorum">>'), "GET-005", ("basic.get",), _gets_from_active_consumers
    ),
    FreeChoice("user_id_checked_first", (True, False), "PUBLISH-012", ("basic.publish",), _names_user),
    FreeChoice("headers_numbers_by_value", (True, False), "PUBLISH-006", ("basic.publish",), _has_numbers),
    FreeChoice(
        "topic_wildcard_limit", (None, _MOST_WILDCARDS), "BIND-007", ("queue.bind", "exchange.bind"),
        _has_many_wildcards,
    ),
)  # fmt: skip


@cache
def _by_kind(dialect_name: str) -> Mapping[str, tuple[FreeChoice, ...]]:
    """The choices that are free in a dialect, by the inputs that come under them."""
    own = [each for each in FREE_CHOICES if each.is_free_in(dialect_name)]
    return {kind: tuple(each for each in own if kind in each.kinds) for each in own for kind in each.kinds}


def choices_of(dialect_name: str, kind: str) -> tuple[FreeChoice, ...]:
    """The choices that are free in a dialect and that inputs of that name come under."""
    return _by_kind(dialect_name).get(kind, ())


def other_values(broker: Broker, event: TraceEvent, choices: Iterable[FreeChoice]) -> Iterable[Alternative]:
    """An alternative for each value that one of these choices may have and the dialect has not, where it may matter."""
    channel = broker.open_channel(event)
    mattering = [each for each in choices if each.matters(broker, channel, event)]
    return _combined(broker.dialect, mattering) if mattering else ()


def _combined(dialect: Dialect, mattering: Sequence[FreeChoice]) -> Iterator[Alternative]:
    # where several meet, a broker may have another value of each
    for values in product(*(each.values for each in mattering)):
        chosen = zip(mattering, values, strict=True)
        others = [(each, value) for each, value in chosen if value != each.value_in(dialect)]
        if others:
            first, _ = others[0]
            yield Alternative(
                name=", ".join(f"{each.choice}: {value}" for each, value in others),
                requirement=first.requirement,
                source=first.difference.source,
                kinds=first.kinds,
                applies=lambda broker, event: True,
                process=partial(_process_otherwise, others=tuple((each.choice, value) for each, value in others)),
            )


def _process_otherwise(broker: Broker, event: TraceEvent, others: tuple[tuple[str, Any], ...]) -> None:
    usual = broker.dialect
    for choice, value in others:
        broker.dialect = with_value(broker.dialect, choice, value)
    process(broker, event)
    broker.dialect = usual
