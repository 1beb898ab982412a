"""A profile for people, and as JSON."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console
from rich.text import Text

from amqpspec.conformance.profile.profile import Profile, SeenChoice, SeenExtension
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.features import FEATURES, TOLD
from amqpspec.reports.compatibility import (
    COMPATIBILITY_HEADING,
    compatibility_as_json,
    compatibility_line,
    otherwise,
)
from amqpspec.reports.readable_table import ReadableTable, text_column
from amqpspec.reports.text import plural, visible


def print_profile(console: Console, profile: Profile, target: TargetDescription) -> None:
    table = ReadableTable(*map(text_column, ("choice", "the text allows", "this broker", "as")))
    for each in profile.choices:
        table.add_row(
            Text(each.choice.about),
            Text("\n".join(value.does for value in each.choice.right)),
            Text(visible(_seen(each)), style="" if each.is_right else "red"),
            Text(", ".join(each.value.like) if each.value is not None else ""),
        )
    console.print(f"{target.product} {target.version}", style="bold")
    console.print(table)
    if profile.settings:
        settings = ReadableTable(*map(text_column, ("setting", "is about", "this broker")))
        for each in profile.settings:
            settings.add_row(Text(each.choice.name), Text(each.choice.about), Text(visible(_seen(each))))
        console.print(settings)
    for extension in profile.extensions:
        line = Text(visible(f"{extension.capability}: {_extension(extension)}"))
        console.print(line, style="red" if extension.announced and not extension.works else "")
    if profile.ways:
        console.print(COMPATIBILITY_HEADING, style="bold")
        ways = ReadableTable(*map(text_column, ("what", "RabbitMQ", "this broker")))
        for way in otherwise(profile.compatibility):
            ways.add_row(*(Text(visible(each)) for each in (way.about, way.rabbitmq, way.observed)))
        console.print(ways)
        console.print(f"{compatibility_line(profile.compatibility)}.")
    console.print(summary(profile))


def summary(profile: Profile) -> str:
    open_ones = [each for each in profile.choices if each.choice.is_open]
    wrong = sum(not each.is_right for each in profile.choices)
    against = f", {plural(wrong, 'behaviour')} that it does not allow" if wrong else ""
    return f"{len(profile.settled)} of {len(open_ones)} choices that the text leaves open were seen{against}"


def _seen(seen: SeenChoice) -> str:
    """What the broker does, in words."""
    value = seen.value
    if value is not None:
        return value.does if value.right else f"{value.does}, against the text"
    if seen.values:
        return f"cannot be seen ({' or '.join(each.name for each in seen.values)})"
    return f"a behaviour that is not allowed: {seen.observed}"


def _extension(seen: SeenExtension) -> str:
    if seen.works and seen.announced:
        return "announced, and works"
    if seen.works:
        return "works" if seen.capability in FEATURES or seen.capability in TOLD else "not announced, and works"
    if seen.announced:
        return f"announced, and does not work: {seen.observed}"
    return f"{seen.working}: {seen.observed}"


def profile_as_json(profile: Profile, target: TargetDescription) -> str:
    whole: dict[str, Any] = {
        "target": {"product": target.product, "version": target.version},
        "dialect": profile.dialect.name,
        "choices": [
            {
                "name": each.choice.name,
                "about": each.choice.about,
                "sentence": each.choice.sentence,
                "allowed": [value.name for value in each.choice.right],
                "value": each.value.name if each.value is not None else None,
                "does": _seen(each),
                "right": each.is_right,
                "as": list(each.value.like) if each.value is not None else [],
            }
            for each in profile.choices
        ],
        "extensions": [
            {
                "name": each.capability,
                "announced": each.announced,
                "works": each.works,
                "working": each.working,
                "observed": each.observed,
            }
            for each in profile.extensions
        ],
        "compatibility": compatibility_as_json(profile.compatibility),
        "settings": [
            {
                "name": each.choice.name,
                "about": each.choice.about,
                "value": each.value.name if each.value is not None else None,
                "does": _seen(each),
            }
            for each in profile.settings
        ],
    }
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
