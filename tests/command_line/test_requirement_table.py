"""What `amqpspec requirements` prints."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from amqpspec.command_line.requirement_table import (
    print_requirements,
    render_details,
    render_markdown,
    render_table,
    to_json,
)
from amqpspec.model.defects.known_defects import KNOWN_DEFECTS, defects_from
from amqpspec.model.promises.registry import UnknownRequirement, requirement, requirements, select
from amqpspec.model.promises.strength import Strength


def printed(terminal: bool = False, width: int = 100, **options: object) -> str:
    output = io.StringIO()
    console = Console(file=output, force_terminal=terminal, width=width, color_system=None)
    print_requirements(console, **options)  # type: ignore[arg-type]
    return output.getvalue()


def test_plain_output_has_one_line_each() -> None:
    lines = printed(width=40).splitlines()
    assert len(lines) == len(requirements())
    assert [line.split()[0] for line in lines] == list(requirements())
    assert all(len(line.split(maxsplit=2)) == 3 for line in lines)


def test_terminal_output_keeps_titles_whole() -> None:
    text = printed(terminal=True, width=200, only=["TIMEOUT"])
    for each in select(["TIMEOUT"]):
        assert each.id in text
        assert each.title in text
    assert "QOS-001" not in text


def test_titles_are_not_taken_as_markup() -> None:
    # rich would swallow [bold] if it were given plain strings
    odd = replace(requirement("ACK-001"), title="a [bold] title")
    output = io.StringIO()
    Console(file=output, width=100).print(render_table([odd]), render_details(odd))
    assert output.getvalue().count("a [bold] title") == 2


def test_show_prints_all_fields() -> None:
    text = " ".join(printed(width=300, show="qos-012").split())
    chosen = requirement("QOS-012")
    for value in (chosen.id, chosen.title, chosen.statement, chosen.source, chosen.observable):
        assert value in text
    for dialect, value in chosen.dialects.items():
        assert f"{dialect} {value}" in text


def test_json_has_every_field() -> None:
    loaded = json.loads(printed(width=20, only=["ACK"], as_json=True))
    assert loaded == to_json(select(["ACK"]))
    assert set(loaded[0]) == {
        "id", "area", "title", "statement", "level", "source", "queue_types", "observable", "determinism",
        "verified", "dialects", "known_defects", "strength", "why", "scenarios", "related",
    }  # fmt: skip
    assert loaded[0]["id"] == "ACK-001"
    assert loaded[0]["dialects"]["rabbitmq-4.3"] == "as stated"


def test_what_is_known_of_brokers_stands_beside_the_promise() -> None:
    text = " ".join(printed(width=300, show="CONSUME-005").split())
    assert "as known in RabbitMQ 4.0.5 The channel looks for the consumer when consume-ok comes back" in text
    assert "as known in RabbitMQ 4.3.6 A consume-ok that comes back from the queue" in text
    assert "known defect consume-ok-dropped promised; rabbit_channel:handle_cast" in text
    unbroken = next(id for id in requirements() if not defects_from(id))
    assert "as known" not in printed(width=300, show=unbroken)
    (loaded,) = json.loads(printed(show="QUEUE-026", as_json=True))
    defects = {each["name"]: each["dialects"] for each in loaded["known_defects"]}
    assert "rabbitmq-4.3" in defects["quorum-consumer-count"]
    assert "- As known in RabbitMQ 4.3.6: A consume-ok" in render_markdown([requirement("CONSUME-005")])


def test_the_strength_of_a_requirement_and_of_a_known_defect_is_told() -> None:
    known = KNOWN_DEFECTS["get-overtakes-deliveries"]
    assert known.strength is Strength.ARGUABLE
    of_both = requirement(known.requirement)
    assert of_both.strength is Strength.PROMISED
    text = " ".join(printed(width=300, show=of_both.id).split())
    assert "strength promised" in text and f"known defect {known.name} arguable; {known.source.split()[0]}" in text
    (loaded,) = json.loads(printed(show=of_both.id, as_json=True))
    assert loaded["strength"] == "promised"
    assert {each["name"]: each["strength"] for each in loaded["known_defects"]}[known.name] == "arguable"
    document = render_markdown([of_both])
    assert "- Strength: promised" in document and f"({known.name}, arguable)" in document


def test_json_of_one() -> None:
    assert [each["id"] for each in json.loads(printed(show="ACK-007", as_json=True))] == ["ACK-007"]


def test_unknown_names_reach_the_caller() -> None:
    with pytest.raises(UnknownRequirement):
        printed(show="ACK-999")
    with pytest.raises(UnknownRequirement, match="ACK is an area: amqpspec requirements --only ACK"):
        printed(show="ack")
    with pytest.raises(UnknownRequirement):
        printed(only=["NOPE"])


def test_markdown_has_a_chapter_per_area_and_escapes() -> None:
    text = render_markdown(requirements().values())
    assert text.count("\n## ") == len({each.area for each in requirements().values()})
    assert text.count("\n### ") == len(requirements())
    assert "### QOS-008 Global qos \\<=4.2" in text
    assert "consumer\\_cancel\\_notify" in text
