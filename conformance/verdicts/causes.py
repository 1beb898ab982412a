"""One cause, once: an argument that the broker refuses again and again in the same way, a method that it never answers.

What was seen three times is taken for a cause. From then on a sequence that is ended by it is *blocked*, and not
another failure: it is inconclusive, and names the failure that it comes under. The search leaves the argument or method
out.
All this goes by the order of the run, so equal seeds against the same broker come to the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.verdicts.ended_by import blocked_by
from amqpspec.conformance.verdicts.judgement import INDISPENSABLE, Cause, SequenceJudgement
from amqpspec.model.promises.verdict import Failure, Shape, Verdict
from amqpspec.model.protocol.methods import METHOD_IDS

#: Failures in the same way that make a cause.
ENOUGH = 3
#: What a cause has for an answer that does not come.
NO_ANSWER = ""

_REFUSAL = re.compile(r"(connection|channel)\.close( in place of .+)?$")
_NO_ANSWER = re.compile(r"(?:(?P<method>.+)-ok|(?:channel|connection)\.close for (?P<refused>.+))$")
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


class _Silence(NamedTuple):
    """A method that is not answered."""

    method: str


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
        self._known: dict[_Refusal | _Silence, _Known] = {}
        self._answered: set[str] = set()

    @property
    def refused(self) -> frozenset[Argument]:
        """The arguments that the broker refuses."""
        return frozenset(each.argument for each in self._causes() if isinstance(each, _Refusal))

    @property
    def never_answered(self) -> frozenset[str]:
        """The methods that the broker never answers: not once in this run."""
        return frozenset(each.method for each in self._causes() if isinstance(each, _Silence))

    def _causes(self) -> Iterator[_Refusal | _Silence]:
        return filter(self._is_cause, self._known)

    @property
    def causes(self) -> tuple[Cause, ...]:
        return tuple(
            Cause(
                failure=known.identity,
                what=each.method if isinstance(each, _Silence) else f"{each.argument.name} of {each.argument.method}",
                answer=NO_ANSWER if isinstance(each, _Silence) else f"{each.closes}.close {each.reply_code}",
                blocked=known.blocked,
                under=tuple(sorted(known.under.keys() - {known.identity})),
            )
            for each, known in self._known.items()
            if self._is_cause(each)
        )

    def blocking(self, commands: Iterable[Command]) -> str | None:
        """The identity of the failure by which a sequence of these commands is blocked; None: there is none."""
        return next(
            (self._known[each].identity for each in (_Silence(command.method) for command in commands)
             if self._is_cause(each)), None,
        )  # fmt: skip

    def judged(self, judgement: SequenceJudgement, answered: Collection[str] = ()) -> SequenceJudgement:
        """The judgement, without the failures that come from what is known as a cause. `answered`: methods that were
        answered in the sequence.
        """
        self._answered.update(answered)
        left: list[Failure] = []
        reason, identity = judgement.reason, ""
        for failure in judgement.failures:
            refusals: list[_Refusal | _Silence] = [*_refusals(failure), *_silence(failure)]
            known = next((self._known[each] for each in refusals if self._is_cause(each)), None)
            if known is None:
                left.append(failure)
                for each in refusals:
                    first = self._known.setdefault(each, _Known(failure.identity))
                    first.seen += 1
                    if isinstance(each, _Silence):
                        first.under[failure.identity] += 1
            else:
                known.blocked += 1
                known.under[failure.identity] += 1
                identity = known.identity
                reason = blocked_by(identity)
        if len(left) == len(judgement.failures):
            return judgement
        if left:
            return replace(judgement, failures=tuple(left))
        ended_by = judgement.ended_by and identity
        return replace(
            judgement, failures=(), verdict=Verdict.INCONCLUSIVE, reason=reason, exercised={}, ended_by=ended_by
        )

    def _is_cause(self, each: _Refusal | _Silence) -> bool:
        if isinstance(each, _Silence) and each.method in self._answered:
            return False
        return each in self._known and self._known[each].seen >= ENOUGH


def _refusals(failure: Failure) -> Iterator[_Refusal]:
    """The ways of refusing that the failure may be one of: one for each argument that its command has."""
    if failure.shape is not Shape.UNEXPECTED or failure.defect or not failure.command:
        return
    refusal, code = _REFUSAL.match(failure.detail), _REPLY_CODE.search(failure.observed)
    if refusal is None or code is None:
        return
    for argument in arguments_of(parse_command(failure.command)):
        yield _Refusal(argument, refusal[1], code[1])


def _silence(failure: Failure) -> Iterator[_Silence]:
    """The method that was not answered, if the failure is that."""
    found = _NO_ANSWER.match(failure.detail) if failure.shape is Shape.MISSING and not failure.defect else None
    if found is not None:
        method = found["method"] or found["refused"]
        if f"{method}-ok" in METHOD_IDS and method not in INDISPENSABLE:
            yield _Silence(method)


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
