"""Each part of `python -m benchmarks` runs to its end, at a size at which the numbers mean nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpspec.conformance.traces.trace import TraceWriter
from amqpspec.model.protocol.methods import Method
from benchmarks import __main__ as command_line
from benchmarks import detection, importing, live, offline, whole
from benchmarks.full_load import full_load
from benchmarks.recordings import KINDS
from benchmarks.tables import ResultTable

#: One that the search finds within some sequences.
FAULT = "double-ack-accepted"


def column(table: ResultTable, name: str) -> list[str]:
    at = table.header.index(name)
    assert all(len(row) == len(table.header) for row in table.rows)
    return [row[at] for row in table.rows]


def test_live() -> None:
    table = live.run(["embedded"], seconds=0.01, repetitions=1, calibration=60)
    assert column(table, "target") == ["embedded"]
    assert int(column(table, "commands")[0]) >= 60


def test_whole() -> None:
    table = whole.run(["embedded"], ("--only", "ACK-001", "--sequences", "1"))
    assert column(table, "target") == ["embedded"]
    for name in ("sequences", "commands", "frames", "round trips", "judged offline, frames/s"):
        assert int(column(table, name)[0].replace(",", "")) > 0


def test_importing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "_TIMES", 1)
    table = importing.run(repetitions=1)
    assert column(table, "program") == list(importing.PROGRAMS)
    nothing, *others = (int(text.replace(",", "")) for text in column(table, "beside nothing, ms"))
    assert nothing == 0 and min(others) > 0


@pytest.mark.together("spark")
def test_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    lengths = (200, 500)
    table = offline.run(repetitions=1, fresh=True, lengths=lengths)
    traces = [kind for kind in KINDS for _ in ("jsonl", "parquet") for _ in lengths]
    assert column(table, "trace") == [*traces, "long, with known defects", "long, the law alone", "many"]
    frames = [int(text.replace(",", "")) for text in column(table, "frames")]
    assert all(measured >= least for measured, least in zip(frames, (*lengths * 4, 200, 200, 500), strict=True))


def test_generation_and_keeping_of_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results.md"
    results.write_text("# Results\n\nWhat it is.\n\n## Another part\n\nkept\n")
    monkeypatch.setattr(command_line, "RESULTS", results)
    assert command_line.main(["generation", "--targets", "embedded", "--sequences", "2"]) == 0
    assert "| embedded | 2 |" in capsys.readouterr().out
    text = results.read_text()
    assert text.startswith("# Results\n\nWhat it is.\n\n## Another part\n\nkept\n\n## Generation: ")
    assert "| embedded | 2 |" in text
    assert command_line.main(["generation", "--targets", "embedded", "--sequences", "2"]) == 0
    assert results.read_text().count("\n## ") == 2, "the same part takes the place of the last one"


def test_detection() -> None:
    table = detection.run([FAULT])
    assert column(table, "area") == ["ACK", "all"]
    assert column(table, "blamed by the search") == ["1", "1"]
    assert column(table, "blamed by scenarios") == ["1", "1"]
    assert 0 < int(column(table, "commands of scenarios")[0]) < 1000


@pytest.mark.parametrize("settled", [False, True])
def test_full_load(settled: bool) -> None:
    load = full_load("embedded", settled, warm_up=0.3, seconds=0.3)
    assert load.frames >= load.delivered > 0
    assert (load.acknowledgements > 0) is settled
    assert settled or not load.confirms


def test_a_target_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["live", "--targets", "amqp://guest:guest@127.0.0.1:1/", "--no-write"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_what_a_trace_of_a_run_holds(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "trace.jsonl") as trace:
        for name in ("one", "other"):
            trace.start(name, target="t", product="p", version="1", dialect="rabbitmq-4.3", mode="lockstep")
            trace.command(name, "a.1 basic.get q", 0.0)
            for sent, method in ((True, "basic.get"), (True, "basic.qos"), (False, "basic.get-empty")):
                trace.event(name, Method("a", 1, method, {}, sent=sent))
            trace.event(name, Method("a", 1, "basic.qos-ok", {}, sent=False))
        trace.mark("other", "overdue", 1.0, waited=2.5)
    traffic = whole.traffic_of(tmp_path / "trace.jsonl")
    assert (traffic.sequences, traffic.commands, traffic.frames, traffic.round_trips) == (2, 2, 8, 2)
    assert (traffic.overdue, traffic.waited) == (1, 2.5)
