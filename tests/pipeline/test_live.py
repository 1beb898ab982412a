"""Judging while recordings arrive: the failures that judging all at once finds, also after the query was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pika
import pyarrow.parquet as pq
import pytest

from amqpspec import EmbeddedBroker
from amqpspec.command_line import main
from amqpspec.conformance.traces.trace import read_trace
from amqpspec.conformance.traces.trace_row import row_line
from amqpspec.conformance.verdicts.acceptance import Acceptance
from amqpspec.model.open_world.judge import OpenJudge
from amqpspec.model.protocol.methods import TraceEvent
from amqpspec.pipeline import live
from amqpspec.pipeline.judging.live_state import LiveState, load, save
from amqpspec.pipeline.live import Line, in_order
from amqpspec.pipeline.store.files import StoreError
from amqpspec.pipeline.table import check_in_process, judge_traces
from tests.patience import patience
from tests.pipeline.small_disk import filled, small_disk
from tests.pipeline.stand_in import judge_share_and_die, judge_share_elsewhere
from tests.proxies import recording

Found = Counter[tuple[str, str]]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file: four connections, mixed, to a broker that returns with a wrong code."""
    out = tmp_path_factory.mktemp("recorded")
    with EmbeddedBroker(fault="return-code-wrong") as broker:
        upstream = f"amqp://127.0.0.1:{broker.address.port}"
        # one file: the time is not up before it ends
        with recording(upstream, out, "--rotate", "3600") as proxy:
            opened = [pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", proxy.port)) for _ in range(4)]
            channels = [each.channel() for each in opened]
            for _ in range(4):
                for channel in channels:
                    channel.basic_publish("", "nowhere", b"m", mandatory=True)
                    channel.basic_qos(prefetch_count=1)
            for each in opened:
                each.close()
    assert [file.name for file in out.iterdir()] == ["trace-000001.jsonl"]
    return out / "trace-000001.jsonl"


def all_at_once(file: Path) -> Found:
    found = Counter((judged.sequence, each.identity) for judged in judge_traces([file]) for each in judged.failures)
    assert len(found) == 4
    return found


def split(file: Path, folder: Path, pieces: int) -> None:
    """The recording as several files, as `record --rotate` leaves them."""
    folder.mkdir()
    rows = list(read_trace(file))
    for number in range(pieces):
        part = rows[len(rows) * number // pieces : len(rows) * (number + 1) // pieces]
        (folder / f"trace-{number + 1:06}.jsonl").write_bytes(b"".join(map(row_line, part)))


def judged(out: Path) -> Found:
    rows = [row for file in sorted((out / "judgements").glob("*.parquet")) for row in pq.read_table(file).to_pylist()]
    return Counter((row["sequence"], each["identity"]) for row in rows for each in row["failures"])


def test_files_in_disorder_wait_for_their_turn() -> None:
    ready, waiting = in_order([], {}, ["/r/t-3.jsonl", "/r/t-1.jsonl", "/other.jsonl"])
    assert ready == ["/other.jsonl", "/r/t-1.jsonl"]
    assert waiting["early"] == ["/r/t-3.jsonl"]
    ready, waiting = in_order(waiting["early"], waiting["next"], ["/r/t-2.jsonl"])
    assert ready == ["/r/t-2.jsonl", "/r/t-3.jsonl"]
    assert waiting == {"early": [], "next": {"/r/t-": 4}}


def test_what_is_kept_goes_through_a_file(recorded: Path, tmp_path: Path) -> None:
    rows = list(read_trace(recorded))
    found: Found = Counter()
    for row in rows:
        state = load(tmp_path / "state")
        for _, judgement in state.take("r", [row]):
            found.update((judgement.sequence, each.identity) for each in judgement.failures)
        save(state, tmp_path / "state")
    assert found == all_at_once(recorded)
    assert load(tmp_path / "state") == LiveState()


def test_what_only_repeats_others_is_no_failure(recorded: Path, tmp_path: Path) -> None:
    rows = list(read_trace(recorded))
    for row in rows:
        if (row["kind"], row["sequence"]) == ("start", "connection 2"):
            row["repeats"] = "connection 1"
    file = tmp_path / "trace.jsonl"
    file.write_bytes(b"".join(map(row_line, rows)))
    (tmp_path / "out").mkdir()
    lines = [
        line
        for task in range(live.TASKS)
        for line in live._judge_share(tmp_path / "out", Acceptance(), task, 0, [str(file)])
    ]
    assert len(lines) == sum(each.sequences for each in check_in_process([file]).failures) == 3
    assert judged(tmp_path / "out") == all_at_once(recorded), "it is judged all the same"


def test_files_that_arrive(recorded: Path, tmp_path: Path, spark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["pipeline", "live", str(tmp_path / "in"), "--out", str(tmp_path / "out"), "--until-done"]
    split(recorded, tmp_path / "in", 3)
    last = tmp_path / "in" / "trace-000002.jsonl"
    last.rename(tmp_path / "held")
    assert main(command) == 4, "nothing failed, and not all that is there was judged"
    told = capsys.readouterr().err.splitlines()
    assert told[0] == f"amqpspec: {tmp_path}/in/trace-000003.jsonl: waits for number 2 of its recording"
    assert told[1] == f"amqpspec: {tmp_path}/in/trace-: 4 sequences without an end, not judged yet"
    assert judged(tmp_path / "out") == Counter()
    (tmp_path / "held").rename(last)
    assert main(command) == 1
    assert "PUBLISH-007" in capsys.readouterr().out
    assert judged(tmp_path / "out") == all_at_once(recorded)
    (tmp_path / "in" / "broken.jsonl").write_text("{\n")
    assert main(command) == 5, "nothing failed, and something could not be read"
    assert capsys.readouterr().out.count("broken.jsonl") == 1, "it is named once, however many tasks met it"


def test_nothing_that_arrives_is_told(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").mkdir()
    assert main(["pipeline", "live", str(tmp_path / "in"), "--out", str(tmp_path / "out"), "--until-done"]) == 4
    line = f"amqpspec: {tmp_path}/in: no trace file (*.jsonl) has come, so nothing was judged\n"
    assert capsys.readouterr().err == line
    (tmp_path / "in" / "trace.parquet").touch()
    assert main(["pipeline", "live", str(tmp_path / "in"), "--out", str(tmp_path / "out"), "--until-done"]) == 4
    assert capsys.readouterr().err == f"amqpspec: {tmp_path}/in/trace.parquet: is not read, only *.jsonl is\n{line}"


def test_a_worker_that_does_not_see_the_folder_ends_it_in_a_line(
    recorded: Path, tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    split(recorded, tmp_path / "in", 1)
    command = ["pipeline", "live", str(tmp_path / "in"), "--out", str(tmp_path / "out"), "--until-done"]
    with monkeypatch.context() as patched:
        patched.setattr(live, "_judge_share", judge_share_elsewhere)
        assert main(command) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "0-0.pickle: is missing, though a worker says that it wrote it; all workers must see the folder" in told
    assert main(command) == 1, "nothing of it counts"
    assert judged(tmp_path / "out") == all_at_once(recorded)


def test_a_worker_writes_nowhere_where_nothing_is_seen(recorded: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"/out: \S+ sees no such folder; all workers must see the folder"):
        live._judge_share(tmp_path / "out", Acceptance(), 0, 0, [str(recorded)])
    (tmp_path / "out" / "batches").mkdir(parents=True)
    (tmp_path / "out" / "batches" / "0.json").write_text("{}")
    with pytest.raises(StoreError, match=r"0-0\.pickle: what the batch before left is missing"):
        live._judge_share(tmp_path / "out", Acceptance(), 0, 1, [str(recorded)])
    assert [each.name for each in (tmp_path / "out").iterdir()] == ["batches"]


def test_an_error_of_the_suite_costs_one_connection(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = OpenJudge.event
    broken: list[OpenJudge] = []

    def breaking(self: OpenJudge, seen: TraceEvent) -> None:
        if seen.name == "basic.qos" and not broken:
            broken.append(self)
            raise KeyError("planted")
        event(self, seen)

    monkeypatch.setattr(OpenJudge, "event", breaking)
    lines: list[Line] = []
    for folder in ("judgements", "state", "batches"):
        (tmp_path / "out" / folder).mkdir(parents=True)
    for task in range(live.TASKS):
        lines += live._judge_share(tmp_path / "out", Acceptance(), task, 0, [str(recorded)])
    (error,) = [line.text for line in lines if line.is_error]
    assert "the suite erred: KeyError: 'planted'" in error
    rows = [row for file in (tmp_path / "out/judgements").glob("*.parquet") for row in pq.read_table(file).to_pylist()]
    erring = {row["sequence"] for row in rows if "planted" in (row["ended_by"] or "")}
    assert len(erring) == 1 and f" in {min(erring)} of " in error
    assert {name for name, _ in judged(tmp_path / "out")} - erring == {row["sequence"] for row in rows} - erring


@pytest.mark.parametrize("kinds, code", [("e", 4), ("ef", 1), ("eu", 5), ("", 0)])
def test_it_ends_with_1_for_failures_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kinds: str, code: int
) -> None:
    of_kind = {"e": Line("e", False, True), "f": Line("f", True), "u": Line("u", False)}
    monkeypatch.setattr(live, "live", lambda *given, **_: given[3](1, [of_kind[kind] for kind in kinds]))
    assert main(["pipeline", "live", str(tmp_path), "--out", str(tmp_path / "out")]) == code


#: One file in each batch, so that there are many moments at which it can be killed.
PROGRAM = """
import sys
from pathlib import Path
from amqpspec.pipeline.live import live
def told(number, lines):
    print(number, flush=True)
live(Path(sys.argv[1]), Path(sys.argv[2]), "local[1]", told, until_done=True, most_files=1)
"""


def test_a_killed_query_goes_on(recorded: Path, tmp_path: Path, spark: Any) -> None:
    split(recorded, tmp_path / "in", 6)
    out = tmp_path / "out"
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "in"), str(out)]
    with subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "2\n" in process.stdout, "a batch is told when it is done"
        os.killpg(process.pid, signal.SIGKILL)
    assert not (out / "batches" / "5.json").exists(), "it was killed in the middle"
    live.live(tmp_path / "in", out, "local[2]", lambda number, lines: None, until_done=True, most_files=1)
    assert (out / "batches" / "5.json").exists()
    assert judged(out) == all_at_once(recorded)


def test_a_worker_that_is_killed_costs_time_only(
    recorded: Path, tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    split(recorded, tmp_path / "in", 3)
    monkeypatch.setattr(live, "_judge_share", judge_share_and_die)
    told: list[live.Line] = []

    def tell(number: int, lines: list[live.Line]) -> None:
        told.extend(lines)

    live.live(tmp_path / "in", tmp_path / "out", "local[2]", tell, until_done=True, most_files=1)
    assert len(list(tmp_path.glob("killed-*-*"))) == 3 * live.TASKS
    assert judged(tmp_path / "out") == all_at_once(recorded)
    assert len(told) == 4


@pytest.mark.parametrize("free", [0, 12, 24])
def test_a_full_disk_is_told_in_a_line_and_nothing_is_lost(
    recorded: Path, tmp_path: Path, spark: Any, capsys: pytest.CaptureFixture[str], free: int
) -> None:
    split(recorded, tmp_path / "in", 2)
    with small_disk(tmp_path / "disk") as disk:
        command = ["pipeline", "live", str(tmp_path / "in"), "--out", str(disk / "out"), "--until-done"]
        with filled(disk, free * 1024):
            assert main(command) == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1 and str(disk / "out") in told and "No space left on device" in told
        assert main(command) == 1
        assert judged(disk / "out") == all_at_once(recorded)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_it_goes_on_later(
    spark: Any, recorded: Path, tmp_path: Path, number: signal.Signals
) -> None:
    split(recorded, tmp_path / "in", 2)
    later = tmp_path / "in" / "trace-000002.jsonl"
    rows = list(read_trace(recorded))
    first_end = next(at for at, row in enumerate(rows, start=1) if row["kind"] == "end")
    for file, part in ((tmp_path / "in" / "trace-000001.jsonl", rows[:first_end]), (later, rows[first_end:])):
        file.write_bytes(b"".join(map(row_line, part)))
    later.rename(tmp_path / "held")
    out = tmp_path / "out"
    options = ["pipeline", "live", str(tmp_path / "in"), "--out", str(out), "--spark", "local[1]"]
    piped, command = subprocess.PIPE, [sys.executable, "-m", "amqpspec", *options]
    with subprocess.Popen(command, stdout=piped, stderr=piped, text=True, start_new_session=True) as process:
        assert process.stdout is not None and process.stderr is not None
        assert any("PUBLISH-007" in line for line in process.stdout), "a failure is told when it is found"
        process.send_signal(number)
        assert process.wait(patience(120)) == 1
        assert process.stderr.read() == ""
    (tmp_path / "held").rename(later)
    assert main([*options, "--until-done"]) == 1
    assert judged(out) == all_at_once(recorded)
