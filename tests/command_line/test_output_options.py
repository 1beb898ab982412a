"""Each option that names a file to write: a link stays a link; what is no file is written to, or refused in a line."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from amqpspec.command_line import main
from tests.patience import patience

pytestmark = [pytest.mark.full, pytest.mark.together("options")]

RUN = "run embedded:get-empty-with-messages --only GET-001 --sequences 0 --jobs 1 --quiet --shrinking-time 0"
#: A command with each option that names a file, which `{}` is; its exit code.
OPTIONS = {
    f"{RUN} --html {{}}": 1, f"{RUN} --json {{}}": 1, f"{RUN} --junit {{}}": 1, f"{RUN} --markdown {{}}": 1,
    f"{RUN} --badge {{}}": 1, f"{RUN} --parquet {{}}": 1, f"{RUN} --write-deviations {{}}": 1,
    "check made --out {}": 1, "report made --out {}": 0, "diff made made --html {}": 0,
    "diff made made --markdown {}": 0,
}  # fmt: skip
SLOW = {"profile embedded --toml {}": 0, "pipeline table coverage store --out {}": 0, "pipeline page store --out {}": 0}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("options")
    assert main([*RUN.split(), "--out", str(directory / "made")]) == 1
    assert main(["pipeline", "import", str(directory / "store"), str(directory / "made")]) == 0
    assert main(["pipeline", "judge", str(directory / "store")]) == 1
    return directory


@pytest.fixture(autouse=True)
def here(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "made").symlink_to(place / "made")
    (tmp_path / "store").symlink_to(place / "store")
    (tmp_path / "there").mkdir()
    return tmp_path


def each_option(line: str) -> str:
    return line.replace("{}", "").split(" --")[-1] if line.startswith("run") else line


@pytest.mark.parametrize(
    "line", [*OPTIONS, *(pytest.param(line, marks=pytest.mark.full) for line in SLOW)], ids=each_option
)
def test_a_link_is_followed(line: str, here: Path) -> None:
    suffix = ".parquet" if "table" in line else ""
    (here / f"link{suffix}").symlink_to(f"there/file{suffix}")
    assert main(line.format(f"link{suffix}").split()) == {**OPTIONS, **SLOW}[line]
    assert (here / f"link{suffix}").is_symlink()
    assert [each.name for each in (here / "there").iterdir()] == [f"file{suffix}"]
    assert (here / "there" / f"file{suffix}").stat().st_size


@pytest.mark.parametrize("line", OPTIONS, ids=each_option)
def test_a_pipe_with_a_reader_gets_all_of_it(line: str, here: Path) -> None:
    os.mkfifo(here / "fifo")
    reading = os.open(here / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reading, True)
    found: list[bytes] = []

    def read() -> None:
        select.select([reading], [], [])  # until there was a writer, a read says that there is none any more
        with os.fdopen(reading, "rb") as file:
            found.append(file.read())

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    assert main(line.format("fifo").split()) == OPTIONS[line]
    thread.join(patience(30))
    assert (here / "fifo").is_fifo() and found and found[0]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("line", [*OPTIONS, *SLOW], ids=each_option)
@pytest.mark.parametrize("what", ["fifo", "folder"])
def test_a_pipe_that_nobody_reads_and_a_directory_are_refused(
    line: str, what: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"{what}.parquet" if "table" in line else what
    if what == "fifo":
        os.mkfifo(here / name)
    else:
        (here / name).mkdir()
        if line.startswith("report"):
            return  # it is put into it
    assert main(line.format(name).split()) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"amqpspec: {name}: cannot be written: ") and said.count("\n") == 1


@pytest.mark.parametrize("option", ["--json", "--html", "--markdown", "--junit", "--badge", "--write-deviations"])
def test_standard_output(option: str, here: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "amqpspec", *RUN.split(), option, "/dev/stdout"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert ("<svg" if option == "--badge" else "PUBLISH-002") in done.stdout
    assert len(done.stdout.splitlines()) > 1, "what is printed is there as well"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("line", [
    RUN + " --out d", "replay f.amqp embedded --out d", "record --upstream amqp://127.0.0.1:1 --out d",
])  # fmt: skip
def test_a_trace_is_a_file(line: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "f.amqp").write_text("a.1 queue.declare q\n")
    (here / "d").mkdir()
    os.mkfifo(here / "d" / "trace.jsonl")
    assert main(line.split()) == 2
    assert "trace.jsonl" in capsys.readouterr().err
