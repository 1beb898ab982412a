"""What the sequences of one run on one target say together: a verdict for each requirement, each failure once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import astuple, replace

from amqpspec.conformance.verdicts.ended_by import failure_behind
from amqpspec.conformance.verdicts.grounds import why_not, without_ground
from amqpspec.conformance.verdicts.judgement import FoundFailure, RequirementVerdict, SequenceJudgement
from amqpspec.conformance.verdicts.known_behaviour import DefectOutcome
from amqpspec.conformance.verdicts.tally import (
    DEFECT,
    FAILURE,
    OPEN,
    REFUTED,
    REPEATED,
    SEEN,
    TOTAL,
    VERDICT,
    Part,
    Tally,
    reason_of,
)
from amqpspec.model.broker.measurement import Measurement
from amqpspec.model.defects.known_defects import known_defects
from amqpspec.model.promises.dialect_names import base_of
from amqpspec.model.promises.dialects.amqp_0_9_1 import AMQP_0_9_1
from amqpspec.model.promises.registry import Requirement
from amqpspec.model.promises.verdict import Verdict, worst
from amqpspec.model.promises.versions import Version

#: How many inconclusive sequences are listed by name; all are counted (`RunTally.undecided_of`).
MAX_UNDECIDED = 1000


class RunTally:
    """A `Tally`, and besides the inconclusive sequences and the measurements by name, in the order of the run.

    Memory depends on the number of requirements, of distinct failures and of measurements only. To come to a
    measurement takes its time, so there are never very many. Like a `Tally` it can be merged.
    """

    def __init__(self) -> None:
        self._sums = Tally()
        self._next = 0
        self._undecided: list[tuple[int, str, str]] = []
        self._undecided_of: Counter[str | None] = Counter()
        self._measurements: list[tuple[int, int, str, Measurement]] = []

    def add(self, judgement: SequenceJudgement, number: int | None = None) -> None:
        """Take one sequence into account; `number` is its place in the run, after all others if it is not given."""
        number = self._next if number is None else number
        self._next = max(self._next, number + 1)
        self._sums.add(judgement, number)
        if judgement.repeats is not None:
            return
        if judgement.verdict is Verdict.INCONCLUSIVE:
            reason = reason_of(judgement)
            self._undecided_of[failure_behind(reason)] += 1
            self._list_undecided([(number, judgement.sequence, reason)])
        self._list_measurements(
            (number, position, judgement.sequence, each) for position, each in enumerate(judgement.measurements)
        )

    def merge(self, other: RunTally) -> None:
        """Take into account what another one has added up, which stays as it is."""
        self._sums.merge(other._sums)
        self._next = max(self._next, other._next)
        self._list_undecided(other._undecided)
        self._undecided_of.update(other._undecided_of)
        self._list_measurements(other._measurements)

    def _list_undecided(self, more: Iterable[tuple[int, str, str]]) -> None:
        self._undecided = sorted([*self._undecided, *more])[:MAX_UNDECIDED]

    def _list_measurements(self, more: Iterable[tuple[int, int, str, Measurement]]) -> None:
        self._measurements += more

    # ------------------------------------------------------------------------------------ what is reported

    @property
    def sequences(self) -> int:
        """Those that only repeat others belong to no count but that of frames."""
        return sum(part.sequences for part in self._of(TOTAL) if part.name != REPEATED)

    @property
    def frames(self) -> int:
        return sum(part.frames for part in self._of(TOTAL))

    @property
    def undecided(self) -> list[tuple[str, str]]:
        """(sequence, reason) of inconclusive ones, of which only so many are listed."""
        return [(sequence, reason) for _, sequence, reason in self._undecided]

    @property
    def undecided_of(self) -> dict[str | None, int]:
        """How many inconclusive ones there are, by the identity of the failure that is the reason; None: it is none."""
        return dict(self._undecided_of)

    @property
    def measurements(self) -> list[tuple[str, Measurement]]:
        """(sequence, measurement)."""
        ordered = sorted(self._measurements, key=lambda each: (*each[:3], astuple(each[3])))
        return [(sequence, measurement) for _, _, sequence, measurement in ordered]

    @property
    def found(self) -> dict[str, FoundFailure]:
        """By identity the first example, with the number of sequences that showed it, in the order of the run. One that
        is minor is no example of what is not.
        """
        first: dict[str, Part] = {}
        counts: Counter[str] = Counter()
        for part in sorted(self._of(FAILURE), key=lambda part: (part.is_minor, part.rank, part.key)):
            first.setdefault(part.name, part)
            counts[part.name] += part.sequences
        return {id: FoundFailure(part.failure, part.example, sequences=counts[id]) for id, part in first.items()}

    def defects(self, dialect: str, version: Version | None = None) -> tuple[DefectOutcome, ...]:
        """What became of the known defects that are known of a dialect, and of that version of its brokers."""
        found: Counter[tuple[str, str]] = Counter()
        for part in self._of(DEFECT):
            found[part.name, part.as_known] += part.sequences
        return tuple(
            DefectOutcome(each.name, found[each.name, SEEN], found[each.name, REFUTED], found[each.name, OPEN])
            for each in known_defects(dialect, version)
        )

    def verdict(self, id: str) -> Verdict | None:
        """The verdict of a requirement over the sequences so far; None if no sequence concerned it.

        Fail, then inconclusive, then pass outrank the rest, in this order.
        """
        stated = self._stated().get(id)
        return None if stated is None else stated.verdict

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
        stated = self._stated()
        verdicts: dict[str, RequirementVerdict] = {}
        for entry in registry:
            id = entry.id
            said = stated.get(id) or RequirementVerdict(id, Verdict.NOT_EXERCISED, 0)
            if said.verdict is Verdict.NOT_EXERCISED and id in absent:
                said = replace(said, verdict=Verdict.NOT_APPLICABLE, reason=absent[id])
            elif said.verdict is Verdict.NOT_EXERCISED and entry.note_in(dialect) is None:
                base = base_of(dialect)
                reason = "a rule of RabbitMQ's alone" if base == AMQP_0_9_1.name else f"{base} has no such rule"
                said = replace(said, verdict=Verdict.NOT_APPLICABLE, reason=reason)
            verdicts[id] = said
        for id in sorted(stated.keys() - verdicts.keys() - {""}):
            verdicts[id] = stated[id]
        return tuple(verdicts.values())

    def _of(self, kind: str) -> Iterable[Part]:
        return (part for part in self._sums.parts() if part.kind == kind)

    def _stated(self) -> dict[str, RequirementVerdict]:
        """What the sequences say of each requirement that they concern."""
        parts: dict[str, list[Part]] = {}
        for part in self._of(VERDICT):
            parts.setdefault(part.requirement, []).append(part)
        stated = {id: _together(id, of_one) for id, of_one in parts.items()}
        for id, _, _ in without_ground(self._of(VERDICT)):
            if stated[id].verdict is Verdict.PASS:
                stated[id] = RequirementVerdict(id, Verdict.NOT_EXERCISED, 0, why_not(id))
        return stated


def _together(id: str, parts: list[Part]) -> RequirementVerdict:
    """One verdict for all the parts of a requirement."""
    verdict = worst(Verdict(part.name) for part in parts)
    as_known = worst(Verdict(part.as_known) for part in parts)
    differing = as_known if verdict is Verdict.FAIL and as_known is not verdict else None
    reason = None
    if {verdict, differing} & {Verdict.INCONCLUSIVE, Verdict.NOT_APPLICABLE}:
        # a reason that no failure is behind tells more, as that failure may be accepted
        stated = (part for part in parts if part.text)
        reason = min(stated, key=lambda part: (failure_behind(part.text) is not None, part.rank)).text
    cut = min((part for part in parts if part.name == Verdict.NOT_EXERCISED and part.text), key=_rank, default=None)
    cut_by = None if cut is None or verdict not in (Verdict.PASS, Verdict.NOT_EXERCISED) else cut.text
    if cut_by is not None and verdict is Verdict.NOT_EXERCISED:
        reason = f"its scenario was cut short by {cut_by}, and nothing else decided it"
    return RequirementVerdict(id, verdict, sum(part.exercised for part in parts), reason, differing, cut_by)


def _rank(part: Part) -> tuple[tuple[int, int], str, str]:
    return part.rank
