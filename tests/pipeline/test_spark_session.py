"""Sessions of Spark as their users set them, and what they say when they do not get on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from amqpspec.command_line import main
from amqpspec.command_line import pipeline as command_line
from amqpspec.pipeline.store.adding import add_trace
from amqpspec.pipeline.store.store import Store, create_store
from tests.pipeline.cluster import standalone_master
from tests.pipeline.stand_in import write_trace


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = create_store(tmp_path / "store")
    add_trace(made, write_trace(tmp_path / "trace.jsonl", "b", {"s": [(1, b"m1")]}))
    return made


def started(*words: str, **variables: str) -> subprocess.Popen[str]:
    quiet = ["--quiet"]  # a slow machine would tell how far it is
    return subprocess.Popen(
        [sys.executable, "-m", "amqpspec", "pipeline", *words, *quiet], env={**os.environ, **variables},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def python_that(directory: Path, does: str) -> str:
    """A program for workers; where it leaves off, it is this Python."""
    program = directory / "python-of-workers"
    program.write_text(f'#!/bin/sh\n{does}\nexec "{sys.executable}" "$@"\n')
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize("way", ["PYSPARK_PYTHON", "spark.pyspark.python"])
def test_the_python_of_workers_is_that_of_the_user(store: Store, tmp_path: Path, way: str) -> None:
    program = python_that(tmp_path, f"touch '{tmp_path}/used'")
    by_variable = way == "PYSPARK_PYTHON"
    words = ["judge", str(store.root), "--spark", "local[1]", *([] if by_variable else ["--conf", f"{way}={program}"])]
    with started(*words, **({way: program} if by_variable else {"PYSPARK_PYTHON": "/absent"})) as process:
        out, err = process.communicate(timeout=500)
    assert err == "" and "1 sequence" in out and (tmp_path / "used").exists()


def test_the_page_of_spark_is_there_where_it_is_wanted(store: Store, tmp_path: Path) -> None:
    """It is asked for by the worker, so that the job is under way."""
    ask = f"""'{sys.executable}' -c "
import urllib.request, sys
print(urllib.request.urlopen('http://127.0.0.1:$PAGE/jobs/').status, file=open('{tmp_path}/answer', 'w'))" """
    program = python_that(tmp_path, ask.replace("$PAGE", "45671"))
    words = ["--conf", "spark.ui.enabled=true", "--conf", "spark.ui.port=45671"]
    with started("judge", str(store.root), "--spark", "local[1]", *words, PYSPARK_PYTHON=program) as process:
        _, err = process.communicate(timeout=500)
    assert err == "amqpspec: Spark's page: http://127.0.0.1:45671\n"
    assert (tmp_path / "answer").read_text() == "200\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_job_in_a_line(store: Store, tmp_path: Path, number: signal.Signals) -> None:
    """The worker waits for what never comes."""
    os.mkfifo(tmp_path / "begun")
    os.mkfifo(tmp_path / "never")
    program = python_that(tmp_path, f"echo > '{tmp_path}/begun'; read line < '{tmp_path}/never'")
    with started("judge", str(store.root), "--spark", "local[1]", PYSPARK_PYTHON=program) as process:
        (tmp_path / "begun").read_text()
        process.send_signal(number)
        out, err = process.communicate(timeout=500)
    os.close(os.open(tmp_path / "never", os.O_RDWR))  # lets the worker go
    assert process.returncode == 128 + number and out == ""
    assert err == f"amqpspec: {'terminated' if number is signal.SIGTERM else 'interrupted'}\n"


def test_no_executors_are_told_and_then_an_error(store: Store) -> None:
    with standalone_master() as address:
        words = ["--spark", address, "--conf", "spark.amqpspec.executors.wait=7"]
        with started("judge", str(store.root), *words) as process:
            out, err = process.communicate(timeout=500)
    assert (process.returncode, out) == (2, "")
    assert err.splitlines() == [
        f"amqpspec: waiting for executors of {address}",
        f"amqpspec: the Spark job failed: no executor of {address} in 7 s: has it workers with memory and cores free?",
    ]


def test_what_is_not_served_is_one_line(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    place = str(store.root)
    for words, line in (
        (["--spark", "sc://localhost:15002"], "sc://localhost:15002: Spark Connect is not served, as its clients "),
        (["--conf", "spark.ui.enabled=true"], "--conf: is for Spark, and needs --spark MASTER\n"),
    ):
        with started("judge", place, *words) as process:
            out, err = process.communicate(timeout=500)
        assert (process.returncode, out) == (2, "")
        assert err.startswith(f"amqpspec: {line}") and err.count("\n") == 1
    with pytest.raises(SystemExit):
        main(["pipeline", "judge", place, "--spark", "local[1]", "--conf", "ui=true"])
    assert "'ui=true' is not KEY=VALUE, with a key that begins with spark." in capsys.readouterr().err


def test_progress_is_a_line_now_and_then_in_a_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = Console(force_terminal=False)
    assert command_line.progress_of(log, quiet=True) is None
    tell = command_line.progress_of(log, quiet=False)
    assert tell is not None
    tell(1, 4)
    assert capsys.readouterr().err == "", "too early"
    monkeypatch.setattr(command_line, "_LOGGED_EVERY", 0.0)
    tell(2, 4)
    assert capsys.readouterr().err == "amqpspec: 2 of 4 tasks\n"
