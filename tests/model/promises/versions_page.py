"""Writes docs/versions.md from the dialects and the classes of their differences:
`python -m tests.model.promises.versions_page`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialects import DIALECTS
from amqpspec.model.promises.differences import Difference
from amqpspec.model.promises.differences_of_choices import ARGUMENTS, CHOICES
from amqpspec.model.promises.differences_of_requirements import REQUIREMENTS
from amqpspec.model.promises.queue_arguments import KnownArguments
from amqpspec.model.promises.registry import AS_STATED, Requirement, requirements
from amqpspec.model.promises.settings import SETTINGS

PAGE = Path(__file__).parents[3] / "docs" / "versions.md"
VERSIONS = ("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3")
TEXT = "amqp-0-9-1"

_INTRODUCTION = """\
# What differs between versions

Each difference between versions of RabbitMQ, and between RabbitMQ and the text of 0-9-1, with its class and its source.
Made from `model/promises` by `python -m tests.model.promises.versions_page`; tests hold the page to the data, and the
data complete. That a version was seen doing something makes it no promise, so a difference is one of these:

- **documented change**: a text says that it is otherwise there; the judge goes by the version.
- **known defect**: a text promises one, and the versions that do the other break it. A broker that keeps the promise is
  right, whatever its version.
- **allowed both ways**: no text promises either.

"Either in" names the dialects in which the judge takes one as well as the other.

Release notes were read up to those of 4.4.0. Those are about the coordinator of streams (retries, recovery of writers
and replicas) and osiris: none of what is listed here changes there.

Sources: "0-9-1" is the text of AMQP 0-9-1, "release notes of V" RabbitMQ's `release-notes/V.md`, "guide: NAME" a page
of its documentation (`docs/NAME.md`), with a version the page of that version; `module:function` its source."""


_SETTINGS = """\
## Settings

What an operator of RabbitMQ sets, and the broker does not tell (`model/promises/settings.py`); the column of a version
has what it does without that. A run without `--dialect` looks at what would change its verdicts, and the name of the
dialect says what is otherwise: `rabbitmq-4.3;global-qos=permitted`. `--dialect` takes that name, and a file has it so:

```toml
base = "rabbitmq-4.3"

[choices]
global-qos = "permitted"
```

`amqpspec profile TARGET` shows how a RabbitMQ is set, and `--toml FILE` writes such a file. Which metadata store 4.0 to
4.2 have is not looked at, as only a restart shows it; it can be stated. With `transient-nonexcl-queues=denied` all
queues of scenarios that are not exclusive are durable."""


def differing(kind: type[Any], records: Iterable[Any], besides: tuple[str, ...] = ()) -> list[str]:
    """The fields in which the records are not all equal."""
    all_of = list(records)
    names = [field.name for field in dataclasses.fields(kind) if field.name not in besides]
    return [name for name in names if any(getattr(each, name) != getattr(all_of[0], name) for each in all_of)]


def differing_choices() -> list[str]:
    return differing(Dialect, DIALECTS.values(), ("name", "title"))


def differing_arguments() -> list[str]:
    return differing(KnownArguments, (dialect.queue_arguments for dialect in DIALECTS.values()))


def differs_by_version(requirement: Requirement) -> bool:
    """Do the notes say something else of one version of RabbitMQ than is stated, or than of another?"""
    held = {requirement.dialects.get(version) for version in VERSIONS}
    return held not in ({AS_STATED}, {None})


def rests_on_observation(requirement: Requirement) -> bool:
    return "observed" in requirement.source


def to_be_classed() -> list[Requirement]:
    """The requirements that need a class: they differ by version, or were observed."""
    return [each for each in requirements().values() if differs_by_version(each) or rests_on_observation(each)]


def classes_of(id: str) -> list[tuple[str, Difference]]:
    """The differences that a requirement's notes come from, each with its subject."""
    named = [*CHOICES.items(), *((f"queue_arguments.{name}", each) for name, each in ARGUMENTS.items())]
    found = [(name, difference) for name, difference in named if id in difference.requirements]
    return [*found, (id, REQUIREMENTS[id])] if id in REQUIREMENTS else found


def page() -> str:
    parts = [
        _INTRODUCTION,
        "## Choices of the dialects",
        f"Fields of `Dialect` (`model/promises/choices.py`); the column {TEXT} is the bare text.",
        "\n".join(_table(CHOICES, differing_choices(), DIALECTS)),
        "## Arguments of queue.declare\n\nFields of `KnownArguments` (`model/promises/queue_arguments.py`).",
        "\n".join(_table(ARGUMENTS, differing_arguments(), {n: d.queue_arguments for n, d in DIALECTS.items()})),
        "## Requirements",
        "Requirements whose notes differ between versions, that a version lacks, or that were observed.",
        "\n".join(_requirements()),
        _SETTINGS,
        "\n".join(_settings()),
    ]
    return "\n\n".join(parts) + "\n"


def _table(records: Mapping[str, Difference], names: list[str], holders: Mapping[str, object]) -> Iterator[str]:
    columns = (TEXT, *VERSIONS)
    yield f"| choice | {' | '.join(columns)} | class | the judge goes by | source |"
    yield "|---" * (len(columns) + 4) + "|"
    for name in names:
        record = records[name]
        values = [getattr(holders[column], name) for column in columns]
        within = f" ({record.within})" if record.within else ""
        shown = map(_shown, _lists_shortened(values))
        yield _row(f"`{name}`{within}", *shown, record.kind, record.held_to, record.source)


def _requirements() -> Iterator[str]:
    yield f"| requirement | {' | '.join(VERSIONS)} | class | the judge goes by | source |"
    yield "|---" * (len(VERSIONS) + 4) + "|"
    for each in to_be_classed():
        notes = [each.dialects.get(version, "no such rule") for version in VERSIONS]
        found = classes_of(each.id)
        kinds = "; ".join(dict.fromkeys(str(difference.kind) for _, difference in found))
        held = "; ".join(dict.fromkeys(difference.held_to for _, difference in found))
        sources = "; ".join(difference.source if name == each.id else f"`{name}`" for name, difference in found)
        yield _row(f"{each.id} {each.title}", *notes, kinds, held, sources)


def _settings() -> Iterator[str]:
    yield f"| setting | what sets it | is about | values | {' | '.join(VERSIONS)} | requirements |"
    yield "|---" * (len(VERSIONS) + 5) + "|"
    for name, each in SETTINGS.items():
        values = "; ".join(f"`{value.name}`: {value.does}" for value in each.values)
        usual = [each.usual.get(base, "either") if base in each.brokers else "no such setting" for base in VERSIONS]
        yield _row(f"`{name}`", f"`{each.key}`", each.about, values, *usual, ", ".join(each.requirements))


def _lists_shortened(values: list[Any]) -> list[Any]:
    """Of long lists only what is not in all of them."""
    if not all(isinstance(value, tuple) for value in values) or max(map(len, values)) < 6:
        return values
    common = set(values[0]).intersection(*values)
    return [tuple(each for each in value if each not in common) for value in values]


def _shown(value: object) -> str:
    match value:
        case KnownArguments():
            return "see below"
        case Enum():
            return str(value.value)
        case bool():
            return "yes" if value else "no"
        case None:
            return "none"
        case tuple():
            return ", ".join(map(str, value)) or "none"
        case _:
            return str(value)


def _row(*cells: str) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
