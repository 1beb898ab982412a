"""A store at an address: all commands on a real S3 server, and what may go wrong on the way to it."""

from __future__ import annotations

import csv
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from amqpspec.command_line import main
from amqpspec.pipeline.bulk_judging import judge_store
from amqpspec.pipeline.campaign_shrinking import shrunk_file
from amqpspec.pipeline.judging.compaction import compact
from amqpspec.pipeline.store.adding import add_trace
from amqpspec.pipeline.store.files import StoreError
from amqpspec.pipeline.store.object_files import ObjectFiles
from amqpspec.pipeline.store.store import Store, create_store, open_store
from tests.pipeline.s3_server import BUCKET, Halt, Way, files_in, s3_server, variables
from tests.pipeline.stand_in import judge, write_trace

GOOD = [(1, b"m1"), (2, b"m2")]
BAD = [(1, b"m1"), (3, b"m2")]
PLACE = f"s3://{BUCKET}/stores/nightly"


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    with s3_server(tmp_path / "served") as port:
        for name, value in variables(port).items():
            monkeypatch.setenv(name, value)
        yield port


@pytest.fixture
def traces(tmp_path: Path) -> list[Path]:
    return [
        write_trace(tmp_path / f"{n}.jsonl", "broker/1: a%2F", {f"s {n} 0": GOOD, f"s {n} 1": BAD, f"s {n} 2": GOOD})
        for n in range(3)
    ]


def results(store: Store) -> list[tuple[object, ...]]:
    """What was found, without where it is."""
    found: list[tuple[object, ...]] = []
    for part in store.contents().parts:
        assert part.judged
        with store.files.reading(part.judgements) as file:
            rows = pq.read_table(file).to_pylist()
        found += [(part.run, part.target, row["sequence"], row["verdict"], row["frames"]) for row in rows]
    return sorted(found)


#: Commands of a store, with their exit codes; after them it holds three traces.
COMMANDS = (
    ("import", "PLACE", "TRACES", "--run", "r", "--day", "2026-11-01", 0),
    ("import", "PLACE", "TRACES", "--run", "r", "--day", "2026-11-01", 0),
    ("judge", "PLACE", 1),
    ("judge", "PLACE", 0),
    ("import", "PLACE", "TRACE", "--run", "other", "--day", "2026-11-02", 0),
    ("status", "PLACE", 0),
    ("compact", "PLACE", "--grace", "0", 0),
    ("conservation", "PLACE", "--run", "r-1", 4),
    ("delete", "PLACE", "--run", "other", "--grace", "0", 0),
    ("delete", "PLACE", "--run", "other", 2),
    ("status", "PLACE", 0),
    ("judge", "--again", "PLACE", 1),
    ("table", "failures_by_identity", "PLACE", 0),
)


def said_by_all_commands(place: str, traces: list[Path], capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What the commands say, with `PLACE` for the place."""
    said = []
    for *words, code in COMMANDS:
        given = [place if word == "PLACE" else str(traces[0]) if word == "TRACE" else str(word) for word in words]
        at = given.index("TRACES") if "TRACES" in given else len(given)
        assert main(["pipeline", *given[:at], *(map(str, traces) if at < len(given) else ()), *given[at + 1 :]]) == code
        told = capsys.readouterr()
        said.append((told.out + told.err).replace(place, "PLACE"))
    return said


def test_all_commands_as_in_a_folder(
    port: int, tmp_path: Path, traces: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    said = [said_by_all_commands(place, traces, capsys) for place in (PLACE, str(tmp_path / "folder"))]
    assert said[0] == said[1]
    assert results(open_store(PLACE)) == results(open_store(tmp_path / "folder"))
    # what the page says can be carried out: `replay` takes no address
    store, page = open_store(PLACE), tmp_path / "page.html"
    assert main(["pipeline", "table", "failures", PLACE, "--rows", "1"]) == 0
    head, row = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    failure = dict(zip(head, row, strict=True))
    store.files.put(shrunk_file(failure["target"], failure["requirement"], failure["identity"]), b"a.1 basic.get q1\n")
    assert main(["pipeline", "page", PLACE, "--out", str(page)]) == 0
    assert f"amqpspec pipeline sequence {PLACE} " in page.read_text() and "replay s3://" not in page.read_text()
    assert "a.1 basic.get q1" in page.read_text()
    names = files_in(port)
    assert f"stores/nightly/traces/{open_store(PLACE).contents().parts[0].folder}/" in {
        name.rpartition("/")[0] + "/" for name in names
    }


def carried_out(*words: str) -> str:
    """What a command says, in a process of its own: workers have the variables that their session began with."""
    done = subprocess.run([sys.executable, "-m", "amqpspec", *words, "--quiet"], capture_output=True, text=True,
                          timeout=500, check=False)  # fmt: skip
    assert done.returncode in (0, 1) and done.stderr == "", done.stderr
    return done.stdout


def test_spark_needs_no_connector(port: int, tmp_path: Path, traces: list[Path]) -> None:
    stores = [create_store(PLACE), create_store(tmp_path / "folder")]
    tables = []
    for number, store in enumerate(stores):
        for trace in traces:
            add_trace(store, trace, day="2026-11-01")
        assert "9 sequences, 18 frames judged" in carried_out("pipeline", "judge", str(store), "--spark", "local[1]")
        out = tmp_path / f"{number}.csv"
        carried_out("pipeline", "table", "failures", str(store), "--out", str(out))
        tables.append(sorted(csv.reader(out.open())))
    assert results(stores[0]) == results(stores[1])
    assert tables[0] == tables[1] and len(tables[0]) > 3


def test_a_campaign(port: int) -> None:
    words = ["--store", PLACE, "--spark", "local[2]", "--run", "c", "--seed", "1", "--sequences", "45", "--steps", "3"]
    for known in ("", " (2 shares done before)"):
        assert f"0 failed{known}\n" in carried_out("campaign", "embedded", *words)
    assert sum(part.sequences for part in open_store(PLACE).contents().parts) == 45
    assert not [name for name in files_in(port) if "incoming" in name]


def test_a_file_is_put_once(port: int) -> None:
    files = ObjectFiles(PLACE)
    won = []
    threads = [
        threading.Thread(target=lambda n=n: won.extend([n] * files.put_new("x", f"{n}".encode()))) for n in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1 and files.read("x") == f"{won[0]}".encode()


def test_names_of_all_kinds(port: int) -> None:
    files = ObjectFiles(PLACE)
    names = ["a/day=2026-11-01/target=docker%3Arabbitmq/run=ü %C3%BC+(1)/x.parquet", "a/b c/%25.json"]
    for name in names:
        files.put(name, name.encode())
    assert sorted(each.path for each in files.listed("a")) == sorted(names)
    assert [files.read(name).decode() for name in names] == names
    assert files.exists(names[0]) and not files.exists("a") and not files.exists("a/b")
    with pytest.raises(FileNotFoundError):
        files.read("a/absent")
    assert files.remove(names[0]) and not files.remove(names[0])


def importing(port: int, trace: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "amqpspec", "pipeline", "import", PLACE, str(trace)],
        env={**os.environ, **variables(port)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("halt", list(Halt))
def test_killed_in_the_middle_of_a_commit(port: int, traces: list[Path], halt: Halt) -> None:
    """Then it is there as a whole, or nothing of it counts; and the next import does what is missing."""
    store = create_store(PLACE)
    add_trace(store, traces[0])
    with Way(port, "/manifest/", halt) as way, importing(way.port, traces[1]) as process:
        assert way.halted.wait(60)
        process.send_signal(signal.SIGKILL)
        process.wait()
        contents = store.contents()
        assert not contents.broken
        assert len(contents.parts) == (2 if halt is Halt.ANSWER else 1)
    assert len(store.foreign()) == (0 if halt is Halt.ANSWER else 1)
    again = add_trace(store, traces[1])
    assert again.known is (halt is Halt.ANSWER)
    assert sum(part.sequences for part in store.contents().parts) == 6
    assert judge_store(store, judge=judge).sequences == 6


def test_killed_while_a_part_is_written(port: int, traces: list[Path]) -> None:
    store = create_store(PLACE)
    with Way(port, "/traces/", Halt.HALF) as way, importing(way.port, traces[1]) as process:
        assert way.halted.wait(60)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not store.contents().parts and not store.foreign()


def test_a_commit_whose_answer_is_lost_is_known_again(port: int, traces: list[Path]) -> None:
    """The second try is told that there is one of that name: its own."""
    create_store(PLACE)
    with Way(port, "/manifest/", Halt.ANSWER, closes=True) as way, importing(way.port, traces[0]) as process:
        out, err = process.communicate(timeout=120)
    assert way.halted.is_set() and (process.returncode, err) == (0, "")
    assert out == "1 trace: 3 sequences, 6 frames\n"
    assert len([line for line in way.requests if line.startswith("PUT ") and "/manifest/" in line]) == 2
    assert len(open_store(PLACE).contents().parts) == 1


def test_two_that_import_the_same_add_it_once(port: int, traces: list[Path]) -> None:
    """Both have written their parts when the first one commits."""
    store = create_store(PLACE)
    with Way(port, "/manifest/", Halt.BEFORE, closes=True) as way, importing(way.port, traces[0]) as process:
        assert way.halted.wait(60)  # its try is lost; the next one comes when this has gone on
        added = add_trace(store, traces[0])
        out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    told = out == "1 trace, 1 that the store holds already: 0 sequences, 0 frames\n"
    assert told is not added.known, "one of them has added it"
    (part,) = store.contents().parts
    assert part.sequences == 3 and not store.foreign()


def test_a_judging_that_was_killed_goes_on(port: int, traces: list[Path]) -> None:
    store = create_store(PLACE)
    for trace in traces:
        add_trace(store, trace)
    with Way(port, "/judgements/", Halt.HALF) as way, subprocess.Popen(
        [sys.executable, "-m", "amqpspec", "pipeline", "judge", PLACE], env={**os.environ, **variables(way.port)}
    ) as process:
        assert way.halted.wait(60)
        process.send_signal(signal.SIGKILL)
    assert not any(part.judged for part in store.contents().parts)
    assert judge_store(store, judge=judge).sequences == 9
    assert not store.foreign()


def test_a_checkpoint_is_read_in_the_place_of_many_commits(port: int, tmp_path: Path) -> None:
    store = create_store(PLACE)
    for number in range(103):
        store.commit(problems=[f"problem {number}"])
    before = store.contents()
    compact(store)
    store.commit(problems=["one more"])
    with Way(port, "nothing", Halt.BEFORE) as way, pytest.MonkeyPatch.context() as context:
        context.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{way.port}")
        assert set(open_store(PLACE).contents().problems) == {*before.problems, "one more"}
        gets = [line for line in way.requests if line.startswith("GET ") and ".json" in line]
    assert len(gets) == 3, "store.json, the checkpoint, and what came after it"


@pytest.mark.parametrize("number, action", [(signal.SIGTERM, ("table", "compliance")), (signal.SIGINT, ("page",))])
def test_a_signal_ends_what_waits_for_a_server(number: signal.Signals, action: tuple[str, ...]) -> None:
    """It has the request, and does not answer."""
    with socket.create_server(("127.0.0.1", 0)) as listening, subprocess.Popen(
        [sys.executable, "-m", "amqpspec", "pipeline", *action, PLACE, *(["--out", "/dev/null"] if action == ("page",)
         else [])], env={**os.environ, **variables(listening.getsockname()[1])}, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        made, _ = listening.accept()
        with made:
            assert made.recv(1)
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (128 + number, "")
    assert err == f"amqpspec: {'terminated' if number is signal.SIGTERM else 'interrupted'}\n"


def test_what_is_wrong_is_one_line(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pipeline", "judge", PLACE]) == 2
    assert capsys.readouterr().err == f"amqpspec: {PLACE}: no store (amqpspec pipeline import makes one)\n"
    assert main(["pipeline", "status", "s3://none-of-that-name/store"]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and told.startswith("amqpspec: s3://none-of-that-name/store")
    create_store(PLACE)
    with pytest.raises(StoreError, match="the store has to be a folder"):
        _ = open_store(PLACE).root
    assert main(["pipeline", "status", "s3://user:secret@bucket/x"]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "is an address, and a directory is wanted" in told
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    assert main(["pipeline", "status", PLACE]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and told.startswith(f"amqpspec: {PLACE}: the store cannot be read: ")
