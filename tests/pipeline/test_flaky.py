"""The table `flaky`: sequences are the same where what was planned is, whatever ended them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from amqpspec import EmbeddedBroker
from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.conformance.session.command_sequence import CommandSequence, Place
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter, read_trace
from amqpspec.conformance.traces.trace_row import row_line
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.dialects import DEFAULT_DIALECT
from amqpspec.pipeline import tables
from amqpspec.pipeline.bulk_judging import judge_store
from amqpspec.pipeline.store.adding import add_trace
from amqpspec.pipeline.store.store import Store, create_store
from amqpspec.pipeline.views import read_judgements

LINES = """\
a.1 queue.declare q1
a.1 basic.publish routing-key=q1 body=m1
a.1 basic.get q1
a.1 queue.purge q1
a.1 queue.declare q2
"""


def carried_out(store: Store, path: Path, fault: str | None, name: str, lines: str = LINES) -> None:
    """The sequence on one broker, of which nobody sees whether it is the right one."""
    described = TargetDescription("embedded", "amqpspec", "1", DEFAULT_DIALECT.name)
    commands = tuple(map(parse_command, lines.splitlines()))
    with EmbeddedBroker(fault=fault) as broker, TraceWriter(path) as trace:
        place = Place(TargetUnderTest(broker.address, described, deadline=0.3), trace)
        place.carry_out(CommandSequence(name, commands))
    add_trace(store, path, day="2026-11-01", run=name)


def flaky(spark: Any, store: Store) -> list[tuple[Any, ...]]:
    judge_store(store)
    found = tables.flaky(read_judgements(spark, store)).select("identity", "failed", "tried", "run").collect()
    return [tuple(row) for row in found]


ENDS = "get-empty-with-messages"


def test_a_failure_that_ends_its_sequence(spark: Any, tmp_path: Path) -> None:
    store = create_store(tmp_path / "store")
    for number, fault in enumerate([None, ENDS, None]):
        carried_out(store, tmp_path / f"{number}.jsonl", fault, f"r {number}")
    ((identity, *counts),) = flaky(spark, store)
    assert counts == [1, 3, "r 1"]
    rows = {row["run"]: row for row in read_judgements(spark, store).collect()}
    assert rows["r 1"]["ended_by"] == identity, "what is behind the failure was not carried out"
    carried = [sum(row["kind"] == "command" for row in read_trace(tmp_path / f"{n}.jsonl")) for n in range(2)]
    assert carried == [5, 3]


def test_one_that_something_else_ended_was_no_try(spark: Any, tmp_path: Path) -> None:
    store = create_store(tmp_path / "store")
    for number, fault in enumerate([ENDS, "get-unknown"]):
        carried_out(store, tmp_path / f"{number}.jsonl", fault, f"r {number}")
    assert flaky(spark, store) == []
    ended = [row["ended_by"] for row in read_judgements(spark, store).collect()]
    assert len(set(ended)) == 2 and None not in ended


def test_other_plans_are_other_sequences(spark: Any, tmp_path: Path) -> None:
    store = create_store(tmp_path / "store")
    carried_out(store, tmp_path / "one.jsonl", ENDS, "one")
    carried_out(store, tmp_path / "other.jsonl", None, "other", LINES + "a.1 queue.declare q3\n")
    assert flaky(spark, store) == []


@pytest.mark.parametrize("fault", [None, ENDS])
def test_traces_of_earlier_versions_have_what_was_carried_out(spark: Any, tmp_path: Path, fault: str | None) -> None:
    store = create_store(tmp_path / "store")
    for number in range(2):
        file = tmp_path / f"{number}.jsonl"
        carried_out(create_store(tmp_path / f"unused {number}"), file, fault, f"r {number}")
        rows = list(read_trace(file))
        for row in rows:
            row.pop("planned", None)
        file.write_bytes(b"".join(map(row_line, rows)))
        add_trace(store, file, day="2026-11-01", run=f"r {number}")
    judge_store(store)
    (one, other) = {row["run"]: row["commands"] for row in read_judgements(spark, store).collect()}.values()
    assert one == other != ""
