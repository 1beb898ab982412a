"""The theme timeouts: what its sequences come to, for whom it is, and that they are carried out beside one another."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import count
from pathlib import Path

import pytest

from amqpspec.conformance.failures.shrink import _meant, _written
from amqpspec.conformance.language.command import Command
from amqpspec.conformance.run import Runner
from amqpspec.conformance.run_options import RunOptions
from amqpspec.conformance.search.machine import THEMES, themes_for
from amqpspec.conformance.search.round import make_round
from amqpspec.conformance.session.plan import Plan
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter
from amqpspec.conformance.verdicts.events import Event, SequenceFinished
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.dialects import DIALECTS, dialect_named
from amqpspec.model.protocol.methods import CLOCK_WAIT
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker

DIALECT = dialect_named("rabbitmq-4.3")
SEQUENCES = 45
#: Least shares of the sequences in which each of these makes a difference, with room to spare. Nine of ten sequences
#: keep out of the windows of known defects, which are many about timeouts.
SHARES = {
    "TIMEOUT-008": 0.4, "TIMEOUT-009": 0.05, "TIMEOUT-011": 0.03, "TIMEOUT-012": 0.4, "TIMEOUT-015": 0.04,
    "TIMEOUT-016": 0.02, "TIMEOUT-018": 0.02, "TIMEOUT-019": 0.15, "TIMEOUT-020": 0.15, "TIMEOUT-021": 0.25,
    "TIMEOUT-022": 0.25, "TIMEOUT-024": 0.3, "TIMEOUT-025": 0.15, "TIMEOUT-029": 0.03,
}  # fmt: skip


@cache
def made(seed: int) -> tuple[tuple[Command, ...], ...]:
    sequences: list[tuple[Command, ...]] = []
    for number in count():
        round_ = make_round(DIALECT, seed, number, themes=("timeouts",))
        assert all(each.waits for each in round_)
        sequences += [each.commands for each in round_]
        if len(sequences) >= SEQUENCES:
            break
    return tuple(sequences[:SEQUENCES])


def planned(commands: tuple[Command, ...]) -> Plan:
    plan = Plan(DIALECT)
    for command in commands:
        plan.carry_out(command)
    return plan


def test_what_is_about_timeouts_happens_often_enough() -> None:
    seen: Counter[str] = Counter()
    for commands in made(1):
        seen.update(planned(commands).broker.bookkeeping.exercised.keys())
    few = {id: seen[id] / SEQUENCES for id, least in SHARES.items() if seen[id] / SEQUENCES < least}
    assert not few


def test_sequences_wait_for_some_seconds_and_not_for_long() -> None:
    waited = [
        sum(each.arguments["milliseconds"] for each in commands if each.method == CLOCK_WAIT) for commands in made(1)
    ]
    assert max(waited) < 20_000
    assert sum(waited) / len(waited) > 3_000


def test_equal_seeds_make_equal_commands() -> None:
    once = made(2)
    made.cache_clear()
    assert made(2) == once
    assert made(3) != once


def test_late_tags_are_found_again_by_what_they_stood_for() -> None:
    for commands in made(1)[:20]:
        assert list(_written(_meant(commands, DIALECT), DIALECT)) == list(commands), "nothing changed"


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_only_brokers_whose_consumers_time_out_have_the_theme(dialect: str) -> None:
    has_it = THEMES["timeouts"] in themes_for(dialect_named(dialect), ("timeouts",))
    assert has_it is (dialect == "rabbitmq-4.3")


def test_its_sequences_wait_so_it_is_drawn_only_if_it_is_asked_for() -> None:
    assert THEMES["timeouts"] not in themes_for(DIALECT)


def test_they_are_carried_out_beside_one_another_and_taken_in_order(tmp_path: Path) -> None:
    told: list[Event] = []
    with EmbeddedBroker() as broker, TraceWriter(tmp_path / "trace.jsonl") as trace:
        target = TargetUnderTest(broker.address, TargetDescription("embedded", "amqpspec", "0", DIALECT.name))
        options = RunOptions(sequences=3, steps=4, seed=1, search_only=True, themes=("timeouts",))
        result = Runner(target, trace, options, [told.append]).run()
    assert result.sequences == 3
    assert [each.judgement.sequence for each in told if isinstance(each, SequenceFinished)] == [
        "search 1", "search 2", "search 3",
    ]  # fmt: skip
