"""The page of a requirement, for somebody who learns the rule: Markdown, with a ladder of frames in HTML.

What it says is in the registry, the scenarios, the known defects and the deviation files; nothing is written twice.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from types import MappingProxyType

from amqpspec.conformance.deviations import builtin_file, builtin_names
from amqpspec.conformance.explore.example import example
from amqpspec.conformance.verdicts.rung import Kind, Rung
from amqpspec.model.defects.known_defects import defects_from
from amqpspec.model.promises.registry import AS_STATED, DIALECT_NAMES, Requirement, requirements
from amqpspec.reports.requirement_relations import related, scenarios_of
from amqpspec.reports.sources import source_parts
from amqpspec.reports.text import visible
from amqpspec.reports.wire_words import in_wire_words

LEVELS: Mapping[str, str] = MappingProxyType(
    {
        "0-9-1": "The text of AMQP 0-9-1 says so",
        "extension": "It is part of an extension of RabbitMQ",
        "de-facto": "No text says so: it is what brokers of this family do, and clients rely on it",
    }
)
_BROKERS: Mapping[str, str] = MappingProxyType(
    {
        "rabbitmq-3": "RabbitMQ 3.10 to 3.13",
        "rabbitmq-4.0": "RabbitMQ 4.0 to 4.2",
        "rabbitmq-4.3": "RabbitMQ 4.3",
        "amqp-0-9-1": "a broker that keeps to the text alone",
    }
)


def requirement_page(each: Requirement, findings: Sequence[tuple[str, str]] = ()) -> str:
    """Markdown for `requirements/ID.md`. `findings`: title and address of what was found in brokers about it."""
    source = "".join(f"[{part.text}]({part.url})" if part.url else part.text for part in source_parts(each.source))
    parts = [f"# {each.id} {text(each.title)}", text(each.statement), f"*{LEVELS[each.level]}.* Source: {source}"]
    if each.why:
        parts += ["## Why it is so", text(each.why)]
    parts += ["## How it shows", f"{text(in_wire_words(each.observable))}.", *_scenarios(each)]
    parts += ["## What each version does", _versions(each), "## What brokers are known to do", *_known(each, findings)]
    others = [f"- [{id}]({id}.md) {text(requirements()[id].title)}" for id in related(each.id)]
    parts += ["## Related", "\n".join(others)] if others else []
    parts += [f"[All of the area {each.area}]({each.area}.md)"]
    return "\n\n".join(parts) + "\n"


def _scenarios(each: Requirement) -> list[str]:
    mine = scenarios_of().get(each.id, ())
    if not mine:
        return ["No scenario is about it alone."]
    ladders = ((scenario, example(scenario)) for scenario in sorted(mine, key=lambda one: len(one.commands)))
    shown, rungs = next(((scenario, rungs) for scenario, rungs in ladders if rungs), (mine[0], ()))
    parts = [f"The scenario `{shown.name}`: {text(shown.title)}"]
    if rungs:
        parts.append(ladder(rungs))
        parts.append("*Commands, and the frames of a broker that does all that it owes, as the model has them.*")
    else:
        commands = "\n".join(map(str, shown.commands))
        parts.append(f"```\n{commands}\n```")
        parts.append("*It needs a cluster, a network or a client of its own kind: only its commands are shown.*")
    parts.append(f"```sh\namqpspec run embedded --only {each.id} --sequences 0     # or any other target\n```")
    rest = [f"- `{scenario.name}`: {text(scenario.title)}" for scenario in mine if scenario is not shown]
    return parts + (["Further scenarios:", "\n".join(rest)] if rest else [])


def ladder(rungs: Sequence[Rung], most: int = 60) -> str:
    """The rungs as HTML, of which the first `most` are shown."""
    lines = []
    for rung in rungs[:most]:
        arrow = "" if rung.kind is Kind.COMMAND else "→ " if rung.kind is Kind.SENT else "← "
        mark = "<b>✗ did not come</b> " if rung.kind is Kind.MISSING else ""
        place = f"{rung.place} {arrow}" if arrow else ""
        lines.append(f'<li class="{rung.kind}"><code>{mark}{escape(visible(place + rung.text))}</code></li>')
    more = len(rungs) - most
    lines += [f"<li>{more} more</li>"] if more > 0 else []
    return '<div class="ladder"><ol>' + "".join(lines) + "</ol></div>"


def _versions(each: Requirement) -> str:
    rows = ["| broker | what holds |", "|---|---|"]
    for name in DIALECT_NAMES:
        note = each.dialects.get(name)
        said = "as stated" if note == AS_STATED else text(note) if note else "the rule does not apply"
        rows.append(f"| {_BROKERS[name]} | {said} |")
    if each.features:
        said = "as stated" if each.neutral == AS_STATED else text(each.neutral)
        rows.append(f"| any other with {', '.join(each.features)} | {said} |")
    verified = "" if each.verified == "no" else f"\n\nSeen on: {text(each.verified)}."
    return "\n".join(rows) + (verified or "\n\nIt was read in the source, and not seen.")


def _known(each: Requirement, findings: Sequence[tuple[str, str]]) -> list[str]:
    lines = [
        f"- **{', '.join(defect.brokers)}**: {text(defect.statement)} (known defect `{defect.name}`, {defect.strength})"
        for defect in defects_from(each.id)
    ]
    lines += [f"- **{broker}**: {text(reason)}" for broker, reason in _deviations().get(each.id, ())]
    lines += [f"- Finding: [{text(title)}]({address})" for title, address in findings]
    return ["\n".join(lines) if lines else "No broker that was tried is known to break it."]


@cache
def _deviations() -> Mapping[str, tuple[tuple[str, str], ...]]:
    """By identifier: the brokers beside RabbitMQ whose files name it, and the reasons."""
    found: dict[str, dict[tuple[str, str], None]] = {}
    for name in builtin_names():
        file = builtin_file(name)
        if name.startswith("rabbitmq") or file is None:
            continue
        for entry in tomllib.loads(file.read_text(encoding="utf-8"))["deviation"]:
            id = entry.get("identity", "").partition("|")[0]
            found.setdefault(id, {})[name, entry["reason"]] = None
    return {id: tuple(reasons) for id, reasons in found.items()}


def text(said: str) -> str:
    """With the characters escaped that Markdown would take as markup."""
    return "".join(f"\\{character}" if character in r"\`*_[]<>#|" else character for character in said)
