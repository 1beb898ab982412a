"""What a store of recordings holds, as one HTML page: verdicts over days, versions side by side, failures, latencies.

It is made from the rows of three tables (`pipeline.tables`), so its size depends on brokers, days, requirements and
failures, not on recordings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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


@dataclass(frozen=True, slots=True)
class StoreTables:
    """Rows of the tables `compliance`, `failures_by_identity`, `latency`, `regressed`, `flaky` and `conservation`.

    `sequences`: by target and identity of a failure what shows it: `name`, `run`, `commands`, how many `more`, the
    shell's command to carry it out `again`, the `shrunk` commands or "", the address of its `trace` or "".
    """

    compliance: Sequence[Row]
    failures: Sequence[Row]
    latency: Sequence[Row]
    regressed: Sequence[Row] = ()
    flaky: Sequence[Row] = ()
    conservation: Sequence[Row] = ()
    sequences: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)


#: How the states of a failure are told, those that somebody must look at first.
STATES = ("new", "still", "not tried", "not seen", "fixed")


def render_store(name: str, tables: StoreTables, tool: str) -> str:
    """The page: what regressed comes first, as it is read in the morning."""
    compliance, failures, registry = tables.compliance, tables.failures, requirements()
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
        regressed=_by_state(tables.regressed),
        nights=sorted({str(row["night"]) for row in tables.regressed}),
        counts=_counts(tables.regressed),
        flaky=tables.flaky,
        conservation=tables.conservation,
        sequences=tables.sequences,
        curves=curves(tables.latency),
        failures=sorted(failures, key=lambda row: (bool(row["as_known"]), row["identity"], row["target"])),
        latencies=latencies(tables.latency),
        verdicts=VERDICTS,
        signs=SIGNS,
        columns=_PERCENTILES,
        plural=plural,
        curve=CURVE,
        width=WIDTH,
        left=LEFT,
        row=ROW,
    )  # fmt: skip


def _by_state(rows: Iterable[Row]) -> list[Row]:
    """Those that no known defect explains first, and new ones before others."""
    return sorted(rows, key=lambda row: (bool(row["as_known"]), STATES.index(row["state"]), row["target"]))


def _counts(rows: Iterable[Row]) -> list[tuple[str, int, int]]:
    """Of each state how many failures no known defect explains, and how many one does."""
    rows = list(rows)
    of_state = {state: [bool(row["as_known"]) for row in rows if row["state"] == state] for state in STATES}
    return [(state, known.count(False), known.count(True)) for state, known in of_state.items()]


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


@dataclass(frozen=True, slots=True)
class Curve:
    """How long something took on a broker, day by day: points of the median and of the 99th percentile."""

    label: str
    days: tuple[str, str]
    middle: str
    high: str
    texts: tuple[str, str]


def curves(rows: Iterable[Row]) -> dict[str, list[Curve]]:
    """By kind, a curve for each broker with several days; all of one kind on one scale, which is logarithmic."""
    by_kind: dict[str, dict[Broker, list[Row]]] = {}
    for row in sorted(rows, key=lambda row: str(row["day"])):
        by_kind.setdefault(str(row["what"]), {}).setdefault(broker_of(row), []).append(row)
    found: dict[str, list[Curve]] = {}
    for what, brokers in by_kind.items():
        several = {broker: of_broker for broker, of_broker in brokers.items() if len(of_broker) > 1}
        shown = [max(float(row[each]), 1e-6) for of_broker in several.values() for row in of_broker for each in _CURVES]
        if shown:
            low, high = log10(min(shown)), max(log10(max(shown)), log10(min(shown)) + 0.1)
            found[what] = [_curve(broker, of_broker, low, high) for broker, of_broker in sorted(several.items())]
    return found


_CURVES = ("p50", "p99")
#: Height of a curve, in units of the view box.
CURVE = 48


def _curve(broker: Broker, rows: Sequence[Row], low: float, high: float) -> Curve:
    step = (WIDTH - LEFT - RIGHT) / (len(rows) - 1)

    def points(column: str) -> str:
        shares = ((log10(max(float(row[column]), 1e-6)) - low) / (high - low) for row in rows)
        places = ((LEFT + n * step, CURVE - 6 - share * (CURVE - 12)) for n, share in enumerate(shares))
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)

    said = [f"{_text(row['p50'])} / {_text(row['p99'])}" for row in (rows[0], rows[-1])]
    days = str(rows[0]["day"]), str(rows[-1]["day"])
    return Curve(broker_name(broker), days, points("p50"), points("p99"), (said[0], said[1]))


def _text(seconds: float) -> str:
    if abs(seconds) < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1000:.3g} ms" if abs(seconds) < 1 else f"{seconds:.3g} s"
