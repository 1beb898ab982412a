"""The result of a run in Markdown, for the summary of a job: what is new whole, all else in lines, of bounded size."""

from __future__ import annotations

from amqpspec.conformance.verdicts.judgement import FoundFailure, RunResult
from amqpspec.model.promises.dialect_names import in_short
from amqpspec.model.promises.versions import newer_sentence
from amqpspec.reports.as_known import defect_entries, headline_as_known
from amqpspec.reports.extent import extent_lines
from amqpspec.reports.listing import AS_RABBITMQ_HEADING, Heading, heading_of, pairs
from amqpspec.reports.markdown import block, prose
from amqpspec.reports.one_cause import Together, shown_together
from amqpspec.reports.overview import SIGNS, VERDICTS, Entry, entries, headline, notes
from amqpspec.reports.text import plural

#: New failures that are shown with their commands, and those that have a line.
MAX_WHOLE, MAX_LINES = 10, 200
#: Lines of commands, and characters of a line.
MAX_COMMANDS, MAX_LINE = 40, 400


def render_summary(result: RunResult) -> str:
    """The summary as Markdown text. GitHub takes a mebibyte of it; this is less."""
    target = result.target
    seed = "" if result.seed is None else f", seed {result.seed}"
    facts = f"{result.tool} {result.tool_version}, dialect {in_short(target.dialect)}{seed}, " + plural(
        result.sequences, "sequence"
    )
    sign = {0: "✅", 1: "❌"}.get(result.exit_code, "⚠️")
    said = [headline_as_known(result), newer_sentence(target.judged_version), *extent_lines(result)[:20]]
    lines = [
        f"## {sign} {prose(target.product)} {prose(target.version)}: {prose(_cut(headline(result)))}",
        "",
        f"{facts}.",
        *(f"\n{prose(_cut(line))}." for line in said if line),
        *(f"\nDeviation file: {prose(_cut(problem))}." for problem in result.problems[:MAX_LINES]),
        "",
        "| | " + " | ".join(f"{SIGNS[verdict]} {verdict}" for verdict in VERDICTS) + " |",
        "|---" + "|--:" * len(VERDICTS) + "|",
        "| the promise | " + " | ".join(str(result.summary[verdict]) for verdict in VERDICTS) + " |",
        "| as known | " + " | ".join(str(result.summary_as_known[verdict]) for verdict in VERDICTS) + " |",
    ]
    failing = pairs(entries(result), result)
    together = {each.first.failure.identity: each for each in shown_together(result)}
    under = {other.failure.identity for each in together.values() for other in each.others}
    new = [
        (entry, found)
        for entry, found in failing
        if heading_of(found, result) is Heading.NEW and found.failure.identity not in under
    ]
    for entry, found in new[:MAX_WHOLE]:
        lines += _whole(entry, found, result, together.get(found.failure.identity))
    if brief := new[MAX_WHOLE : MAX_WHOLE + MAX_LINES]:
        lines += ["", f"And {plural(len(new) - MAX_WHOLE, 'failure')} more:", ""]
        lines += [_line(entry, found, together.get(found.failure.identity)) for entry, found in brief]
    as_rabbitmq = [each for each in failing if heading_of(each[1], result) is Heading.AS_RABBITMQ]
    lines += _folded(AS_RABBITMQ_HEADING, [_line(entry, found)[2:] for entry, found in as_rabbitmq])
    accepted = [
        (entry, found) for entry, found in failing
        if heading_of(found, result) is Heading.KNOWN and not result.is_as_known(found)
    ]  # fmt: skip
    lines += _folded("Accepted", [f"{entry.id}: {prose(_cut(found.known or ''))}" for entry, found in accepted])
    defects = [f"{each.defect.requirement} {each.defect.name}: {each.in_this_run}" for each in defect_entries(result)]
    lines += _folded("Known defects", defects)
    return "\n".join(lines) + "\n"


def _line(entry: Entry, found: FoundFailure, together: Together | None = None) -> str:
    cause = f" (one cause: {prose(_cut(together.in_words))})" if together is not None else ""
    return f"- {entry.id} {prose(entry.title)}: {prose(_cut(_what(found)))}{cause}"


def _whole(entry: Entry, found: FoundFailure, result: RunResult, together: Together | None) -> list[str]:
    failure = found.failure
    said = ", ".join(notes(found, result.target.dialect, result.target.judged_version))
    commands = [_cut(line) for line in found.commands[:MAX_COMMANDS]]
    if len(found.commands) > MAX_COMMANDS:
        commands.append(f"… {len(found.commands) - MAX_COMMANDS} more")
    return [
        "",
        f"### {entry.id} {prose(entry.title)}",
        "",
        *([prose(entry.statement), ""] if entry.statement else []),
        f"_{prose(_cut(said))}_",
        *(["", f"One cause: {prose(_cut(together.in_words))}."] if together is not None else []),
        *block("Commands", commands),
        *block("Allowed", [_cut(line) for line in failure.allowed[:MAX_COMMANDS]] or ["nothing"]),
        *block("Observed", [_cut(failure.observed)]),
    ]


def _what(found: FoundFailure) -> str:
    return f"{found.failure.shape}, {found.failure.observed}"


def _folded(title: str, listed: list[str]) -> list[str]:
    if not listed:
        return []
    head = f"<details><summary>{title} ({len(listed)})</summary>"
    return ["", head, "", *(f"- {line}" for line in listed[:MAX_LINES]), "", "</details>"]


def _cut(text: str) -> str:
    return text if len(text) <= MAX_LINE else f"{text[:MAX_LINE]}…"
