"""Frames that are wrong or missing in a way that is known: the law says what is wrong, a known defect says why."""

from __future__ import annotations

from dataclasses import replace

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.owed import Expected
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
        if defect not in spent and defect.goes_on(broker, method, mismatch):
            told = replace(mismatch, requirement=defect.requirement, fatal=False, defect=defect.name)
            return told, *explained(broker, method, observe(broker, method), known, (*spent, defect))
    return ()


def _named(broker: Broker, method: Method, mismatch: Mismatch, known: DefectsFollowed) -> Mismatches:
    """One mismatch for each of those that explain it, which they may do together."""
    found = [defect for defect in known.of_outputs if defect.explains(broker, method, mismatch)]
    if found and isinstance(mismatch.about, Expected) and not mismatch.about.counted:
        return ()  # in answers to a barrier it says nothing: what a sequence is about shows it or does not
    return tuple(replace(mismatch, requirement=each.requirement, defect=each.name) for each in found) or (mismatch,)
