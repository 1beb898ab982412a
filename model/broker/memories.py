"""What the guests of a broker remember (`model.broker.hooks`): copied and compared only where there is something."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from functools import cache
from types import NoneType
from typing import Any

from amqpspec.model.broker.hooks import NO_HOOKS, Hooks


class Memories(dict[str, Any]):
    """By the name of the guest."""

    def __init__(self, hooks: Hooks = NO_HOOKS) -> None:
        super().__init__()
        self._guests = {guest.name: guest for guest in hooks.guests}

    def begin(self, name: str) -> Any:
        """The memory of a guest that had none."""
        memory = self[name] = self._guests[name].new_memory()
        return memory

    def copied(self, copy: Callable[[Any, Any], Any], copied: Any) -> Memories:
        """The same, with a copy of each memory that holds anything; `copied` is passed on."""
        new = Memories.__new__(Memories)
        new._guests = self._guests
        for name in self.held():
            new[name] = copy(self[name], copied)
        return new

    def held(self) -> list[str]:
        """Whose memories hold anything."""
        own = self.items()
        return [name for name, memory in own if _holds_anything(type(memory))(memory)]  # type: ignore[arg-type]

    def seen(self, broker: Any) -> tuple[object, ...]:
        """What is compared of them: of those that make a difference."""
        guests = self._guests
        return tuple([(name, seen) for name in sorted(self.held()) if (seen := guests[name].fingerprint(broker))])


@cache
def _holds_anything(record: Any) -> Callable[[Any], object]:
    """Says of such a memory whether it is another one than that of a broker which has just been started. Made of source
    text: nothing takes longer with each copy of a state.
    """
    if record is NoneType:
        return lambda it: False
    names: dict[str, Any] = {}
    tests = []
    for each in fields(record):
        first = _first_value(each)
        names[f"first_{each.name}"] = first
        tests.append(f"it.{each.name} != first_{each.name}" if first else f"it.{each.name}")
    test: Callable[[Any], object] = eval(f"lambda it: {' or '.join(tests)}", names)
    return test


def _first_value(declared: Field[Any]) -> Any:
    return declared.default_factory() if declared.default_factory is not MISSING else declared.default
