"""The report in Markdown, whole: for bug reports. A short one is in `reports.summary`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from amqpspec.conformance.verdicts.judgement import FoundFailure, RunResult
from amqpspec.model.promises.dialect_names import in_short
from amqpspec.model.promises.registry import Requirement
from amqpspec.model.promises.versions import newer_sentence
from amqpspec.reports.accuracy import accuracy_line
from amqpspec.reports.as_known import as_known_text, broker_as_known, defect_entries, headline_as_known
from amqpspec.reports.extent import extent_lines
from amqpspec.reports.listing import AS_RABBITMQ_HEADING, AS_RABBITMQ_HINT, Heading, heading_of, pairs
from amqpspec.reports.one_cause import shown_together
from amqpspec.reports.overview import (
    VERDICTS,
    Entry,
    again,
    areas,
    entries,
    headline,
    notes,
    severity_line,
    whole_lines,
)
from amqpspec.reports.text import plural, visible


def render_markdown(result: RunResult, registry: Mapping[str, Requirement] | None = None) -> str:
    """The report as Markdown text."""
    target = result.target
    listed = entries(result, registry)
    as_known = headline_as_known(result)
    measured = accuracy_line(result)
    newer = newer_sentence(target.judged_version)
    severities = severity_line(result)
    extent = extent_lines(result)
    seed = "" if result.seed is None else f", seed {result.seed}"
    lines = [
        f"# {prose(target.product)} {prose(target.version)}: {prose(headline(result))}",
        "",
        f"{result.tool} {result.tool_version}, dialect {in_short(target.dialect)}, {result.mode}{seed}; "
        f"{plural(result.sequences, 'sequence')}, {plural(result.frames, 'frame')}.",
        "",
        *(f"- {prose(line)}." for line in extent),
        *([""] if extent else []),
        *(f"{prose(line)}.\n" for line in whole_lines(result)),
        *([f"{prose(severities)}.", ""] if severities else []),
        *([f"{prose(newer)}.", ""] if newer else []),
        *([f"{prose(as_known)}.", ""] if as_known else []),
        *([f"{prose(measured)}.", ""] if measured else []),
        "| area | " + " | ".join(map(str, VERDICTS)) + " |",
        "|---" + "|--:" * len(VERDICTS) + "|",
    ]
    for area in areas(listed):
        counts = " | ".join(str(area.counts[verdict] or "") for verdict in VERDICTS)
        lines.append(f"| {prose(area.name)} | {counts} |")
    for name, total in (
        ("against the promise", result.summary),
        (f"as {broker_as_known(result)} is known", result.summary_as_known),
    ):
        lines.append(f"| **all, {prose(name)}** | " + " | ".join(str(total[verdict]) for verdict in VERDICTS) + " |")
    together = {each.first.failure.identity: each.in_words for each in shown_together(result)}
    last = Heading.NEW
    for entry, found in pairs(listed, result):
        heading = heading_of(found, result)
        if heading is Heading.AS_RABBITMQ and last is not heading:
            lines += ["", f"## {AS_RABBITMQ_HEADING}", "", f"{AS_RABBITMQ_HINT}."]
        last = heading
        lines += _failure(entry, found, result, together.get(found.failure.identity))
    lines += _defects(result)
    if result.undecided:
        lines += ["", "## Inconclusive sequences", ""]
        lines += [f"- {prose(sequence)}: {prose(reason)}" for sequence, reason in result.undecided]
    return "\n".join(lines) + "\n"


def _defects(result: RunResult) -> list[str]:
    listed = defect_entries(result)
    if not listed:
        return []
    rows = [
        f"| {known.name} | {known.requirement} | {known.strength} | {prose(known.statement)} | {each.in_this_run} |"
        for each in listed
        for known in (each.defect,)
    ]
    head = ["| known defect | promise | strength | what it does instead | in this run |", "|---|---|---|---|---|"]
    return ["", f"## Known defects of {prose(broker_as_known(result))}", "", *head, *rows]


def _failure(entry: Entry, found: FoundFailure, result: RunResult, cause: str | None) -> list[str]:
    failure = found.failure
    defects = [each for each in entry.defects if each.name == failure.defect]
    return [
        "",
        f"## {entry.id} {prose(entry.title)}",
        "",
        f"{prose(entry.statement)} ({prose(entry.source)})" if entry.statement else "",
        "",
        *(f"As known in {broker_as_known(result)}: {prose(as_known_text(each))}\n" for each in defects),
        f"_{prose(', '.join(notes(found, result.target.dialect, result.target.judged_version)))}_",
        *(["", f"One cause: {prose(cause)}."] if cause else []),
        *block("Commands", found.commands),
        *block("Allowed", failure.allowed or ("nothing",)),
        *block("Observed", (failure.observed,)),
        *block("State", failure.state),
        *block("To see it again", again(found).splitlines()),
    ]


def block(title: str, lines: Iterable[str]) -> list[str]:
    """Lines as they are, below a title; nothing where there are none."""
    text = visible("\n".join(lines))
    if not text:
        return []
    # A fence must be longer than any run of backquotes inside.
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return ["", f"{title}:", "", fence, text, fence]


def prose(text: str) -> str:
    """Text in which nothing is markup."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", visible(text).replace("\n", " "))
