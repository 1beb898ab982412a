"""Pages of the site that are made of what is there: the README, the registry, `docs/findings.md` and the known defects.

A page for each area of requirements, and one for each finding, which ends in what the model says of the known defect:
nothing of it is written twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from amqpspec.model.defects.known_defects import KNOWN_DEFECTS, defects_from
from amqpspec.model.promises.registry import Requirement, requirements
from amqpspec.reports.sources import source_parts

ROOT = Path(__file__).parent
#: A finding: its heading, and its text.
_FINDING = re.compile(r"^## (?P<title>.+?)\n(?P<text>.*?)(?=^##? |\Z)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    whole = files.get_file_from_path("findings.md")
    if whole is not None:
        files.remove(whole)  # its parts are pages
    for place, content in pages():
        files.append(File.generated(config, place, content=content))
    return files


def pages() -> Iterator[tuple[str, str]]:
    """The path and the Markdown of each page."""
    yield "index.md", (ROOT / "README.md").read_text(encoding="utf-8")
    registry = requirements()
    areas = [(area, list(some)) for area, some in groupby(registry.values(), lambda each: each.area)]
    yield "requirements/index.md", _index_of(areas)
    for area, some in areas:
        yield f"requirements/{area}.md", "\n".join([f"# Requirements: {area}\n", *map(_requirement, some)])
    yield from _findings()


def _index_of(areas: list[tuple[str, list[Requirement]]]) -> str:
    rows = [f"| [{area}]({area}.md) | {len(some)} | {some[0].id} to {some[-1].id} |" for area, some in areas]
    return "\n".join(["# Requirements\n", "| area | number | identifiers |", "|---|---|---|", *rows]) + "\n"


def _requirement(each: Requirement) -> str:
    source = "".join(f"[{part.text}]({part.url})" if part.url else part.text for part in source_parts(each.source))
    dialects = "\n".join(f"- {name}: {note}" for name, note in each.dialects.items())
    known = "".join(
        f"\nKnown defect `{defect.name}` ({defect.strength}; {', '.join(defect.brokers)}): {defect.statement}\n"
        for defect in defects_from(each.id)
    )
    return (
        f'## {each.id} {each.title} {{: #{each.id} }}\n\n{each.statement}\n\n*{each.level}, {each.strength}. '
        f"Source:* {source}\n\n*What shows it:* {each.observable}\n\n{dialects}\n{known}"
    )


def _findings() -> Iterator[tuple[str, str]]:
    text = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    head, _, _ = text.partition("\n# RabbitMQ")
    rows: list[str] = []
    used: set[str] = set()
    for match in _FINDING.finditer(text):
        title, said = match["title"], match["text"].strip()
        name = base = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60].strip("-")
        number = 2
        while name in used:
            name, number = f"{base}-{number}", number + 1
        used.add(name)
        defects = [KNOWN_DEFECTS[each] for each in re.findall(r"`([a-z0-9-]+)`", said) if each in KNOWN_DEFECTS]
        model = "".join(
            f"\n## What the model knows: {defect.name}\n\n{defect.statement}\n\n*{defect.strength}; "
            f"{', '.join(defect.brokers)}.* Source: {defect.source}\n"
            for defect in dict.fromkeys(defects)
        )
        see = "\nThe commands as a file: `amqpspec replay FILE TARGET` shows it.\n" if "```" in said else ""
        yield f"findings/{name}.md", f"# {title}\n\n{_lists(said)}\n{see}{model}"
        cell = title.replace("|", "\\|")
        brokers = ", ".join(dict.fromkeys(broker for defect in defects for broker in defect.brokers))
        rows.append(f"| [{cell}]({name}.md) | {brokers} |")
    yield "findings/index.md", "\n".join([head, "", "| finding | known of |", "|---|---|", *rows]) + "\n"


def _lists(text: str) -> str:
    """With the empty lines before blocks of commands that this Markdown wants."""
    return re.sub(r"(?<=[^\n])\n```", "\n\n```", text)
