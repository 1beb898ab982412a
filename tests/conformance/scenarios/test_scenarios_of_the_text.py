"""Scenarios in the dialect that is the text have no means that are RabbitMQ's own."""

from __future__ import annotations

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.scenarios.scenario_files import selected

TEXT = "amqp-0-9-1"


def binds(dialect: str, requirement: str) -> list[Command]:
    (scenario,) = selected([requirement], dialect)
    return [command for command in scenario.commands if command.method == "queue.bind"]


def matches(dialect: str) -> set[str]:
    return {command.arguments["arguments"].get("x-match", "") for command in binds(dialect, "PUBLISH-006")}


def test_headers_match_as_in_the_text() -> None:
    """Section 3.1.3.4 has two values of x-match."""
    assert matches(TEXT) == {"", "all", "any"}
    assert matches("rabbitmq-4.3") == {"", "all", "any", "all-with-x", "any-with-x"}


def test_wildcards_are_words_of_their_own_as_in_the_text() -> None:
    """Section 3.1.3.3: words are of letters and digits."""
    keys = {command.arguments["routing_key"] for command in binds(TEXT, "PUBLISH-005")}
    assert "#.b.#" in keys and "a*.#c" not in keys
    assert "a*.#c" in {command.arguments["routing_key"] for command in binds("rabbitmq-4.3", "PUBLISH-005")}
