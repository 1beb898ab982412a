"""The broker as it is known: how often each known defect of its version was seen, and how often it was not.

Where the version is not known, all known defects of its dialect count. A report has two verdicts for a requirement:
against the promise, and against the broker as it is known. The gate decides by which the exit code goes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from amqpspec.model.defects.known_defects import KNOWN_DEFECTS, known_defects
from amqpspec.model.promises.verdict import Failure
from amqpspec.model.promises.versions import Version, is_newer


class Standing(StrEnum):
    """What became of a known defect in a run."""

    SEEN = "seen"
    #: each try would have shown it, and none did: fixed?
    NOT_SEEN = "not seen"
    #: it shows by chance, and did not
    NOT_THIS_TIME = "not this time"
    #: nothing would have shown it
    NOT_TESTED = "not put to the test"


@dataclass(frozen=True, slots=True)
class DefectOutcome:
    """A known defect in a run: the sequences that showed it, those that would have and did not, and those in which it
    may have spoiled something (`model.judging.windows`), so that what it can spoil was not tested there.
    """

    name: str
    seen: int
    refuted: int
    window_open: int = 0

    @property
    def standing(self) -> Standing:
        """A known defect that is a race, seen once, is seen."""
        if self.seen:
            return Standing.SEEN
        if not self.refuted:
            return Standing.NOT_TESTED
        return Standing.NOT_THIS_TIME if KNOWN_DEFECTS[self.name].by_chance else Standing.NOT_SEEN


def may_be_fixed(version: Version | None) -> bool:
    """May a known defect that does not show have been mended in the judged version of the target?

    Nobody can say so of a version that is newer than what was verified, of another product, which may never have had
    it, or of a version that is judged by a dialect which is not its own.
    """
    return version is not None and not is_newer(version)


def defects_tested(
    failures: Iterable[Failure], refuted: Iterable[str], dialect: str, version: Version | None = None
) -> dict[str, bool]:
    """By the name of each known defect of the version that one sequence put to the test: was it seen?

    `version` None: of the dialect.
    """
    tested = dict.fromkeys(refuted, False) | {failure.defect: True for failure in failures}
    return {
        defect.name: tested[defect.name] for defect in known_defects(dialect, version) if defect.name in tested
    }
