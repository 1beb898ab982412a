"""A copy of a broker's state, for explanations that part. Some ten times as fast as `copy.deepcopy`.

How a record is copied follows from the types of its fields: for each class the code of its copying is made once, when
the first one is copied. Who adds a field to a record has nothing to do here.

* A dataclass that can be changed is copied, each object once, however many others refer to it.
* A frozen dataclass is shared, unless it refers to something that is copied: then it is made anew. Its lists and
  dictionaries of what is shared are shared as well.
* Lists, dictionaries, sets and deques are copied with what they hold; a `Table` came over the wire, nobody changes it,
  and it is shared. So are the records of `SHARED`, which are never changed once they are made.
* A value that may be of several types (`object`, or a union) is copied by the type that it has.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.owed import Expected
from amqpspec.model.broker.queues import Gone
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.protocol.methods import Content, Table, TraceEvent

#: Classes whose objects are never changed once they are made, though nothing prevents it.
SHARED = (TraceEvent, Content, Dialect, Gone)

#: Records that are not frozen, as making them would take longer, and that are treated as if they were.
NEVER_CHANGED = (Expected,)

#: Copies that were made already, by the identity of the original. It refers to the originals as well: an object that
#: is made for a moment only could give its identity to the next.
Copied = dict[int, Any]
#: Gives the copy of a value.
Copier = Callable[[Any, Copied], Any]

#: The copiers, by the names under which they call each other: that of a class is made with the first that needs it.
_COPIERS: dict[str, Any] = {"new_object": object.__new__, "deque": deque}
#: Those that call only what has been made: several threads may judge at one time.
_COMPLETE: dict[type, Copier] = {}
_ONE_AT_A_TIME = threading.Lock()


def copy_broker(broker: Broker) -> Broker:
    """A broker that is equal to this one, and of which no change shows in the other."""
    copied: Broker = _copier_of(type(broker))(broker, {})
    return copied


def _copier_of(record: type) -> Copier:
    copier = _COMPLETE.get(record)
    if copier is None:
        with _ONE_AT_A_TIME:
            copier = _COMPLETE[record] = _COPIERS[_copier_name(record)]
    return copier


def _copier_name(record: type) -> str:
    """The name of the copier of a dataclass, which there is from now on."""
    name = f"copy_{record.__name__}_{id(record)}"
    if name not in _COPIERS:
        _COPIERS[name] = None  # records refer to each other in circles
        exec(f"def {name}(old, copied):\n" + "\n".join(f"    {line}" for line in _lines(record)), _COPIERS)
    return name


def _lines(record: type) -> list[str]:
    """The source text of the copier: one assignment for each field."""
    hints = get_type_hints(record)
    parameters = record.__dataclass_params__  # type: ignore[attr-defined]
    values = {field.name: _expression(hints[field.name], f"old.{field.name}") for field in fields(record)}
    made = f"class_{id(record)}"
    _COPIERS[made] = record
    if parameters.frozen or record in NEVER_CHANGED:
        values |= {name: f"old.{name}" for name, hint in hints.items() if name in values and _holds_shared(hint)}
        parts = {name: value for name, value in values.items() if value != f"old.{name}"}
        is_same = " and ".join(f"{name} is old.{name}" for name in parts)
        arguments = ", ".join(f"{name}={name if name in parts else value}" for name, value in values.items())
        return [
            *(f"{name} = {value}" for name, value in parts.items()),
            f"return old if {is_same} else {made}({arguments})",
        ]
    taken_over = []
    if not _has_slots(record):
        # also what a subclass keeps besides
        taken_over = ["new.__dict__.update(old.__dict__)"]
        values = {name: value for name, value in values.items() if value != f"old.{name}"}
    return [
        "new = copied.get(id(old))",
        "if new is not None:",
        "    return new",
        f"new = copied[id(old)] = new_object({made})",
        *taken_over,
        *(f"new.{name} = {value}" for name, value in values.items()),
        "return new",
    ]


def _has_slots(record: type) -> bool:
    return all("__slots__" in base.__dict__ for base in record.__mro__[:-1])


def _expression(kind: Any, value: str) -> str:
    """Source text that copies the value of that type, given as source text."""
    if not _is_copied(kind):
        return value
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        kinds = [each for each in arguments if each is not NoneType]
        if len(kinds) == 1:
            return f"(None if {value} is None else {_expression(kinds[0], value)})"
        return f"copy_by_type({value}, copied)"
    if kind is object or kind is Any:
        return f"copy_by_type({value}, copied)"
    if origin is Counter:
        return f"copy_counts({value})"
    if _holds_shared(kind):
        return f"{value}.copy()"
    if origin is tuple and arguments[-1] is not Ellipsis:
        parts = (_expression(each, f"{value}[{place}]") for place, each in enumerate(arguments))
        return f"({', '.join(parts)},)"
    if origin is dict:
        key, item = (_expression(each, name) for each, name in zip(arguments, ("k", "v"), strict=True))
        return f"({{{key}: {item} for k, v in {value}.items()}} if {value} else {{}})"
    if origin in (list, tuple, deque, set):
        parts_text = f"{_expression(arguments[0], 'each')} for each in {value}"
        if origin is deque:
            return f"deque([{parts_text}], {value}.maxlen)"
        made = {list: f"[{parts_text}]", tuple: f"tuple([{parts_text}])", set: f"{{{parts_text}}}"}[origin]
        return f"({made} if {value} else {value}.copy())" if origin is not tuple else f"({made} if {value} else ())"
    return f"{_copier_name(kind)}({value}, copied)"


def _copy_by_type(value: Any, copied: Copied) -> Any:
    """A value of which only its own type says whether and how it is copied."""
    kind = type(value)
    copier = _COMPLETE.get(kind)
    if copier is not None:
        return copier(value, copied)
    if is_dataclass(kind):
        return _copier_of(kind)(value, copied) if _is_copied(kind) else value
    if kind is tuple:
        return tuple([_copy_by_type(each, copied) for each in value])
    if kind is list:
        return [_copy_by_type(each, copied) for each in value]
    if kind is dict:
        return {_copy_by_type(key, copied): _copy_by_type(each, copied) for key, each in value.items()}
    return value


def _copy_counts(counts: Counter[Any]) -> Counter[Any]:
    """Its own `copy` counts all of them anew."""
    new: Counter[Any] = Counter.__new__(Counter)
    dict.update(new, counts)
    return new


_COPIERS |= {"copy_by_type": _copy_by_type, "copy_counts": _copy_counts}

_UNKNOWN: set[Any] = set()


@cache
def _is_copied(kind: Any) -> bool:
    """Does a copy of the state need a value of that type of its own?"""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind == Table or origin is Callable:
        return False
    if kind in (object, Any) or origin in (list, set, deque, dict, Counter):
        return True
    if origin is not None:
        return any(_is_copied(each) for each in arguments if each not in (NoneType, Ellipsis))
    if not isinstance(kind, type) or issubclass(kind, (*SHARED, Enum)) or not is_dataclass(kind):
        return False
    if not kind.__dataclass_params__.frozen and kind not in NEVER_CHANGED:  # type: ignore[attr-defined]
        return True
    if kind in _UNKNOWN:
        return False  # it refers to itself: the other fields decide
    _UNKNOWN.add(kind)
    try:
        return any(_is_copied(hint) and not _holds_shared(hint) for hint in get_type_hints(kind).values())
    finally:
        _UNKNOWN.discard(kind)


def _holds_shared(kind: Any) -> bool:
    """Is it a list or a dictionary, or the like, of what is shared?"""
    return get_origin(kind) in (list, set, deque, dict) and not any(map(_is_copied, get_args(kind)))
