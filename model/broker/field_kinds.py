"""What a field of a record of the state is to who compares states; said where the field is declared.

A field without any of these is law: it is part of what decides what the broker may and must send, and is compared
(`model.broker.fingerprint`). So is a doubt, which is what cannot be known from outside. What only words or blames
failures is not compared, nor is what other fields determine. A field that is not compared as it is has a view.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, field
from enum import Enum
from typing import Any


class Kind(Enum):
    LAW = "law"
    DOUBT = "doubt"
    BLAME = "blame"
    DERIVED = "derived"
    APART = "apart"


#: Kinds of which states are equal whatever the field is.
NOT_COMPARED = (Kind.BLAME, Kind.DERIVED, Kind.APART)


def doubt(default: Any = MISSING, *, factory: Any = MISSING, view: str = "", only: str = "") -> Any:
    """What cannot be known from outside, and decides what is permitted as the law does. `view`, `only`: see `law`."""
    return _field(Kind.DOUBT, default, factory, view=view, only=only)


def law(default: Any = MISSING, *, factory: Any = MISSING, view: str = "", only: str = "") -> Any:
    """Part of what decides what is permitted, compared in a way of its own.

    `view`: the name of the function of `model.broker.fingerprint` that gives what is compared, made of the whole
    record. Fields may share one. `only`: compared only where its record is seen in the way of that name.
    """
    return _field(Kind.LAW, default, factory, view=view, only=only)


def to_blame(default: Any = MISSING, *, factory: Any = MISSING) -> Any:
    """It words or blames failures, or counts what was shown."""
    return _field(Kind.BLAME, default, factory)


def derived(default: Any = MISSING, *, factory: Any = MISSING, init: bool = True) -> Any:
    """Other fields determine it. Without `init` its record determines it when it is made."""
    return _field(Kind.DERIVED, default, factory, init)


def apart(because: str, default: Any = MISSING, *, factory: Any = MISSING) -> Any:
    """It matters to the law, and is not compared all the same: the reason says why that loses nothing."""
    return _field(Kind.APART, default, factory, because=because)


def declared_kind(declared: Field[Any]) -> Kind:
    """What the field is by its declaration."""
    kind: Kind = declared.metadata.get("kind", Kind.LAW)
    return kind


def view_of(declared: Field[Any]) -> str:
    """The name of the view by which it is compared; "": as it is."""
    return str(declared.metadata.get("view", ""))


def is_compared(declared: Field[Any], way: str) -> bool:
    """Is it, where its record is seen in that way?"""
    return declared_kind(declared) not in NOT_COMPARED and declared.metadata.get("only", "") in ("", way)


def _field(
    kind: Kind, default: Any, factory: Callable[[], Any] | Any, init: bool = True, **metadata: str
) -> Any:
    is_left_out = kind is Kind.DERIVED  # of `==` as well
    return field(
        default=default, default_factory=factory, init=init, compare=not is_left_out,
        metadata={"kind": kind, **metadata},
    )
