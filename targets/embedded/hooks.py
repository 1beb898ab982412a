"""What a fault is: one defect, put into the served model by hooks at its edges.

A chapter of faults declares each with one decorator; the decorated function is the defect:

* `on_input(name, requirement, defect, *methods)`: called in place of processing a client's frame of these methods;
  it calls `proceed` with the frame, with another one, or not at all, and may change the state before and after;
* `on_timeout(name, requirement, defect)`: the same in place of a delivery that times out
  (`model.rules.extensions.timeout_schedule`): who does not proceed moves its deadline;
* `on_output(name, requirement, defect, *methods)`: gives the frames that are sent in place of a right one of these
  methods, which the model has already taken as sent;
* `in_broker(name, requirement, defect)`: decorates a subclass of `ServedBroker` that goes wrong in one step.

A hook that must remember something keeps it in `broker.memory`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from amqpspec.model.broker.internal_events import DeliveryTimeout
from amqpspec.model.promises.dialects import DEFAULT_DIALECT
from amqpspec.model.protocol.methods import TraceEvent
from amqpspec.targets.embedded.served_broker import ServedBroker

#: What is altered stays what it is.
Altered = TypeVar("Altered", bound=TraceEvent)

#: Processes a client's frame as the model says.
Proceed = Callable[[TraceEvent], None]
#: Each is given only events of its methods.
InputHook = Callable[[ServedBroker, Any, Proceed], None]
#: Has a delivery time out as the model says.
ProceedTimeout = Callable[[DeliveryTimeout], None]
TimeoutHook = Callable[[ServedBroker, DeliveryTimeout, ProceedTimeout], None]
OutputHook = Callable[[ServedBroker, Any], Iterable[TraceEvent]]


@dataclass(frozen=True, slots=True)
class Fault:
    """One defect, and the requirement that must catch it. `defect` is a sentence."""

    name: str
    requirement: str
    defect: str
    #: methods that the hooks look at
    methods: frozenset[str] = frozenset()
    input_hook: InputHook | None = None
    timeout_hook: TimeoutHook | None = None
    output_hook: OutputHook | None = None
    broker_type: type[ServedBroker] = ServedBroker
    #: name of the dialect in which it can show
    dialect: str = DEFAULT_DIALECT.name


class Chapter:
    """The faults of one file, in their order; a name is given once (`ValueError`)."""

    def __init__(self) -> None:
        self.faults: dict[str, Fault] = {}

    def on_input(
        self, name: str, requirement: str, defect: str, *methods: str, dialect: str = DEFAULT_DIALECT.name
    ) -> Callable[[InputHook], InputHook]:
        def declare(hook: InputHook) -> InputHook:
            self._add(Fault(name, requirement, defect, frozenset(methods), input_hook=hook, dialect=dialect))
            return hook

        return declare

    def on_timeout(
        self, name: str, requirement: str, defect: str, *, dialect: str = DEFAULT_DIALECT.name
    ) -> Callable[[TimeoutHook], TimeoutHook]:
        def declare(hook: TimeoutHook) -> TimeoutHook:
            self._add(Fault(name, requirement, defect, timeout_hook=hook, dialect=dialect))
            return hook

        return declare

    def on_output(
        self, name: str, requirement: str, defect: str, *methods: str, dialect: str = DEFAULT_DIALECT.name
    ) -> Callable[[OutputHook], OutputHook]:
        def declare(hook: OutputHook) -> OutputHook:
            self._add(Fault(name, requirement, defect, frozenset(methods), output_hook=hook, dialect=dialect))
            return hook

        return declare

    def in_broker(
        self, name: str, requirement: str, defect: str, *, dialect: str = DEFAULT_DIALECT.name
    ) -> Callable[[type[ServedBroker]], type[ServedBroker]]:
        def declare(broker_type: type[ServedBroker]) -> type[ServedBroker]:
            self._add(Fault(name, requirement, defect, broker_type=broker_type, dialect=dialect))
            return broker_type

        return declare

    def _add(self, fault: Fault) -> None:
        if fault.name in self.faults:
            raise ValueError(f"two faults are named {fault.name}")
        self.faults[fault.name] = fault


def altered(event: Altered, **arguments: Any) -> Altered:
    """The frame with other values of these arguments."""
    return replace(event, arguments={**event.arguments, **arguments})
