"""Frames that are wrong or missing in a way that is known: the law says what is wrong, a known defect says why."""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.judging.defects_followed import DefectsFollowed
from amqpspec.model.judging.known_defect import OutputDefect
from amqpspec.model.outputs.mismatch import NONE, Mismatch, Mismatches
from amqpspec.model.outputs.observation import observe
from amqpspec.model.protocol.methods import Method, TraceEvent


def observe_as_known(broker: Broker, event: TraceEvent, known: DefectsFollowed) -> Mismatches:
    """As `observe`, with the names of the known defects that explain what is wrong."""
    mismatches = observe(broker, event)
    if not mismatches:
        return NONE
    if not known.of_outputs or not isinstance(event, Method):
        return mismatches
    return explained(broker, event, mismatches, known)


def explained(
    broker: Broker,
    method: Method,
    mismatches: Mismatches,
    known: DefectsFollowed,
    spent: tuple[OutputDefect, ...] = (),
) -> Mismatches:
    """The mismatches with their names. One that is fatal and known is none any more: the state is the broker's then.

    `spent`: defects that have explained something fatal about the frame. What is fatal after it is not theirs.
    """
    for mismatch in mismatches:
        if mismatch.fatal:
            return _going_on(broker, method, mismatch, known, spent) or mismatches
    return tuple(each for mismatch in mismatches for each in _named(broker, method, mismatch, known))


def _going_on(
    broker: Broker, method: Method, mismatch: Mismatch, known: DefectsFollowed, spent: tuple[OutputDefect, ...]
) -> Mismatches:
    for defect in known.of_outputs:
        if defect.goes_on is None or defect in spent:
            continue
        told = defect.goes_on(broker, method, mismatch)
        if told is not None:
            further = observe(broker, method)
            return told + explained(broker, method, further, known, (*spent, defect))
    return ()


def _named(broker: Broker, method: Method, mismatch: Mismatch, known: DefectsFollowed) -> Mismatches:
    for defect in known.of_outputs:
        told = defect.names(broker, method, mismatch) if defect.names is not None else None
        if told is not None:
            return told
    return (mismatch,)
