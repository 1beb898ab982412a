"""What a run does with a broker that ends in the middle of it, or does not answer any more.

A broker that the suite has started is started again. What was under way is then carried out one by one, so that the
sequence that does it is known by name; nothing else that it showed is taken for a failure. The loss is a failure of
`SERVER-001`, and its identity is that, with the command after which nobody was answered. What has ended it twice in
the same way is left out from then on, so that the rest of the broker is seen as well.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

from amqpspec.conformance.failures.reproducer import reproducer
from amqpspec.conformance.language.command import Command
from amqpspec.conformance.session.command_sequence import CommandSequence, not_judged
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.verdicts.ended_by import blocked_by, lost_by
from amqpspec.conformance.verdicts.judgement import (
    INDISPENSABLE,
    SERVES_ON,
    FoundFailure,
    RequirementVerdict,
    SequenceJudgement,
)
from amqpspec.model.promises.verdict import Failure, Shape, Verdict
from amqpspec.targets.errors import TargetUnreachable

#: So many losses by the same cause end a run, if fewer than `NEAR` sequences were over between the first and the
#: last of them.
ENOUGH, NEAR = 3, 20
#: Seconds that a run spends on losses before it ends by that, and the part of it that these have to be.
MOST_TIME, MOST_OF_THE_RUN = 180.0, 0.5
#: So many losses after the same method have it left out.
ENOUGH_TO_AVOID = 2
#: What a sequence ends with: the suite closes its connections, and deletes what it made.
THE_END = "closing connections and deleting what was made"
#: Names of sequences that are told of.
MOST_NAMES = 8


class Restarts(Protocol):
    """Starts the target again, which it has started before."""

    def start_again(self) -> TargetUnderTest:
        """The target anew, on the address that it has then. Raises `TargetError` where it does not start."""
        ...

    def last_lines(self) -> tuple[str, ...]:
        """The last that it wrote to its log, where that is known."""
        ...

    def breakable(self) -> tuple[TargetUnderTest, Restarts]:
        """Another one like it that bears faults, where this one does not; who starts it again. Raises `TargetError`."""
        ...


class Losses:
    """What was seen of losses in one run."""

    def __init__(self) -> None:
        self.found: dict[str, FoundFailure] = {}
        #: times that a fresh connection was served when it was asked for
        self.served = 0
        self._by_cause: Counter[str] = Counter()
        #: by cause: how many sequences of the run were over at each loss
        self._when: defaultdict[str, list[int]] = defaultdict(list)
        #: seconds that what was done about them took, and since when something is done (of `time.monotonic`)
        self._took = 0.0
        self._since: float | None = None
        #: by method that is left out, once it has been lost often enough after it, the identity of that failure
        self.avoided: dict[str, str] = {}

    @property
    def has_been_served(self) -> bool:
        return self.served > 0

    def note(
        self,
        reason: str,
        log: Sequence[str],
        sequence: CommandSequence | None,
        commands: Sequence[Command] = (),
        under_way: Iterable[str] = (),
        *,
        is_ended: bool = False,
        is_tried: bool = True,
        over: int = 0,
    ) -> Failure:
        """The target was lost. `sequence`: which does it, where that is known, by itself and by these commands.

        `log`: the last that the target wrote. `under_way`: names of sequences, where it is not known which did it;
        `is_tried`: these were carried out one by one, to find that out.
        `is_ended`: it was served after all commands, and no more once connections were closed and queues deleted.
        `over`: how many sequences of the run are over.
        """
        last = commands[-1] if commands and not is_ended else None
        behind = f" behind {last.method}" if last else f" behind {THE_END}" if is_ended else ""
        said = ["the last lines of its log:", *log] if log else []
        names = list(under_way)
        if names:
            more = len(names) - MOST_NAMES
            listed = [*names[:MOST_NAMES], *([f"{more} more"] if more > 0 else [])]
            tried = "; carried out one by one, none of them does it again" if is_tried else ""
            said.insert(0, f"under way: {', '.join(listed)}{tried}")
        failure = Failure(
            SERVES_ON,
            Shape.MISSING,
            f"an answer{behind}",
            str(last) if last else "",
            " ".join(reason.split()),
            ("an answer on a fresh connection",),
            tuple(said),
        )
        self._by_cause[failure.identity] += 1
        self._when[failure.identity].append(over)
        is_often = self._by_cause[failure.identity] >= ENOUGH_TO_AVOID
        if last is not None and is_often and last.method not in INDISPENSABLE:
            self.avoided[last.method] = failure.identity
        self.found.setdefault(
            failure.identity,
            FoundFailure(
                failure,
                sequence.name if sequence else "",
                tuple(map(str, commands)),
                reproducer(commands, failure) if commands else "",
                rate=(1, 1) if sequence else (0, 1) if is_tried else None,
            ),
        )
        return failure

    def is_enough(self, failure: Failure) -> bool:
        """Has the same cause ended the target so often that there is no use in going on?"""
        last = self._when[failure.identity][-ENOUGH:]
        return len(last) == ENOUGH and last[-1] - last[0] < NEAR

    @contextmanager
    def timed(self) -> Iterator[None]:
        """What is done in it is done because the target was lost."""
        self._since = time.monotonic()
        try:
            yield
        finally:
            self._took, self._since = self.time, None

    @property
    def time(self) -> float:
        """Seconds that what was done about them has taken till now."""
        return self._took + (time.monotonic() - self._since if self._since is not None else 0.0)

    def raise_if_too_long(self, took: float) -> None:
        """`took`: seconds that the run has taken. Raises `TargetUnreachable` where most of them went into losses."""
        if self.time > max(MOST_TIME, took * MOST_OF_THE_RUN):
            count = self._by_cause.total()
            times = "once" if count == 1 else f"{count} times"
            reason = f"lost {times}; starting it again and finding out what does it took {self.time:.0f} s"
            raise TargetUnreachable(f"{reason}, most of the run")

    def blocking(self, commands: Iterable[Command]) -> str | None:
        """The identity of the loss for which a sequence of these commands is left out; None: there is none."""
        return next((self.avoided[each.method] for each in commands if each.method in self.avoided), None)

    def failures(self) -> list[FoundFailure]:
        return [replace(each, sequences=self._by_cause[identity]) for identity, each in self.found.items()]

    def verdict(self) -> RequirementVerdict:
        """What the run says of the requirement."""
        if self.found:
            return RequirementVerdict(SERVES_ON, Verdict.FAIL, self.served)
        return RequirementVerdict(SERVES_ON, Verdict.PASS if self.served else Verdict.NOT_EXERCISED, self.served)


def given_up(sequence: CommandSequence, failure: Failure, target: TargetUnderTest) -> SequenceJudgement:
    """What is said of a sequence that ends the target: nothing, but that."""
    return not_judged(sequence, target, lost_by(failure.identity), failure.identity)


def blocked(sequence: CommandSequence, identity: str, target: TargetUnderTest) -> SequenceJudgement:
    """What is said of a sequence that is not carried out, as the target would be lost by what is in it."""
    return not_judged(sequence, target, blocked_by(identity), identity)
