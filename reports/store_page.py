"""What a store of recordings holds, as one HTML page: verdicts over days, versions side by side, failures, latencies.

It is made from the rows of three tables (`pipeline.tables`), so its size depends on brokers, days, requirements and
failures, not on recordings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log10
from typing import Any

from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.verdict import Verdict, worst
from amqpspec.reports.html import page_environment
from amqpspec.reports.overview import SIGNS, VERDICTS
from amqpspec.reports.text import plural

#: A row of a table, by column.
Row = Mapping[str, Any]
#: target, product, version, dialect
Broker = tuple[str, str, str, str]

#: Requirements that ended so on some broker have a row of their own.
_SHOWN = (Verdict.FAIL, Verdict.INCONCLUSIVE)
_PERCENTILES = ("p50", "p90", "p99", "p999")
#: Width of the drawings, and of what is written at their left, in units of the view box.
WIDTH, LEFT, RIGHT = 920, 400, 60
ROW = 24


@dataclass(frozen=True, slots=True)
class Bar:
    """Requirements of one verdict on one day, as a rectangle."""

    x: float
    width: float
    verdict: Verdict
    count: int


@dataclass(frozen=True, slots=True)
class Trend:
    """The verdicts of a broker on a day."""

    label: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """How long something took on a broker on a day: places of the percentiles, and their texts."""

    label: str
    times: int
    places: tuple[float, ...]
    texts: tuple[str, ...]
    most: float
    most_text: str


@dataclass(frozen=True, slots=True)
class Latencies:
    """All spans of one kind; `marks`: (place, text) of the scale, which is logarithmic."""

    what: str
    spans: tuple[Span, ...]
    marks: tuple[tuple[float, str], ...]


def render_store(
    name: str, compliance: Iterable[Row], failures: Iterable[Row], latency: Iterable[Row], tool: str
) -> str:
    """The page. The rows are those of the tables `compliance`, `failures_by_identity` and `latency`."""
    compliance, registry = list(compliance), requirements()
    brokers = sorted({broker_of(row) for row in compliance})
    days = sorted({str(row["day"]) for row in compliance})
    cells = _cells(compliance)
    ids = sorted({id for id, _ in cells})
    shown = [
        (id, row)
        for id in ids
        if worst(filter(None, row := [cells.get((id, broker)) for broker in brokers])) in _SHOWN
    ]
    return page_environment().get_template("store.html").render(
        tool=tool,
        name=name,
        brokers=brokers,
        named=[broker_name(each) for each in brokers],
        days=days,
        trends=trends(compliance),
        shown=shown,
        others=len(ids) - len(shown),
        titles={id: registry[id].title for id in ids if id in registry},
        failures=sorted(failures, key=lambda row: (bool(row["as_known"]), row["identity"], row["target"])),
        latencies=latencies(latency),
        verdicts=VERDICTS,
        signs=SIGNS,
        columns=_PERCENTILES,
        plural=plural,
        width=WIDTH,
        left=LEFT,
        row=ROW,
    )  # fmt: skip


def broker_of(row: Row) -> Broker:
    target, product, version, dialect = (str(row[name] or "") for name in ("target", "product", "version", "dialect"))
    return target, product, version, dialect


def broker_name(broker: Broker) -> str:
    target, product, version, _ = broker
    return f"{product} {version}, {target}"


def _cells(compliance: Iterable[Row]) -> dict[tuple[str, Broker], Verdict]:
    """What was said last of a requirement on a broker."""
    newest: dict[tuple[str, Broker], tuple[str, Verdict]] = {}
    for row in compliance:
        key = str(row["requirement"]), broker_of(row)
        said = str(row["day"]), Verdict(row["verdict"])
        if key not in newest or said[0] > newest[key][0]:
            newest[key] = said
    return {key: verdict for key, (_, verdict) in newest.items()}


def trends(compliance: Iterable[Row]) -> list[Trend]:
    """For each broker and day, how many requirements ended in which verdict."""
    counts: dict[tuple[Broker, str], dict[Verdict, int]] = {}
    for row in compliance:
        of_day = counts.setdefault((broker_of(row), str(row["day"])), dict.fromkeys(VERDICTS, 0))
        of_day[Verdict(row["verdict"])] += 1
    widest = max((sum(each.values()) for each in counts.values()), default=1)
    scale = (WIDTH - LEFT - RIGHT) / widest
    return [
        Trend(f"{day}  {broker_name(broker)}", tuple(_bars(of_day, scale)))
        for (broker, day), of_day in sorted(counts.items())
    ]


def _bars(counts: Mapping[Verdict, int], scale: float) -> Iterable[Bar]:
    x = float(LEFT)
    for verdict in VERDICTS:
        if counts[verdict]:
            yield Bar(x, counts[verdict] * scale, verdict, counts[verdict])
            x += counts[verdict] * scale


def latencies(rows: Iterable[Row]) -> list[Latencies]:
    """The spans of each kind, on one scale each. What is early (a timeout) stands at the left end of it."""
    by_kind: dict[str, list[Row]] = {}
    for row in rows:
        by_kind.setdefault(str(row["what"]), []).append(row)
    return [_latencies(what, of_kind) for what, of_kind in sorted(by_kind.items())]


def _latencies(what: str, rows: Sequence[Row]) -> Latencies:
    most = max(max(float(row["most"]) for row in rows), 1e-3)
    least = min(1e-4, *(float(row["p50"]) for row in rows if row["p50"] > 0), most / 10)
    low, high = log10(least), log10(most)

    def place(seconds: float) -> float:
        share = (log10(max(seconds, least)) - low) / (high - low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    spans = tuple(
        Span(
            f"{row['day']}  {broker_name(broker_of(row))}",
            int(row["times"]),
            tuple(place(row[each]) for each in _PERCENTILES),
            tuple(_text(row[each]) for each in _PERCENTILES),
            place(row["most"]),
            _text(row["most"]),
        )
        for row in sorted(rows, key=lambda row: (broker_of(row), str(row["day"])))
    )
    powers = [10.0**power for power in range(-6, 6) if least <= 10.0**power <= most]
    return Latencies(what, spans, tuple((place(each), _text(each)) for each in powers))


def _text(seconds: float) -> str:
    if abs(seconds) < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1000:.3g} ms" if abs(seconds) < 1 else f"{seconds:.3g} s"
