"""A deviation file made of what a run found, and what is to change in one that is there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import date

from amqpspec.conformance.verdicts.deviations import Deviation, problem_of
from amqpspec.conformance.verdicts.judgement import FoundFailure, RunResult
from amqpspec.conformance.verdicts.known_behaviour import Standing
from amqpspec.model.defects.known_defects import KNOWN_DEFECTS
from amqpspec.model.promises.recommended import recommendation

#: How the names of the sequences begin that every run carries out.
_SCENARIO = "scenario "


def deviations_of(result: RunResult, today: date) -> list[Deviation]:
    """An entry for each failure that no entry lists, but for warnings and what is as RabbitMQ does: they fail nothing.

    And one for each known defect of the target's version that the run did not see, as another seed may, unless it
    would have shown.
    """
    entries = [
        _of(found, result, today)
        for found in result.failures
        if found.known is None and not found.failure.like
        and recommendation(found.failure, result.target.dialect) is None
    ]  # fmt: skip
    named = {each.defect for each in entries} | {found.failure.defect for found in result.failures}
    if result.target.judged_version is not None:
        entries += [
            _of_defect(outcome.name, result)
            for outcome in result.defects
            if outcome.name not in named and outcome.standing in (Standing.NOT_TESTED, Standing.NOT_THIS_TIME)
        ]
    return entries


def _of(found: FoundFailure, result: RunResult, today: date) -> Deviation:
    if found.failure.defect in KNOWN_DEFECTS:
        return _of_defect(found.failure.defect, result)
    shown_by = found.sequence if found.sequence.startswith(_SCENARIO) else ""
    return Deviation(
        found.failure.identity, f"accepted on {today}, no reason given", product=result.target.product,
        shown_by=shown_by, by_chance=found.flaky or not shown_by,
    )  # fmt: skip


def _of_defect(name: str, result: RunResult) -> Deviation:
    known = KNOWN_DEFECTS[name]
    return Deviation(
        f"{known.requirement}|{name}", known.statement, product=result.target.product, by_chance=known.by_chance
    )


def as_toml(deviations: Iterable[Deviation]) -> str:
    """The file's text."""
    return "\n".join(map(_entry, deviations))


def _entry(deviation: Deviation) -> str:
    lines = ["[[deviation]]"]
    if deviation.defect:
        lines.append(f"defect = {_text(deviation.defect)}")
    else:
        lines.append(f"identity = {_text(deviation.identity)}")
    lines.append(f"reason = {_text(deviation.reason)}")
    for key, value in (("link", deviation.link), ("product", deviation.product), ("shown-by", deviation.shown_by)):
        if value:
            lines.append(f"{key} = {_text(value)}")
    if deviation.versions is not None:
        first, last = deviation.versions.first, deviation.versions.last
        lines.append(f"versions = {_text(str(first) if last == first else f'{first} to {last}')}")
    if deviation.expires is not None:
        lines.append(f"expires = {deviation.expires}")
    if deviation.by_chance:
        lines.append("by-chance = true")
    return "\n".join(lines) + "\n"


def _text(text: str) -> str:
    """A basic string of TOML, which is one of JSON but for the control character that this leaves as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def update(listed: Sequence[Deviation], result: RunResult, today: date) -> str:
    """What to take out of the file that lists these, and why, and what to add; "": nothing."""
    out = [(each.identity, problem) for each in listed if (problem := problem_of(each, result, today)) is not None]
    missing = [
        _of(found, result, today) for found in result.failures if found.known is None and not found.failure.like
    ]
    parts = [f"# take out {identity.lstrip('|')}: {problem}\n" for identity, problem in out]
    if missing:
        parts.append("# add\n" + as_toml(missing))
    return "\n".join(parts)
