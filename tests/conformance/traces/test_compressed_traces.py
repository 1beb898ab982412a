"""Compressed JSON Lines are read like any other trace."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from amqpspec.conformance.soak.growing_trace import GrowingTrace
from amqpspec.conformance.soak.soak_trace import GzipRows
from amqpspec.conformance.traces.trace import TraceError, read_trace
from amqpspec.model.protocol.methods import event_of

pytestmark = pytest.mark.quick


def written(path: Path, count: int) -> GzipRows:
    rows = GzipRows(path)
    for number in range(count):
        event = event_of("a", 1, "basic.ack", {"delivery_tag": number}, True, time=float(number))
        rows.event("s", event)
    return rows


def test_a_directory_with_a_compressed_trace_is_one(tmp_path: Path) -> None:
    written(tmp_path / "trace.jsonl.gz", 3).close()
    assert [row["arguments"]["delivery_tag"] for row in read_trace(tmp_path)] == [0, 1, 2]


def test_what_was_flushed_is_read_while_the_file_grows(tmp_path: Path) -> None:
    rows = written(tmp_path / "trace.jsonl.gz", 2)
    rows.flush()
    growing = GrowingTrace(tmp_path / "trace.jsonl.gz")
    assert [row["time"] for row in growing.rows()] == [0.0, 1.0]
    assert [*growing.rows()] == []
    rows.event("s", event_of("a", 1, "basic.ack", {"delivery_tag": 9}, True, time=9.0))
    rows.close()
    assert [row["time"] for row in growing.rows()] == [9.0]
    assert growing.line == 3
    growing.close()


def test_one_that_is_cut_short_says_so(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl.gz"
    written(path, 50).close()
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(TraceError, match="cut short"):
        [*read_trace(path)]


def test_one_that_is_not_compressed_says_so(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl.gz"
    path.write_bytes(b'{"kind":"end"}\n')
    with pytest.raises(TraceError, match="cannot be read"):
        [*read_trace(path)]
    path.write_bytes(gzip.compress(b"not JSON\n"))
    with pytest.raises(TraceError, match=r"trace\.jsonl\.gz:1"):
        [*read_trace(path)]
