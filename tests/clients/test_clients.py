"""`python -m tests --clients`: what is told of a client's suite, shown by a small one that is not downloaded."""

from __future__ import annotations

import shutil
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from amqpspec.testing import EmbeddedBroker
from tests.__main__ import main
from tests.clients import all as clients
from tests.clients import sources as clients_sources
from tests.clients.all import MISUSED, NOT_TO_BE_HAD, OTHERWISE, RIGHT, differences
from tests.clients.runs import run
from tests.clients.sources import NotToBeHad, downloaded
from tests.clients.suites import BY_CHANCE, SUITES, ClientSuite

_PROGRAM = """
import os
import pika
import pytest

def connected():
    place = os.environ["RABBITMQ_HOST"], int(os.environ["RABBITMQ_5672_TCP"])
    return pika.BlockingConnection(pika.ConnectionParameters(*place))

class test_queues:
    def test_declared(self):
        with connected() as connection:
            assert connection.channel().queue_declare("").method.message_count == 0

    @pytest.mark.parametrize("way", ["plain", "tls"])
    def test_ways(self, way):
        assert way == "plain"

def test_skipped():
    pytest.skip("not today")
"""
_NAME = "test_small.test_queues"


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    (tmp_path / "test_small.py").write_text(_PROGRAM, encoding="utf-8")
    return tmp_path


def small(**known: str) -> ClientSuite:
    return ClientSuite("small", "1", ("test_small.py",), {f"*{key}]": why for key, why in known.items()})


def test_it_is_run_on_the_embedded_broker(sources: Path) -> None:
    with EmbeddedBroker() as broker:
        results = run(small(), sources, broker.address)
    assert results == {
        f"{_NAME}.test_declared": True,
        f"{_NAME}.test_ways[plain]": True,
        f"{_NAME}.test_ways[tls]": False,
    }


@pytest.mark.parametrize(
    ("suite", "code", "said"),
    [
        (small(tls="no certificates"), RIGHT, ["small 1: 2 passed, 1 failed, 0 otherwise than known"]),
        (small(), OTHERWISE, [f"  {_NAME}.test_ways[tls] fails"]),
        (
            small(tls="none", plain="old"),
            OTHERWISE,
            [f"  {_NAME}.test_ways[plain] passes, and is known to fail: old"],
        ),
    ],
)
def test_what_is_told(
    suite: ClientSuite,
    code: int,
    said: list[str],
    sources: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(clients, "SUITES", (suite,))
    monkeypatch.setattr(clients, "downloaded", lambda suite, directory: sources)
    assert clients.main() == code
    assert set(said) <= set(capsys.readouterr().out.splitlines())


def test_what_cannot_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(clients, "SUITES", (small(),))
    monkeypatch.setattr(clients, "downloaded", lambda suite, directory: tmp_path)
    assert clients.main() == NOT_TO_BE_HAD
    assert "small 1: its tests cannot be run: " in capsys.readouterr().out
    with EmbeddedBroker() as broker, pytest.raises(NotToBeHad):
        run(small(), tmp_path, broker.address)


def test_tests_that_debian_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pool").mkdir()
    with tarfile.open(tmp_path / "pool" / "small.orig.tar.gz", "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("small-1/tests/test_small.py"))
    monkeypatch.setattr(clients_sources, "_POOL", (tmp_path / "pool").as_uri())
    suite = ClientSuite("small", "1", ("tests",), debian="small.orig.tar.gz")
    sources = downloaded(suite, tmp_path)
    assert sources == tmp_path / "small-1" and (sources / "tests" / "test_small.py").exists()
    with pytest.raises(NotToBeHad, match=r"cannot be downloaded from .*/none\.orig\.tar\.gz: "):
        downloaded(replace(suite, debian="none.orig.tar.gz"), tmp_path)


def test_a_pattern_that_no_test_has_is_told() -> None:
    assert differences({"a": True}, {"b*": "why"}) == ["no test is named b*"]
    assert differences({"a": True, "b": False}, {"?": f"{BY_CHANCE}why"}) == []


def test_each_suite_says_why() -> None:
    assert all(why for suite in SUITES for why in suite.known.values())


_PROGRAM_OF_NODE = """
const { describe, it } = require("node:test");
const assert = require("node:assert");
const net = require("node:net");

describe("small", () => {
  it("is where the broker is", (_test, done) => {
    const socket = net.connect({ port: 5672 });
    socket.on("data", (data) => {
      socket.destroy();
      done(data[0] === 1 ? undefined : new Error("no method"));
    });
    socket.on("error", done);
    socket.write("AMQP\\x00\\x00\\x09\\x01");
  });
  describe("inside", () => {
    it("fails", () => assert.fail());
    it("is skipped", { skip: true }, () => {});
  });
});
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_one_of_node(tmp_path: Path) -> None:
    (tmp_path / "small.test.js").write_text(_PROGRAM_OF_NODE, encoding="utf-8")
    suite = ClientSuite("small", "1", ("small.test.js",), is_of_node=True)
    with EmbeddedBroker() as broker:
        results = run(suite, tmp_path, broker.address)
    assert results == {"small.is where the broker is": True, "small.inside.fails": False}


def test_without_node(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(clients, "SUITES", (ClientSuite("small", "1", ("small.test.js",), is_of_node=True),))
    monkeypatch.setattr(clients_sources.shutil, "which", lambda name: None)
    assert clients.main() == NOT_TO_BE_HAD
    assert capsys.readouterr().out == "small 1: not run, as Node and npm are not installed\n"


def test_where_the_broker_is_in_files(sources: Path) -> None:
    program = (sources / "test_small.py").read_text(encoding="utf-8")
    asked = 'os.environ["RABBITMQ_HOST"], int(os.environ["RABBITMQ_5672_TCP"])'
    (sources / "test_small.py").write_text(program.replace(asked, "'localhost', 5672"), encoding="utf-8")
    suite = replace(small(), places={"test_small.py": ("'localhost', 5672", "'{host}', {port}")})
    with EmbeddedBroker() as broker:
        assert run(suite, sources, broker.address)[f"{_NAME}.test_declared"]


def test_a_suite_of_which_nothing_is_run_is_not_right(sources: Path) -> None:
    with EmbeddedBroker() as broker, pytest.raises(NotToBeHad, match=r"none of its tests was run"):
        run(replace(small(), options=("-k", "test_skipped")), sources, broker.address)


def test_a_target_that_means_nothing(
    sources: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(clients, "SUITES", (small(),))
    monkeypatch.setattr(clients, "downloaded", lambda suite, directory: sources)
    assert clients.main("nowhere") == MISUSED
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert main(["--clients", "one", "another"]) == MISUSED
