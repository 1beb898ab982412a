"""The compliance table: what it counts, and that Spark and one process make the same one."""

from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from amqpspec.conformance.traces.trace import TraceError, TraceWriter, jsonl_to_parquet
from amqpspec.conformance.traces.trace_parquet import ADDED_LATER
from amqpspec.conformance.verdicts.judge import judge as judge_of_the_suite
from amqpspec.conformance.verdicts.run_tally import RunTally
from amqpspec.conformance.verdicts.tally import Tally
from amqpspec.model.broker.measurement import Measurement
from amqpspec.model.promises.registry import requirements
from amqpspec.model.protocol.methods import Content, Method
from amqpspec.pipeline.spark_check import check_with_spark
from amqpspec.pipeline.spark_session import PipelineError, require_java
from amqpspec.pipeline.table import (
    ComplianceTable,
    TableDefect,
    TableRow,
    check_in_process,
    compliance_table,
    judge_traces,
    table_view,
)
from amqpspec.pipeline.table_file import TABLE_SCHEMA, write_table
from amqpspec.reports.accuracy import Accuracy
from tests.pipeline.stand_in import DEFECT, judge, write_trace

GOOD = [(1, b"m1"), (2, b"m2")]
BAD = [(1, b"m1"), (3, b"m2")]
UNDECIDED = [(1, b"lost")]


@pytest.fixture
def traces(tmp_path: Path) -> list[Path]:
    """Two targets; JSON Lines, a directory, Parquet as earlier versions wrote it; interleaved, stopped and equally
    named sequences.
    """
    chance = random.Random(5)
    many = {
        f"search {n}": [(tag, b"x" * chance.randrange(90)) for tag in range(1, chance.randrange(2, 40))]
        for n in range(200)
    }
    first = write_trace(
        tmp_path / "one" / "trace.jsonl",
        "broker 1",
        {"scenario A": GOOD, "search 1": BAD, "search 2": BAD, "search 3": UNDECIDED, "stopped": GOOD},
    )
    second = write_trace(
        tmp_path / "two.jsonl", "broker 2", {"search 1": GOOD, "scenario B": [], "scenario C": UNDECIDED}
    )
    third = write_trace(tmp_path / "three.jsonl", "broker 2", many)
    jsonl_to_parquet(third, tmp_path / "new.parquet")
    earlier = pq.read_table(tmp_path / "new.parquet").drop_columns(sorted(ADDED_LATER))
    pq.write_table(earlier, tmp_path / "three.parquet")
    return [first.parent, second, tmp_path / "three.parquet"]


@pytest.fixture
def defective(tmp_path: Path) -> Path:
    """Two sequences that show a known defect, and one that would have."""
    shown: list[tuple[int, bytes]] = [(1, b"gone wrong")]
    return write_trace(
        tmp_path / "gone wrong.jsonl", "broker", {"scenario 1": shown, "search 1": shown, "search 2": [(1, b"kept")]}
    )


def test_the_table_counts_sequences_by_requirement_target_and_verdict(traces: list[Path]) -> None:
    table = check_in_process(traces[:2], judge)
    dialect = "rabbitmq-4.3"
    assert table.rows == (
        TableRow("", "broker 1", dialect, "inconclusive", "inconclusive", 1, 0, "lost in search 3"),
        TableRow("ACK-009", "broker 1", dialect, "fail", "fail", 2, 4),
        TableRow("ACK-009", "broker 1", dialect, "pass", "pass", 3, 5),
        TableRow("ACK-009", "broker 2", dialect, "inconclusive", "inconclusive", 1, 1, "lost in scenario C"),
        TableRow("ACK-009", "broker 2", dialect, "not exercised", "not exercised", 1, 0),
        TableRow("ACK-009", "broker 2", dialect, "pass", "pass", 1, 2),
    )
    (failure,) = table.failures
    assert (failure.target, failure.sequences, failure.sequence) == ("broker 1", 2, "search 1")
    assert failure.failure.observed == "3" and failure.failure.allowed == ("2",)
    assert (table.sequences, table.frames) == (8, 12)
    assert table.exit_code == 1


def test_the_table_does_not_depend_on_order_or_on_how_the_work_was_split(traces: list[Path]) -> None:
    judgements = list(judge_traces(traces, judge))
    whole = Tally()
    for judgement in judgements:
        whole.add(judgement)
    random.Random(1).shuffle(judgements)
    split = [Tally() for _ in range(3)]
    for number, judgement in enumerate(judgements):
        split[number % 3].add(judgement)
    merged = Tally()
    for tally in split:
        merged.merge(tally)
    assert compliance_table(merged) == compliance_table(whole)


def test_how_late_targets_were_is_added_up_wherever_it_was_judged(traces: list[Path]) -> None:
    judgements = list(judge_traces(traces, judge))
    halves = [Tally(), Tally()]
    for number, judgement in enumerate(judgements):
        measured = Measurement("TIMEOUT-031", "basic.cancel", 1.0, 0.5, number / 1000, number / 1000)
        halves[number % 2].add(replace(judgement, target="slow", measurements=(measured, measured)))
    halves[0].merge(halves[1])
    number = len(judgements)
    (slow,) = compliance_table(halves[0]).accuracies
    assert (slow.target, slow.dialect) == ("slow", "rabbitmq-4.3")
    assert slow.accuracy == Accuracy(2 * number, (number - 1) / 2000, (number - 1) / 1000, 0)
    assert not check_in_process(traces[:1], judge).accuracies


def test_what_only_repeats_others_is_judged_and_not_counted(traces: list[Path]) -> None:
    judgements = list(judge_traces(traces, judge))
    counted, all_of_them = Tally(), Tally()
    for judgement in judgements:
        counted.add(judgement)
        all_of_them.add(judgement)
        all_of_them.add(replace(judgement, sequence=f"shrinking {judgement.sequence} 1", repeats=judgement.sequence))
    whole, with_repeats = compliance_table(counted), compliance_table(all_of_them)
    assert (whole.repeats, with_repeats.repeats) == (0, len(judgements))
    assert with_repeats.frames == 2 * whole.frames
    assert replace(with_repeats, repeats=0, frames=whole.frames) == whole


def test_the_table_is_saved_and_shown(traces: list[Path], tmp_path: Path) -> None:
    table = check_in_process(traces, judge)
    write_table(table, tmp_path / "table.parquet")
    saved = pq.read_table(tmp_path / "table.parquet")
    assert saved.schema.equals(TABLE_SCHEMA)
    assert tuple(TableRow(**row) for row in saved.to_pylist()) == table.rows
    console = Console(width=200, record=True, file=None, quiet=False, force_terminal=False)
    with console.capture() as shown:
        console.print(table_view(table))
    text = shown.get()
    assert "lost in scenario C" in text and "(search)" in text
    for row in table.rows:
        assert row.requirement in text


def test_both_verdicts_and_what_became_of_defects(defective: Path) -> None:
    table = check_in_process([defective], judge)
    dialect = "rabbitmq-4.3"
    rows = [row for row in table.rows if row.requirement == "QUEUE-026"]
    assert rows == [TableRow("QUEUE-026", "broker", dialect, "fail", "pass", 2, 0)]
    assert table.defects == (TableDefect("broker", dialect, DEFECT, 2, 1),)
    assert table.exit_code == 1, "a known defect never makes a run green"
    # the same as a run says
    tally = RunTally()
    for judgement in judge_traces([defective], judge):
        tally.add(judgement)
    (outcome,) = [outcome for outcome in tally.defects(dialect) if outcome.name == DEFECT]
    assert (outcome.seen, outcome.refuted) == (2, 1)
    (verdict,) = [each for each in tally.requirements(requirements().values(), dialect) if each.id == "QUEUE-026"]
    assert (verdict.verdict, verdict.as_known) == ("fail", "pass")
    console = Console(width=200, force_terminal=False)
    with console.capture() as shown:
        console.print(table_view(table))
    (line,) = [line.split() for line in shown.get().splitlines() if line.startswith("QUEUE-026")]
    assert line[3:5] == ["fail", "pass"]


def test_nothing_gives_an_empty_table(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text("")
    table = check_in_process([tmp_path / "t.jsonl"], judge)
    assert table == ComplianceTable((), (), 0, 0)
    assert table.exit_code == 0
    write_table(table, tmp_path / "table.parquet")
    assert pq.read_table(tmp_path / "table.parquet").num_rows == 0


def test_a_wrong_order_of_rows_names_the_trace(tmp_path: Path) -> None:
    path = wrong_order(tmp_path / "t.jsonl")
    with pytest.raises(TraceError, match=r"t\.jsonl: a row of kind 'frame' of the sequence 's' comes before"):
        check_in_process([path], judge)


def test_what_cannot_be_read_costs_nothing_that_can(traces: list[Path], tmp_path: Path) -> None:
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes((traces[0] / "trace.jsonl").read_bytes()[:-20])
    whole = check_in_process([traces[0]], judge)
    unreadable: list[TraceError] = []
    paths = [cut, wrong_order(tmp_path / "t.jsonl"), tmp_path / "none", traces[1]]
    table = check_in_process(paths, judge, unreadable=unreadable)
    # the sequence that is cut is judged as far as it goes
    assert table.sequences == whole.sequences + check_in_process([traces[1]], judge).sequences
    for error, name in zip(unreadable, ("cut.jsonl:", "t.jsonl: ", "none: "), strict=True):
        assert str(error).startswith(str(tmp_path / name))


def wrong_order(path: Path) -> Path:
    with TraceWriter(path) as trace:
        trace.event("s", Method("a", 1, "basic.ack", {}, True))
    return path


def test_spark_makes_the_same_table(spark: Any, traces: list[Path]) -> None:
    table = check_with_spark(traces, "local[2]", judge)
    assert table == check_in_process(traces, judge)
    assert table.sequences == 208


def test_spark_has_the_same_second_verdicts(spark: Any, defective: Path) -> None:
    table = check_with_spark([defective], "local[2]", judge)
    assert table == check_in_process([defective], judge)
    assert table.defects == (TableDefect("broker", "rabbitmq-4.3", DEFECT, 2, 1),)


def test_the_judge_of_the_suite_is_the_one_that_spark_uses(spark: Any, traces: list[Path]) -> None:
    table = check_with_spark(traces, "local[2]")
    assert table == check_in_process(traces, judge_of_the_suite)
    assert table.failures, "deliveries without a consumer are not allowed"


def test_a_dialect_that_does_not_exist_is_one_sentence(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with TraceWriter(path) as trace:
        trace.start("s", target="b", product="", version="", dialect="rabbitmq-9", mode="burst")
    for check in (check_in_process, lambda paths, judge: check_with_spark(paths, "local[2]", judge)):
        with pytest.raises(TraceError, match=r"the sequence 's': .*rabbitmq-9"):
            check([path], judge_of_the_suite)


def test_spark_and_a_trace_without_rows(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text("")
    assert check_with_spark([tmp_path / "t.jsonl"], "local[2]", judge) == ComplianceTable((), (), 0, 0)


def test_traces_that_cannot_be_read_are_one_sentence_with_spark_too(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "cut.jsonl").write_text('{"kind": "start"')
    with pytest.raises(TraceError, match=r"cut\.jsonl:1:\d+: the last line is cut short"):
        check_with_spark([tmp_path / "cut.jsonl"], "local[2]", judge)
    (tmp_path / "wrong.parquet").write_bytes(b"no")
    with pytest.raises(TraceError, match=r"wrong\.parquet: not a readable Parquet file"):
        check_with_spark([tmp_path / "wrong.parquet"], "local[2]", judge)
    with pytest.raises(TraceError, match="'s' comes before its start row"):
        check_with_spark([wrong_order(tmp_path / "t.jsonl")], "local[2]", judge)


def test_a_judge_that_fails_is_one_line_with_spark(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with TraceWriter(path) as trace:
        trace.start("s", target="b", product="", version="", dialect="d", mode="burst")
        trace.event("s", Method("a", 1, "basic.deliver", {"delivery_tag": 1}, False, Content({}, b"crash")))
    with pytest.raises(PipelineError) as caught:
        check_with_spark([path], "local[2]", judge)
    assert str(caught.value) == "the Spark job failed: ZeroDivisionError: the judge itself is at fault"


def test_no_java_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PipelineError, match=r"Spark needs Java 17 or later .* there is no java"):
        require_java()
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019' >&2\n")
    java.chmod(0o755)
    with pytest.raises(PipelineError, match="is version 11"):
        require_java()
    java.write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(PipelineError, match="does not run"):
        require_java()


@pytest.mark.parametrize("master", ["nonsense", "local[2]"])
def test_spark_in_a_process_of_its_own_is_quiet_and_names_a_wrong_master(tmp_path: Path, master: str) -> None:
    """What a user of the command line sees: nothing but the result, or one line."""
    write_trace(tmp_path / "t.jsonl", "b", {"search": GOOD})
    program = (
        "import sys\n"
        "from amqpspec.pipeline.spark_check import check_with_spark\n"
        "from amqpspec.pipeline.spark_session import PipelineError\n"
        "from tests.pipeline.stand_in import judge\n"
        "try:\n"
        "    print(check_with_spark(sys.argv[2:], sys.argv[1], judge).sequences)\n"
        "except PipelineError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, master, str(tmp_path / "t.jsonl")], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    if master == "nonsense":
        assert done.stdout.count("\n") == 1
        assert done.stdout.startswith("Spark did not start on 'nonsense': ")
        assert "Master must either be" in done.stdout
    else:
        assert done.stdout == "1\n"
