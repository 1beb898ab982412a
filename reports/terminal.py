"""The report on a terminal: one screen at the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from amqpspec.conformance.profile.profile import choices_in_words
from amqpspec.conformance.verdicts.gate import is_minor
from amqpspec.conformance.verdicts.judgement import FoundFailure, RunResult, fails_a_run
from amqpspec.conformance.verdicts.minor import what_it_is
from amqpspec.model.defects.known_defects import KNOWN_DEFECTS, strength_of
from amqpspec.model.promises.dialect_names import choices_of, in_short
from amqpspec.model.promises.registry import Requirement
from amqpspec.model.promises.settings import SETTINGS
from amqpspec.model.promises.severity import severity_of
from amqpspec.model.promises.text_means import lacking_in_words
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.promises.versions import newer_sentence
from amqpspec.reports.accuracy import accuracy_line
from amqpspec.reports.as_known import headline_as_known, new_as_known, not_seen
from amqpspec.reports.extent import extent_lines
from amqpspec.reports.listing import AS_RABBITMQ_HEADING, AS_RABBITMQ_HINT, Heading, heading_of, pairs
from amqpspec.reports.one_cause import Together, shown_together
from amqpspec.reports.overview import (
    SIGNS,
    VERDICTS,
    Entry,
    entries,
    headline,
    notes,
    severity_line,
    sign_of,
    whole_lines,
)
from amqpspec.reports.readable_table import ReadableTable, name_column, number_column
from amqpspec.reports.text import plural, visible

STYLES: Mapping[Verdict, str] = {
    Verdict.PASS: "green",
    Verdict.FAIL: "bold red",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.NOT_EXERCISED: "dim",
    Verdict.NOT_APPLICABLE: "dim",
}
_OVERALL = {0: Verdict.PASS, 1: Verdict.FAIL, 3: Verdict.INCONCLUSIVE, 4: Verdict.INCONCLUSIVE}
#: New failures that are shown whole; the others have a line each.
MAX_WHOLE = 3
#: Longer lists of lines are cut in the middle; the other reports have them whole.
MAX_LINES = 12


def print_report(
    console: Console,
    result: RunResult,
    registry: Mapping[str, Requirement] | None = None,
    next_steps: Sequence[str] = (),
) -> None:
    """Prints one screen: what failed newly, a line for each known failure, what to do next, and the result at the end.

    `next_steps`: lines for the reader. All else is in the other reports.
    """
    choices = choices_of(result.target.dialect)
    settings = choices_in_words(result.target.dialect) if SETTINGS.keys() & choices.keys() else []
    if settings:
        console.print(f"Judged by how this broker is set: {'; '.join(settings)}")
        console.print()
    elif choices:
        what = plural(len(choices), "choice")
        console.print(f"Judged by {what} of this broker where the text of 0-9-1 leaves one; report.html lists them")
        for line in lacking_in_words(choices):
            console.print(f"The broker lacks what the suite observes it with, so that less is seen: {line}")
        console.print()
    if extent := extent_lines(result):
        console.print(_text("\n".join(extent), STYLES[Verdict.INCONCLUSIVE]))
        console.print()
    failing = pairs(entries(result, registry), result)
    together = {each.first.failure.identity: each for each in shown_together(result)}
    under = {other.failure.identity for each in together.values() for other in each.others}
    new, known, as_rabbitmq = (
        [each for each in failing if heading_of(each[1], result) is heading] for heading in Heading
    )
    shown = [(entry, found) for entry, found in new if found.failure.identity not in under]
    for entry, found in shown[:MAX_WHOLE]:
        console.print(failure_lines(entry, found, result, together.get(found.failure.identity)))
        console.print()
    if brief := [*shown[MAX_WHOLE:], *known]:
        for (_, found), short in zip(brief, _brief_lines(brief, result), strict=True):
            console.print(short, no_wrap=True, overflow="ellipsis")
            if (with_others := together.get(found.failure.identity)) is not None:
                console.print(Padding(_text(f"one cause: {with_others.in_words}"), (0, 0, 0, 4)))
        console.print()
    if as_rabbitmq:
        console.print(_text(f"{AS_RABBITMQ_HEADING} ({len(as_rabbitmq)}). {AS_RABBITMQ_HINT}.", "bold"))
        for (entry, _), short in zip(as_rabbitmq, _brief_lines(as_rabbitmq, result), strict=True):
            console.print(short, no_wrap=True, overflow="ellipsis")
            console.print(Padding(_text(entry.statement, "dim"), (0, 0, 0, 4)))
        console.print()
    if result.undecided:
        undecided = [f"  {sequence}: {reason}" for sequence, reason in result.undecided]
        console.print(_text(f"Not judged: {plural(result.undecided_count, 'sequence')}", STYLES[Verdict.INCONCLUSIVE]))
        console.print(_lines(undecided))
    for line in whole_lines(result):
        console.print(_text(line, STYLES[Verdict.FAIL]))
    if missing := not_seen(result):
        names = ", ".join(each.defect.name for each in missing)
        console.print(_text(f"Known defects that would have shown, and did not: {names}", STYLES[Verdict.INCONCLUSIVE]))
    if severities := severity_line(result):
        console.print(_text(severities))
    console.print(sums_table(result))
    console.print()
    for line in next_steps:
        console.print(_text(line, "dim"), soft_wrap=True)
    if measured := accuracy_line(result):
        console.print(_text(measured))
    if newer := newer_sentence(result.target.judged_version):
        console.print(_text(newer, STYLES[Verdict.INCONCLUSIVE]))
    # a log is read as it stands; a terminal wraps by itself
    if as_known := headline_as_known(result):
        fails = bool(new_as_known(result))
        style = STYLES[Verdict.FAIL if fails else Verdict.PASS]
        console.print(_text(f"{SIGNS[Verdict.FAIL if fails else Verdict.PASS]} {as_known}", style), soft_wrap=True)
    console.print(headline_text(result), soft_wrap=True)


def _brief_lines(failing: Iterable[tuple[Entry, FoundFailure]], result: RunResult) -> Iterator[Text]:
    """A line for each failure: its requirement, what it does to an application, and as much as there is room for."""
    listed = list(failing)
    id_width = max(len(entry.id) for entry, _ in listed)
    severity_width = max(len(severity_of(found.failure)) for _, found in listed)
    for entry, found in listed:
        defect = KNOWN_DEFECTS.get(found.failure.defect)
        is_known = result.is_as_known(found)
        minor = what_it_is(found.known or "") if is_minor(found) else None
        fails, strength = fails_a_run(found), str(strength_of(found.failure))
        new = "not seen again" if found.not_seen_again else "new"
        kind = minor or ("known" if is_known else new if fails else strength if found.known is None else "listed")
        said = defect.statement if is_known and defect else f"{found.failure.shape}: {found.failure.observed}"
        named = ", ".join(dict.fromkeys([kind, strength, *([defect.name] if is_known and defect else [])]))
        line = Text()
        line.append(f"{sign_of(found)} {entry.id:{id_width}}  ", STYLES[Verdict.FAIL] if fails else "dim")
        line.append(f"{severity_of(found.failure):{severity_width}}  ", "" if fails else "dim")
        line.append(f"{named}  ", "dim")
        yield line.append(visible(" ".join(said.split())))


def print_verdict(console: Console, result: RunResult) -> None:
    """Prints the result alone, and what it was judged by where the version is newer than what was verified."""
    if newer := newer_sentence(result.target.judged_version):
        console.print(_text(newer, STYLES[Verdict.INCONCLUSIVE]), soft_wrap=True)
    console.print(headline_text(result), soft_wrap=True)


def headline_text(result: RunResult) -> Text:
    """One line: the verdict and what it is about."""
    overall = _OVERALL[result.exit_code]
    target = result.target
    line = Text(f"{SIGNS[overall]} {headline(result)}", style=STYLES[overall])
    facts = f"{target.product} {target.version}, {in_short(target.dialect)}, {plural(result.sequences, 'sequence')}"
    seed = "" if result.seed is None else f", seed {result.seed}"
    return line.append(visible(f"  ({facts}{seed})"), style="dim")


def sums_table(result: RunResult) -> ReadableTable:
    """How many requirements ended in each verdict: against the promise, and as known. Red is what fails the run."""
    styles = STYLES if result.fails else {**STYLES, Verdict.FAIL: ""}
    sums = [("requirements", result.summary)]
    if result.defects:
        sums = [("the promise", result.summary), ("as known", result.summary_as_known)]
    columns = (number_column(f"{SIGNS[verdict]} {verdict}") for verdict in VERDICTS)
    table = ReadableTable(name_column(""), *columns)
    for name, counts in sums:
        cells = [Text(str(counts[each]), style=styles[each] if counts[each] else "dim") for each in VERDICTS]
        table.add_row(name, *cells)
    return table


def failure_lines(
    entry: Entry, found: FoundFailure, result: RunResult, together: Together | None = None
) -> RenderableType:
    """One failure: the rule, what was allowed, what was observed, the commands. `together`: with those under it."""
    failure = found.failure
    fails = fails_a_run(found)
    title = Text(f"{sign_of(found)} {entry.id}", style=STYLES[Verdict.FAIL] if fails else "bold")
    title.append(visible(f" {entry.title}"), style="bold")
    said = notes(found, result.target.dialect, result.target.judged_version)
    title.append(visible(f"  {', '.join(said)}"), style="dim")
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    if entry.statement:
        grid.add_row("rule", _text(entry.statement))
    for defect in entry.defects:
        if defect.name == failure.defect:
            grid.add_row("as known", _text(f"{defect.statement} ({defect.strength}; {', '.join(defect.brokers)})"))
    grid.add_row("allowed", _lines(failure.allowed or ("nothing",), "green"))
    grid.add_row("observed", _lines([failure.observed], "red"))
    if failure.state:
        grid.add_row("state", _lines(failure.state))
    commands = found.commands or ((failure.command,) if failure.command else ())
    if commands:
        grid.add_row("commands", _lines(commands))
    if together is not None:
        grid.add_row("one cause", _text(together.in_words))
    return Group(title, Padding(grid, (0, 0, 0, 2)))


def _text(text: str, style: str = "") -> Text:
    return Text(visible(text), style=style)


def _lines(lines: Iterable[str], style: str = "") -> Text:
    return _text("\n".join(_shortened(list(lines))), style)


def _shortened(lines: list[str]) -> list[str]:
    left_out = len(lines) - MAX_LINES
    if left_out <= 1:
        return lines
    half = MAX_LINES // 2
    return [*lines[:half], f"… {left_out} more …", *lines[-half:]]
