"""Failures made of a difference: what was seen, what would have been right, and the state that says so."""

from __future__ import annotations

from model.alphabet import Frame
from model.broker import Broker
from model.debts import Debt, debt_text
from model.departure import Departure
from model.mismatch import Mismatch
from model.state_wording import allowed_frames, state_lines
from model.verdict import Failure, Shape
from model.wording import describe


def failure_of(broker: Broker, frame: Frame, mismatch: Mismatch, command: str, departure: str) -> Failure:
    """The frame is not what the state allows. `departure`: the name of the one that explains it, or ""."""
    allowed = (mismatch.allowed,) if mismatch.allowed else allowed_frames(broker, frame.connection)
    return Failure(
        mismatch.requirement,
        mismatch.shape,
        mismatch.detail,
        command,
        describe(frame),
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
