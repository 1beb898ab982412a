"""Failures made of a difference: what was seen, what would have been right, and the state that says so."""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.judging.state_wording import allowed_frames, state_lines
from amqpspec.model.outputs.debts import Debt, debt_text
from amqpspec.model.outputs.mismatch import Mismatch
from amqpspec.model.promises.verdict import Failure, Shape
from amqpspec.model.protocol.methods import METHOD_IDS, TraceEvent

_NAMES = {identifiers: name for name, identifiers in METHOD_IDS.items()}


def failure_of(broker: Broker, event: TraceEvent, mismatch: Mismatch, command: str, defect: str) -> Failure:
    """The frame is not what the state allows. `defect`: the name of the one that explains it, or ""."""
    allowed = (mismatch.allowed,) if mismatch.allowed else allowed_frames(broker, event)
    return Failure(
        mismatch.requirement,
        mismatch.shape,
        mismatch.detail,
        command,
        str(event),
        allowed,
        state_lines(broker, event),
        defect,
    )


def failure_of_debt(
    broker: Broker, debt: Debt, command: str, defect: DefectTransition | None, known_as: str
) -> Failure:
    """What was owed has not come. `defect`: the one followed that explains it. `known_as`: another one, by its name."""
    return Failure(
        defect.requirement if defect else debt.requirement,
        Shape.MISSING,
        _missing(broker, debt),
        command,
        "nothing",
        (debt_text(debt),),
        state_lines(broker, debt.event),
        defect.name if defect else known_as,
    )


def _missing(broker: Broker, debt: Debt) -> str:
    """What is missing, told apart as a person would: which method was not refused, what a confirm depends on."""
    event = debt.event
    if event is None:
        return "messages ready"
    if event.name in ("channel.close", "connection.close"):
        identifiers = event.arguments.get("class_id", 0), event.arguments.get("method_id", 0)
        return f"{event.name} for {_NAMES[identifiers]}" if identifiers in _NAMES else event.name
    channel = broker.channels.get((event.connection, event.channel))
    if channel is not None and channel.selected_untold and event.name in ("basic.ack", "basic.nack"):
        return f"{event.name} after confirm.select with nowait"
    return event.name
