"""The command line: exit codes, files, one-line errors; no traceback, no password, whatever happens."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest

from amqpspec.command_line import main
from amqpspec.command_line.run import fails_the_run
from amqpspec.conformance.traces.trace import read_trace
from amqpspec.conformance.verdicts.deviations import Deviation
from amqpspec.conformance.verdicts.gate import Gate
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.dialects import DIALECTS
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.verdict import Failure, Shape
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.faults.all_faults import FAULTS, fault_named
from tests.patience import patience

PROGRAM = [sys.executable, "-c", "import sys; from amqpspec import main; sys.exit(main())"]
ROOT = Path(__file__).parents[2]


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    def check_error(self, code: int, message: str) -> None:
        """The exit code, and one line that says what is wrong."""
        assert (self.code, self.err.count("\n")) == (code, 1), self
        assert self.err.startswith("amqpspec: ")
        assert message in self.err


class Amqpspec:
    """`amqpspec ARGUMENTS`, in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Outcome:
        self._capsys.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as exit:
            code = int(exit.code or 0)
        out, err = self._capsys.readouterr()
        assert "Traceback" not in out + err
        assert "  File " not in out + err
        return Outcome(code, out, err)


@pytest.fixture
def amqpspec(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Amqpspec:
    monkeypatch.chdir(tmp_path)
    return Amqpspec(capsys)


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(password="Sesame-4711") as running:
        yield running


def url(broker: EmbeddedBroker, login: str = "guest:Sesame-4711", vhost: str = "") -> str:
    return f"amqp://{login}@{broker.address.host}:{broker.address.port}/{vhost}"


def written(directory: Path, name: str, text: str) -> Path:
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path


def commands_of(directory: Path) -> dict[str, list[str]]:
    """Of each sequence: several processes may write the trace."""
    commands: dict[str, list[str]] = {}
    for row in read_trace(directory):
        if row["kind"] == "command":
            commands.setdefault(row["sequence"], []).append(row["text"])
    return commands


# ------------------------------------------------------------------------------------------------------- run


def test_run_conforms_and_writes_its_files(amqpspec: Amqpspec, tmp_path: Path) -> None:
    outcome = amqpspec(
        "run", "--sequences", 5, "--steps", 10, "--seed", 11, "--out", "o", "--junit", "j.xml", "--parquet", "t.parquet"
    )
    assert outcome.code == 0, outcome
    assert outcome.err == ""
    directory = tmp_path / "o"
    assert {path.name for path in directory.iterdir()} == {"trace.jsonl", "report.html", "report.json"}
    assert list(read_trace(directory / "trace.jsonl")) == list(read_trace(tmp_path / "t.parquet"))
    assert "<html" in (directory / "report.html").read_text()
    assert ElementTree.parse(tmp_path / "j.xml").getroot().tag in ("testsuites", "testsuite")

    report = json.loads((directory / "report.json").read_text())
    assert {"tool", "target", "seed", "summary", "requirements", "failures"} <= set(report)
    assert {"name", "version"} <= set(report["tool"])
    assert {"product", "version", "dialect"} <= set(report["target"])
    assert (report["seed"], report["failures"], report["target"]["dialect"]) == (11, [], "rabbitmq-4.3")
    assert set(report["summary"]) == {"pass", "fail", "inconclusive", "not applicable", "not exercised"}
    assert [entry["id"] for entry in report["requirements"]] == list(requirements())
    verdicts = {entry["id"]: entry for entry in report["requirements"]}
    assert verdicts["ACK-001"]["verdict"] == "pass"
    assert verdicts["ACK-001"]["exercised"] > 0
    assert sum(report["summary"].values()) == len(requirements())
    assert all(entry["verdict"] != "pass" or entry["exercised"] > 0 for entry in report["requirements"])

    assert amqpspec("check", "o").code == 0


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_run_in_each_dialect(amqpspec: Amqpspec, tmp_path: Path, dialect: str) -> None:
    outcome = amqpspec("run", "embedded", "--dialect", dialect, "--only", "ACK-00", "--sequences", 3, "--quiet")
    assert outcome.code == 0, outcome
    assert len(outcome.out.split()) < 20
    report = json.loads((tmp_path / "amqpspec-out" / "report.json").read_text())
    assert report["target"]["dialect"] == dialect


def test_run_on_a_broker_at_an_address(amqpspec: Amqpspec, tmp_path: Path, broker: EmbeddedBroker) -> None:
    outcome = amqpspec("run", url(broker), "--only", "GET", "--sequences", 3, "--out", "o", "--junit", "j.xml")
    assert outcome.code == 0, outcome
    texts = [outcome.out, *(path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file())]
    assert not any("Sesame" in text for text in texts), "the password is nowhere"
    assert amqpspec("check", "o").code == 0


def test_only_and_case(amqpspec: Amqpspec, tmp_path: Path) -> None:
    for prefix in ("QOS-003", "qos-003"):
        assert amqpspec("run", "--only", prefix, "--sequences", 0, "--out", "o").code == 0
        names = {row["sequence"] for row in read_trace(tmp_path / "o")}
        assert names == {"scenario QOS-003 classic", "scenario QOS-003 quorum"}, prefix


def test_a_run_that_carries_nothing_out_does_not_conform(amqpspec: Amqpspec, tmp_path: Path) -> None:
    arguments = ("run", "embedded", "--only", "CANCEL-017", "--sequences", 0, "--out", tmp_path)
    outcome = amqpspec(*arguments, "--junit", tmp_path / "junit.xml", "--quiet")
    assert outcome.code == 4
    (line,) = outcome.out.splitlines()
    assert line.startswith("? Inconclusive: nothing was carried out") and "Conforms" not in line
    (error,) = ElementTree.parse(tmp_path / "junit.xml").iter("error")
    assert "nothing was carried out" in error.attrib["message"]
    assert "Behaves as" not in amqpspec(*arguments).out


def test_the_search_alone(amqpspec: Amqpspec, tmp_path: Path) -> None:
    assert amqpspec("run", "--search-only", "--sequences", 6, "--seed", 5, "--out", "o").code == 0
    starts = [row for row in read_trace(tmp_path / "o") if row["kind"] == "start"]
    assert sorted(row["sequence"] for row in starts) == [f"search {number}" for number in range(1, 7)]
    assert all(row["requirement"] is None for row in starts)


def test_no_scenarios_leave_the_search_as_it_is(amqpspec: Amqpspec, tmp_path: Path) -> None:
    for name, which in (("one", ("--search-only",)), ("two", ("--only", "GET-001"))):
        assert amqpspec("run", *which, "--sequences", 4, "--seed", 5, "--out", name).code == 0
    searched = [
        {name: texts for name, texts in commands_of(tmp_path / run).items() if "search" in name}
        for run in ("one", "two")
    ]
    assert searched[0] and searched[0] == searched[1]


@pytest.mark.parametrize("which", [("--search-only", "--sequences", 300), ("--only", "ACK", "--sequences", 300)])
def test_stop_at_the_first_failure(amqpspec: Amqpspec, tmp_path: Path, which: tuple[str, ...]) -> None:
    """A broker that would fail in many sequences; only those that shrink what the first one shows follow it."""
    outcome = amqpspec(
        "run", "embedded:redelivered-never-set", *which, "--stop-at-first", "--seed", 5, "--out", "o",
        "--deadline", 0.3, "--jobs", 1,
    )  # fmt: skip
    assert outcome.code == 1
    report = json.loads((tmp_path / "o" / "report.json").read_text())
    ends = [row for row in read_trace(tmp_path / "o") if row["kind"] == "end" and "shrinking" not in row["sequence"]]
    assert [row["verdict"] for row in ends].index("fail") == len(ends) - 1
    assert {failure["sequence"] for failure in report["failures"]} == {ends[-1]["sequence"]}


def test_the_commands_of_a_run_before_are_gone(amqpspec: Amqpspec, tmp_path: Path) -> None:
    small = ("--only", "ACK-003", "--sequences", 0, "--jobs", 1, "--shrinking-time", 0, "--quiet", "--out", "o")
    assert amqpspec("run", "embedded:multiple-zero-ignored", *small).code == 1
    assert list((tmp_path / "o" / "failures").iterdir())
    assert amqpspec("run", "embedded", *small).code == 0
    assert not list((tmp_path / "o" / "failures").iterdir())


@pytest.mark.parametrize("fault", ["multiple-zero-ignored", "channel-limit-per-consumer"])
def test_a_fault_is_served_in_its_own_dialect(
    amqpspec: Amqpspec, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    served: list[EmbeddedBroker] = []
    monkeypatch.setattr(EmbeddedBroker, "serve_forever", lambda broker, on_ready: served.append(broker))
    assert amqpspec("serve", "--fault", fault).code == 0
    assert [broker.dialect.name for broker in served] == [fault_named(fault).dialect]


def test_an_embedded_broker_that_broke_down_says_so(amqpspec: Amqpspec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EmbeddedBroker, "serve_forever", lambda broker, on_ready: None)
    monkeypatch.setattr(EmbeddedBroker, "failures", ("the model broke down",))
    amqpspec("serve").check_error(3, "the model broke down")


def test_what_fails_no_run_does_not_stop_it(amqpspec: Amqpspec, tmp_path: Path) -> None:
    """A run that ends green was carried out as a whole."""
    listed = ["ACK-003|missing frame|basic.deliver", "STREAM-006|missing frame|basic.deliver"]
    text = "".join(f'[[deviation]]\nidentity = "{identity}"\nreason = "zero is ignored"\n' for identity in listed)
    outcome = amqpspec(
        "run", "embedded:multiple-zero-ignored", "--only", "ACK-003", "--only", "ACK-004", "--sequences", 0,
        "--stop-at-first", "--deviations", written(tmp_path, "known.toml", text), "--out", "o", "--deadline", 0.3,
        "--jobs", 1, "--quiet",
    )  # fmt: skip
    assert outcome.code == 0
    assert "Deviates from the promise only as accepted: 2 accepted deviations" in outcome.out
    ends = [row for row in read_trace(tmp_path / "o") if row["kind"] == "end" and "shrinking" not in row["sequence"]]
    assert [row["verdict"] for row in ends].index("fail") < len(ends) - 1
    assert any("ACK-004" in row["sequence"] for row in ends)


def test_what_fails_the_run() -> None:
    failure = Failure("PUBLISH-015", Shape.MISSING, "basic.deliver", "a.1 basic.get q", "nothing", (), ())
    target = TargetDescription("t", "RabbitMQ", "4.3.6", "rabbitmq-4.3")
    assert fails_the_run((), target, Gate.PROMISE)(failure)
    assert fails_the_run([Deviation("another", "r")], target, Gate.PROMISE)(failure)
    assert not fails_the_run([Deviation(failure.identity, "r")], target, Gate.PROMISE)(failure)
    arguable = replace(failure, defect="get-overtakes-deliveries")
    assert not fails_the_run((), target, Gate.PROMISE)(arguable)
    known = replace(failure, defect="quorum-consumer-count")
    assert fails_the_run((), target, Gate.PROMISE)(known)
    assert not fails_the_run((), target, Gate.KNOWN)(known)


def test_equal_seeds_make_equal_commands(amqpspec: Amqpspec, tmp_path: Path) -> None:
    for name, seed in (("one", 5), ("two", 5), ("three", 6)):
        arguments = ("--only", "ACK-001", "--sequences", 8, "--seed", seed, "--out", name)
        assert amqpspec("run", *arguments).code in (0, 4)
    assert commands_of(tmp_path / "one") == commands_of(tmp_path / "two")
    assert commands_of(tmp_path / "one") != commands_of(tmp_path / "three")


def test_a_random_seed_is_shown_and_can_be_used_again(amqpspec: Amqpspec, tmp_path: Path) -> None:
    first = amqpspec("run", "--only", "ACK-001", "--sequences", 5, "--out", "one")
    found = re.search(r"seed\s+(\d+)", first.out)
    assert found, first.out
    assert json.loads((tmp_path / "one" / "report.json").read_text())["seed"] == int(found[1])
    amqpspec("run", "--only", "ACK-001", "--sequences", 5, "--out", "two", "--seed", found[1])
    assert commands_of(tmp_path / "one") == commands_of(tmp_path / "two")


# ------------------------------------------------------------------------------------------------- failures

FAULT = "redelivered-never-set"


def test_a_deviation_is_reported_shrunk_and_can_be_replayed(amqpspec: Amqpspec, tmp_path: Path) -> None:
    arguments = ("run", f"embedded:{FAULT}", "--only", "ACK-015", "--sequences", 0, "--deadline", 0.3)
    outcome = amqpspec(*arguments, "--out", "o", "--junit", "j.xml", "--json", "r.json", "--html", "r.html")
    assert outcome.code == 1, outcome
    assert "ACK-015" in outcome.out
    assert (tmp_path / "r.html").is_file()
    assert not (tmp_path / "o" / "report.json").exists(), "it was asked for elsewhere"
    report = json.loads((tmp_path / "r.json").read_text())
    failure = next(each for each in report["failures"] if each["requirement"] == "ACK-015")
    assert {"requirement", "commands", "allowed", "observed", "reproducer"} <= set(failure)
    assert 3 <= len(failure["commands"]) <= 6, "as short as a person would write it"
    assert failure["reproducer"].strip()
    assert failure["allowed"] == ["true"]
    assert failure["rate"] == [3, 3]
    assert "ACK-015" in (tmp_path / "j.xml").read_text()

    file = min((tmp_path / "o" / "failures").glob("*-ACK-015.amqp"))
    assert file.read_text().splitlines()[1:] == failure["commands"]
    replayed = amqpspec("replay", file, f"embedded:{FAULT}")
    assert replayed.code == 1
    assert "ACK-015" in replayed.out
    assert failure["commands"][-1] in replayed.out
    assert amqpspec("replay", file, "embedded").code == 0
    checked = amqpspec("check", "o", "--out", "table.parquet")
    assert checked.code == 1
    assert "ACK-015" in checked.out
    # what was run while shrinking is judged, and counts no more than in the report
    rows = pq.read_table(tmp_path / "table.parquet").to_pylist()
    in_table = {row["requirement"] for row in rows if row["verdict"] == "fail"}
    assert in_table == {each["id"] for each in report["requirements"] if each["verdict"] == "fail"}
    repeats = re.search(r"(\d+) sequences \((\d+) that only repeat others are not counted\)", checked.out)
    assert repeats is not None and int(repeats[1]) == report["sequences"]

    known = "".join(f'[[deviation]]\nidentity = "{each["identity"]}"\nreason = "r"\n' for each in report["failures"])
    expired = '[[deviation]]\nidentity = "ACK-001|x|y"\nreason = "r"\nexpires = 2001-01-01\n'
    written(tmp_path, "d.toml", known)
    accepted = amqpspec(*arguments, "--out", "o", "--deviations", "d.toml")
    assert (accepted.code, accepted.err) == (0, "")
    written(tmp_path, "d.toml", known + expired)
    refused = amqpspec(*arguments, "--out", "o", "--deviations", "d.toml", "--update-deviations")
    problem = "ACK-001|x|y: it expired on 2001-01-01"
    assert (refused.code, refused.err) == (1, f"amqpspec: d.toml: deviation {problem}\n")
    assert f"# take out {problem}" in refused.out


def test_a_deviation_file_that_is_written_makes_the_next_run_green(tmp_path: Path, amqpspec: Amqpspec) -> None:
    limits = ("--only", "ACK-015", "--sequences", 0, "--deadline", 0.3, "--quiet", "--out", "o")
    run = ("run", f"embedded:{FAULT}", *limits)
    assert amqpspec(*run).code == 1
    assert amqpspec(*run, "--write-deviations", "d.toml").code == 0
    assert amqpspec(*run, "--deviations", "d.toml").code == 0
    # the broker is mended: the list must not stay as it is
    outcome = amqpspec("run", "embedded", *limits, "--deviations", "d.toml")
    assert outcome.code == 1
    assert "did not show it" in outcome.err
    amqpspec(*run, "--update-deviations").check_error(2, "--update-deviations needs the file")


# ---------------------------------------------------------------------------------------------- wrong usage

FILE = "a.1 queue.declare q\na.1 basic.get q\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "COMMAND"),
        ("fly", "invalid choice: 'fly'"),
        ("run --bogus", "--bogus"),
        ("run nosuchtarget", "'nosuchtarget' is no target: give amqp://"),
        ("run embedded:nosuchfault", "unknown fault 'nosuchfault'"),
        ("run embedded:redelivered-never-sent", "did you mean redelivered-never-set"),
        ("run embedded:", "'embedded:' is no target"),
        ("run docker:", "'docker:' is no target"),
        ("run process:", "'process:' is no target"),
        ("run amqp://host:port/", "the port must be a number"),
        ("run amqp://", "the host is missing"),
        ("run amqps://localhost:1/?cacertfile=nope", "cacertfile nope: No such file"),
        ("run amqps://localhost:1/?cacertfile=file.amqp", "cacertfile file.amqp: not usable"),
        ("run amqps://localhost:1/?certfile=file.amqp&keyfile=nope", "keyfile nope: No such file"),
        ("run amqps://localhost:1/?certfile=file.amqp", "certfile file.amqp: not usable"),
        ("run amqp://guest:Sesame-4711/x@host", "user or password is written"),
        ("run --only NOSUCH", "no requirement prefix 'NOSUCH'"),
        ("run --only ACKK", "no requirement prefix 'ACKK'"),
        ("run --dialect rabbitmq-5", "unknown dialect 'rabbitmq-5': choose from amqp-0-9-1"),
        ("run --mode burst", "--mode burst is not available"),
        ("run --mode chaos", "invalid choice: 'chaos'"),
        ("run --driver kombu", "invalid choice: 'kombu'"),
        ("run --seed x", "'x' is not a seed"),
        ("run --seed -1", "'-1' is not a seed"),
        ("run --seed 99999999999999999999", "beyond the greatest seed"),
        ("run --sequences -1", "'-1' is not a number of 0 or more"),
        ("run --sequences many", "'many' is not a number of 0 or more"),
        ("run --search-only --only ACK", "--only chooses scenarios, and --search-only runs none"),
        ("run --search-only --sequences 0", "leaves nothing to run"),
        ("run --theme timeouts --dialect rabbitmq-4.0", "--theme timeouts: there is nothing of it to search in"),
        ("run --steps 0", "'0' is not a number of 1 or more"),
        ("run --time-budget 0", "'0' is not a number of seconds above 0"),
        ("run --deadline nan", "'nan' is not a number of seconds above 0"),
        ("run --deadline inf", "'inf' is not a number of seconds above 0"),
        ("run --deadline 1e7", "'1e7' is beyond the longest time, 604800 seconds (a week)"),
        ("run --shrinking-time 604801", "beyond the longest time"),
        ("run --out /proc/nowhere", "/proc/nowhere: cannot be made"),
        ("run --out file.amqp", "file.amqp: cannot be made"),
        ("run --junit nowhere/j.xml", "nowhere/j.xml: there is no directory"),
        ("run --json nowhere/r.json", "nowhere/r.json: there is no directory"),
        ("run --html nowhere/r.html", "nowhere/r.html: there is no directory"),
        ("run --deviations missing.toml", "missing.toml: No such file"),
        ("run --deviations builtin:rabbitmq", "'builtin:rabbitmq' is none of builtin:broker-j-9.2, builtin:garagemq, "),
        ("run --deviations file.amqp", "file.amqp: "),
        ("replay", "FILE"),
        ("replay missing.amqp", "missing.amqp: No such file"),
        ("replay .", ".: "),
        ("replay bad.amqp", "bad.amqp:2:5: 'basic.fly' is not a method"),
        ("replay deep.amqp", "deep.amqp:1:31: tables and lists are nested too deep"),
        ("replay empty.amqp", "empty.amqp:1:1: the file holds no command"),
        ("replay nosuch.amqp", "nosuch.amqp:1:14: 'NOPE-001' is no requirement"),
        ("replay range.amqp", "range.amqp:3:1: basic.qos prefetch_count: 70000 is no unsigned integer of 16 bits"),
        ("replay huge.amqp", "huge.amqp:1:1: basic.ack delivery_tag: 18446744073709551616 is no unsigned integer of"),
        ("replay file.amqp embedded:nosuchfault", "unknown fault"),
        ("replay file.amqp --mode burst", "--mode burst is not available"),
        ("check", "TRACE"),
        ("check file.amqp --out nowhere/t.parquet", "nowhere/t.parquet: there is no directory"),
        ("requirements --show NOSUCH-001", "no requirement 'NOSUCH-001'"),
        ("requirements --show ACK-001 --only ACK", "--only: not allowed with argument --show"),
        ("requirements --only NOSUCH", "no requirement prefix 'NOSUCH'"),
        ("serve --fault nosuchfault", "unknown fault 'nosuchfault'"),
        ("serve --port 65536", "'65536' is not a port"),
        ("serve --dialect x", "unknown dialect 'x'"),
        ("faults --colour", "--colour"),
    ],
)
def test_wrong_usage(amqpspec: Amqpspec, tmp_path: Path, line: str, message: str) -> None:
    written(tmp_path, "file.amqp", FILE)
    written(tmp_path, "bad.amqp", "a.1 basic.get q\na.1 basic.fly q\n")
    written(tmp_path, "deep.amqp", f'a.1 queue.declare q arguments={{"k": {"[" * 900}{"]" * 900}}}\n')
    written(tmp_path, "empty.amqp", "# nothing\n")
    written(tmp_path, "huge.amqp", "a.1 basic.ack 18446744073709551616\n")
    written(tmp_path, "range.amqp", "a.1 queue.declare q\n\na.1 basic.qos 70000\n")
    written(tmp_path, "nosuch.amqp", f"@requirement NOPE-001\n{FILE}")
    outcome = amqpspec(*line.split())
    outcome.check_error(2, message)
    assert "Sesame" not in outcome.err
    if not line.startswith("replay huge"):
        assert not (tmp_path / "amqpspec-out" / "trace.jsonl").exists(), "nothing was started"


def test_help_and_version(amqpspec: Amqpspec) -> None:
    assert re.fullmatch(r"amqpspec \d+\.\d+\.\d+\n", amqpspec("--version").out)
    for command in ("run", "replay", "check", "requirements", "faults", "serve"):
        assert command in amqpspec("--help").out
        outcome = amqpspec(command, "--help")
        assert (outcome.code, outcome.err) == (0, "")


# ---------------------------------------------------------------------------------- targets out of reach


@pytest.mark.parametrize("command", ["run", "replay"])
def test_targets_that_do_not_let_us_in(
    amqpspec: Amqpspec, tmp_path: Path, broker: EmbeddedBroker, command: str
) -> None:
    written(tmp_path, "file.amqp", FILE)
    arguments = ["run", "--sequences", "0", "--only", "GET"] if command == "run" else ["replay", "file.amqp"]
    with socket.create_server(("127.0.0.1", 0)) as closed:
        free = closed.getsockname()[1]
    for target, message in (
        (f"amqp://guest:Sesame-4711@127.0.0.1:{free}/", "cannot connect to 127.0.0.1"),
        (url(broker, "guest:Sesame-wrong"), "refuse"),
        (url(broker, "nobody:Sesame-4711"), "refuse"),
        (url(broker, vhost="nosuchvhost"), "nosuchvhost"),
        ("amqp://guest:Sesame@nosuchhost.invalid/", "nosuchhost.invalid"),
    ):
        outcome = amqpspec(*arguments, target)
        outcome.check_error(3, message)
        assert "Sesame" not in outcome.err + outcome.out
        assert not (tmp_path / "amqpspec-out").exists()  # nothing came of it


def test_a_docker_engine_that_does_not_run(amqpspec: Amqpspec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///no/such/socket")
    amqpspec("run", "docker:amqpspec/rabbitmq:4.3").check_error(3, "no Docker engine answers")


def test_a_peer_that_does_not_speak_amqp(amqpspec: Amqpspec) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            peer, _ = server.accept()
            with peer:
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                peer.recv(1000)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        outcome = amqpspec("run", f"amqp://127.0.0.1:{server.getsockname()[1]}/", "--sequences", 0)
        thread.join(60)
    outcome.check_error(3, "127.0.0.1")


def test_a_broker_that_is_lost_on_the_way(amqpspec: Amqpspec, tmp_path: Path, broker: EmbeddedBroker) -> None:
    timer = threading.Timer(0.7, broker.stop)
    timer.start()
    began = time.monotonic()
    outcome = amqpspec("run", url(broker), "--sequences", 2000, "--seed", 1, "--out", "o", "--deadline", 1)
    timer.join()
    assert time.monotonic() - began < patience(30)
    assert outcome.code == 3, outcome
    assert "127.0.0.1" in outcome.out + outcome.err, "it says what was lost"
    assert len(list(read_trace(tmp_path / "o"))) > 50, "what was seen is on disk"
    # 0 where it was lost between two sequences: those that were completed conform
    assert amqpspec("check", "o").code in (0, 1, 4)


# ---------------------------------------------------------------------------------------------------- replay


def test_replay_shows_frames_and_verdict(amqpspec: Amqpspec, tmp_path: Path) -> None:
    file = written(tmp_path, "x.amqp", "@queue-types classic quorum\n" + FILE.replace("q\n", "q durable\n", 1))
    outcome = amqpspec("replay", file)
    assert outcome.code == 0
    assert outcome.out.count("a.1 > basic.get") >= 2
    assert outcome.out.count("a.1 < basic.get-empty") >= 2
    assert "pass (classic)" in outcome.out
    assert "pass (quorum)" in outcome.out
    assert "amqpspec-" not in outcome.out, "names as they were written"
    quiet = amqpspec("replay", file, "--quiet", "--out", "o")
    assert quiet.out == "pass (classic)\npass (quorum)\n"
    assert list(commands_of(tmp_path / "o").values()) == [["a.1 queue.declare q durable", "a.1 basic.get q"]] * 2
    assert amqpspec("check", "o").code == 0


@pytest.mark.parametrize("fault", ["redelivered-never-set", "recover-ok-missing", "return-missing"])
def test_replay_on_a_faulty_broker(amqpspec: Amqpspec, tmp_path: Path, fault: str) -> None:
    text = (
        "a.1 queue.declare q\na.1 basic.publish q body=m\na.1 basic.get q\na.1 basic.nack 1 requeue\na.1 basic.get q\n"
        "b.1 basic.recover requeue\nb.1 basic.publish nowhere mandatory\n"
    )
    file = written(tmp_path, "x.amqp", text)
    outcome = amqpspec("replay", file, f"embedded:{fault}", "--deadline", 0.3)
    assert outcome.code == 1
    assert FAULTS[fault].requirement in outcome.out
    assert "observed" in outcome.out
    assert "allowed" in outcome.out
    assert amqpspec("replay", file, "embedded").code == 0


# ----------------------------------------------------------------------------------------------------- check


def test_check_of_what_cannot_be_read(amqpspec: Amqpspec, tmp_path: Path) -> None:
    assert amqpspec("replay", written(tmp_path, "x.amqp", FILE), "--out", "o").code == 0
    lines = (tmp_path / "o" / "trace.jsonl").read_bytes().splitlines(keepends=True)
    whole = b"".join(lines)
    amqpspec("check", tmp_path / "missing.jsonl").check_error(5, "missing.jsonl")
    amqpspec("check", tmp_path).check_error(5, "holds no trace.jsonl")
    pieces = tmp_path / "pieces"
    pieces.mkdir()
    written(pieces, "other.jsonl", "")
    amqpspec("check", pieces).check_error(5, "no trace.parquet, but other.jsonl: name the file")
    for number in (1, 2):
        written(pieces, f"trace-00000{number}.jsonl", "")
    there = f"but other.jsonl to trace-000002.jsonl (3 files): a recording in pieces is one trace after cat {pieces}/"
    amqpspec("check", pieces).check_error(5, there)
    for name, octets, message in (
        ("cut.jsonl", whole[:-20], f"cut.jsonl:{len(lines)}:"),
        ("words.jsonl", b"these are words\n", "words.jsonl:1:1: not JSON"),
        ("latin.jsonl", whole + b'{"kind": "\xe9"}\n', f"latin.jsonl:{len(lines) + 1}:"),
        ("headless.jsonl", b"".join(lines[1:]), "before its start row"),
        ("kind.jsonl", lines[0] + b'{"kind": "fly", "sequence": "s"}\n', "unknown kind of row 'fly'"),
        ("dialect.jsonl", whole.replace(b"rabbitmq-4.3", b"rabbitmq-9.9"), "unknown dialect 'rabbitmq-9.9'"),
        ("not.parquet", b"PAR1 or not", "not.parquet"),
    ):
        (tmp_path / name).write_bytes(octets)
        amqpspec("check", name).check_error(5, message)


def test_check_of_a_trace_that_ends_early(amqpspec: Amqpspec, tmp_path: Path) -> None:
    amqpspec("replay", written(tmp_path, "x.amqp", FILE), "--out", "o")
    lines = (tmp_path / "o" / "trace.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "short.jsonl").write_bytes(b"".join(lines[:-1]))
    outcome = amqpspec("check", "short.jsonl")
    assert (outcome.code, outcome.err) == (4, "")
    # a failure is one all the same
    received = next(line for line in lines if b'"basic.get-empty"' in line)
    (tmp_path / "twice.jsonl").write_bytes(b"".join(lines[: lines.index(received) + 1]) + received)
    assert amqpspec("check", "twice.jsonl").code == 1


def test_check_of_several_traces(amqpspec: Amqpspec, tmp_path: Path) -> None:
    file = written(tmp_path, "x.amqp", FILE)
    for name in ("one", "two"):
        amqpspec("replay", file, "--out", name)
    outcome = amqpspec("check", "one", "two/trace.jsonl", "--out", "t.parquet")
    assert outcome.code == 0
    assert "2 sequences" in outcome.out
    assert (tmp_path / "t.parquet").is_file()
    assert amqpspec("check", "one", "three").code == 5


def test_check_tells_what_it_could_read_beside_what_it_could_not(amqpspec: Amqpspec, tmp_path: Path) -> None:
    amqpspec("run", "embedded:multiple-zero-ignored", "--only", "ACK-003", "--sequences", 0, "--jobs", 1, "--out", "o")
    whole = (tmp_path / "o" / "trace.jsonl").read_bytes()
    (tmp_path / "cut.jsonl").write_bytes(whole[:-20])
    for traces in (["cut.jsonl"], ["o", "none.jsonl"], ["none.jsonl", "o"]):
        outcome = amqpspec("check", *traces, "--out", "t.parquet")
        outcome.check_error(5, "cut short" if "cut.jsonl" in traces else "none.jsonl")
        assert "ACK-003 on embedded:multiple-zero-ignored: missing frame" in outcome.out
        assert "frames judged" in outcome.out
        assert pq.read_table(tmp_path / "t.parquet").num_rows > 0
        (tmp_path / "t.parquet").unlink()
    both = amqpspec("check", "none.jsonl", "cut.jsonl", "neither.jsonl")
    assert (both.code, both.err.count("\n")) == (5, 3)
    outcome = amqpspec("check", "none.jsonl", "--out", "t.parquet")
    assert (outcome.code, outcome.out) == (5, ""), "nothing was judged"


def test_check_quiet_says_why_it_is_inconclusive(amqpspec: Amqpspec, tmp_path: Path) -> None:
    amqpspec("replay", written(tmp_path, "x.amqp", FILE), "--out", "o")
    lines = (tmp_path / "o" / "trace.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "stopped.jsonl").write_bytes(b"".join(lines[:-1]))
    outcome = amqpspec("check", "--quiet", "stopped.jsonl")
    assert (outcome.code, outcome.err) == (4, "")
    *_, last = outcome.out.splitlines()
    assert last == "inconclusive: (search) on embedded, 1 sequence: the trace ends in the middle of the sequence"


# --------------------------------------------------------------------------------------------------- listings


def test_requirements(amqpspec: Amqpspec) -> None:
    listed = json.loads(amqpspec("requirements", "--json").out)
    assert [each["id"] for each in listed] == list(requirements())
    qos = json.loads(amqpspec("requirements", "--json", "--only", "QOS", "--only", "get-001").out)
    assert {each["id"].rsplit("-", 1)[0] for each in qos} == {"QOS", "GET"}
    shown = amqpspec("requirements", "--show", "ack-002")
    assert "ACK-002" in shown.out
    assert requirements()["ACK-002"].source.split()[0] in shown.out
    (one,) = json.loads(amqpspec("requirements", "--show", "ACK-002", "--json").out)
    assert one["statement"] == requirements()["ACK-002"].statement
    assert len(amqpspec("requirements").out.splitlines()) == len(requirements())


def test_faults(amqpspec: Amqpspec) -> None:
    listed: list[dict[str, Any]] = json.loads(amqpspec("faults", "--json").out)
    assert [set(each) for each in listed] == [{"name", "requirement", "defect"}] * len(FAULTS)
    assert [each["name"] for each in listed] == list(FAULTS)
    assert {each["requirement"] for each in listed} <= set(requirements())
    assert [line.split()[:2] for line in amqpspec("faults").out.splitlines()] == [
        [fault.name, fault.requirement] for fault in FAULTS.values()
    ]


# -------------------------------------------------------------------------------------- as a process of its own


class Process:
    """`amqpspec ARGUMENTS`, with both outputs in files."""

    def __init__(self, directory: Path, *arguments: object) -> None:
        self.out, self.err = directory / "stdout", directory / "stderr"
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = subprocess.Popen(
                [*PROGRAM, *map(str, arguments)], cwd=directory, env=environment, stdout=out, stderr=err,
                stdin=subprocess.DEVNULL,
                # a shell lets what it runs in the background ignore interrupts
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )  # fmt: skip

    def wait_for(self, condition: Any, seconds: float = 20.0) -> None:
        deadline = time.monotonic() + patience(seconds)
        while not condition():
            assert self.process.poll() is None, self.err.read_text()
            assert time.monotonic() < deadline, "it does not get there"
            time.sleep(0.02)

    def interrupt(self, by: signal.Signals = signal.SIGINT) -> Outcome:
        self.process.send_signal(by)
        return self.finish()

    def finish(self, seconds: float = 20.0) -> Outcome:
        try:
            code = self.process.wait(patience(seconds))
        finally:
            self.process.kill()
        return Outcome(code, self.out.read_text(), self.err.read_text())


def test_serve_until_interrupted(tmp_path: Path, amqpspec: Amqpspec) -> None:
    served = Process(tmp_path, "serve", "--port", 0, "--dialect", "rabbitmq-4.0", "--fault", "recover-ok-missing")
    try:
        served.wait_for(lambda: "Ctrl-C" in served.out.read_text())
        text = " ".join(served.out.read_text().split())
        found = re.search(r"RabbitMQ 4\.0 to 4\.2 at amqp://guest@127\.0\.0\.1:(\d+)/", text)
        assert found, text
        file = written(tmp_path, "x.amqp", "a.1 basic.recover requeue\n")
        target = (f"amqp://127.0.0.1:{found[1]}/", "--dialect", "rabbitmq-4.0")
        answer = amqpspec("replay", file, *target, "--deadline", 0.3)
        assert answer.code == 1
        assert "RECOVER-001" in answer.out
        quorum = "a.1 queue.declare q durable x-queue-type=quorum x-delivery-limit=-1\n" + "".join(
            f"a.1 basic.publish q body=m{number}\n" for number in range(3)
        )
        file = written(tmp_path, "y.amqp", quorum + "a.1 basic.get q\na.1 basic.nack 1 requeue\na.1 basic.get q\n")
        assert amqpspec("replay", file, *target).code == 0
        assert amqpspec("replay", file, target[0], "--dialect", "rabbitmq-4.3").code == 1, "it speaks 4.0"
        amqpspec("serve", "--port", found[1]).check_error(3, f"port {found[1]}")
    finally:
        outcome = served.interrupt()
    assert outcome.code in (0, 130)
    assert "Traceback" not in outcome.err
    assert outcome.err in ("", "amqpspec: interrupted\n")


@pytest.mark.parametrize(
    ("moment", "by", "code", "said"),
    [("scenarios", signal.SIGINT, 130, "interrupted"), ("search", signal.SIGTERM, 143, "terminated")],
)
def test_an_interrupted_run_leaves_a_trace_its_reports_and_a_clean_broker(
    tmp_path: Path, amqpspec: Amqpspec, broker: EmbeddedBroker, moment: str, by: signal.Signals, code: int, said: str
) -> None:
    limits = ("--sequences", 0, "--only", "ACK", "--only", "QUEUE", "--only", "CANCEL", "--only", "C")
    if moment == "search":
        limits = ("--sequences", 5000, "--only", "ACK-001")
    written(tmp_path, "d.toml", "# mine\n")
    listed = ("--deviations", "d.toml", "--write-deviations", "d.toml")
    running = Process(tmp_path, "run", url(broker), *limits, "--out", "o", *listed)
    trace = tmp_path / "o" / "trace.jsonl"
    mark = b'"search 2"' if moment == "search" else b'"scenario ACK-002'
    running.wait_for(lambda: trace.exists() and mark in trace.read_bytes())
    outcome = running.interrupt(by)
    assert outcome.code == code
    found = f"amqpspec: what was found till then: {Path('o') / 'report.html'}\n"
    assert outcome.err == f"amqpspec: d.toml is as it was: the run is not complete\n{found}amqpspec: {said}\n"
    report = json.loads((tmp_path / "o" / "report.json").read_text())
    assert report["lost"].startswith("interrupted after ") and report["exit_code"] == code
    assert (tmp_path / "d.toml").read_text() == "# mine\n"
    assert (tmp_path / "o" / "report.html").exists()
    assert len(list(read_trace(trace))) > 5
    assert amqpspec("check", "o").code in (0, 4)
    model = broker.responder.own.broker
    deadline = time.monotonic() + patience(5)
    while model.queues and time.monotonic() < deadline:
        time.sleep(0.02)
    assert list(model.queues) == [], "a run deletes what it made"


def test_a_reader_that_leaves_early(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*PROGRAM, "requirements", "--json"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(patience(20)) == 0
        assert process.stderr.read() == b""


def test_the_summary_is_added_to_that_of_the_job(
    amqpspec: Amqpspec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = written(tmp_path, "job.md", "# from a step before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(job))
    small = ("run", "--only", "ACK-003", "--sequences", 0, "--seed", 1, "--jobs", 1)
    assert amqpspec(*small, "--markdown", "own.md", "--badge", "b.svg").code == 0
    own = (tmp_path / "own.md").read_text()
    assert own.startswith("## ✅ ") and job.read_text() == "# from a step before\n" + own
    assert "pass" in ElementTree.parse(tmp_path / "b.svg").getroot().attrib["aria-label"]

    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "none" / "job.md"))
    outcome = amqpspec(*small)
    assert outcome.code == 0 and "the job summary was left out" in outcome.err
    amqpspec(*small, "--markdown", "none/own.md").check_error(2, "there is no directory")
