"""docs/trace-format.md says what the code does."""

from __future__ import annotations

import json
import re
from pathlib import Path

from amqpspec.conformance.traces.trace import read_trace, sequences
from amqpspec.conformance.traces.trace_parquet import SCHEMA
from amqpspec.conformance.traces.trace_row import row_problem
from amqpspec.conformance.traces.trace_values import decode_value, encode_value

DOCUMENT = (Path(__file__).parents[3] / "docs" / "trace-format.md").read_text(encoding="utf-8")


def test_the_examples_are_one_trace(tmp_path: Path) -> None:
    blocks = re.findall(r"```json\n(.*?)```", DOCUMENT, flags=re.DOTALL)
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(blocks))
    (rows,) = sequences(read_trace(path))
    assert [row["kind"] for row in rows] == [
        "start", "command", "frame", "frame", "mark", "mark", "mark", "measurement", "end"
    ]  # fmt: skip


def test_every_kind_of_row_has_a_section() -> None:
    kinds = re.findall(r"^### (\w+)$", DOCUMENT, flags=re.MULTILINE)
    for kind in kinds:
        problem = row_problem({"kind": kind})
        assert problem is not None and "missing" in problem[1]
    assert row_problem({"kind": "another"}) == ("kind", "unknown kind of row 'another'")
    assert len(kinds) == 6


def test_the_table_of_columns_is_the_schema() -> None:
    section = DOCUMENT[DOCUMENT.index("## Parquet") :]
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|", section, flags=re.MULTILINE)
    assert rows == [(field.name, str(field.type)) for field in SCHEMA]


def test_every_tag_has_an_example_that_survives() -> None:
    section = DOCUMENT[DOCUMENT.index("## Values that JSON lacks") : DOCUMENT.index("## What is never")]
    examples = [json.loads(text) for text in re.findall(r"`(\{.*?\})` \|", section)]
    assert [next(iter(example)) for example in examples] == re.findall(r"^\| `(\$\w+)`", section, re.MULTILINE)
    for example in examples:
        assert encode_value(decode_value(example)) == example
