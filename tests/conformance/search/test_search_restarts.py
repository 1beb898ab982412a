"""The theme restarts: what is in its sequences, and who has it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from amqpspec.command_line import main
from amqpspec.conformance.language.command import Command
from amqpspec.conformance.language.faults import is_left_broken, of_broker
from amqpspec.conformance.run import Runner
from amqpspec.conformance.run_options import RunOptions
from amqpspec.conformance.search.machine import BREAKING, THEMES, themes_for
from amqpspec.conformance.search.round import make_round
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter, read_trace
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.targets.brokers.embedded_again import EmbeddedAgain
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker

DIALECT = dialect_named("rabbitmq-4.3")


@cache
def made() -> tuple[tuple[Command, ...], ...]:
    return tuple(each.commands for number in range(3) for each in make_round(DIALECT, 1, number, themes=(BREAKING,)))


def test_most_sequences_break_the_broker_and_leave_it_whole() -> None:
    names = [{each.method for each in of_broker(commands)} for commands in made()]
    for name in ("broker.stop", "broker.kill", "broker.pause"):
        assert sum(name in each for each in names) > len(names) / 10, name
    assert sum(bool(each) for each in names) > len(names) / 2
    assert not any(is_left_broken(commands) for commands in made())


def test_networks_of_connections_fail_and_are_healed() -> None:
    faults = [[each for each in commands if each.method.startswith("network.")] for commands in made()]
    for name in ("network.cut", "network.slow"):
        assert sum(any(each.method == name for each in own) for own in faults) > len(faults) / 20, name
    for own in faults:
        assert all(each.method == "network.heal" for each in own[1::2])
        concerned = [each.arguments["connection"] for each in own]
        assert concerned[::2] == concerned[1::2]


def test_messages_are_persistent() -> None:
    published = [each for commands in made() for each in commands if each.method == "basic.publish"]
    modes = [each.content.properties.get("delivery_mode") for each in published if each.content is not None]
    assert modes.count(2) > 0.95 * len(modes) > 0  # mistakes have contents of their own


def test_it_is_drawn_only_if_it_is_asked_for() -> None:
    assert THEMES[BREAKING] not in themes_for(DIALECT)


def test_each_sequence_has_a_broker_for_itself(tmp_path: Path) -> None:
    with EmbeddedBroker() as broker, TraceWriter(tmp_path / "trace.jsonl") as trace:
        description = TargetDescription("embedded", "amqpspec", "0", DIALECT.name)
        target = TargetUnderTest(broker.address, description, own_broker=EmbeddedAgain("embedded"))
        options = RunOptions(sequences=6, steps=12, seed=1, search_only=True, themes=(BREAKING,), shrinking_time=0)
        result = Runner(target, trace, options).run()
        assert broker.loop.orders.do(lambda: True)  # it was never stopped
    assert result.sequences == 6 and result.lost is None
    assert any(row["kind"] == "frame" and row["method"] == "broker.restart" for row in read_trace(trace.path))


def test_a_broker_that_others_use_is_not_searched_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with EmbeddedBroker() as broker:
        url = f"amqp://127.0.0.1:{broker.address.port}"
        assert main(["run", url, "--theme", BREAKING, "--no-profile", "--out", str(tmp_path)]) == 2
    assert f"--theme {BREAKING}: this target does not offer broker.kill" in capsys.readouterr().err
