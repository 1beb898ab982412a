"""Judging mutants, with known defects, without, and in the open world: what matters is that each ends in a verdict."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from amqpspec.conformance.traces.trace import TraceError
from amqpspec.conformance.traces.trace_row import TraceRow
from amqpspec.conformance.verdicts.judge import SequenceJudge, judge, judge_open
from amqpspec.conformance.verdicts.judgement import SequenceJudgement
from amqpspec.model.judging.acceptor import lawful_acceptor
from amqpspec.model.promises.verdict import Verdict
from tests.fuzz.mutants import Mutant, Mutants


@dataclass(slots=True)
class Found:
    """What came of some mutants. `raised`: by error the first mutant that raised it, and how many did."""

    verdicts: Counter[str] = field(default_factory=Counter)
    raised: dict[str, tuple[Mutant, int]] = field(default_factory=dict)
    slowest: tuple[float, int] = (0.0, 0)

    def add(self, other: Found) -> None:
        self.verdicts += other.verdicts
        for error, (mutant, times) in other.raised.items():
            self._note(error, mutant, times)
        self.slowest = max(self.slowest, other.slowest)

    def judge(self, mutant: Mutant) -> None:
        began = time.monotonic()
        for judged in (judge, judge_by_law, judge_open):
            try:
                judgement = judged(mutant.rows)
            except TraceError as error:
                self._note(str(error), mutant, 1)
                continue
            if judgement.suite_error is not None:
                self._note(judgement.suite_error, mutant, 1)
            self.verdicts[f"{judgement.verdict}"] += 1
            assert judgement.verdict is not Verdict.FAIL or judgement.failures
        self.slowest = max(self.slowest, (time.monotonic() - began, mutant.number))

    def _note(self, error: str, mutant: Mutant, times: int) -> None:
        first, before = self.raised.get(error, (mutant, 0))
        self.raised[error] = first, before + times


def judge_by_law(rows: Iterable[TraceRow]) -> SequenceJudgement:
    """As if no defect were known."""
    start, *others = rows
    sequence = SequenceJudge(start, lawful_acceptor)
    complete = False
    for row in others:
        complete = sequence.row(row)
    return sequence.judgement(complete)


def fuzzed(mutants: Mutants, seed: int, numbers: Iterable[int]) -> Found:
    found = Found()
    for number in numbers:
        found.judge(mutants.made(seed, number))
    return found
