"""Pages of the site that are made of what is there: the README, the registry, `docs/findings.md` and the known defects.

A page for each area of requirements, and one for each finding, which ends in what the model says of the known defect
and in a program for pika that is made of its commands: nothing of it is written twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from amqpspec.conformance.failures.by_hand import needs_operator
from amqpspec.conformance.failures.reproducer import reproducer
from amqpspec.conformance.failures.shrink import waits
from amqpspec.conformance.failures.signs import Signs, signs_in, without_signs
from amqpspec.conformance.language.command_file import parse_command_file
from amqpspec.model.defects.known_defects import KNOWN_DEFECTS, defects_from
from amqpspec.model.judging.known_defect import KnownDefect
from amqpspec.model.promises.registry import Requirement, requirements
from amqpspec.model.promises.verdict import Failure, Shape
from amqpspec.reports.sources import source_parts

ROOT = Path(__file__).parent
#: A finding: its heading, and its text.
_FINDING = re.compile(r"^## (?P<title>.+?)\n(?P<text>.*?)(?=^##? [A-Z]|\Z)", re.MULTILINE | re.DOTALL)


_HOW_TO_READ = (
    "Lines that the program prints, one behind the other; *no* before one that does not come, though it was waited "
    "for. *By chance* is at one time and not at another, and takes a few tries; *rarely* takes many, or a busy broker."
)
_HOW_TO_RUN = (
    "It takes the broker's URL as its argument. Its last line says whether it has seen the finding, as does its exit "
    "code: 1 if it has, 0 if not, 3 if there is no broker. A test runs it on each version that is named above."
)


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


@dataclass(frozen=True)
class Finding:
    """A section of `docs/findings.md`; `place` is its page, `part` the broker's heading above it."""

    title: str
    text: str
    part: str
    place: str

    @property
    def defects(self) -> tuple[KnownDefect, ...]:
        """The known defects that it names."""
        named = re.findall(r"`([a-z0-9-]+)`", self.text)
        return tuple(KNOWN_DEFECTS[each] for each in dict.fromkeys(named) if each in KNOWN_DEFECTS)

    @property
    def brokers(self) -> str:
        """Whose doing it is, as far as the model knows it."""
        return ", ".join(dict.fromkeys(broker for defect in self.defects for broker in defect.brokers))

    @property
    def requirement(self) -> str:
        return self.title.split(" ", 1)[0].rstrip(",")

    @property
    def blocks(self) -> list[str]:
        """Its sequences of commands."""
        return re.findall(r"^```\n(.*?)^```", self.text, re.MULTILINE | re.DOTALL)

    def said(self, what: str) -> str:
        """What stands behind "- what: " in it, on one line; "": there is no such line."""
        found = re.search(rf"^- {what}: (.*?)(?=^- |^```|\Z)", self.text, re.MULTILINE | re.DOTALL)
        return " ".join(found[1].split()) if found else ""

    @property
    def rank(self) -> int:
        """Its place among the ten that hurt most; 0: it is none of them."""
        return int(self.said("Among the ten that hurt most").rstrip(".") or 0)


def findings() -> list[Finding]:
    """All of the document, in its order."""
    text = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    found: list[Finding] = []
    used: set[str] = set()
    for part in re.split(r"^# (?=[A-Z])", text, flags=re.MULTILINE)[2:]:
        for match in _FINDING.finditer(part):
            name = base = re.sub(r"[^a-z0-9]+", "-", match["title"].lower()).strip("-")[:60].strip("-")
            number = 2
            while name in used:
                name, number = f"{base}-{number}", number + 1
            used.add(name)
            found.append(Finding(match["title"], match["text"].strip(), part.splitlines()[0], f"{name}.md"))
    return found


@dataclass(frozen=True)
class Shown:
    """What shows a finding: a sequence of commands of its own, a program that carries it out, by what it is seen."""

    commands: str
    program: str
    signs: tuple[Signs, ...]
    #: somebody has to do things on the broker's machine while it runs
    needs_operator: bool
    #: it waits for the broker's clock
    waits: bool


def shown(finding: Finding) -> list[Shown]:
    """Its sequences of commands, each with a program for pika."""
    seen = finding.said("Seen") or (finding.defects[0].statement if finding.defects else finding.title)
    made = []
    for block in finding.blocks:
        (file,) = parse_command_file(block, finding.title)
        failure = Failure(
            finding.requirement, Shape.UNEXPECTED, "", str(file.commands[-1]), seen,
            (finding.said("Promise") or "see the rule",), (),
        )  # fmt: skip
        signs = tuple(signs_in(block))
        made.append(
            Shown(
                without_signs(block), reproducer(file.commands, failure, signs), signs,
                needs_operator(file.commands), waits(file.commands),
            )
        )  # fmt: skip
    return made


def _findings() -> Iterator[tuple[str, str]]:
    text = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    head, _, _ = text.partition("\n# RabbitMQ")
    listed = findings()
    for each in listed:
        model = "".join(
            f"\n## What the model knows: {defect.name}\n\n{defect.statement}\n\n*{defect.strength}; "
            f"{', '.join(defect.brokers)}.* Source: {defect.source}\n"
            for defect in each.defects
        )
        upstream = "" if each.said("Upstream") else "\n*Upstream:* it is not known to be reported.\n"
        see = "\nThe commands as a file: `amqpspec replay FILE TARGET` shows it.\n" if each.blocks else ""
        yield f"findings/{each.place}", (
            f"# {each.title}\n\n{_lists(without_signs(each.text))}\n{upstream}{see}{_observed(each)}{model}"
            f"{_pika(each)}"
        )
    ten = sorted((each for each in listed if each.rank), key=lambda each: each.rank)
    worst = [
        f"| [{_cell(each.title)}]({each.place})<br>{each.brokers} | {_cell(each.said('What to do'))}"
        f"<br>*Upstream:* {_cell(each.said('Upstream')) or 'not known to be reported.'} |"
        for each in ten
    ]
    all_of_them = [f"| [{_cell(each.title)}]({each.place}) | {each.brokers or each.part} |" for each in listed]
    parts = [
        head, "", "## The ten that hurt most", "",
        "| finding | what to do |", "|---|---|",
        *worst, "", "## All findings", "", "| finding | known of |", "|---|---|", *all_of_them,
    ]  # fmt: skip
    yield "findings/index.md", "\n".join(parts) + "\n"


def _observed(finding: Finding) -> str:
    """What the programs print, by version."""
    all_shown = shown(finding)
    several = len(all_shown) > 1
    lines = [
        f"- {f'Sequence {number}, ' if several else ''}{finding.part} {signs.where}, {signs.often}"
        f"{' (it needs what somebody does on the machine of the broker)' if each.needs_operator else ''}: "
        f"`{'; '.join(signs.lines)}`"
        for number, each in enumerate(all_shown, 1)
        for signs in each.signs
    ]
    return "\n".join(["\n## What is observed\n", _HOW_TO_READ, "", *lines, ""]) if lines else ""


def _pika(finding: Finding) -> str:
    listings = "".join(f"\n```python\n{each.program}```\n" for each in shown(finding))
    return f"\n## The same with pika\n\n{_HOW_TO_RUN}\n{listings}" if listings else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _lists(text: str) -> str:
    """With the empty lines before blocks of commands that this Markdown wants."""
    return re.sub(r"(?<=[^\n])\n```", "\n\n```", text)
