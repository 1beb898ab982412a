"""The second verdict in words: against the broker as it is known, and what became of its known defects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from amqpspec.conformance.verdicts.gate import is_minor
from amqpspec.conformance.verdicts.judgement import FoundFailure, RunResult, fails_a_run
from amqpspec.conformance.verdicts.known_behaviour import DefectOutcome, Standing, may_be_fixed
from amqpspec.model.defects.known_defects import KNOWN_DEFECTS, known_defects
from amqpspec.model.judging.known_defect import KnownDefect
from amqpspec.model.promises.dialects import UnknownDialect, dialect_named
from amqpspec.model.promises.verdict import Verdict
from amqpspec.reports.text import plural

#: The order in which known defects are listed: what an upgrade may have changed comes first.
_ORDER = (Standing.NOT_SEEN, Standing.SEEN, Standing.NOT_THIS_TIME, Standing.NOT_TESTED)

#: A sign for each standing, so that none depends on colour alone.
STANDING_SIGNS: Mapping[Standing, str] = {
    Standing.NOT_SEEN: "!", Standing.SEEN: "✗", Standing.NOT_THIS_TIME: "~", Standing.NOT_TESTED: "·"
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class DefectEntry:
    """A known defect, and what became of it in the run."""

    defect: KnownDefect
    outcome: DefectOutcome
    #: the target is of a version in which it may have been mended (`known_behaviour.may_be_fixed`)
    is_own: bool = True

    @property
    def in_this_run(self) -> str:
        """What the run says of it, and in how many sequences it may have hidden something else."""
        many = self.outcome.window_open
        return self._standing + (f"; may have spoiled {plural(many, 'sequence')}" if many else "")

    @property
    def _standing(self) -> str:
        seen, refuted = self.outcome.seen, self.outcome.refuted
        match self.outcome.standing:
            case Standing.SEEN:
                besides = f"; not in {plural(refuted, 'other')} that could have shown it" if refuted else ""
                return f"seen in {plural(seen, 'sequence')}{besides}"
            case Standing.NOT_SEEN:
                perhaps = ": fixed?" if self.is_own else ""
                return f"not seen, though {plural(refuted, 'sequence')} would have shown it{perhaps}"
            case Standing.NOT_THIS_TIME:
                return f"shows by chance, and not in {plural(refuted, 'sequence')} of this run"
            case Standing.NOT_TESTED:
                return "not put to the test"


def broker_as_known(result: RunResult) -> str:
    """Whose known behaviour the second verdict goes by: "RabbitMQ 4.3"."""
    try:
        return dialect_named(result.target.dialect).title
    except UnknownDialect:
        return result.target.dialect


def defect_entries(result: RunResult) -> tuple[DefectEntry, ...]:
    """The known defects of the target's version (of its dialect, where the version is not known).

    Those that were not seen come first.
    """
    is_own = may_be_fixed(result.target.judged_version)
    found = [DefectEntry(KNOWN_DEFECTS[outcome.name], outcome, is_own) for outcome in result.defects]
    return tuple(sorted(found, key=lambda entry: _ORDER.index(entry.outcome.standing)))


def not_seen(result: RunResult) -> tuple[DefectEntry, ...]:
    """Known defects of the target's product that the run would have shown, and that did not show: fixed?"""
    entries = defect_entries(result)
    return tuple(each for each in entries if each.is_own and each.outcome.standing is Standing.NOT_SEEN)


def new_as_known(result: RunResult) -> list[FoundFailure]:
    """The failures that no known defect explains, that the deviation file does not list, and that are not arguable."""
    return [found for found in result.failures if fails_a_run(found) and not result.is_as_known(found)]


def headline_as_known(result: RunResult) -> str | None:
    """How the broker stands against its kind, in a sentence; None where no known defect is known of it, or where
    nothing was carried out.

    It says what is new to somebody who knows the broker, and of how much nothing is; never that the broker conforms.
    """
    if result.is_empty or not known_defects(result.target.dialect, result.target.judged_version):
        return None
    new = new_as_known(result)
    said = "no new failure"
    if new:
        blamed = list(dict.fromkeys(found.failure.requirement for found in new))
        named = ", ".join(blamed[:3]) + (f" and {len(blamed) - 3} more" if len(blamed) > 3 else "")
        unseen = sum(found.not_seen_again for found in new)
        again = [plural(len(new) - unseen, "new failure")] if len(new) > unseen else []
        again += [f"{plural(unseen, 'failure')} not seen again"] if unseen else []
        said = f"{', '.join(again)} ({named})"
    unknown = [found for found in result.failures if found.known is None and not result.is_as_known(found)]
    if arguable := len(unknown) - len(new):
        said += f"; {plural(arguable, 'arguable failure')} that {'is' if arguable == 1 else 'are'} not known"
    if missing := not_seen(result):
        said += f"; {plural(len(missing), 'known defect')} not seen: fixed?"
    accepted = [found for found in result.failures if found.known is not None and not is_minor(found)]
    odd = [found for found in accepted if not result.is_as_known(found)]
    but = f", but for {plural(len(odd), 'accepted deviation')}" if odd else ""
    broker = broker_as_known(result)
    if new:
        return f"Does not behave as {broker} is known to: {said}"
    return f"Behaves as {broker} is known to, in {_what_was_seen(result)}{but}: {said}"


def _what_was_seen(result: RunResult) -> str:
    """Of what it is said that the broker behaves as it is known to: a narrow run says little."""
    seen = sum(each.verdict in (Verdict.PASS, Verdict.FAIL) for each in result.requirements)
    there_are = sum(each.verdict is not Verdict.NOT_APPLICABLE for each in result.requirements)
    sequences = plural(result.sequences, "sequence")
    exercised = "exercises" if result.sequences == 1 else "exercise"
    return f"{sequences} that {exercised} {seen} of {plural(there_are, 'requirement')}"


def as_known_text(defect: KnownDefect) -> str:
    """A known defect with its name, strength, source and versions, in one paragraph."""
    facts = (f"known defect {defect.name}, {defect.strength}", *defect.brokers, defect.source)
    return f"{defect.statement} ({'; '.join(facts)})"
