"""What an application would notice of an upgrade: on a terminal, in Markdown, as one HTML page. The worst comes first
(`model.promises.severity`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from amqpspec.conformance.upgrade import Difference, Kind, Upgrade
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.dialect_names import base_of
from amqpspec.model.promises.registry import AS_STATED, requirements
from amqpspec.model.promises.severity import Severity, rank, severity_of
from amqpspec.model.promises.verdict import Verdict
from amqpspec.reports.html import page_environment
from amqpspec.reports.markdown import block, prose
from amqpspec.reports.overview import SIGNS
from amqpspec.reports.text import plural

#: Commands that are shown of a difference.
MAX_COMMANDS = 40
_STYLES = {Verdict.PASS: "bold green", Verdict.FAIL: "bold red", Verdict.INCONCLUSIVE: "bold yellow"}
_KINDS = (Kind.BROKEN, Kind.KNOWN, Kind.AS_DOCUMENTED)


def name_of(target: TargetDescription) -> str:
    return f"{target.product} {target.version}".strip()


def severity(difference: Difference) -> Severity:
    return severity_of(difference.failure)


def ordered(differences: Sequence[Difference]) -> list[Difference]:
    """The worst first; of the same severity what breaks a promise, then what was seen most often.

    One frame may differ in several ways: only the worst of them is listed.
    """
    listed = sorted(
        differences,
        key=lambda each: (rank(each.failure), _KINDS.index(each.kind), -len(each.sequences), each.failure.identity),
    )
    frames = {(each.failure.observed, each.failure.command): each for each in reversed(listed)}
    alone = [each for each in listed if each.failure.observed == "nothing"]
    return [each for each in listed if each in alone or each is frames[each.failure.observed, each.failure.command]]


def title(difference: Difference) -> str:
    known = requirements().get(difference.failure.requirement)
    return f"{difference.failure.requirement} {known.title if known else ''}".strip()


def rule(difference: Difference, dialect: str) -> str:
    """What the requirement says, and what it says of that dialect."""
    known = requirements().get(difference.failure.requirement)
    if known is None:
        return ""
    here = known.note_in(dialect) or AS_STATED
    return known.statement + (f" In {base_of(dialect)}: {here}." if here != AS_STATED else "")


def overall(found: Upgrade) -> Verdict:
    if not found.compared:
        return Verdict.INCONCLUSIVE
    return Verdict.FAIL if found.noticed else Verdict.PASS


def headline(found: Upgrade) -> str:
    change = f"from {name_of(found.one)} to {name_of(found.other)}"
    noticed = ordered(found.noticed)
    if not found.compared:
        return f"Nothing was compared {change}: no sequence has the same commands on both"
    if not noticed:
        return f"No difference {change} that an application would notice, in what was compared"
    kinds = [each.kind for each in noticed]
    said = ", ".join(f"{kinds.count(kind)} {_SHORT[kind]}" for kind in _KINDS if kind in kinds)
    return f"{plural(len(kinds), 'difference')} {change} that an application may notice: {said}"


_SHORT = {
    Kind.BROKEN: "that break a promise",
    Kind.KNOWN: "by known defects",
    Kind.AS_DOCUMENTED: "by documented changes",
}


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


def terminal_lines(found: Upgrade) -> Iterator[tuple[str, str]]:
    """Lines with their style."""
    last: Severity | None = None
    for each in ordered(found.noticed):
        if severity(each) is not last:
            last = severity(each)
            yield last.capitalize(), "bold"
        yield f"  ✗ {title(each)}  ({each.kind}; {plural(len(each.sequences), 'sequence')})", "red"
        for allowed in each.failure.allowed[:1] or ("nothing",):
            yield f"      was  {allowed}", ""
        yield f"      now  {each.failure.observed}", ""
    if found.gone:
        yield "Not seen any more:", "bold"
        for each in ordered(found.gone):
            yield f"  ✓ {title(each)}: {_what(each)}", "green"
    for line in extent(found):
        yield f"{line}.", "dim"
    verdict = overall(found)
    yield f"{SIGNS[verdict]} {headline(found)}", _STYLES[verdict]


def _what(difference: Difference) -> str:
    failure = difference.failure
    return failure.defect or f"{failure.shape}, {failure.detail}"


def upgrade_markdown(found: Upgrade) -> str:
    lines = [f"# {prose(headline(found))}", "", *(f"- {prose(line)}" for line in extent(found))]
    last: Severity | None = None
    for each in ordered(found.noticed):
        if severity(each) is not last:
            last = severity(each)
            lines += ["", f"## {last.capitalize()}"]
        failure = each.failure
        lines += [
            "", f"### {prose(title(each))}", "", prose(rule(each, found.other.dialect)), "",
            f"_{each.kind}; {plural(len(each.sequences), 'sequence')}, such as {prose(each.sequences[0])}_",
            *block("Commands", each.commands[:MAX_COMMANDS]),
            *block(f"As {prose(name_of(found.one))} does", failure.allowed or ("nothing",)),
            *block(prose(name_of(found.other)), (failure.observed,)),
        ]  # fmt: skip
    if found.gone:
        lines += ["", "## Not seen any more", ""]
        lines += [f"- {prose(title(each))}: {prose(_what(each))}" for each in ordered(found.gone)]
    return "\n".join(lines) + "\n"


def upgrade_html(found: Upgrade, tool: str) -> str:
    return (
        page_environment()
        .get_template("upgrade.html")
        .render(
            tool=tool,
            found=found,
            one=name_of(found.one),
            other=name_of(found.other),
            headline=headline(found),
            overall=overall(found),
            sign=SIGNS[overall(found)],
            extent=extent(found),
            noticed=[(rank(each.failure), severity(each), each) for each in ordered(found.noticed)],
            gone=[(title(each), _what(each)) for each in ordered(found.gone)],
            title=title,
            rule=rule,
            most=MAX_COMMANDS,
        )
    )
