"""What a known defect is (`model.defects.transitions`), and the commonest kind: the broker crashes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.state import Expected
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.protocol.methods import Frame
from amqpspec.model.rules.connection.closing import break_connection

#: `DefectTransition.shows_within` without an end.
ANY_NUMBER = 10**9


@dataclass(frozen=True, slots=True)
class KnownDefect:
    """One known wrong behaviour: the promise it breaks, who does it, and where that was read or seen."""

    name: str
    #: the promise
    requirement: str
    #: what the broker does instead
    statement: str
    source: str
    #: names of the dialects whose brokers do it
    dialects: tuple[str, ...]

    @property
    def brokers(self) -> tuple[str, ...]:
        """Whose doing it is, by product and versions."""
        return tuple(dialect_named(name).title for name in self.dialects)


@dataclass(frozen=True, slots=True)
class DefectTransition(KnownDefect):
    """One that is a way to go on: another processing of the input that comes under it."""

    #: the methods that can come under it
    methods: tuple[str, ...]
    #: does this input, of one of these methods, in this state, come under it?
    applies: Callable[[Broker, Frame], bool]
    #: processes the input as the broker does
    process: Callable[[Broker, Frame], None]
    #: behind how many more commands what it does may show: so long it is followed though the broker is at rest
    shows_within: int = 0
    #: the broker does it whenever it can: one that has not done it does not begin to
    is_steady: bool = False


def crash_with(requirement: str) -> Callable[[Broker, Frame], None]:
    """The channel's process crashes over the input: the connection closes with 541."""

    def process_(broker: Broker, frame: Frame) -> None:
        broker.stamp += 1
        broker.fired(requirement)
        break_connection(broker, broker.channels[(frame.connection, frame.channel)], internal_error())

    return process_


def internal_error(reply_text: object = "INTERNAL_ERROR") -> Expected:
    arguments = {"reply_code": 541, "reply_text": reply_text, "class_id": 0, "method_id": 0}
    return Expected("connection.close", arguments, ("CHAN-007",), counted=False)
