"""A store in HDFS: all commands on a real NameNode and DataNode, and kills around a commit."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from amqpspec.command_line import main
from amqpspec.pipeline.bulk_judging import judge_store
from amqpspec.pipeline.store.adding import add_trace
from amqpspec.pipeline.store.files import StoreError
from amqpspec.pipeline.store.hdfs_files import HdfsFiles
from amqpspec.pipeline.store.store import create_store, open_store
from amqpspec.pipeline.views import read_judgements
from tests.pipeline.hdfs_server import NoHdfs, hdfs
from tests.pipeline.stand_in import judge, write_trace
from tests.pipeline.test_object_store import BAD, GOOD, results, said_by_all_commands

# one of the tests uses the session of Spark, and servers are started once
pytestmark = pytest.mark.together("spark")

#: Imports a trace, and is killed before the commit has its name, or after.
KILLED = """
import os, signal, sys
import hdfs_native
from amqpspec.command_line import main
when, *words = sys.argv[1:]
rename = hdfs_native.Client.rename
def killed(self, source, name, overwrite=False):
    is_commit = "/manifest/" in name
    if is_commit and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    rename(self, source, name, overwrite)
    if is_commit:
        os.kill(os.getpid(), signal.SIGKILL)
hdfs_native.Client.rename = killed
main(words)
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    try:
        with hdfs(tmp_path_factory.mktemp("hdfs")) as found:
            yield found
    except NoHdfs as error:
        pytest.skip(f"no HDFS: {error}")


@pytest.fixture
def traces(tmp_path: Path) -> list[Path]:
    return [
        write_trace(tmp_path / f"{n}.jsonl", "broker/1: a%2F", {f"s {n} 0": GOOD, f"s {n} 1": BAD, f"s {n} 2": GOOD})
        for n in range(3)
    ]


def test_all_commands_as_in_a_folder(
    address: str, tmp_path: Path, traces: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    place = f"{address}/stores/night ly"
    said = [said_by_all_commands(each, traces, capsys) for each in (place, str(tmp_path / "folder"))]
    assert said[0] == said[1]
    found = results(open_store(place))
    assert found == results(open_store(tmp_path / "folder")) and len(found) == 9


def test_spark_needs_no_connector(spark: Any, address: str, traces: list[Path]) -> None:
    store = create_store(f"{address}/spark")
    for trace in traces:
        add_trace(store, trace)
    assert judge_store(store, "local[2]", judge=judge).sequences == 9
    assert read_judgements(spark, store).filter("verdict = 'fail'").count() == 3


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_before_or_after_a_commit_has_its_name(address: str, traces: list[Path], when: str) -> None:
    place = f"{address}/killed-{when}"
    store = create_store(place)
    subprocess.run([sys.executable, "-c", KILLED, when, "pipeline", "import", place, str(traces[0])], check=False)
    contents = store.contents()
    assert not contents.broken and len(contents.parts) == (0 if when == "before" else 1)
    assert len(store.foreign()) == (1 if when == "before" else 0)
    assert main(["pipeline", "import", place, str(traces[0])]) == 0
    (part,) = store.contents().parts
    assert part.sequences == 3


def test_a_file_is_put_once(address: str) -> None:
    files = HdfsFiles(f"{address}/once")
    won = []
    threads = [
        threading.Thread(target=lambda n=n: won.extend([n] * files.put_new("x", f"{n}".encode()))) for n in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1 and files.read("x") == f"{won[0]}".encode()
    assert files.put_new("x", f"{won[0]}".encode()), "a second try of the same"
    assert [each.path for each in files.listed("")] == ["x"]


def test_names_of_all_kinds(address: str) -> None:
    files = HdfsFiles(f"{address}/names #1 ü?")
    names = ["a/day=2026-11-01/target=docker%3Arabbitmq/run=ü %C3%BC+(1)/x.parquet", "a/b c/%25.json"]
    for name in names * 2:
        files.put(name, name.encode())
    assert sorted(each.path for each in files.listed("a")) == sorted(names) and not list(files.listed("b"))
    assert [files.read(name).decode() for name in names] == names
    assert files.exists(names[0]) and not files.exists("a") and not files.exists("a/b")
    with pytest.raises(FileNotFoundError):
        files.read("a/absent")
    with pytest.raises(FileNotFoundError), files.reading("a/absent"):
        pass
    assert files.remove(names[0]) and not files.remove(names[0])


def test_what_is_wrong_is_one_line(
    address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = f"{address}/none"
    assert main(["pipeline", "judge", place]) == 2
    assert capsys.readouterr().err == f"amqpspec: {place}: no store (amqpspec pipeline import makes one)\n"
    create_store(place)
    with pytest.raises(StoreError, match="the store has to be a folder"):
        _ = open_store(place).root
    monkeypatch.setattr("amqpspec.pipeline.store.hdfs_files._CONFIGURATION", {"dfs.client.failover.max.attempts": "1"})
    for elsewhere, why in (("hdfs://127.0.0.1:9/x", "Connection refused"), ("hdfs://service/x", "No NameNode hosts")):
        assert main(["pipeline", "status", elsewhere]) == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1 and told.startswith(f"amqpspec: {elsewhere}: the store cannot be read: {why}")
