"""Judging while recordings arrive: the failures that judging all at once finds, also after the query was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
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
from amqpspec.pipeline.judging.live_state import LiveState, load, save
from amqpspec.pipeline.live import in_order
from amqpspec.pipeline.table import judge_traces
from tests.patience import patience
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


def test_files_that_arrive(recorded: Path, tmp_path: Path, spark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["pipeline", "live", str(tmp_path / "in"), "--out", str(tmp_path / "out"), "--until-done"]
    split(recorded, tmp_path / "in", 3)
    last = tmp_path / "in" / "trace-000002.jsonl"
    last.rename(tmp_path / "held")
    assert main(command) == 0
    assert judged(tmp_path / "out") == Counter()
    (tmp_path / "held").rename(last)
    assert main(command) == 1
    assert "PUBLISH-007" in capsys.readouterr().out
    assert judged(tmp_path / "out") == all_at_once(recorded)


#: One file in each batch, so that there are many moments at which it can be killed.
PROGRAM = """
import sys
from pathlib import Path
from amqpspec.pipeline.live import live
live(Path(sys.argv[1]), Path(sys.argv[2]), "local[1]", lambda number, lines: None, until_done=True, most_files=1)
"""


def test_a_killed_query_goes_on(recorded: Path, tmp_path: Path) -> None:
    split(recorded, tmp_path / "in", 6)
    out = tmp_path / "out"
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "in"), str(out)]
    deadline = time.monotonic() + patience(300)
    with subprocess.Popen(command, start_new_session=True) as process:
        while not (out / "state" / "2-0.pickle").exists():
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
    assert not (out / "batches" / "5.json").exists(), "it was killed in the middle"
    subprocess.run(command, check=True, timeout=patience(300))
    assert (out / "batches" / "5.json").exists()
    assert judged(out) == all_at_once(recorded)
