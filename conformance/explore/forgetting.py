"""All that only words or blames failures is forgotten, wherever it stands in a state: nothing may depend on it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any

from amqpspec.model.broker.bookkeeping import Bookkeeping
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.field_kinds import Kind, declared_kind

#: In place of the requirement that a frame is owed by: no such one is blamed.
_NONE = "NONE-000"


def forget_blame(broker: Broker) -> None:
    """As if nobody would ever ask why. What was counted stays, and what could not be judged."""
    kept = broker.bookkeeping
    _forget(broker, set())
    broker.bookkeeping = Bookkeeping(
        kept.counting, kept.exercised, kept.refuted, kept.measurements, undecided=kept.undecided
    )


def _forget(value: Any, seen: set[int]) -> None:
    if isinstance(value, Mapping):
        _forget_all((*value, *value.values()), seen)
    elif isinstance(value, (list, tuple, deque, set, frozenset)):
        _forget_all(value, seen)
    elif is_dataclass(value) and not isinstance(value, type) and id(value) not in seen:
        seen.add(id(value))
        for each in fields(value):
            if declared_kind(each) is Kind.BLAME:
                object.__setattr__(value, each.name, _nothing(each, getattr(value, each.name)))
            else:
                _forget(getattr(value, each.name), seen)


def _forget_all(values: Iterable[Any], seen: set[int]) -> None:
    for each in values:
        _forget(each, seen)


def _nothing(declared: Field[Any], value: Any) -> Any:
    if declared.name == "requirements":
        return (_NONE,) * len(value)
    if declared.default_factory is not MISSING:
        return declared.default_factory()
    return declared.default
