"""Scenarios in the dialect that is the text have no means that are RabbitMQ's own."""

from __future__ import annotations

from amqpspec.conformance.language.command import Command
from amqpspec.conformance.scenarios.applicability import applicable
from amqpspec.conformance.scenarios.scenario_files import selected
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.registry import requirements
from amqpspec.targets.address import Address

TEXT = "amqp-0-9-1"


def binds(dialect: str, requirement: str) -> list[Command]:
    scenarios = selected([requirement], dialect)
    return [command for each in scenarios for command in each.commands if command.method == "queue.bind"]


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


def test_words_of_messages_have_letters_and_digits_as_in_the_text() -> None:
    assert {"a.b.c", "A.b.C", ".", "a..c", ""} <= published(TEXT) and not published(TEXT) & {"#", "a*.#c"}
    assert published("rabbitmq-4.3") >= {".", "a..c", "#", "a*.#c"}


def published(dialect: str) -> set[str]:
    scenarios = selected(["PUBLISH-005"], dialect)
    commands = (command for each in scenarios for command in each.commands if command.method == "basic.publish")
    return {command.arguments.get("routing_key", "") for command in commands}


def test_reserved_flags_and_what_only_rabbitmq_acts_by_are_left_out() -> None:
    scenarios = selected([], TEXT)
    declared = [each for made in scenarios for each in made.commands if each.method == "exchange.declare"]
    assert declared and not any(each.arguments.keys() & {"internal", "auto_delete"} for each in declared)
    users = {each.content.properties.get("user_id") for made in scenarios for each in made.commands if each.content}
    assert users == {None, "guest"}


#: Requirements of the text that no scenario can show in the means of the text, and why.
WITHOUT = {
    "CONN-023": "an operator closes the connection",
    "DURABLE-001": "the broker is started again",
    "DURABLE-005": "the broker is started again",
    "DURABLE-019": "the broker is started again",
    "SERVER-001": "each run asks for it",
    "CONSUME-008": "of queue types that the text does not have",
    "QUEUE-026": "of queue types that the text does not have",
}


def test_each_requirement_of_the_text_has_a_scenario_that_needs_no_extension() -> None:
    target = TargetUnderTest(
        Address("localhost", 1), TargetDescription("a broker", "a broker", "1", TEXT), 1.0, capabilities=frozenset()
    )
    shown = {scenario.requirement for scenario in applicable(selected((), TEXT), target)}
    demanded = {id for id, each in requirements().items() if each.note_in(TEXT) is not None}
    assert demanded - shown == set(WITHOUT)
