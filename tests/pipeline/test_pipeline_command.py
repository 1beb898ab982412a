"""`amqpspec pipeline`: from recordings to a table, and one line for everything that goes wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from amqpspec.command_line import main
from tests.corpus.expectations import DIRECTORY
from tests.pipeline.stand_in import write_trace

RECORDING = DIRECTORY / "rabbitmq-4.3-search-traffic.parquet"


def test_recordings_become_verdicts_become_a_table(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(tmp_path / "store")
    assert main(["pipeline", "import", store, str(RECORDING), "--spark", "local[2]", "--run", "nightly"]) == 0
    assert capsys.readouterr().out.startswith("1 trace: ")
    assert main(["pipeline", "judge", store, "--spark", "local[2]"]) in (0, 1)
    said = capsys.readouterr().out
    assert main(["pipeline", "judge", store]) == 0
    assert "0 sequences, 0 frames judged, 1 part judged before" in capsys.readouterr().out
    assert main(["pipeline", "status", store]) == 0
    assert "docker:amqpspec/rabbitmq:4.3  nightly: " in capsys.readouterr().out
    assert main(["pipeline", "compact", store]) == 0
    assert main(["pipeline", "table", "compliance", store]) == 0
    table = capsys.readouterr().out
    assert "frames judged" in said and "4.3.6" in table


def test_what_is_broken_is_named_with_exit_code_5(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "store"
    torn = tmp_path / "torn.jsonl"
    whole = write_trace(tmp_path / "whole.jsonl", "b", {"s": [], "t": []})
    torn.write_bytes(whole.read_bytes()[:-9])
    assert main(["pipeline", "import", str(store), str(torn), str(whole)]) == 5
    captured = capsys.readouterr()
    assert captured.err.startswith(f"amqpspec: {torn}:") and captured.err.count("\n") == 1
    assert captured.out == "2 traces: 4 sequences, 0 frames\n"
    (store / "traces" / "stray.parquet").touch()
    assert main(["pipeline", "status", str(store)]) == 5
    assert "stray.parquet: is in no commit of the manifest" in capsys.readouterr().err
    (part, *_) = store.glob("traces/*/*/*/*.parquet")
    part.write_bytes(b"")
    assert main(["pipeline", "judge", str(store)]) == 5
    assert f"{part}: not a readable Parquet file" in capsys.readouterr().err


def test_a_trace_without_a_sequence_is_refused_as_by_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.touch()
    for _ in range(2):
        assert main(["pipeline", "import", str(tmp_path / "store"), str(trace)]) == 5
        assert capsys.readouterr().err == f"amqpspec: {trace}: no sequence in it, so nothing was added\n"


def test_judging_counts_as_check_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a run repeats while it shrinks a failure is told apart."""
    out, store = str(tmp_path / "out"), str(tmp_path / "store")
    assert main(["run", "embedded:get-empty-with-messages", "--only", "GET-001", "--sequences", "0", "--out", out]) == 1
    assert main(["pipeline", "import", store, out]) == 0
    capsys.readouterr()
    assert main(["check", out]) == 1
    counted = capsys.readouterr().out.splitlines()[-1]
    assert "that only repeat others are not counted" in counted
    assert main(["pipeline", "judge", store]) == 1
    assert counted in capsys.readouterr().out


def test_a_run_adds_its_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "store"
    command = ["run", "--only", "GET-001", "--sequences", "0", "--quiet", "--out", str(tmp_path / "night 1")]
    assert main([*command, "--store", str(store)]) == 0
    assert main(["pipeline", "judge", str(store)]) == 0
    assert main(["pipeline", "status", str(store)]) == 0
    assert "  embedded  night 1-" in capsys.readouterr().out
    assert main([*command, "--store", str(tmp_path)]) == 2
    assert f"{tmp_path}: neither a store nor an empty folder" in capsys.readouterr().err


def test_no_store_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for action in (["judge"], ["status"], ["compact"]):
        assert main(["pipeline", *action, str(tmp_path)]) == 2
        assert capsys.readouterr().err == f"amqpspec: {tmp_path}: no store (amqpspec pipeline import makes one)\n"


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, where no session is running."""
    return subprocess.run(
        [sys.executable, "-m", "amqpspec", "pipeline", *arguments],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2], env={**os.environ, **environment},
    )  # fmt: skip


def test_no_java_and_no_master_are_one_line_each(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    whole = write_trace(tmp_path / "whole.jsonl", "b", {"s": []})
    assert command("import", store, str(whole)).returncode == 0
    done = command("judge", store, "--spark", "local[2]", JAVA_HOME="", PATH="/nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "amqpspec: Spark needs Java 17 or later (set JAVA_HOME or PATH): there is no java on this machine's PATH\n"
    )
    done = command("judge", store, "--spark", "spark://127.0.0.1:1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "amqpspec: Spark did not start on 'spark://127.0.0.1:1': the master cannot be reached: Connection refused\n"
    )
