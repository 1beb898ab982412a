"""Redeclaring a queue: what must be as it was (QUEUE-007, QUEUE-008, QUEUE-010, QUEUE-012).

Requirements:

* QUEUE-007: Equivalence: durable / auto-delete. Redeclaring with a different durable or auto_delete is 406. In
  amqp-0-9-1: a channel exception, its code is not named. [rabbit_amqqueue:assert_equivalence; AMQP 0-9-1 class queue]
* QUEUE-008: Equivalence: exclusive. Exclusive mismatch (either way, even on the owning connection) is 405, not 406.
  [rabbit_amqqueue:check_exclusive_access]
* QUEUE-010: Equivalence: known x-args. The arguments that the existing queue's type knows (x-message-ttl, x-expires,
  x-max-length, x-overflow, x-dead-letter-exchange, x-queue-type, ...) are compared by value, in the order of that type,
  and not checked; received none or a different value is 406. Whole numbers of all sizes are of one kind. Whether ages
  are compared by their text or their length is left open, and whether x-stream-filter-size-bytes is compared. In
  rabbitmq-4.3: as stated; from 4.3.6 on x-max-age is compared by its length: 168h is 7D.
  [rabbit_amqqueue:assert_args_equivalence; rabbit_misc:assert_args_equivalence1]
* QUEUE-012: Equivalence: explicit x-queue-type=classic equals default. Declaring without x-queue-type and then with
  classic is equivalent; with quorum it is 406. In rabbitmq-3: text: received the value 'quorum' of type 'longstr' but
  current is none. In rabbitmq-4.0: text: received 'quorum' but current is 'classic'. In rabbitmq-4.3: text: received
  'quorum' but current is 'classic'. [rabbit_amqqueue:augment_declare_args]
* QUEUE-019: Exclusive queue access from another connection. declare, passive declare, consume, get, purge, delete and
  bind from another connection are 405; unbind of an existing binding as well, of a non-existing binding NOT
  (unbind-ok). In amqp-0-9-1: 405 from another connection; unbind is not mentioned.
  [rabbit_amqqueue:check_exclusive_access; AMQP 0-9-1 class queue]
"""

from __future__ import annotations

from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.queues import Queue
from amqpspec.model.protocol.erlang_wording import printed, wire_type
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.field_types import is_whole_number
from amqpspec.model.protocol.methods import Table
from amqpspec.model.protocol.wording import value_text
from amqpspec.model.rules.common.lookup import locked, queue_text
from amqpspec.model.rules.queue.queue_values import age_in_seconds

_MISSING = object()


def check_equivalence(broker: Broker, channel: Channel, queue: Queue, wanted: Queue) -> None:
    """rabbit_amqqueue:assert_equivalence: owner, durable, auto-delete, then what the *existing* queue's type knows.

    Values are compared, not checked: a wrong one is unequal, not invalid.
    """
    _check_same_owner(broker, channel, queue, wanted)
    for field, asked, is_so in (
        ("durable", wanted.durable, queue.durable),
        ("auto_delete", wanted.auto_delete, queue.auto_delete),
    ):
        if asked != is_so:
            received, current = value_text(asked), value_text(is_so)
            raise _inequivalent(
                broker, channel, queue, "QUEUE-007", field, f"received '{received}' but current is '{current}'"
            )
    if broker.dialect.text.all_arguments_are_compared:
        if wanted.arguments != queue.arguments:
            raise _inequivalent(broker, channel, queue, "QUEUE-007", "arguments", "they differ")
        return
    for argument in broker.dialect.queue_arguments.of(queue.type):
        received = _argument(broker, wanted.arguments, argument)
        current = _argument(broker, queue.arguments, argument)
        if not _same(received, current) and not _means_classic(argument, received, current):
            requirement = "QUEUE-012" if argument == "x-queue-type" else "QUEUE-010"
            raise _inequivalent(broker, channel, queue, requirement, argument, _difference(received, current))


def _check_same_owner(broker: Broker, channel: Channel, queue: Queue, wanted: Queue) -> None:
    """Exclusive or not must match, whoever asks (rabbit_amqqueue:check_exclusive_access, strict)."""
    if queue.owner != wanted.owner:
        of_another = queue.owner is not None and queue.owner != channel.connection
        raise locked(broker, channel, queue, "QUEUE-019" if of_another else "QUEUE-008")


def _inequivalent(
    broker: Broker, channel: Channel, queue: Queue, requirement: str, argument: str, difference: str
) -> ProtocolError:
    where = queue_text(broker, channel, queue.name)
    # the first versions of the range name the ages as they were sent
    any_text = argument == "x-max-age" and broker.dialect.queue_arguments.age_is_compared_by_length
    text = f"inequivalent arg '{argument}' for {where}: {difference}"
    return ProtocolError(requirement, 406, text, any_text=any_text)


def _argument(broker: Broker, table: Table, name: str) -> Any:
    """As the broker compares it: from 4.0 on every queue has a type (rabbit_amqqueue:augment_declare_args)."""
    default = broker.dialect.default_queue_type_in_errors if name == "x-queue-type" else None
    value = table.get(name, _MISSING if default is None else default)
    if name == "x-max-age" and broker.dialect.queue_arguments.age_is_compared_by_length:
        seconds = age_in_seconds(value)
        return value if seconds is None else str(seconds * 1000)
    return value


def _same(one: Any, other: Any) -> bool:
    """rabbit_misc:assert_args_equivalence1: numbers of one kind by value; true is no number."""
    if one is _MISSING or other is _MISSING:
        return one is other
    kinds = {_kind(one), _kind(other)}
    if kinds == {str, bytes}:  # one term in Erlang
        return _octets(one) == _octets(other)
    return len(kinds) == 1 and bool(one == other)


def _kind(value: Any) -> type:
    """rabbit_misc:type_class."""
    return int if is_whole_number(value) else float if isinstance(value, float) else type(value)


def _octets(value: str | bytes) -> bytes:
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


def _means_classic(argument: str, received: Any, current: Any) -> bool:
    """QUEUE-012: no type is the classic type (rabbit_misc:assert_field_equivalence)."""
    if argument != "x-queue-type":
        return False
    return current == "classic" if received is _MISSING else received == "classic" and current is _MISSING


def _difference(received: Any, current: Any) -> str:
    if received is not _MISSING and current is not _MISSING:
        return f"received '{printed(received)}' but current is '{printed(current)}'"
    return f"received {_valued(received)} but current is {_valued(current)}"


def _valued(value: Any) -> str:
    return "none" if value is _MISSING else f"the value '{printed(value)}' of type '{wire_type(value)}'"
