"""A violated property as a command file that `amqpspec replay` takes: its commands, and all else as comments."""

from __future__ import annotations

import re
from collections.abc import Iterator

from amqpspec.conformance.explore.exploration import Violation
from amqpspec.conformance.explore.position import Step
from amqpspec.conformance.explore.properties import sentence_of
from amqpspec.conformance.explore.world import World
from amqpspec.conformance.language.command import print_command


def command_file(world: World, violation: Violation) -> str:
    """What the broker chooses stands behind the commands that it answers."""
    lines = [
        f"@title {violation.name}: {sentence_of(violation.name)}",
        f"@dialects {world.dialect}",
        f"# world {world.name}: {world.title}",
        *_comment(violation.what),
        "# the setup",
        *map(print_command, world.setup),
        "# the way",
        *(line for step in violation.path for line in _lines(step, world.crossing)),
    ]
    for what, state in (("before", violation.before), ("after", violation.after)):
        if state:
            lines += [f"# the state {what} the last step", *_comment(state)]
    return "\n".join(lines) + "\n"


def _lines(step: Step, crossing: bool) -> Iterator[str]:
    if step.kind in ("input", "wait"):
        text, _, way = step.text.partition(" # ")
        overlaps = crossing and step.kind == "input" and _may_overlap(text)
        yield f"{text}{' &' if overlaps else ''}{f' # {way}' if way else ''}"
    else:
        yield f"#   {step.text}"


def _may_overlap(text: str) -> bool:
    """What a session does not wait for; faults and the operator's doings it does."""
    return not re.match(r"(broker|network|operator)\b", text) and " connection.open" not in text


def _comment(text: str) -> list[str]:
    return [f"# {line}".rstrip() for line in text.splitlines()]


def file_name(violation: Violation, number: int) -> str:
    return f"{violation.world} {violation.name} {number}.amqp".replace(" ", "-")
