"""Pages of the site that are made of what is there: the README, the registry, `docs/findings.md` and the known defects.

A page for each area of requirements, each requirement and each finding. That of a finding ends in what the model says
of the known defect, and in a program for pika that is made of its commands: nothing of it is written twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from amqpspec.conformance.explore.example import example
from amqpspec.conformance.failures.by_hand import needs_operator
from amqpspec.conformance.failures.reproducer import program_of_finding
from amqpspec.conformance.failures.shrink import waits
from amqpspec.conformance.failures.signs import ONLY_BY_FRAMES, Signs, signs_in, without_signs
from amqpspec.conformance.language.command_file import parse_command_file
from amqpspec.conformance.scenarios.scenario_files import all_scenarios
from amqpspec.conformance.verdicts.rung import Kind, Rung
from amqpspec.model.defects.known_defects import KNOWN_DEFECTS
from amqpspec.model.judging.known_defect import KnownDefect
from amqpspec.model.promises.registry import IDENTIFIER, Requirement, requirements
from amqpspec.model.promises.verdict import Failure, Shape
from amqpspec.reports.requirement_page import ladder, requirement_page
from amqpspec.reports.requirement_page import text as escaped

ROOT = Path(__file__).parent
#: A finding: its heading, and its text.
_FINDING = re.compile(r"^## (?P<title>.+?)\n(?P<text>.*?)(?=^##? [A-Z]|\Z)", re.MULTILINE | re.DOTALL)


#: Pages across areas, with their titles.
LESSONS = {
    "life-of-a-publish.md": "The life of a publish",
    "life-of-a-delivery.md": "The life of a delivery",
    "what-ends-a-delivery.md": "What ends a delivery",
    "what-a-broker-may-send.md": "What a broker may send now",
    "what-ends-a-consumer.md": "What ends a consumer",
    "what-a-restart-keeps.md": "What a restart keeps",
}
_LADDER = re.compile(r"^--8<-- ladder(?: of)? (\S+)$", re.MULTILINE)
_DOCUMENT = re.compile(r"`docs/([a-z-]+\.md)`")
_HOW_TO_READ = (
    "Lines that the program prints, one behind the other; *no* before one that does not come, though it was waited "
    "for. *By chance* is at one time and not at another, and takes a few tries; *rarely* takes many, or a busy broker."
)
_HOW_TO_RUN = (
    "It takes the broker's URL as its argument. Its last line says whether it has seen the finding, as does its exit "
    "code: 1 if it has, 0 if not, 2 or 3 if that cannot be told. A test runs it on each version that is named above."
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
    yield "readme.md", (ROOT / "README.md").read_text(encoding="utf-8")
    registry = requirements()
    areas = [(area, list(some)) for area, some in groupby(registry.values(), lambda each: each.area)]
    yield "requirements/index.md", _index_of(areas)
    about: dict[str, list[tuple[str, str]]] = {}
    for found in findings():
        for id in dict.fromkeys([found.requirement, *(defect.requirement for defect in found.defects)]):
            about.setdefault(id, []).append((found.title, f"../findings/{found.place}"))
    for area, some in areas:
        yield f"requirements/{area}.md", _area(area, some)
        for each in some:
            yield f"requirements/{each.id}.md", requirement_page(each, about.get(each.id, ()))
    yield from _findings()


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Names of documents and identifiers of requirements are links, and ladders are drawn."""
    place = page.file.src_uri
    if place.startswith(("requirements/", "findings/")):
        return markdown
    markdown = markdown.replace("](findings.md)", "](findings/index.md)")
    markdown = _LADDER.sub(lambda found: _ladder_of(found[1]), markdown)
    markdown = _DOCUMENT.sub(lambda found: _to_document(found, files), markdown)
    if place in LESSONS:
        known = requirements()
        markdown = IDENTIFIER.sub(
            lambda found: f"[{found[0]}](requirements/{found[0]}.md)" if found[0] in known else found[0], markdown
        )
    return markdown


def _to_document(found: re.Match[str], files: Files) -> str:
    name = found[1]
    target = {"findings.md": "findings/index.md"}.get(name, name)
    return f"[{found[0]}]({target})" if files.get_file_from_path(target) else found[0]


def _ladder_of(name: str) -> str:
    """The ladder of a scenario; "failure": of the failure on the first page."""
    if name == "failure":
        return ladder(failure_shown())
    rungs = next((rungs for each in all_scenarios() if each.name == name and (rungs := example(each))), None)
    if rungs is None:
        raise ValueError(f"no scenario {name} whose frames can be shown")
    return "\n" + ladder(rungs) + "\n"


def failure_shown() -> list[Rung]:
    """The failure that README.md shows, frames and commands in turn: the last delivery does not come."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    said = re.search(r"^  commands (.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert said is not None
    (file,) = parse_command_file("\n".join(line.strip() for line in said[1].splitlines()), "README.md")
    rungs = [rung for rung in example(file) if rung.kind is Kind.COMMAND or rung.text.startswith("basic.deliver")]
    return [*rungs[:-1], replace(rungs[-1], kind=Kind.MISSING)]


def _index_of(areas: list[tuple[str, list[Requirement]]]) -> str:
    rows = []
    for area, some in areas:
        first = ", ".join(f"[{each.id}]({each.id}.md)" for each in some[:3])
        rows.append(f"| [{area}]({area}.md) | {len(some)} | {first} … |")
    lessons = "".join(f"- [{title}](../{place})\n" for place, title in LESSONS.items())
    return "\n".join(
        ["# Learn the rules\n", "How the rules work together:\n", lessons, "All of them, each with a page of its own. "
         'The search above finds words in them, as does `amqpspec requirements --search "prefetch basic.get"`.\n',
         "| area | number | begins with |", "|---|---|---|", *rows]
    ) + "\n"  # fmt: skip


def _area(area: str, some: list[Requirement]) -> str:
    rows = [f"| [{each.id}]({each.id}.md) | {escaped(each.title)} | {escaped(each.statement)} |" for each in some]
    return "\n".join([f"# Requirements: {area}\n", "| | | the rule |", "|---|---|---|", *rows]) + "\n"


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
                without_signs(block),
                program_of_finding(file.commands, failure, signs, only_by_methods=ONLY_BY_FRAMES in block), signs,
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
        re.sub(r"\]\((?=[a-z-]+\.md)", "](../", head), "", "## The ten that hurt most", "",
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
