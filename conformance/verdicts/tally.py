"""Adding up judgements, wherever they are made: in a run, from recorded traces, on many machines.

A tally is a set of parts, each a sum with one example. Merging is associative and commutative: neither how the work was
split nor the order of the parts makes a difference. What a report shows is read from the parts: of one run by
`conformance.verdicts.run_tally`, of any number of targets by `pipeline.table`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from amqpspec.conformance.traces.trace_failures import failure_from_json, failure_to_json
from amqpspec.conformance.verdicts.judgement import SequenceJudgement, cut_short_by, requirement_verdicts
from amqpspec.conformance.verdicts.known_behaviour import defects_tested, may_be_fixed
from amqpspec.conformance.verdicts.minor import why_minor
from amqpspec.model.defects.known_defects import is_as_known
from amqpspec.model.promises.verdict import Failure, Verdict

#: What `Part.kind` may be.
TOTAL, VERDICT, FAILURE, DEFECT, MEASUREMENT = "total", "verdict", "failure", "known_defect", "measurement"
#: Of that kind are the targets' versions in which no known defect is said to be fixed (`known_behaviour.may_be_fixed`):
#: `Part.name` is one that is newer than what was verified; "": the target is no RabbitMQ of a version of its dialect.
NOT_FIXED = "not_fixed"
#: What `Part.name` is of a total of sequences that only repeat or shorten others.
REPEATED = "repeated"
#: What `Part.as_known` is of known defects, and of measurements.
SEEN, REFUTED, OPEN = "seen", "refuted", "open"
#: What `Part.as_known` is of a failure explained by a defect that is known of the target's version; else "".
OWN = "own"
EXPECTED, UNEXPECTED = "expected", "unexpected"

#: What `Part.key` is.
Key = tuple[str, str, str, str, str, str, bool]


@dataclass(slots=True)
class Part:
    """What is known of one requirement's verdict, one failure, one known defect, …; parts of equal `key` are merged.

    `name` is the verdict, the failure's identity, the known defect's name, the milliseconds by which something was
    late, or of a total whether the sequences only repeated others. `as_known` is the second verdict, whether the known
    defect was "seen" or "refuted" or its window "open", or the lateness "expected" or "unexpected". `sequences` is a
    number of measurements for these. A failure's `as_known` is "own" where a known defect of the target's version
    explains it. `example` and `text` go together: the sequence whose name is the first, and its failure (JSON) or
    reason.
    """

    kind: str
    requirement: str
    target: str
    dialect: str
    name: str
    sequences: int
    exercised: int
    frames: int
    example: str
    text: str
    as_known: str = ""
    #: of a failure: it is minor (`conformance.verdicts.minor`)
    is_minor: bool = False
    #: the number of the example's sequence in its run, and of the failure in the sequence; (0, 0): in no order
    place: tuple[int, int] = (0, 0)

    @property
    def key(self) -> Key:
        return self.kind, self.requirement, self.target, self.dialect, self.name, self.as_known, self.is_minor

    @property
    def rank(self) -> tuple[tuple[int, int], str, str]:
        """Of several examples that with the smallest rank is kept, of those with a text where there are any."""
        return self.place, self.example, self.text

    @property
    def failure(self) -> Failure:
        """The example of a part whose kind is `FAILURE`."""
        return failure_from_json(json.loads(self.text))


class Tally:
    """Adds up judgements and other tallies, in memory that depends on the number of distinct parts only."""

    def __init__(self) -> None:
        self._parts: dict[Key, Part] = {}

    def add(self, judgement: SequenceJudgement, number: int | None = None) -> None:
        """Take one sequence into account.

        `number`: its number in its run; the examples are then of the first sequence, else of the first by name.
        """
        target, dialect, sequence = judgement.target, judgement.dialect, judgement.sequence
        first = (number or 0, 0)

        def part(kind: str, requirement: str, name: str, text: str = "", as_known: str = "", **sums: int) -> Part:
            exercised, frames = sums.get("exercised", 0), sums.get("frames", 0)
            return Part(
                kind, requirement, target, dialect, name, 1, exercised, frames, sequence, text, as_known, place=first
            )

        is_repeated = judgement.repeats is not None
        self._merge(part(TOTAL, "", REPEATED if is_repeated else "", frames=judgement.frames))
        if not may_be_fixed(judgement.version):
            self._merge(part(NOT_FIXED, "", str(judgement.version or "")))
        if is_repeated:
            return
        for id, (verdict, as_known, exercised) in requirement_verdicts(judgement).items():
            explained = verdict in (Verdict.INCONCLUSIVE, Verdict.NOT_APPLICABLE)
            text = judgement.undecided.get(id) or reason_of(judgement) if explained else ""
            if id == judgement.requirement and verdict is Verdict.NOT_EXERCISED:
                text = cut_short_by(judgement) or ""
            self._merge(part(VERDICT, id, str(verdict), text, str(as_known), exercised=exercised))
        for name, seen in defects_tested(
            judgement.failures, judgement.refuted, dialect, judgement.version
        ).items():
            self._merge(part(DEFECT, "", name, "", SEEN if seen else REFUTED))
        for name in judgement.windows:
            self._merge(part(DEFECT, "", name, "", OPEN))
        for measured in judgement.measurements:
            outcome = EXPECTED if measured.is_expected else UNEXPECTED
            self._merge(part(MEASUREMENT, "", str(round(measured.most * 1000)), "", outcome))
        distinct = {failure.identity: failure for failure in reversed(judgement.failures)}
        for position, (identity, failure) in enumerate(distinct.items()):
            text = json.dumps(failure_to_json(failure))
            whose = OWN if is_as_known(failure, dialect, judgement.version) else ""
            one = part(FAILURE, failure.requirement, identity, text, whose)
            one.is_minor = why_minor(failure, judgement.product, dialect) is not None
            self._merge(one if number is None else replace(one, place=(number, position)))

    def merge(self, other: Tally) -> None:
        """Take into account what another one has added up, which stays as it is."""
        for part in other._parts.values():
            self._merge(replace(part))

    def parts(self) -> list[Part]:
        """All parts, in the order of their keys. They are this tally's own."""
        return sorted(self._parts.values(), key=lambda part: part.key)

    def _merge(self, part: Part) -> None:
        known = self._parts.get(part.key)
        if known is None:
            self._parts[part.key] = part
            return
        known.sequences += part.sequences
        known.exercised += part.exercised
        known.frames += part.frames
        if (not part.text, part.rank) < (not known.text, known.rank):
            known.place, known.example, known.text = part.place, part.example, part.text


def reason_of(judgement: SequenceJudgement) -> str:
    """Why a sequence was inconclusive or not applicable."""
    return judgement.reason or "no reason was recorded"


def tally_to_json(tally: Tally) -> list[dict[str, Any]]:
    """A tally as what `json` can write."""
    return [asdict(part) for part in tally.parts()]


def tally_from_json(written: Iterable[Mapping[str, Any]]) -> Tally:
    """The inverse of `tally_to_json`."""
    tally = Tally()
    for each in written:
        one, other = each["place"]
        tally._merge(Part(**{**each, "place": (one, other)}))
    return tally
