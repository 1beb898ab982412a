"""The second verdict in words: against the broker as it is known, and what became of its known departures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from amqpspec.conformance.verdicts.judgement import FoundFailure, RunResult
from amqpspec.conformance.verdicts.known_behaviour import DepartureOutcome, Standing
from amqpspec.model.defects.departure import KnownDeparture
from amqpspec.model.defects.known_departures import KNOWN_DEPARTURES, known_departures
from amqpspec.model.promises.dialects import DIALECTS
from amqpspec.reports.text import plural

#: The order in which departures are listed: what an upgrade may have changed comes first.
_ORDER = (Standing.NOT_SEEN, Standing.SEEN, Standing.NOT_TESTED)

#: A sign for each standing, so that none depends on colour alone.
STANDING_SIGNS: Mapping[Standing, str] = {Standing.NOT_SEEN: "!", Standing.SEEN: "✗", Standing.NOT_TESTED: "·"}


@dataclass(frozen=True, slots=True)
class DepartureEntry:
    """A known departure, and what became of it in the run."""

    departure: KnownDeparture
    outcome: DepartureOutcome
    #: the target is of the product that is known for it: it may have been mended there
    is_own: bool = True

    @property
    def in_this_run(self) -> str:
        """What the run says of it."""
        seen, refuted = self.outcome.seen, self.outcome.refuted
        match self.outcome.standing:
            case Standing.SEEN:
                besides = f"; not in {plural(refuted, 'other')} that could have shown it" if refuted else ""
                return f"seen in {plural(seen, 'sequence')}{besides}"
            case Standing.NOT_SEEN:
                perhaps = ": fixed?" if self.is_own else ""
                return f"not seen, though {plural(refuted, 'sequence')} would have shown it{perhaps}"
            case Standing.NOT_TESTED:
                return "not put to the test"


def broker_as_known(result: RunResult) -> str:
    """Whose known behaviour the second verdict goes by: "RabbitMQ 4.3"."""
    dialect = DIALECTS.get(result.target.dialect)
    return dialect.title if dialect is not None else result.target.dialect


def departure_entries(result: RunResult) -> tuple[DepartureEntry, ...]:
    """The departures known of the target's dialect; those that were not seen come first."""
    product = result.target.product
    found = []
    for outcome in result.departures:
        departure = KNOWN_DEPARTURES[outcome.name]
        is_own = any(broker.startswith(f"{product} ") for broker in departure.brokers)
        found.append(DepartureEntry(departure, outcome, is_own))
    return tuple(sorted(found, key=lambda entry: _ORDER.index(entry.outcome.standing)))


def not_seen(result: RunResult) -> tuple[DepartureEntry, ...]:
    """Known departures of the target's product that the run would have shown, and that did not show: fixed?"""
    entries = departure_entries(result)
    return tuple(each for each in entries if each.is_own and each.outcome.standing is Standing.NOT_SEEN)


def new_as_known(result: RunResult) -> list[FoundFailure]:
    """The failures that neither a known departure explains nor the deviation file lists."""
    return [found for found in result.failures if found.known is None and not result.is_as_known(found)]


def headline_as_known(result: RunResult) -> str | None:
    """The result against the broker as it is known, in a sentence; None where no departure is known of the dialect.

    It says what is new to somebody who knows the broker, and never that the broker conforms.
    """
    if not known_departures(result.target.dialect):
        return None
    new = new_as_known(result)
    said = "no new failure"
    if new:
        blamed = list(dict.fromkeys(found.failure.requirement for found in new))
        named = ", ".join(blamed[:3]) + (f" and {len(blamed) - 3} more" if len(blamed) > 3 else "")
        said = f"{plural(len(new), 'new failure')} ({named})"
    if missing := not_seen(result):
        said += f"; {plural(len(missing), 'known departure')} not seen: fixed?"
    return f"As {broker_as_known(result)} is known: {said}"


def as_known_text(departure: KnownDeparture) -> str:
    """A departure with its name, source and versions, in one paragraph."""
    return f"{departure.statement} (departure {departure.name}; {'; '.join(departure.brokers)}; {departure.source})"
