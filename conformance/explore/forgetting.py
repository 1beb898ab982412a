"""All that only words or blames failures is forgotten, wherever it stands in a state: nothing may depend on it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any

from amqpspec.model.broker.bookkeeping import Bookkeeping
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.field_kinds import Kind, declared_kind

#: In place of the requirement that a frame is owed by: no such one is blamed.
_NONE = "NONE-000"


def forget_blame(broker: Broker, but_of: tuple[type, ...] = ()) -> None:
    """As if nobody would ever ask why. What was counted stays, and what could not be judged.

    `but_of`: in records of these types nothing is forgotten.
    """
    kept = broker.bookkeeping
    _forget(broker, but_of, set())
    broker.bookkeeping = Bookkeeping(
        kept.counting, kept.exercised, kept.refuted, kept.measurements, undecided=kept.undecided
    )


def _forget(value: Any, but_of: tuple[type, ...], seen: set[int]) -> None:
    if isinstance(value, Mapping):
        _forget([*value, *value.values()], but_of, seen)
    elif isinstance(value, (list, tuple, deque, set, frozenset)):
        for each in value:
            _forget(each, but_of, seen)
    elif is_dataclass(value) and not isinstance(value, type) and id(value) not in seen:
        seen.add(id(value))
        for declared in fields(value):
            if declared_kind(declared) is Kind.BLAME and not isinstance(value, but_of):
                object.__setattr__(value, declared.name, _nothing(declared, getattr(value, declared.name)))
            else:
                _forget(getattr(value, declared.name), but_of, seen)


def _nothing(declared: Field[Any], value: Any) -> Any:
    if declared.name == "requirements":
        return (_NONE,) * len(value)
    if declared.default_factory is not MISSING:
        return declared.default_factory()
    return declared.default
