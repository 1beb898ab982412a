"""Failures made of a difference: what was seen, what would have been right, and the state that says so."""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.judging.known_defect import KnownDefect
from amqpspec.model.judging.state_wording import allowed_frames, state_lines
from amqpspec.model.outputs.debts import Debt, debt_text
from amqpspec.model.outputs.mismatch import Mismatch
from amqpspec.model.outputs.replies import ASKED_FOR
from amqpspec.model.promises.verdict import Failure, Shape
from amqpspec.model.protocol.methods import METHOD_IDS, TraceEvent

#: Rules of all methods: on a channel that is not open, after the error of one, between a publish and its content, on
#: channel 0, and with nowait.
_OF_ANY_METHOD = frozenset({"CHAN-001", "CHAN-005", "CHAN-013", "CHAN-018", "CONN-019"})

_NAMES = {identifiers: name for name, identifiers in METHOD_IDS.items()}


def failure_of(broker: Broker, event: TraceEvent, mismatch: Mismatch, command: str, defect: str) -> Failure:
    """The frame is not what the state allows. `defect`: the name of the one that explains it, or ""."""
    allowed = (mismatch.allowed,) if mismatch.allowed else allowed_frames(broker, event)
    return Failure(
        mismatch.requirement,
        mismatch.shape,
        _unexpected(mismatch),
        command,
        str(event),
        allowed,
        state_lines(broker, event),
        defect,
    )


def failure_of_debt(broker: Broker, debt: Debt, command: str, defect: KnownDefect | None) -> Failure:
    """What was owed has not come. `defect`: the one that explains it."""
    return Failure(
        defect.requirement if defect else debt.requirement,
        Shape.MISSING,
        _missing(broker, debt),
        command,
        "nothing",
        (debt_text(debt),),
        state_lines(broker, debt.event),
        defect.name if defect else "",
    )


def _unexpected(mismatch: Mismatch) -> str:
    """What is wrong. That a method is carried out where none is to be has one cause, whichever it is."""
    name, _, rest = mismatch.detail.partition(" ")
    if mismatch.requirement in _OF_ANY_METHOD and mismatch.shape is Shape.UNEXPECTED and name in ASKED_FOR:
        return f"a reply {rest}".strip()
    return mismatch.detail


def _missing(broker: Broker, debt: Debt) -> str:
    """What is missing, told apart as a person would: which method was not refused, what a confirm depends on."""
    event = debt.event
    if event is None:
        return debt.count
    if event.name in ("channel.close", "connection.close"):
        if debt.requirement in _OF_ANY_METHOD:
            return event.name
        identifiers = event.arguments.get("class_id", 0), event.arguments.get("method_id", 0)
        return f"{event.name} for {_NAMES[identifiers]}" if identifiers in _NAMES else event.name
    channel = broker.channels.get((event.connection, event.channel))
    if channel is not None and channel.selected_untold and event.name in ("basic.ack", "basic.nack"):
        return f"{event.name} after confirm.select with nowait"
    return event.name
