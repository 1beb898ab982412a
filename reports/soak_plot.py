"""The picture of a soak: what happened in each second, with the faults marked, as SVG.

Colours are those of the page (`templates/report.css`), which knows light and dark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil

from amqpspec.conformance.soak.result import SoakResult
from amqpspec.conformance.soak.tally import BY_SECOND

WIDTH, HEIGHT = 920, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 34, 40
#: Points that a curve has at most: of a longer soak several seconds are put together.
_MOST_POINTS = 300
#: What is drawn, with the class of its curve.
CURVES = (
    ("sent", "published"), ("confirmed", "confirmed"), ("delivered", "delivered"), ("redelivered", "redelivered"),
    ("refused", "refused"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Curve:
    name: str
    css: str
    points: str


@dataclass(frozen=True, slots=True)
class Band:
    """A fault."""

    x: float
    width: float
    kind: str
    text: str
    #: there is room for its name
    is_named: bool


@dataclass(frozen=True, slots=True)
class Mark:
    place: float
    text: str


@dataclass(frozen=True, slots=True)
class SoakPlot:
    """What the template draws, in units of the view box."""

    curves: tuple[Curve, ...]
    bands: tuple[Band, ...]
    #: when something was found that is wrong
    crosses: tuple[Mark, ...]
    columns: tuple[Mark, ...]
    rows: tuple[Mark, ...]
    unit: str
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM


def soak_plot(result: SoakResult) -> SoakPlot | None:
    """The plot; None where nothing happened."""
    judged = result.judgement
    if not judged.tally.seconds:
        return None
    last = max(max(judged.tally.seconds) + 1, ceil(judged.seconds), 2)
    step = max(ceil(last / _MOST_POINTS), 1)
    sums: dict[int, list[int]] = {}
    for second, row in judged.tally.seconds.items():
        into = sums.setdefault(second // step, [0] * len(BY_SECOND))
        for index, count in enumerate(row):
            into[index] += count
    rates = {place: [count / step for count in row] for place, row in sums.items()}
    # emptying the queues is faster than all else, and tells nothing
    emptying = (result.phases or {}).get("emptying the queues", float("inf"))
    highest = max((max(row) for place, row in rates.items() if place * step < emptying), default=1.0) or 1.0

    def x(time: float) -> float:
        return round(LEFT + time / last * (WIDTH - RIGHT - LEFT), 1)

    def y(rate: float) -> float:
        return round(HEIGHT - BOTTOM - min(rate / highest, 1.0) * (HEIGHT - BOTTOM - TOP), 1)

    curves = []
    for name, css in CURVES:
        index = BY_SECOND.index(name)
        values = [rates.get(place, [0.0] * len(BY_SECOND))[index] for place in range(ceil(last / step))]
        if any(values):
            points = " ".join(f"{x((place + 0.5) * step)},{y(value)}" for place, value in enumerate(values))
            curves.append(Curve(css, css, points))
    return SoakPlot(
        tuple(curves),
        tuple(_bands(result, x, last)),
        tuple(Mark(x(time), text) for time, text in _wrong(result)),
        tuple(Mark(x(time), f"{time:g}") for time in _round(last, 10)),
        tuple(Mark(y(rate), f"{rate:,.0f}") for rate in _round(highest, 5)),
        "a second" if step == 1 else f"a second, over {step} s",
    )


def _bands(result: SoakResult, x: Callable[[float], float], last: float) -> Iterator[Band]:
    named_to = 0.0
    for window in result.judgement.windows:
        begin, end = x(window.begin), x(min(window.end, last))
        is_named = begin >= named_to
        name = window.kind.value
        if is_named:
            named_to = begin + 7 * len(name) + 6
        yield Band(begin, max(end - begin, 2.0), name, window.name, is_named)


def _wrong(result: SoakResult) -> Iterator[tuple[float, str]]:
    for second, count in sorted(result.judgement.wrong_seconds.items()):
        yield second + 0.5, f"{count:,} wrong"


def _round(most: float, wanted: int) -> Iterator[float]:
    """Round numbers from 0 up to `most`, about as many as are wanted."""
    step = 1.0
    for factor in (2, 2.5, 2) * 12:
        if most / step <= wanted:
            break
        step *= factor
    number = 0.0
    while number <= most:
        yield number
        number += step
