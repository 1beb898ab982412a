"""What an application would notice of an upgrade: on a terminal, in Markdown, as one HTML page, in JSON. One entry for
each change or known defect (`conformance.upgrade.entries`), the worst first (`model.promises.severity`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from amqpspec.conformance.upgrade.changes import Change, changes_between
from amqpspec.conformance.upgrade.comparison import Kind, Upgrade
from amqpspec.conformance.upgrade.entries import Entry
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.severity import ORDER, Severity
from amqpspec.model.promises.verdict import Failure, Verdict
from amqpspec.reports.html import page_environment
from amqpspec.reports.markdown import block, prose
from amqpspec.reports.overview import SIGNS
from amqpspec.reports.text import plural

#: Commands that are shown of an entry.
MAX_COMMANDS = 40
_STYLES = {Verdict.PASS: "bold green", Verdict.FAIL: "bold red", Verdict.INCONCLUSIVE: "bold yellow"}
_ACCEPTED = "≈"


def name_of(target: TargetDescription) -> str:
    return f"{target.product} {target.version}".strip()


def requirement_title(failure: Failure) -> str:
    known = requirements().get(failure.requirement)
    return f"{failure.requirement} {known.title if known else ''}".strip()


def overall(found: Upgrade, entries: Sequence[Entry]) -> Verdict:
    if not found.compared:
        return Verdict.INCONCLUSIVE
    return Verdict.FAIL if any(each.known is None for each in entries) else Verdict.PASS


def headline(found: Upgrade, entries: Sequence[Entry]) -> str:
    change = f"from {name_of(found.one)} to {name_of(found.other)}"
    if not found.compared:
        return f"Nothing was compared {change}: no sequence has the same commands on both"
    if not entries:
        return f"No difference {change} that an application would notice, in what was compared"
    counts = {what: sum(each.what == what for each in entries) for what in dict.fromkeys(each.what for each in entries)}
    said = ", ".join(f"{what}: {count}" for what, count in counts.items())
    many = sum(each.known is not None for each in entries)
    more = f"; {'all' if many == len(entries) else many} accepted" if many else ""
    return f"{plural(len(entries), 'difference')} {change} that an application may notice ({said}){more}"


def extent(found: Upgrade) -> list[str]:
    """How much was compared, in sentences."""
    lines = [f"{plural(found.compared, 'sequence')} with the same commands on both"]
    if found.left_out:
        lines.append(f"{plural(found.left_out, 'sequence')} left out: not carried out on both with the same commands")
    if found.cut_short:
        what = "the new version was not compared to the end, as a difference ended the judging"
        lines.append(f"in {found.cut_short:,} of them {what}")
    lines.append(f"{plural(found.still, 'failure')} of both, which are no difference")
    return lines


def not_shown(found: Upgrade, entries: Sequence[Entry]) -> tuple[Change, ...]:
    """The changes between the two dialects that no sequence showed."""
    shown = {each.change for each in entries}
    changes = changes_between(dialect_named(found.one.dialect), dialect_named(found.other.dialect))
    return tuple(each for each in changes if each not in shown)


def was_and_now(entry: Entry) -> tuple[str, str]:
    """The two sentences of a change; of all else the frames."""
    if entry.change is not None:
        return entry.change.was, entry.change.becomes
    failure = entry.shortest.failure
    return next(iter(failure.allowed), "nothing"), failure.observed


def noticed(entry: Entry) -> str:
    accepted = "" if entry.known is None else f"; accepted: {entry.known}"
    return f"{entry.what}; {plural(len(entry.sequences), 'sequence')}{accepted}"


def by_severity(entries: Sequence[Entry]) -> list[tuple[Severity, list[Entry]]]:
    groups = ((severity, [each for each in entries if each.severity is severity]) for severity in ORDER)
    return [(severity, group) for severity, group in groups if group]


def terminal_lines(found: Upgrade, entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    """Lines with their style."""
    for severity, group in by_severity(entries):
        yield severity.capitalize(), "bold"
        for each in group:
            sign, style = (SIGNS[Verdict.FAIL], "red") if each.known is None else (_ACCEPTED, "")
            yield f"  {sign} {each.title}  ({noticed(each)})", style
            if each.change is None and each.statement:
                yield f"      {each.statement}", ""
            was, now = was_and_now(each)
            yield f"      was  {was}", ""
            yield f"      now  {now}", ""
            for link in each.links:
                yield f"      see  {link.title}: {link.address}", "dim"
    if found.gone:
        yield "Not seen any more:", "bold"
        for title, what in gone(found):
            yield f"  {SIGNS[Verdict.PASS]} {title}: {what}", "green"
    unseen = not_shown(found, entries)
    if unseen and found.compared:
        what = f"{plural(len(unseen), 'change')} that nothing here showed (--markdown and --html list them)"
        yield f"{what}: {', '.join(each.name for each in unseen)}.", "dim"
    for line in extent(found):
        yield f"{line}.", "dim"
    verdict = overall(found, entries)
    yield f"{SIGNS[verdict]} {headline(found, entries)}", _STYLES[verdict]


def gone(found: Upgrade) -> list[tuple[str, str]]:
    """What only the first target did: the requirement, and what it did; each known defect once."""
    lines = {
        (each.defect or each.failure.identity): (
            requirement_title(each.failure),
            each.defect or f"{each.failure.shape}, {each.failure.detail}",
        )
        for each in found.gone
    }
    return [lines[key] for key in sorted(lines)]


def upgrade_markdown(found: Upgrade, entries: Sequence[Entry]) -> str:
    lines = [f"# {prose(headline(found, entries))}", "", *(f"- {prose(line)}" for line in extent(found))]
    if entries:
        lines += ["", "| difference | what it is | severity | sequences |", "|---|---|---|--:|"]
        for each in entries:
            what = each.what if each.known is None else f"{each.what}, accepted: {each.known}"
            title = f"[{prose(each.title)}](#{anchor(each)})"
            lines.append(f"| {title} | {prose(what)} | {each.severity} | {len(each.sequences)} |")
    for severity, group in by_severity(entries):
        lines += ["", f"## {severity.capitalize()}"]
        for each in group:
            lines += _entry(found, each)
    if found.gone:
        lines += ["", "## Not seen any more", ""]
        lines += [f"- {prose(title)}: {prose(what)}" for title, what in gone(found)]
    if (unseen := not_shown(found, entries)) and found.compared:
        lines += ["", "## Changes that nothing here showed", ""]
        for change in unseen:
            lines.append(f"- {prose(change.title)}. {prose(change.was)} Now: {prose(change.becomes)}{_links(change)}")
    return "\n".join(lines) + "\n"


def anchor(entry: Entry) -> str:
    """Of an entry, in an address."""
    return "".join(each if each.isalnum() else "-" for each in entry.name.lower()).strip("-")


def _links(entry: Entry | Change) -> str:
    links = ", ".join(f"[{prose(each.title)}]({each.address})" for each in entry.links)
    return f" ({links})" if links else ""


def _entry(found: Upgrade, each: Entry) -> list[str]:
    failure = each.shortest.failure
    lines = ["", f'### <a id="{anchor(each)}"></a>{prose(each.title)}', ""]
    if each.change is not None:
        was, now = was_and_now(each)
        lines += [f"{prose(name_of(found.one))}: {prose(was)}", "", f"{prose(name_of(found.other))}: {prose(now)}", ""]
    elif each.statement:
        lines += [prose(each.statement), ""]
    lines += [f"_{prose(noticed(each))}, such as {prose(each.sequences[0])}_{_links(each)}"]
    seen = dict.fromkeys(requirement_title(difference.failure) for difference in each.differences)
    lines += ["", f"Noticed by: {prose('; '.join(seen))}."]
    return [
        *lines,
        *block("Commands", each.shortest.commands[:MAX_COMMANDS]),
        *block(f"As {prose(name_of(found.one))} does", failure.allowed or ("nothing",)),
        *block(prose(name_of(found.other)), (failure.observed,)),
    ]


def upgrade_html(found: Upgrade, entries: Sequence[Entry], tool: str) -> str:
    return (
        page_environment()
        .get_template("upgrade.html")
        .render(
            tool=tool,
            one=name_of(found.one),
            other=name_of(found.other),
            headline=headline(found, entries),
            overall=overall(found, entries),
            sign=SIGNS[overall(found, entries)],
            extent=extent(found),
            entries=entries,
            groups=by_severity(entries),
            gone=gone(found),
            unseen=not_shown(found, entries) if found.compared else (),
            title=requirement_title,
            noticed=noticed,
            anchor=anchor,
            broken=Kind.BROKEN,
            accepted=_ACCEPTED,
            failed=SIGNS[Verdict.FAIL],
            most=MAX_COMMANDS,
        )
    )


def change_object(change: Change) -> dict[str, Any]:
    """A change for JSON."""
    return {
        "change": change.name,
        "title": change.title,
        "what": str(change.kind),
        "was": change.was,
        "now": change.becomes,
        "within": change.within,
        "source": change.difference.source,
        "links": [each._asdict() for each in change.links],
    }


def upgrade_json(found: Upgrade, entries: Sequence[Entry], tool: str, code: int) -> str:
    """The same as one object. `differences` are in the order of the reports; `known` is why one is accepted, or null;
    `not_shown` are the changes between the two that no sequence showed.
    """

    def target(each: TargetDescription) -> dict[str, str]:
        return {"label": each.label, "product": each.product, "version": each.version, "dialect": each.dialect}

    said = {
        "tool": tool,
        "from": target(found.one),
        "to": target(found.other),
        "headline": headline(found, entries),
        "exit_code": code,
        "compared": found.compared,
        "left_out": found.left_out,
        "cut_short": found.cut_short,
        "failures_of_both": found.still,
        "differences": [
            {
                "name": each.name,
                "title": each.title,
                "what": each.what,
                "severity": str(each.severity),
                "known": each.known,
                "change": None if each.change is None else change_object(each.change),
                "defect": None if each.defect is None else each.defect.name,
                "statement": each.statement,
                "source": each.source,
                "sequences": list(each.sequences),
                "commands": list(each.shortest.commands),
                "allowed": list(each.shortest.failure.allowed),
                "observed": each.shortest.failure.observed,
                "identities": sorted({difference.failure.identity for difference in each.differences}),
            }
            for each in entries
        ],
        "gone": [{"title": title, "what": what} for title, what in gone(found)],
        "not_shown": [change_object(each) for each in not_shown(found, entries)] if found.compared else [],
    }
    return json.dumps(said, indent=2, ensure_ascii=False) + "\n"
