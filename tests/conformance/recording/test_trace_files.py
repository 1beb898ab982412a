"""A recording in several files: each is whole when it has its name, and together they are the trace."""

from __future__ import annotations

from pathlib import Path

from amqpspec.conformance.recording.trace_files import TraceFiles
from amqpspec.conformance.traces.trace import read_trace
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.methods import SocketEvent


def test_files_get_their_names_when_they_are_whole(tmp_path: Path) -> None:
    files = TraceFiles(tmp_path, 10)
    files.next_file()
    assert list(tmp_path.iterdir()) == [], "nothing was written"
    files.start("s", target="t", product="p", version="1", dialect="rabbitmq-4.0", mode="open")
    assert list(tmp_path.glob("*.jsonl")) == []
    files.next_file()
    files.event("s", SocketEvent("a", 0, "socket.open", {}, sent=True))
    files.end("s", Verdict.NOT_EXERCISED, (), {})
    files.close()
    names = ["trace-000001.jsonl", "trace-000002.jsonl"]
    assert sorted(file.name for file in tmp_path.iterdir()) == names
    assert [[row["kind"] for row in read_trace(tmp_path / name)] for name in names] == [["start"], ["frame", "end"]]
