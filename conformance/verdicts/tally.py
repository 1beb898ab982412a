"""Adding up what judging found: one verdict for each requirement over all sequences, and each distinct failure once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from amqpspec.conformance.verdicts.judgement import (
    FoundFailure,
    RequirementVerdict,
    SequenceJudgement,
    requirement_verdicts,
)
from amqpspec.conformance.verdicts.known_behaviour import DefectOutcome, defect_outcomes, defects_tested
from amqpspec.model.broker.measurement import Measurement
from amqpspec.model.promises.registry import Requirement
from amqpspec.model.promises.verdict import Verdict, worst

#: How many inconclusive sequences a tally lists by name; all are counted.
MAX_UNDECIDED = 1000


@dataclass(slots=True)
class Tally:
    """Adds up judgements. Memory depends on the number of requirements and of distinct failures only."""

    sequences: int = 0
    frames: int = 0
    #: (requirement, verdict) -> sequences
    counts: Counter[tuple[str, Verdict]] = field(default_factory=Counter)
    #: the same, against the broker as it is known
    counts_as_known: Counter[tuple[str, Verdict]] = field(default_factory=Counter)
    #: requirement -> times exercised
    exercised: Counter[str] = field(default_factory=Counter)
    #: requirement -> the first reason given for not passing it ("" for searches)
    reasons: dict[str, str] = field(default_factory=dict)
    #: identity -> the first example, with the number of sequences that showed it
    found: dict[str, FoundFailure] = field(default_factory=dict)
    undecided: list[tuple[str, str]] = field(default_factory=list)
    #: (known defect, whether it was seen) -> sequences that put it to the test
    tested: Counter[tuple[str, bool]] = field(default_factory=Counter)
    #: (sequence, measurement); to come to one takes its time, so there are never very many
    measurements: list[tuple[str, Measurement]] = field(default_factory=list)

    def add(self, judgement: SequenceJudgement) -> None:
        """Takes one sequence into account."""
        self.sequences += 1
        self.frames += judgement.frames
        for id, said in requirement_verdicts(judgement).items():
            self.counts[id, said.verdict] += 1
            self.counts_as_known[id, said.as_known] += 1
            self.exercised[id] += said.exercised
        self.tested.update(defects_tested(judgement.failures, judgement.refuted, judgement.dialect).items())
        if judgement.verdict in (Verdict.INCONCLUSIVE, Verdict.NOT_APPLICABLE):
            reason = judgement.reason or "no reason was recorded"
            self.reasons.setdefault(judgement.requirement or "", reason)
            if judgement.verdict is Verdict.INCONCLUSIVE and len(self.undecided) < MAX_UNDECIDED:
                self.undecided.append((judgement.sequence, reason))
        self.measurements += ((judgement.sequence, each) for each in judgement.measurements)
        distinct = {failure.identity: failure for failure in reversed(judgement.failures)}
        for identity, failure in distinct.items():
            known = self.found.get(identity)
            if known is None:
                self.found[identity] = FoundFailure(failure, judgement.sequence)
            else:
                self.found[identity] = replace(known, sequences=known.sequences + 1)

    def verdict(self, id: str) -> Verdict | None:
        """The verdict of a requirement over the sequences so far; None if no sequence concerned it.

        Fail, then inconclusive, then pass outrank the rest, in this order.
        """
        return _worst(self.counts, id)

    def defects(self, dialect: str) -> tuple[DefectOutcome, ...]:
        """What became of the known defects that are known of a dialect."""
        return defect_outcomes(self.tested, dialect)

    def requirements(
        self,
        registry: Iterable[Requirement],
        dialect: str,
        not_applicable: Mapping[str, str] | None = None,
    ) -> tuple[RequirementVerdict, ...]:
        """One verdict for each entry of `registry`, in its order, then for blamed ids that it lacks.

        `not_applicable` gives reasons known before the run (an absent capability), by id. They and the
        dialect decide only where no sequence did: a rule that was seen broken is never hidden by them.
        """
        absent = not_applicable or {}
        verdicts: dict[str, RequirementVerdict] = {}
        for entry in registry:
            id = entry.id
            verdict = self.verdict(id)
            reason = self.reasons.get(id)
            if verdict in (None, Verdict.NOT_EXERCISED):
                if id in absent:
                    verdict, reason = Verdict.NOT_APPLICABLE, absent[id]
                elif dialect not in entry.dialects:
                    verdict, reason = Verdict.NOT_APPLICABLE, f"the dialect {dialect} has no such rule"
            verdicts[id] = self._stated(id, verdict or Verdict.NOT_EXERCISED, reason)
        for id in sorted({id for id, _ in self.counts} - verdicts.keys() - {""}):
            verdicts[id] = self._stated(id, self.verdict(id) or Verdict.NOT_EXERCISED, self.reasons.get(id))
        return tuple(verdicts.values())

    def _stated(self, id: str, verdict: Verdict, reason: str | None) -> RequirementVerdict:
        as_known = _worst(self.counts_as_known, id) if verdict is Verdict.FAIL else None
        differing = None if as_known is verdict else as_known
        explained = {verdict, differing} & {Verdict.INCONCLUSIVE, Verdict.NOT_APPLICABLE}
        return RequirementVerdict(id, verdict, self.exercised[id], reason if explained else None, differing)


def _worst(counts: Counter[tuple[str, Verdict]], id: str) -> Verdict | None:
    seen = [verdict for verdict in Verdict if counts[id, verdict]]
    return worst(seen) if seen else None
