"""The requirement registry for people and programs: the command `amqpspec requirements`, and the document."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.table import Column
from rich.text import Text

from amqpspec.model.defects.known_defects import defects_from
from amqpspec.model.judging.known_defect import KnownDefect
from amqpspec.model.promises.registry import Requirement, UnknownRequirement, requirement, requirements, select
from amqpspec.reports.readable_table import ReadableTable, name_column, text_column
from amqpspec.reports.requirement_relations import related, scenarios_of, search


def print_requirements(
    console: Console,
    only: Sequence[str] = (),
    show: str | None = None,
    as_json: bool = False,
    words: str | None = None,
) -> None:
    """Does what `amqpspec requirements [--only PREFIX]… [--show ID] [--search WORDS] [--json]` does, on `console`.

    `show` outranks `words`, and that `only`. Raises `model.promises.registry.UnknownRequirement`.
    """
    one = [] if show is None else [_one(show.strip().upper())]
    chosen = one or (select(only) if words is None else search(words))
    if words is not None and not chosen:
        raise UnknownRequirement(f"no requirement has a word of {words!r}; see: amqpspec requirements")
    if as_json:
        # not by rich: it would fold long lines
        console.file.write(json.dumps(to_json(chosen), indent=2, ensure_ascii=False) + "\n")
    elif show is not None:
        console.print(render_details(chosen[0]))
    elif console.is_terminal:
        console.print(render_table(chosen))
    else:
        # one line each, whatever its length, for grep and its like
        console.file.writelines(f"{line}\n" for line in plain_lines(chosen))


def _one(id: str) -> Requirement:
    """Raises `UnknownRequirement`, which leads on from the beginning of an identifier."""
    if id and id not in requirements() and any(each.startswith(f"{id}-") for each in requirements()):
        raise UnknownRequirement(f"{id} is an area: amqpspec requirements --only {id}")
    return requirement(id)


def render_table(requirements: Iterable[Requirement]) -> ReadableTable:
    """A table of identifier, level and title."""
    table = ReadableTable(name_column("id"), name_column("level"), text_column("title"))
    for each in requirements:
        table.add_row(Text(each.id), Text(each.level), Text(each.title))
    return table


def plain_lines(requirements: Iterable[Requirement]) -> list[str]:
    """Identifier, level and title in columns, one line each."""
    return [f"{each.id:<15} {each.level:<10} {each.title}" for each in requirements]


def render_details(requirement: Requirement) -> ReadableTable:
    """All fields of one requirement, one row each, and the known defects from it."""
    table = ReadableTable(Column("field", no_wrap=True, style="bold"), text_column("value"))
    table.show_header = False
    for name, value in _fields(requirement).items():
        if isinstance(value, dict):
            for dialect, outcome in value.items():
                table.add_row(Text(dialect), Text(outcome))
        else:
            text = value if isinstance(value, str) else ", ".join(value)
            table.add_row(Text(name.replace("_", " ")), Text(text))
    for defect in defects_from(requirement.id):
        for broker in defect.brokers:
            table.add_row(Text(f"as known in {broker}"), Text(defect.statement))
        table.add_row(Text(f"known defect {defect.name}"), Text(f"{defect.strength}; {defect.source}"))
    for scenario in scenarios_of().get(requirement.id, ()):
        table.add_row(Text(f"scenario {scenario.name}"), Text(scenario.title))
    for id in related(requirement.id):
        table.add_row(Text(f"related {id}"), Text(requirements()[id].title))
    return table


def to_json(requirements: Iterable[Requirement]) -> list[dict[str, Any]]:
    """One object per requirement, all fields by name; `queue_types` is a list, `dialects` an object.

    `known_defects` are those known from it: name, strength, statement, source, the dialects whose brokers do it, and
    these brokers by product and versions. `why` is left out where nothing is known; `scenarios` are names, `related`
    identifiers.
    """
    return [
        {
            **_fields(each),
            "known_defects": [_defect(known) for known in defects_from(each.id)],
            "scenarios": [scenario.name for scenario in scenarios_of().get(each.id, ())],
            "related": list(related(each.id)),
        }
        for each in requirements
    ]


def render_markdown(requirements: Iterable[Requirement]) -> str:
    """The document: one chapter per run of requirements of an area, one section per requirement."""
    lines = ["# Requirements", ""]
    for area, members in groupby(requirements, key=lambda each: each.area):
        lines += [f"## {area.replace('-', ' ').capitalize()}", ""]
        for each in members:
            dialects = "; ".join(f"{name}: {_markdown(text)}" for name, text in each.dialects.items())
            lines += [
                f"### {each.id} {_markdown(each.title)}",
                "",
                _markdown(each.statement),
                "",
                f"- Level: {each.level}",
                f"- Strength: {each.strength}",
                f"- Queue types: {', '.join(each.queue_types)}",
                f"- Determinism: {each.determinism}",
                f"- Observable: {_markdown(each.observable)}",
                f"- Dialects: {dialects}",
                f"- Source: {_markdown(each.source)}",
                f"- Verified: {_markdown(each.verified)}",
                *(
                    f"- As known in {'; '.join(known.brokers)}: {_markdown(known.statement)}"
                    f" ({known.name}, {known.strength})"
                    for known in defects_from(each.id)
                ),
                "",
            ]
    return "\n".join(lines)


def _fields(requirement: Requirement) -> dict[str, Any]:
    return {
        "id": requirement.id,
        "area": requirement.area,
        "title": requirement.title,
        "statement": requirement.statement,
        **({"why": requirement.why} if requirement.why else {}),
        "level": requirement.level,
        "strength": str(requirement.strength),
        "source": requirement.source,
        "queue_types": list(requirement.queue_types),
        "observable": requirement.observable,
        "determinism": requirement.determinism,
        "verified": requirement.verified,
        "dialects": dict(requirement.dialects),
    }


def _defect(defect: KnownDefect) -> dict[str, Any]:
    return {
        "name": defect.name,
        "strength": str(defect.strength),
        "statement": defect.statement,
        "source": defect.source,
        "dialects": list(defect.dialects),
        "brokers": list(defect.brokers),
    }


def _markdown(text: str) -> str:
    """`text` with the characters escaped that Markdown would take as markup."""
    return "".join(f"\\{character}" if character in r"\`*_[]<>#|" else character for character in text)
