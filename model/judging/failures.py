"""Failures made of a difference: what was seen, what would have been right, and the state that says so."""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.judging.state_wording import allowed_frames, state_lines
from amqpspec.model.outputs.debts import Debt, debt_text
from amqpspec.model.outputs.mismatch import Mismatch
from amqpspec.model.promises.verdict import Failure, Shape
from amqpspec.model.protocol.methods import TraceEvent


def failure_of(broker: Broker, event: TraceEvent, mismatch: Mismatch, command: str, defect: str) -> Failure:
    """The frame is not what the state allows. `defect`: the name of the one that explains it, or ""."""
    allowed = (mismatch.allowed,) if mismatch.allowed else allowed_frames(broker, event.connection)
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
        debt.event.name if debt.event else "messages ready",
        command,
        "nothing",
        (debt_text(debt),),
        state_lines(broker, debt.event),
        defect.name if defect else known_as,
    )
