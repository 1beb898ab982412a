"""The plot of measured timeouts, as SVG: the time that was up against how late the broker acted.

Lateness has a scale that is linear about zero and logarithmic beyond, so that milliseconds and the seconds that are
allowed are both seen. Colours are those of the page (`templates/report.css`), which knows light and dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import asinh, ceil, floor, log10

from amqpspec.conformance.verdicts.judgement import RunResult
from amqpspec.model.broker.measurement import Measurement
from amqpspec.reports.accuracy import seconds_text

WIDTH, HEIGHT = 920, 380
LEFT, RIGHT, TOP, BOTTOM = 78, 24, 16, 52
#: Seconds up to which the scale of lateness is about linear.
LINEAR = 0.005
#: Marks on that scale, in seconds.
MARKS = (-10.0, -1.0, -0.1, -0.01, 0.0, 0.01, 0.1, 1.0, 10.0, 100.0)
#: The room of a dot; those of one place are moved aside by as much, so many times on each side at most.
STEP, MOST_STEPS = 8, 6


@dataclass(frozen=True, slots=True)
class Dot:
    """One measurement, or several of one place. `top` and `bottom` are its lateness at most and at least."""

    x: float
    top: float
    bottom: float
    #: a class of the style sheet for each method; beside it what is not when expected
    shape: str
    is_expected: bool
    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """A mark on a scale, or the end of what is expected with a certain tick."""

    place: float
    text: str


@dataclass(frozen=True, slots=True)
class Plot:
    """What the template draws; all in units of the SVG's view box."""

    dots: tuple[Dot, ...]
    #: corners of what is expected, with the shortest tick
    window: str
    #: ends of it with longer ticks
    ends: tuple[Line, ...]
    columns: tuple[Line, ...]
    rows: tuple[Line, ...]
    #: the methods in their order, each with its shape
    shapes: tuple[tuple[str, str], ...]
    #: measurements for whose dots there is no room
    hidden: int
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM


@dataclass(slots=True)
class _Scales:
    """Where times are on the page."""

    longest: float
    least: float
    most: float

    def x(self, nominal: float) -> float:
        # a margin on both sides, so that dots which are moved aside stay inside
        return LEFT + 40 + nominal / self.longest * (WIDTH - RIGHT - LEFT - 80)

    def y(self, lateness: float) -> float:
        share = (_bent(lateness) - _bent(self.least)) / (_bent(self.most) - _bent(self.least))
        return HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)


def _bent(seconds: float) -> float:
    return asinh(seconds / LINEAR)


def accuracy_plot(result: RunResult) -> Plot | None:
    """The plot of a run; None if no time was up in it."""
    if not result.measurements:
        return None
    measurements = [measurement for _, measurement in result.measurements]
    longest = max(max(each.nominal for each in measurements), 0.1)
    scales = _Scales(
        longest,
        1.5 * min(min(each.least, each.earliest) for each in measurements),
        1.5 * max(max(each.most, each.latest) for each in measurements),
    )
    methods = sorted({each.method for each in measurements})
    shapes = {method: ("round", "square")[min(number, 1)] for number, method in enumerate(methods)}
    ticks = sorted({each.tick for each in measurements})
    dots = tuple(_dots(result.measurements, scales, shapes))
    return Plot(
        dots,
        _window(measurements, scales),
        tuple(Line(scales.y(_ending(tick)), f"with a tick of {seconds_text(tick)}") for tick in ticks[1:]),
        tuple(Line(scales.x(mark), f"{mark:g}") for mark in _round_marks(longest)),
        tuple(Line(scales.y(mark), seconds_text(mark)) for mark in MARKS if scales.least <= mark <= scales.most),
        tuple(shapes.items()),
        len(measurements) - len(dots),
    )


def _ending(tick: float) -> float:
    """The end of what is expected with that tick."""
    return Measurement("", "", 0, 0, 0, 0, tick).latest


def _window(measurements: Sequence[Measurement], scales: _Scales) -> str:
    """How early is allowed depends on the time, and is a line in parts on a scale that is bent."""
    latest = scales.y(_ending(min(each.tick for each in measurements)))
    steps = [scales.longest * part / 24 for part in range(25)]
    early = [(scales.x(nominal), scales.y(Measurement("", "", 0, nominal, 0, 0).earliest)) for nominal in steps]
    first, last = early[0], early[-1]
    right = WIDTH - RIGHT
    corners = [(LEFT, latest), (right, latest), (right, last[1]), *reversed(early), (LEFT, first[1])]
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)


def _round_marks(longest: float) -> Iterator[float]:
    """From 0 to about the longest time, in some five round steps."""
    rough = longest / 5
    magnitude = 10.0 ** floor(log10(rough))
    step = next(factor * magnitude for factor in (1, 2, 5, 10) if factor * magnitude >= rough)
    return (round(number * step, 9) for number in range(ceil(longest / step) + 1) if number * step <= longest * 1.001)


@dataclass(slots=True)
class _Room:
    """What is taken of the page, in squares of a dot's size."""

    taken: set[tuple[int, int]] = field(default_factory=set)

    def beside(self, x: float, y: float) -> float | None:
        """The x nearest to this one that is free at this height; None: there is no room near."""
        for number in range(2 * MOST_STEPS + 1):
            aside = (number + 1) // 2 * (1 if number % 2 else -1)
            place = (round(x / STEP) + aside, round(y / STEP))
            if place not in self.taken:
                self.taken.add(place)
                return x + aside * STEP
        return None


def _dots(measured: Iterable[tuple[str, Measurement]], scales: _Scales, shapes: dict[str, str]) -> Iterator[Dot]:
    """One for each measurement, beside each other where they would hide each other; where there is no room any more
    those that are left are not seen. What is not when expected comes first, and is always seen.
    """
    room = _Room()
    for sequence, each in sorted(measured, key=lambda pair: (pair[1].is_expected, pair[1].nominal, pair[1].most)):
        x, top, bottom = scales.x(each.nominal), scales.y(each.most), scales.y(each.least)
        place = room.beside(x, top)
        if place is None and each.is_expected:
            continue
        lateness = f"late by {seconds_text(each.least)} to {seconds_text(each.most)}"
        text = f"{sequence}: {each.method} after {seconds_text(each.nominal)}, {lateness}"
        yield Dot(place or x, top, bottom, shapes[each.method], each.is_expected, text)
