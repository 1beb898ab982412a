"""A part of the open world judged in columns: what the way row by row says, and nothing where that is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from amqpspec.conformance.traces.trace_row import TraceRow, row_line
from amqpspec.conformance.verdicts.judge import judge_open
from amqpspec.pipeline.judging import open_part
from amqpspec.pipeline.judging.open_part import Unusual, open_judgements
from amqpspec.pipeline.judging.part_judging import _judgements, judge_part
from amqpspec.pipeline.store.adding import add_trace
from amqpspec.pipeline.store.parts import Part
from amqpspec.pipeline.store.store import Store, create_store
from tests.corpus.expectations import DIRECTORY


def stored(tmp_path: Path, trace: Path) -> tuple[Store, Part]:
    store = create_store(tmp_path / "store")
    (part,) = add_trace(store, trace, run="r").parts
    return store, part


@pytest.mark.parametrize("recording", ["embedded-faults", "rabbitmq-4.0-search-traffic", "rabbitmq-4.3-scenarios"])
@pytest.mark.parametrize("batch", [8192, 50])
def test_both_ways_say_the_same(tmp_path: Path, recording: str, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_part, "_BATCH", batch)
    store = create_store(tmp_path)
    parts = add_trace(store, DIRECTORY / f"{recording}.parquet").parts
    for part in parts:
        quick = open_judgements(store.root / part.trace, part, always=True)
        assert quick == list(_judgements(store.root / part.trace, part.trace, part, judge_open))


def trace(tmp_path: Path, *changed: dict[str, Any]) -> Path:
    """Two connections in a file, the second with frames of those columns in the place of the usual ones."""
    rows: list[dict[str, Any]] = []
    for name, changes in (("one", ()), ("two", changed)):
        start = dict.fromkeys(("target", "product", "version"), "x") | {"dialect": "rabbitmq-4.3", "mode": "open"}
        rows.append({"kind": "start", "sequence": name, "requirement": None, "seed": None, **start})
        frame = {"kind": "frame", "sequence": name, "time": 1.0, "connection": "a", "channel": 1, "direction": "sent"}
        frame |= {"method": "basic.qos", "arguments": {"prefetch_count": 1}}
        rows += [frame | change for change in changes or ({},)]
    file = tmp_path / "trace.jsonl"
    file.write_bytes(b"".join(row_line(TraceRow(**row)) for row in rows))
    return file


def test_values_with_a_type(tmp_path: Path) -> None:
    odd = {"method": "queue.declare", "arguments": {"queue": "q", "arguments": {"x": b"\xff"}}}
    store, part = stored(tmp_path, trace(tmp_path, odd))
    assert len(open_judgements(store.root / part.trace, part, always=False)) == 2


@pytest.mark.parametrize("column", ["arguments", "direction", "method"])
def test_what_is_broken_is_left_to_the_other_way(tmp_path: Path, column: str) -> None:
    store, part = stored(tmp_path, trace(tmp_path))
    file = store.root / part.trace
    table = pq.read_table(file)
    values = table.column(column).to_pylist()
    values[-1] = {"arguments": "[1", "direction": "up", "method": None}[column]
    changed = table.set_column(table.schema.get_field_index(column), table.field(column), pa.array([*values]))
    pq.write_table(changed, file)
    with pytest.raises(Unusual):
        open_judgements(file, part, always=False)
    judged = judge_part(store, part)
    assert (judged.sequences, judged.broken_sequences, judged.unreadable) == (2, 1, None)


def test_a_sequence_of_the_suite_is_left_to_the_other_way(tmp_path: Path) -> None:
    store, part = stored(tmp_path, DIRECTORY / "garagemq-search.parquet")
    with pytest.raises(Unusual):
        open_judgements(store.root / part.trace, part, always=False)
