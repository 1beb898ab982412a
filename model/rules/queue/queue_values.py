"""Checks of the values of queue arguments (QUEUE-013); rabbit_amqqueue:declare_args and its check functions.

Requirements:

* QUEUE-013: Argument validation. Bad argument values are 406 with the fixed prefix "PRECONDITION_FAILED - invalid arg
  '<a>' for queue '<q>' in vhost '/': <reason>". Looked at are x-queue-type, then the arguments that the type knows, in
  a fixed order; the first wrong one is told. x-delivery-limit is never checked. In rabbitmq-3: as stated; broken: 541
  for an x-max-age without a number, and for no name with an unknown type. In rabbitmq-4.0: as stated; broken: 541 for
  an x-max-age without a number (mended in 4.2.7), and for no name with an unknown type. In rabbitmq-4.3: any
  x-queue-mode is refused, in whatever words; broken: it is taken; 541 for an x-max-age without a number (mended in
  4.3.1), and for no name with an x-queue-type that is no text. [rabbit_amqqueue:check_declare_arguments, declare_args]
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from amqpspec.model.promises.queue_arguments import KnownArguments
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.erlang_wording import wire_type
from amqpspec.model.protocol.field_types import is_whole_number
from amqpspec.model.protocol.methods import Table

#: Gives why the value is wrong, as the broker prints it; None if it is right. The table is that of the declare.
Check = Callable[[Any, Table, KnownArguments], str | None]

TEN_YEARS_MS = 315_360_000_000
#: As long as a queue of priorities may be; priorities are one octet.
MOST_PRIORITIES = 255


def invalid_value(argument: str, value: Any, table: Table, known: KnownArguments) -> str | None:
    """Why the value is wrong for the argument; None if it is right, or if nobody looks at it."""
    return CHECKS[argument](value, table, known)


def _whole_number(value: Any) -> str | None:
    """An error text for what is not sent as a whole number. Timestamps are none, though the codec has them as int."""
    return None if is_whole_number(value) else f'"expected integer, got {wire_type(value)}"'


def _not_negative(value: Any, table: Table, known: KnownArguments) -> str | None:
    return _whole_number(value) or (f"{{value_negative,{value}}}" if value < 0 else None)


def _positive(value: Any, table: Table, known: KnownArguments) -> str | None:
    return _not_negative(value, table, known) or ("{value_zero,0}" if value == 0 else None)


def _duration(value: Any, table: Table, known: KnownArguments) -> str | None:
    """rabbit_misc:check_expiry."""
    wrong = _not_negative(value, table, known)
    return wrong or (f"{{value_too_large,{value}}}" if value > TEN_YEARS_MS else None)


def _expiry(value: Any, table: Table, known: KnownArguments) -> str | None:
    return _duration(value, table, known) or ("{value_zero,0}" if value == 0 else None)


def _priorities(value: Any, table: Table, known: KnownArguments) -> str | None:
    wrong = _not_negative(value, table, known)
    return wrong or (f"{{max_value_exceeded,{value}}}" if value > MOST_PRIORITIES else None)


def _version(value: Any, table: Table, known: KnownArguments) -> str | None:
    wrong = _not_negative(value, table, known)
    return wrong or (None if value in known.queue_versions else f"\"unsupported queue version '{value}'\"")


def _text(value: Any) -> str | None:
    return None if isinstance(value, str) else f"{{unacceptable_type,{wire_type(value)}}}"


def _any_text(value: Any, table: Table, known: KnownArguments) -> str | None:
    return _text(value)


def _truth(value: Any, table: Table, known: KnownArguments) -> str | None:
    return None if isinstance(value, bool) else f"{{unacceptable_type,{wire_type(value)}}}"


def _dead_letter_key(value: Any, table: Table, known: KnownArguments) -> str | None:
    return _text(value) or (None if "x-dead-letter-exchange" in table else "routing_key_but_no_dlx_defined")


def _one_of(words: tuple[str, ...], wrong: str) -> Check:
    def check(value: Any, table: Table, known: KnownArguments) -> str | None:
        return _text(value) or (None if value in words else wrong.replace("VALUE", str(value)))

    return check


def _mode(value: Any, table: Table, known: KnownArguments) -> str | None:
    return _one_of(known.queue_modes, "\"unsupported queue mode 'VALUE'\"")(value, table, known)


def _locator(value: Any, table: Table, known: KnownArguments) -> str | None:
    return _one_of(known.leader_locators, "invalid_queue_locator_arg")(value, table, known)


def _age(value: Any, table: Table, known: KnownArguments) -> str | None:
    return _text(value) or (None if age_in_seconds(value) is not None else "invalid_max_age")


_SECONDS = {"Y": 365 * 86400, "M": 30 * 86400, "D": 86400, "h": 3600, "m": 60, "s": 1}


def age_in_seconds(value: Any) -> int | None:
    """How long a right `x-max-age` is; None for a wrong one (rabbit_amqqueue:check_max_age)."""
    found = re.fullmatch(r"0*([1-9][0-9]*)([YMDhms])", value, re.ASCII) if isinstance(value, str) else None
    return int(found[1]) * _SECONDS[found[2]] if found else None


def _nobody_looks(value: Any, table: Table, known: KnownArguments) -> str | None:
    return None


#: Known arguments and their checks, in the order in which these are made.
CHECKS: dict[str, Check] = {
    "x-expires": _expiry,
    "x-message-ttl": _duration,
    "x-dead-letter-exchange": _any_text,
    "x-dead-letter-routing-key": _dead_letter_key,
    "x-dead-letter-strategy": _one_of(("at-most-once", "at-least-once"), "invalid_dlx_strategy"),
    "x-max-length": _not_negative,
    "x-max-length-bytes": _not_negative,
    "x-max-in-memory-length": _not_negative,
    "x-max-in-memory-bytes": _not_negative,
    "x-max-priority": _priorities,
    "x-overflow": _one_of(("drop-head", "reject-publish", "reject-publish-dlx"), "invalid_overflow"),
    "x-queue-mode": _mode,
    "x-queue-version": _version,
    "x-single-active-consumer": _truth,
    "x-consumer-timeout": _not_negative,
    "x-consumer-disconnected-timeout": _not_negative,
    "x-queue-type": _one_of(tuple(t.value for t in QueueType), "\"unsupported queue type 'VALUE'\""),
    "x-quorum-initial-group-size": _positive,
    "x-max-age": _age,
    "x-stream-max-segment-size-bytes": _not_negative,
    "x-stream-filter-size-bytes": _not_negative,
    "x-initial-cluster-size": _positive,
    "x-queue-leader-locator": _locator,
    # compared, but never checked: anything goes
    "x-delivery-limit": _nobody_looks,
    "x-queue-master-locator": _nobody_looks,
    "x-delayed-retry-type": _nobody_looks,
    "x-delayed-retry-min": _nobody_looks,
    "x-delayed-retry-max": _nobody_looks,
}
