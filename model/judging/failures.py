"""Failures made of a difference: what was seen, what would have been right, and the state that says so."""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.defects.departure import Departure
from amqpspec.model.judging.state_wording import allowed_frames, state_lines
from amqpspec.model.outputs.debts import Debt, debt_text
from amqpspec.model.outputs.mismatch import Mismatch
from amqpspec.model.promises.verdict import Failure, Shape
from amqpspec.model.protocol.methods import Frame


def failure_of(broker: Broker, frame: Frame, mismatch: Mismatch, command: str, departure: str) -> Failure:
    """The frame is not what the state allows. `departure`: the name of the one that explains it, or ""."""
    allowed = (mismatch.allowed,) if mismatch.allowed else allowed_frames(broker, frame.connection)
    return Failure(
        mismatch.requirement,
        mismatch.shape,
        mismatch.detail,
        command,
        str(frame),
        allowed,
        state_lines(broker, frame),
        departure,
    )


def failure_of_debt(broker: Broker, debt: Debt, command: str, departure: Departure | None) -> Failure:
    """What was owed has not come. `departure`: the one that explains it."""
    return Failure(
        departure.requirement if departure else debt.requirement,
        Shape.MISSING,
        debt.frame.method if debt.frame else "messages ready",
        command,
        "nothing",
        (debt_text(debt),),
        state_lines(broker, debt.frame),
        departure.name if departure else debt.departure,
    )
