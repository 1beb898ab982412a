"""What a soak saw: on a terminal, and as one HTML page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from amqpspec.conformance.soak.findings import Finding, What
from amqpspec.conformance.soak.result import SoakResult
from amqpspec.conformance.soak.tally import Counts, FaultCounts
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.verdict import Verdict
from amqpspec.reports.html import page_environment
from amqpspec.reports.overview import SIGNS
from amqpspec.reports.soak_plot import soak_plot
from amqpspec.reports.text import plural

#: Findings of a kind that are shown on the terminal, and on the page.
_MOST_PRINTED, _MOST_SHOWN = 3, 20
_STYLES = {Verdict.PASS: "bold green", Verdict.FAIL: "bold red", Verdict.INCONCLUSIVE: "bold yellow"}


def headline(result: SoakResult) -> str:
    total = result.judgement.tally.total()
    kinds = [f"{count:,} {what.sentence}" for what, count in result.judgement.gravest_first()]
    if result.judgement.failures:
        kinds.append(f"{plural(len(result.judgement.failures), 'failure')} on single connections")
    if kinds:
        return f"{result.wrong:,} wrong: {'; '.join(kinds)}"
    if result.is_undecided:
        return f"Nothing wrong was seen, and not all is decided: {_why_undecided(result)}"
    return f"Nothing lost, nothing doubled, nothing out of order: {total.confirmed:,} confirmed, all accounted for"


def _why_undecided(result: SoakResult) -> str:
    judged = result.judgement
    queues = [f"{queue}: {why}" for queue, why in judged.unknown_queues.items()]
    reasons = [result.lost, result.ended_early, *judged.errors[:1], *queues[:1], "nothing was published"]
    return next(reason for reason in reasons if reason)


def extent(result: SoakResult) -> list[str]:
    """How much it was, in sentences without their end."""
    judged, total = result.judgement, result.judgement.tally.total()
    faults = sum(each.times for each in judged.tally.of_faults.values())
    lines = [
        f"{result.seconds:.0f} s, {plural(judged.connections, 'connection')}, {judged.frames:,} frames judged,"
        f" {plural(faults, 'fault')} ({', '.join(result.faults) or 'none'}), seed {result.seed}",
        f"{total.sent:,} sent, {total.confirmed:,} confirmed, {total.refused:,} refused, {total.unknown:,} unknown"
        f" ({total.unknown_delivered:,} of them came), {total.delivered:,} delivered,"
        f" {total.redelivered:,} redelivered",
    ]
    if result.not_offered:
        lines.append(f"not offered by this target: {', '.join(result.not_offered)}")
    if result.behind > 5:
        lines.append(f"judging was {result.behind:.0f} s behind when the clients were done")
    if total.lost_allowed:
        lines.append(f"{total.lost_allowed:,} gone that may be (transient, and the broker went down)")
    if total.settlements_lost:
        lines.append(f"{total.settlements_lost:,} came again after they were settled")
    return lines


def terminal_lines(result: SoakResult) -> Iterator[tuple[str, str]]:
    """Lines with their style; the last one is the verdict."""
    for line in extent(result):
        yield f"{line}.", "dim"
    for what, count in result.judgement.gravest_first():
        yield f"✗ {what.requirement} {count:,} {what.sentence}", "red"
        for each in of_kind(result, what)[:_MOST_PRINTED]:
            yield f"    {described(each)}", ""
    for failure in result.judgement.failures:
        on = plural(failure.connections, "connection")
        yield f"✗ {failure.failure.requirement} {failure.failure.shape}, {failure.failure.detail} (on {on})", "red"
        yield f"    {failure.sequence}: observed {failure.failure.observed}", ""
    for problem in result.problems[:5]:
        yield f"not done: {problem}", "yellow"
    yield f"{SIGNS[result.verdict]} {headline(result)}", _STYLES[result.verdict]


def of_kind(result: SoakResult, what: What) -> list[Finding]:
    return [each for each in result.judgement.findings if each.what is what and not each.allowed]


def described(finding: Finding) -> str:
    lines = ", ".join(f"{name} {line}" for name, line in finding.lines.items())
    after = f"; after {finding.fault}" if finding.fault else ""
    known = f"; known: {finding.known}" if finding.known else ""
    return f"{finding.message} in {finding.queue} at {finding.time:.1f} s; lines of the trace: {lines}{after}{known}"


#: Columns of the tables: attribute, heading.
_OF_TYPES = tuple((each.name, each.name.replace("_", " ")) for each in fields(Counts))
_OF_FAULTS = tuple((each.name, each.name.replace("_", " ")) for each in fields(FaultCounts))


def soak_html(result: SoakResult) -> str:
    """One page that needs nothing but itself."""
    judged = result.judgement
    kinds = [(what, count, of_kind(result, what)[:_MOST_SHOWN]) for what, count in judged.gravest_first()]
    return (
        page_environment()
        .get_template("soak.html")
        .render(
            tool=f"amqpspec {result.tool_version}",
            result=result,
            judged=judged,
            plot=soak_plot(result),
            headline=headline(result),
            sign=SIGNS[result.verdict],
            extent=extent(result),
            kinds=kinds,
            described=described,
            of_types=_table(judged.tally.of_types, _OF_TYPES),
            of_faults=_table(judged.tally.of_faults, _OF_FAULTS),
            type_headings=[heading for _, heading in _OF_TYPES],
            fault_headings=[heading for _, heading in _OF_FAULTS],
            allowed=judged.allowed.most_common(),
            title=lambda id: known.title if (known := requirements().get(id)) else "",
        )
    )


def _table(rows: dict[str, Counts] | dict[str, FaultCounts], columns: tuple[tuple[str, str], ...]) -> list[list[str]]:
    """Each row with its name first."""
    return [[name, *(f"{getattr(row, attribute):,}" for attribute, _ in columns)] for name, row in rows.items()]
