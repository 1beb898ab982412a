"""Faults among commands: what breaks the broker for all, what single connections, and what is left broken."""

from __future__ import annotations

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.language.faults import as_done, breaks_broker, broken_connections, is_left_broken


@pytest.mark.parametrize(
    ("lines", "breaks"),
    [
        (["a.1 basic.get q"], False),
        (["broker clock.wait 10"], False),
        (["broker.pause"], True),
        (["network.cut node=2"], True),
        (["network.cut connection=a"], False),
    ],
)
def test_what_everybody_meets_breaks_the_broker(lines: list[str], breaks: bool) -> None:
    assert breaks_broker(map(parse_command, lines)) is breaks


def test_a_network_fails_for_connections() -> None:
    lines = ["network.cut connection=a", "network.slow connection=b milliseconds=5", "network.cut node=3"]
    assert broken_connections(map(parse_command, lines)) == {"a", "b"}


@pytest.mark.parametrize(
    ("lines", "is_broken"),
    [
        ([], False),
        (["broker.kill"], True),
        (["broker.kill", "broker.restart"], False),
        (["broker.pause"], True),
        (["broker.pause", "broker.resume"], False),
        (["broker.stop node=2", "broker.restart node=3"], True),
        (["broker.stop node=2", "broker.restart node=2"], False),
        (["broker.stop node=2", "broker.restart"], False),
    ],
)
def test_a_broker_is_left_broken_until_it_is_back(lines: list[str], is_broken: bool) -> None:
    assert is_left_broken(map(parse_command, lines)) is is_broken


def test_what_is_started_again_was_stopped_before() -> None:
    lines = ["broker.restart", "broker.kill", "a.1 basic.get q", "broker.restart"]
    done = [str(each) for each in as_done(map(parse_command, lines))]
    assert done == ["broker.stop", "broker.restart", "broker.kill", "broker.restart"]
