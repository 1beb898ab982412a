"""`amqpspec soak`: exit codes, files, one-line errors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from amqpspec.command_line import main
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker

_SHORT = ("--seconds", "1.5", "--rate", "100", "--seed", "4")


def soak(*arguments: object) -> int:
    return main(["soak", *map(str, arguments)])


@pytest.mark.quick
def test_a_soak_without_a_target_is_of_the_embedded_broker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "o"
    assert soak(*_SHORT, "--faults", "client,transfer-leader", "--out", out) == 0
    said = capsys.readouterr().out
    assert "soak of embedded for 1.5 s, faults: client, seed 4" in said
    assert "left out: transfer-leader: this target does not offer it" in said
    assert "Nothing lost, nothing doubled" in said.splitlines()[-1]
    report = json.loads((out / "soak.json").read_text())
    assert report["verdict"] == "pass" and report["wrong"] == 0 and report["seed"] == 4
    assert report["total"]["sent"] > 50
    assert "What happened when" in (out / "soak.html").read_text()
    # the connections are judged again like those of any other trace
    assert main(["check", str(out), "--quiet"]) in (0, 4)
    assert "frames judged" in capsys.readouterr().out


@pytest.mark.quick
def test_what_is_wrong_is_told_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "o"
    assert soak("embedded:redelivered-never-set", *_SHORT, "--faults", "client", "--out", out) == 1
    said = capsys.readouterr().out
    assert "ACK-015" in said and "lines of the trace: published" in said
    report = json.loads((out / "soak.json").read_text())
    found = next(each for each in report["findings"] if each["requirement"] == "ACK-015")
    assert {"published", "delivered"} <= set(found["lines"])
    assert "delivered again without the flag redelivered" in (out / "soak.html").read_text()


@pytest.mark.quick
def test_a_broker_at_an_address_has_the_faults_of_its_clients(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with EmbeddedBroker(password="Sesame-4711") as broker:
        place = f"{broker.address.host}:{broker.address.port}"
        assert soak(f"amqp://guest:Sesame-4711@{place}/", *_SHORT, "--faults", "kill,client", "--out", tmp_path) == 0
    said = capsys.readouterr().out
    assert "left out: kill: this target has nobody who could do it" in said
    assert "Sesame" not in said
    assert not any(b"Sesame" in file.read_bytes() for file in tmp_path.iterdir())


@pytest.mark.quick
@pytest.mark.parametrize(
    "arguments, code, said",
    [
        (("--faults", "fire"), 2, "choose from kill, stop, pause, cut, slow, transfer-leader, client, or none"),
        (("--seconds", "0"), 2, "a number of seconds above 0"),
        (("--seconds", "1", "--minutes", "1"), 2, "not allowed with"),
        (("no-such-target",), 2, "no-such-target"),
        (("amqp://127.0.0.1:1/",), 3, "127.0.0.1 port 1"),
        (("--html", "/nowhere/a.html"), 2, "there is no directory"),
    ],
)
def test_bad_input_is_told_in_a_line(
    arguments: tuple[str, ...], code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        found = soak(*arguments, "--out", tmp_path / "o")
    except SystemExit as error:
        found = int(error.code or 0)
    assert found == code
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1 and err.startswith("amqpspec: ")


def test_an_interruption_ends_it_with_a_report(tmp_path: Path) -> None:
    words = ["--minutes", "60", "--faults", "client", "--out", str(tmp_path)]
    command = [sys.executable, "-m", "amqpspec", "soak", *words]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    assert "soak of embedded" in process.stdout.readline()
    while not (tmp_path / "trace.jsonl.gz").is_file() or (tmp_path / "trace.jsonl.gz").stat().st_size < 20_000:
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "interrupted" in said
    assert json.loads((tmp_path / "soak.json").read_text())["ended_early"] == "interrupted"
