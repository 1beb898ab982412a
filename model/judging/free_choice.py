"""What a free choice is (`model.judging.free_choices`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialect_names import base_of
from amqpspec.model.promises.differences import Difference
from amqpspec.model.promises.differences_of_choices import ARGUMENTS, CHOICES
from amqpspec.model.protocol.methods import TraceEvent

_OF_ARGUMENTS = "queue_arguments"


@dataclass(frozen=True, slots=True)
class FreeChoice:
    """One choice, with the values that are right beside the dialect's own."""

    #: the name of the field of `Dialect`, or of `KnownArguments` behind "queue_arguments."
    choice: str
    values: tuple[Any, ...]
    requirement: str
    kinds: tuple[str, ...]
    #: may another value make a difference to this input? The channel is that of the input, if it is open
    matters: Callable[[Broker, Channel | None, TraceEvent], bool]
    #: the dialects in which these are the values; (): all in which the choice is free
    dialects: tuple[str, ...] = ()

    @property
    def difference(self) -> Difference:
        """Its class and source."""
        name, _, of_arguments = self.choice.partition(".")
        return ARGUMENTS[of_arguments] if of_arguments else CHOICES[name]

    def is_free_in(self, dialect_name: str) -> bool:
        base = base_of(dialect_name)
        return base in self.difference.either_in and (not self.dialects or base in self.dialects)

    def value_in(self, dialect: Dialect) -> Any:
        """The value that the dialect has."""
        name, _, of_arguments = self.choice.partition(".")
        value = getattr(dialect, name)
        return getattr(value, of_arguments) if of_arguments else value


@cache
def with_value(dialect: Dialect, choice: str, value: Any) -> Dialect:
    """The dialect with another value of that choice, which may be one of the arguments of queue.declare."""
    name, _, of_arguments = choice.partition(".")
    if of_arguments:
        assert name == _OF_ARGUMENTS
        value = replace(dialect.queue_arguments, **{of_arguments: value})
    return replace(dialect, **{name: value})
