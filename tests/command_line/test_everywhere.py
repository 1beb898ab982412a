"""Every subcommand where little is given: without the extras, in the locale C, in a terminal of 32 columns."""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import re
import shlex
import shutil
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from amqpspec.command_line import main
from amqpspec.command_line.options import build_parser
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from tests.patience import patience

pytestmark = [pytest.mark.full, pytest.mark.together("everywhere")]

PROGRAM = [sys.executable, "-m", "amqpspec"]
ROOT = Path(__file__).parents[2]
LOCALE_C = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
FAULTY = "embedded:get-empty-with-messages"

#: Each subcommand with arguments, and the exit code that it has where nothing is missing. They go from one to another.
LINES = {
    "run": (f"run {FAULTY} --only GET-001 --sequences 0 --jobs 1 --out öut", 1),
    "replay": ("replay ä.amqp", 0),
    "check": ("check plain", 1),
    "coverage": ("coverage plain", 0),
    "diff": ("diff plain plain", 0),
    "diff --deviations": ("diff plain rabbitmq-3 --deviations builtin:rabbitmq-4.3", 0),
    "report": ("report plain --out ö.html", 0),
    "profile": ("profile embedded --toml ö.toml", 0),
    "requirements": ("requirements --only ACK", 0),
    "requirements --show": ("requirements --show ACK-001", 0),
    "requirements --search": ("requirements --search prefetch", 0),
    "faults": ("faults", 0),
    "faults --right": ("faults --right", 0),
    "explore": ("explore settlement --states 50 --jobs 1 --out öut", 0),
    "soak": ("soak embedded --seconds 1 --faults client --out söak", 0),
    "campaign": ("campaign embedded --store campaigns --sequences 2", 0),
    "pipeline import": ("pipeline import store plain --run r", 0),
    "pipeline judge": ("pipeline judge store --again", 1),
    "pipeline compact": ("pipeline compact store", 0),
    "pipeline delete": ("pipeline delete store --day 2000-01-01", 0),
    "pipeline status": ("pipeline status store", 0),
    "pipeline sequence": ("pipeline sequence store 'scenario GET-001 classic' --run r", 0),
    "pipeline conservation": ("pipeline conservation store --run r", 0),
    "pipeline table": ("pipeline table coverage store", 0),
    "pipeline page": ("pipeline page store --out ö.html", 0),
    "pipeline live": ("pipeline live incoming --out lives --until-done", 0),
}  # fmt: skip
#: These serve until somebody ends them, and have a line for it.
SERVING = {
    "serve": "serve --port 0",
    "record": "record --upstream amqp://127.0.0.1:{} --listen 127.0.0.1:0 --out recöd",
}
#: What a base install cannot do, and the extra that it names.
NEEDS = {
    "campaign": "parquet", "pipeline import": "parquet", "pipeline judge": "parquet", "pipeline compact": "parquet",
    "pipeline delete": "parquet", "pipeline status": "parquet", "pipeline conservation": "parquet",
    "pipeline table": "parquet", "pipeline page": "parquet", "pipeline live": "spark", "pipeline sequence": "parquet",
}  # fmt: skip
BASE = """
import sys


class Refuses:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyarrow", "pyspark", "py4j", "dpkt", "mkdocs"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Refuses())
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a run, a store, and a command file whose name and text are not ASCII."""
    directory = tmp_path_factory.mktemp("everywhere")
    (directory / "ä.amqp").write_text("a.1 queue.declare q…ö\na.1 basic.get q…ö\n", encoding="utf-8")
    (directory / "incoming").mkdir()
    # what shrinking leaves depends on the time that it had
    sizes = ("--sequences", "0", "--jobs", "1", "--shrinking-time", "0")
    words = ("--only", "GET-001", *sizes, "--quiet", "--out", str(directory / "plain"))
    assert main(["run", FAULTY, *words]) == 1
    assert main(["pipeline", "import", str(directory / "store"), str(directory / "plain"), "--run", "r"]) == 0
    assert main(["pipeline", "judge", str(directory / "store")]) == 1
    assert main(["replay", str(directory / "ä.amqp"), "--quiet", "--out", str(directory / "right")]) == 0
    shutil.move(directory / "right/trace.jsonl", directory / "incoming")
    return directory


@pytest.fixture
def here(place: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(place, tmp_path / "here"))


def done(here: Path, line: str, **more: str) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **more}
    command = [*PROGRAM, *shlex.split(line)]
    return subprocess.run(
        command, cwd=here, env=environment, capture_output=True, timeout=patience(120), check=False
    )


def names(parser: argparse.ArgumentParser, before: str = "") -> Iterator[str]:
    """Of the subcommands, with those of `pipeline`."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, each in action.choices.items():
                inner = list(names(each, f"{name} "))
                yield from inner or [before + name]


def test_no_subcommand_is_left_out() -> None:
    assert set(names(build_parser())) == {each for each in (*LINES, *SERVING) if " --" not in each}


@pytest.mark.parametrize("name", LINES)
def test_in_a_base_install(name: str, here: Path) -> None:
    (here / "base").mkdir()
    (here / "base" / "sitecustomize.py").write_text(BASE)
    line, code = LINES[name]
    ended = done(here, line, PYTHONPATH=f"{here / 'base'}:{ROOT}")
    if (extra := NEEDS.get(name)) is None:
        assert (ended.returncode, ended.stderr) == (code, b"")
    else:
        said = f"amqpspec: pyarrow is missing for amqpspec {name}: pip install 'amqpspec[{extra}]'\n"
        assert (ended.returncode, ended.stdout, ended.stderr.decode()) == (2, b"", said)


def test_a_capture_in_an_install_without_its_extra(here: Path) -> None:
    (here / "base").mkdir()
    (here / "base" / "sitecustomize.py").write_text(BASE.replace('"pyarrow", "pyspark", "py4j", ', ""))
    (here / "c.pcap").write_bytes(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"))
    ended = done(here, "pipeline import store c.pcap", PYTHONPATH=f"{here / 'base'}:{ROOT}")
    assert (ended.returncode, ended.stderr.decode().count("\n")) == (2, 1)
    assert "dpkt is missing" in ended.stderr.decode() and "amqpspec[capture]" in ended.stderr.decode()


@pytest.mark.parametrize("name", LINES)
def test_in_the_locale_c(name: str, here: Path) -> None:
    """What it lacks is shown as a question mark, and names of files are what they are."""
    line, code = LINES[name]
    ended = done(here, line, **LOCALE_C)
    assert (ended.returncode, ended.stderr) == (code, b"")
    assert max(ended.stdout, default=0) < 128


@pytest.mark.parametrize("line", [
    "run embedded --only GET-001 --sequences 0 --jobs 1 --out öut --parquet ö.parquet --store störe",
    "check ö.parquet", "pipeline import störe plain", "campaign embedded --store störe --sequences 1",
])  # fmt: skip
def test_names_that_the_locale_cannot_read_cost_no_verdict(line: str, here: Path) -> None:
    (here / "ö.parquet").touch()
    ended = done(here, line, **LOCALE_C)
    assert ended.returncode == (0 if line.startswith("run") else ended.returncode)
    assert ended.returncode in (0, 2, 5)
    assert b"Traceback" not in ended.stderr and ended.stderr.count(b"\n") <= 2


@pytest.mark.parametrize("name", SERVING)
def test_what_serves_in_the_locale_c(name: str, here: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **LOCALE_C}
    with EmbeddedBroker() as broker, subprocess.Popen(
        [*PROGRAM, *SERVING[name].format(broker.address.port).split()], cwd=here, env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None and process.stderr is not None
        assert re.search(rb"127\.0\.0\.1:\d+", process.stdout.readline())
        process.terminate()  # SIGINT may be ignored where these tests run in the background
        assert b"Traceback" not in process.stderr.read()
        assert process.wait(patience(60)) in (0, 143)


def in_a_terminal(here: Path, line: str, columns: int) -> tuple[int, str]:
    """What is shown there, without the sequences that steer the terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    hidden = {"COLUMNS", "LINES", "CI", "NO_COLOR", "GITHUB_STEP_SUMMARY"}
    environment = {name: text for name, text in os.environ.items() if name not in hidden}
    environment |= {"PYTHONPATH": str(ROOT), "TERM": "xterm", "PYTHONUTF8": "1"}
    with subprocess.Popen(
        [*PROGRAM, *shlex.split(line)], cwd=here, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 65536):
                shown += part
        except OSError:
            pass  # all that had it open have ended
        os.close(ours)
        code = process.wait(patience(120))
    return code, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode()).replace("\r", "")


#: A number that is cut off, or a column in which there was no room for one.
CUT = re.compile(r"\d[\d,]*…|^ *…|… {2,}|…$(?<= …)", re.MULTILINE)


@pytest.mark.parametrize("name", LINES)
def test_in_a_narrow_terminal(name: str, here: Path) -> None:
    line, code = LINES[name]
    ended, shown = in_a_terminal(here, line, 32)
    assert ended == code, shown
    assert "Traceback" not in shown
    # a failure's line ends where it must
    listed = [each for each in shown.splitlines() if not each.startswith(("✗", "≈"))]
    assert not CUT.search("\n".join(listed)), shown


def test_numbers_are_the_same_in_any_width(here: Path) -> None:
    """Those of the sums of a run, and of the table of its requirements."""
    for line in (LINES["run"][0], LINES["check"][0], LINES["pipeline table"][0]):
        found = []
        for columns in (200, 32):
            _, shown = in_a_terminal(here, line + (" --seed 1" if line.startswith("run") else ""), columns)
            found.append(sorted(re.findall(r"(?<![\w.:-])\d+(?![\w.:-])", shown.split("What the failures")[-1])))
        assert found[0] == found[1], line
