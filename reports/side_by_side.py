"""Several runs side by side as one HTML page that needs nothing but itself.

Programs that show a failure are left out, since ten runs have many of them: they are in the report of each run.
"""

from __future__ import annotations

import os
from itertools import groupby
from pathlib import Path

from amqpspec.model.promises.verdict import Verdict
from amqpspec.reports.comparison import Change, Comparison, Group, Seen
from amqpspec.reports.html import page_environment
from amqpspec.reports.overview import ACCEPTED_SIGN, SIGNS, VERDICTS, WARNING_SIGN

#: Lines of commands that are shown of a failure.
MAX_COMMANDS = 40
CHANGE_SIGNS = {Change.NEW: "+", Change.FIXED: "−", Change.STILL: "=", Change.UNTRIED: "?"}
#: Of two products nothing is new in one, or fixed in the other.
_OF_PRODUCTS = {
    Change.NEW: "only “to”", Change.FIXED: "only “from”", Change.STILL: "both", Change.UNTRIED: "not tried"
}  # fmt: skip
SEEN_SIGNS = {
    Seen.SHOWN: SIGNS[Verdict.FAIL], Seen.NOT_SHOWN: SIGNS[Verdict.PASS], Seen.NOT_TRIED: SIGNS[Verdict.NOT_EXERCISED]
}  # fmt: skip


def render_side_by_side(compared: Comparison, tool: str, place: Path | None = None) -> str:
    """The page. `place`: the directory that it is written to, from which it links to the reports of the runs."""
    environment = page_environment()
    groups = list(enumerate(compared.groups))
    links = [_link(run.place, place) for run in compared.runs]

    def reports_of(group: Group) -> list[tuple[str, str]]:
        """Of the runs that show it, the name of the target and where the report is."""
        of_each = zip(compared.runs, links, group.of_runs, strict=True)
        return [(run.name, link) for run, link, failure in of_each if failure is not None and link]

    environment.globals.update(reports_of=reports_of)
    return environment.get_template("side_by_side.html").render(
        tool=tool,
        compared=compared,
        runs=compared.runs,
        sums=[_sums(compared, number) for number in range(len(compared.runs))],
        links=links,
        new=[(number, group) for number, group in groups if not (group.is_as_known or group.is_warning)],
        warnings=[(number, group) for number, group in groups if group.is_warning],
        known=[
            [(number, group) for number, group in groups if group.is_as_known and group.is_everywhere is everywhere]
            for everywhere in (False, True)
        ],
        areas=[(area, list(rows)) for area, rows in groupby(compared.rows, key=lambda row: row.area)],
        titles={row.id: row.title for row in compared.rows},
        verdicts=VERDICTS,
        signs=SIGNS,
        changes=list(Change),
        change_texts=_change_texts(compared),
        is_one_product=_is_one_product(compared),
        seen=list(Seen),
        seen_signs=SEEN_SIGNS,
        warning_sign=WARNING_SIGN,
        accepted_sign=ACCEPTED_SIGN,
        most=MAX_COMMANDS,
    )


def _is_one_product(compared: Comparison) -> bool:
    return len({run.product for run in compared.runs}) == 1


def _change_texts(compared: Comparison) -> dict[str, str]:
    """Sign and word for each change, and for none."""
    words = {each: each.value for each in Change} if _is_one_product(compared) else _OF_PRODUCTS
    return {each.value: f"{CHANGE_SIGNS[each]} {words[each]}" for each in Change} | {"neither": "· neither"}


def _sums(compared: Comparison, number: int) -> dict[Verdict, int]:
    verdicts = [cell.verdict for row in compared.rows if (cell := row.cells[number]) is not None]
    return {verdict: verdicts.count(verdict) for verdict in VERDICTS}


def _link(run: Path, place: Path | None) -> str:
    """To the report of a run, where there is one."""
    report = run / "report.html"
    if place is None or not report.is_file():
        return ""
    return Path(os.path.relpath(report, place)).as_posix()
