"""One cause, once: an argument that the broker refuses again and again in the same way.

A refusal that was seen three times is taken for a cause. From then on a sequence that is ended by it is *blocked*, and
not another failure: it is inconclusive, and names the failure that it comes under. The search leaves the argument out.
All this goes by the order of the run, so equal seeds against the same broker come to the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.verdicts.ended_by import blocked_by
from amqpspec.conformance.verdicts.judgement import Cause, SequenceJudgement
from amqpspec.model.promises.verdict import Failure, Shape, Verdict

#: Refusals in the same way that make a cause.
ENOUGH = 3

_REFUSAL = re.compile(r"(connection|channel)\.close( in place of .+)?$")
_REPLY_CODE = re.compile(r"\breply-code=(\d+)")


class Argument(NamedTuple):
    """An entry of the table `arguments` of a method."""

    method: str
    name: str


class _Refusal(NamedTuple):
    """One way of refusing an argument."""

    argument: Argument
    #: "channel" or "connection"
    closes: str
    reply_code: str


@dataclass(slots=True)
class _Known:
    identity: str
    seen: int = 0
    blocked: int = 0
    #: identities of failures that come from the same cause
    under: Counter[str] = field(default_factory=Counter)


class Causes:
    """What was learned of a target so far. Show it each judgement of a run, in the order of the run."""

    def __init__(self) -> None:
        self._known: dict[_Refusal, _Known] = {}

    @property
    def refused(self) -> frozenset[Argument]:
        """The arguments that the broker refuses."""
        return frozenset(refusal.argument for refusal, known in self._known.items() if known.seen >= ENOUGH)

    @property
    def causes(self) -> tuple[Cause, ...]:
        return tuple(
            Cause(
                failure=known.identity,
                what=f"{refusal.argument.name} of {refusal.argument.method}",
                answer=f"{refusal.closes}.close {refusal.reply_code}",
                blocked=known.blocked,
                under=tuple(sorted(known.under.keys() - {known.identity})),
            )
            for refusal, known in self._known.items()
            if known.seen >= ENOUGH
        )

    def judged(self, judgement: SequenceJudgement) -> SequenceJudgement:
        """The judgement, without the failures that come from what is known as a cause."""
        left: list[Failure] = []
        reason = judgement.reason
        for failure in judgement.failures:
            refusals = list(_refusals(failure))
            known = next((self._known[each] for each in refusals if self._is_cause(each)), None)
            if known is None:
                left.append(failure)
                for each in refusals:
                    self._known.setdefault(each, _Known(failure.identity)).seen += 1
            else:
                known.blocked += 1
                known.under[failure.identity] += 1
                reason = blocked_by(known.identity)
        if len(left) == len(judgement.failures):
            return judgement
        if left:
            return replace(judgement, failures=tuple(left))
        return replace(judgement, failures=(), verdict=Verdict.INCONCLUSIVE, reason=reason, exercised={})

    def _is_cause(self, refusal: _Refusal) -> bool:
        return refusal in self._known and self._known[refusal].seen >= ENOUGH


def _refusals(failure: Failure) -> Iterator[_Refusal]:
    """The ways of refusing that the failure may be one of: one for each argument that its command has."""
    if failure.shape is not Shape.UNEXPECTED or failure.defect or not failure.command:
        return
    refusal, code = _REFUSAL.match(failure.detail), _REPLY_CODE.search(failure.observed)
    if refusal is None or code is None:
        return
    for argument in arguments_of(parse_command(failure.command)):
        yield _Refusal(argument, refusal[1], code[1])


def arguments_of(command: Command) -> Iterator[Argument]:
    table = command.arguments.get("arguments")
    if isinstance(table, dict):
        for name in table:
            yield Argument(command.method, name)


def without(command: Command, refused: frozenset[Argument]) -> Command:
    """The command without the arguments that the broker refuses."""
    left_out = {name for _, name in refused.intersection(arguments_of(command))}
    if not left_out:
        return command
    table = {name: value for name, value in command.arguments["arguments"].items() if name not in left_out}
    arguments = {name: value for name, value in command.arguments.items() if name != "arguments"}
    return replace(command, arguments={**arguments, "arguments": table} if table else arguments)
