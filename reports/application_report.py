"""Which changes a recorded application meets (`conformance.upgrade.meeting`): on a terminal, in Markdown, as one HTML
page, in JSON. What no longer works comes first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from amqpspec.conformance.upgrade.application import Effect, Sight
from amqpspec.conformance.upgrade.meeting import Meeting, Met, Reason
from amqpspec.model.promises.verdict import Verdict
from amqpspec.reports.html import page_environment
from amqpspec.reports.markdown import block, prose
from amqpspec.reports.overview import SIGNS
from amqpspec.reports.text import plural
from amqpspec.reports.upgrade_report import change_object

_STYLES = {Verdict.PASS: "bold green", Verdict.FAIL: "bold red"}
_SIGNS = {Effect.WORDS: "·", Effect.UNKNOWN: SIGNS[Verdict.INCONCLUSIVE]}
_ACCEPTED = "≈"
#: What no recording of a client shows, in sentences.
_NEVER_SHOWN = (
    "what the application does at other times, and what another client does with its queues",
    "policies and the default queue type of its virtual host, which give arguments to queues that it does not name",
    "permissions, plugins, and other settings of the broker",
    "known defects of the new version: `amqpspec diff` of two brokers shows these",
)


def counts(meeting: Meeting) -> bool:
    """Does it have to be looked at before the upgrade?"""
    return meeting.known is None and meeting.effect is not Effect.WORDS


def overall(met: Met) -> Verdict:
    return Verdict.FAIL if any(map(counts, met.met)) else Verdict.PASS


def title(met: Met) -> str:
    """From what to what."""
    brokers = sorted({f"{product} {version}".strip() for product, version, _ in met.application.brokers} - {""})
    return f"From {', '.join(brokers) or met.one.title} to {met.other.title}"


def headline(met: Met) -> str:
    if met.one == met.other:
        return f"No change from {met.one.title} to {met.other.title}"
    if not met.met:
        return "This application meets no change that its recording shows"
    effects = [each.effect for each in met.met]
    said = ", ".join(f"{effects.count(effect)} {_SHORT[effect]}" for effect in Effect if effect in effects)
    many = sum(each.known is not None for each in met.met)
    more = f"; {'all' if many == len(met.met) else many} accepted" if many else ""
    return f"This application meets {plural(len(met.met), 'change')}: {said}{more}"


_SHORT = {
    Effect.GONE: "by which something no longer works",
    Effect.OTHERWISE: "by which something works otherwise",
    Effect.PERHAPS: "by which something may work otherwise",
    Effect.WORDS: "of a text only",
}


def extent(met: Met) -> str:
    application = met.application
    read = f"{plural(application.sequences, 'connection')}, {plural(application.frames, 'frame')} read"
    return f"{read}; {plural(len(met.not_met), 'change')} not met, {len(met.unknown)} cannot be known"


def by_effect(met: Met) -> list[tuple[Effect, list[Meeting]]]:
    groups = ((effect, [each for each in met.met if each.effect is effect]) for effect in Effect)
    return [(effect, group) for effect, group in groups if group]


def sign(meeting: Meeting) -> str:
    if meeting.known is not None:
        return _ACCEPTED
    return _SIGNS.get(meeting.effect, SIGNS[Verdict.FAIL])


def often(reason: Reason) -> str:
    """How often, and with which queues."""
    queues = f", {'queue' if len(reason.queues) == 1 else 'queues such as'} {', '.join(reason.queues)}"
    return plural(reason.seen.times, "time") + (queues if reason.queues else "")


def place(sight: Sight) -> str:
    return f"{sight.sequence} at {sight.time:.3f} s: {sight.text}"


def lead(reason: Reason, meeting: Meeting) -> str:
    """What is said of a reason: with its effect where that is not the one of the heading."""
    return reason.why if reason.effect is meeting.effect else f"{reason.effect}: {reason.why}"


def terminal_lines(met: Met) -> Iterator[tuple[str, str]]:
    """Lines with their style."""
    yield title(met), "bold"
    for effect, group in by_effect(met):
        yield effect.capitalize(), "bold"
        for each in group:
            accepted = "" if each.known is None else f"; accepted: {each.known}"
            style = "red" if counts(each) else ""
            yield f"  {sign(each)} {each.change.title}  ({each.change.name}; {each.change.kind}{accepted})", style
            yield f"      was  {each.change.was}", ""
            yield f"      now  {each.change.becomes}", ""
            for reason in each.reasons:
                yield f"      {lead(reason, each)} ({often(reason)})", ""
                for sight in reason.seen.sights[:1]:
                    yield f"          {place(sight)}", "dim"
            for link in each.change.links:
                yield f"      see  {link.title}: {link.address}", "dim"
    if met.unknown:
        yield f"{Effect.UNKNOWN.capitalize()}", "bold"
        for each in met.unknown:
            for reason in each.reasons:
                yield f"  {_SIGNS[Effect.UNKNOWN]} {each.change.title}: {reason.why}{_queues(reason)}", ""
    if met.not_met:
        yield f"Not met: {', '.join(each.name for each in met.not_met)}.", "dim"
    yield f"{extent(met)}.", "dim"
    yield f"{SIGNS[overall(met)]} {headline(met)}", _STYLES[overall(met)]


def _queues(reason: Reason) -> str:
    return f" ({', '.join(reason.queues)})" if reason.queues else ""


def application_markdown(met: Met) -> str:
    lines = [f"# {prose(headline(met))}", "", f"{prose(title(met))}. {prose(extent(met))}.", ""]
    if met.met:
        lines += ["| change | what it does here | times |", "|---|---|--:|"]
        for each in met.met:
            accepted = "" if each.known is None else f", accepted: {prose(each.known)}"
            named = f"[{prose(each.change.title)}](#{each.change.name})"
            lines.append(f"| {named} | {each.effect}{accepted} | {each.times:,} |")
    for effect, group in by_effect(met):
        lines += ["", f"## {effect.capitalize()}"]
        for each in group:
            change = each.change
            links = ", ".join(f"[{prose(link.title)}]({link.address})" for link in change.links)
            lines += ["", f'### <a id="{change.name}"></a>{prose(change.title)}', ""]
            lines += [f"Was: {prose(change.was)}", "", f"Now: {prose(change.becomes)}", ""]
            lines += [f"_{change.kind}; {change.name}_{f' ({links})' if links else ''}", ""]
            lines += [f"- {prose(lead(reason, each))} ({prose(often(reason))})" for reason in each.reasons]
            seen = [place(sight) for reason in each.reasons for sight in reason.seen.sights]
            lines += block("Frames", seen)
    lines += ["", f"## {Effect.UNKNOWN.capitalize()}", ""]
    for each in met.unknown:
        lines += [f"- {prose(each.change.title)}: {prose(reason.why + _queues(reason))}" for reason in each.reasons]
    lines += [f"- {each}" for each in _NEVER_SHOWN]
    if met.not_met:
        lines += ["", "## Changes that it does not meet", ""]
        lines += [f"- {prose(each.title)}. {prose(each.was)} Now: {prose(each.becomes)}" for each in met.not_met]
    return "\n".join(lines) + "\n"


def application_html(met: Met, tool: str) -> str:
    return (
        page_environment()
        .get_template("application.html")
        .render(
            tool=tool, title=title(met), headline=headline(met), overall=overall(met), sign=SIGNS[overall(met)],
            extent=extent(met), met=met, groups=by_effect(met), often=often, place=place, lead=lead, mark=sign,
            queues=_queues, never=_NEVER_SHOWN, unknown=Effect.UNKNOWN,
        )
    )  # fmt: skip


def application_json(met: Met, tool: str, code: int) -> str:
    """The same as one object. `times` counts frames, of which `frames` has the first."""

    def meeting(each: Meeting) -> dict[str, Any]:
        return {
            **change_object(each.change),
            "effect": str(each.effect),
            "known": each.known,
            "reasons": [
                {
                    "effect": str(reason.effect),
                    "why": reason.why,
                    "queues": reason.queues,
                    "times": reason.seen.times,
                    "frames": [sight._asdict() for sight in reason.seen.sights],
                }
                for reason in each.reasons
            ],
        }

    said = {
        "tool": tool,
        "title": title(met),
        "headline": headline(met),
        "exit_code": code,
        "from": met.one.name,
        "to": met.other.name,
        "sequences": met.application.sequences,
        "frames": met.application.frames,
        "met": [meeting(each) for each in met.met],
        "unknown": [meeting(each) for each in met.unknown],
        "never_shown": list(_NEVER_SHOWN),
        "not_met": [change_object(each) for each in met.not_met],
    }
    return json.dumps(said, indent=2, ensure_ascii=False) + "\n"
