"""How late the broker acted where a time was up, in words and numbers."""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate, groupby

from amqpspec.conformance.verdicts.judgement import RunResult
from amqpspec.model.broker.measurement import Measurement
from amqpspec.reports.text import plural


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Some measurements added up. Seconds; by how much they were late at most, in the median and at worst."""

    number: int
    median: float
    worst: float
    #: how many came earlier or later than expected
    unexpected: int

    @property
    def text(self) -> str:
        """In a line."""
        late = f"late by at most {seconds_text(self.median)} in the median, {seconds_text(self.worst)} at worst"
        return f"{plural(self.number, 'timeout')} measured: {late}" + (
            f"; {self.unexpected:,} not when expected" if self.unexpected else ""
        )


def accuracy(measurements: Iterable[Measurement]) -> Accuracy:
    """What the measurements, of which there is one at least, come to."""
    listed = list(measurements)
    return added_up(Counter(each.most for each in listed), sum(not each.is_expected for each in listed))


def added_up(late: Mapping[float, int], unexpected: int) -> Accuracy:
    """The same, of how often something was late by so many seconds."""
    ordered = sorted(late)
    places = list(accumulate(late[seconds] for seconds in ordered))
    number = places[-1]
    # the value in the middle, or half-way between the two that are
    lower, upper = (ordered[bisect(places, place)] for place in ((number - 1) // 2, number // 2))
    return Accuracy(number, (lower + upper) / 2, ordered[-1], unexpected)


def accuracy_line(result: RunResult) -> str | None:
    """One line about all of the run; None if no time was up in it."""
    if not result.measurements:
        return None
    tick = max(measurement.tick for _, measurement in result.measurements)
    ticks = f" (with ticks of up to {seconds_text(tick)})" if tick else ""
    return accuracy(measurement for _, measurement in result.measurements).text + ticks


@dataclass(frozen=True, slots=True)
class AccuracyRow:
    """The measurements of one kind: a line of a table."""

    requirement: str
    method: str
    tick: float
    accuracy: Accuracy


def accuracy_rows(result: RunResult) -> list[AccuracyRow]:
    """The measurements by what came, by which requirement, and by how often the broker looks at its clock."""

    def kind(measurement: Measurement) -> tuple[str, str, float]:
        return measurement.requirement, measurement.method, measurement.tick

    ordered = sorted((measurement for _, measurement in result.measurements), key=kind)
    return [AccuracyRow(*key, accuracy(group)) for key, group in groupby(ordered, key=kind)]


def seconds_text(seconds: float) -> str:
    """A time with as many figures as matter: `4 ms`, `1.24 s`; with a minus sign if it is negative."""
    sign = "\N{MINUS SIGN}" if round(seconds * 1000) < 0 else ""
    milliseconds = round(abs(seconds) * 1000)
    return f"{sign}{milliseconds} ms" if milliseconds < 1000 else f"{sign}{milliseconds / 1000:.4g} s"
