"""The trace on disk: what is written comes back, nothing is lost, and what cannot be read is named."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amqpspec.conformance.traces.trace import (
    TraceError,
    TraceRow,
    TraceWriter,
    event_row,
    jsonl_to_parquet,
    read_trace,
    row_event,
    sequences,
)
from amqpspec.conformance.traces.trace_row import MAX_BODY, measurement_row
from amqpspec.conformance.verdicts.judgement import SequenceJudgement, write_end
from amqpspec.model.broker.measurement import Measurement
from amqpspec.model.promises.verdict import Failure, Shape, Verdict
from amqpspec.model.protocol.methods import Content, Method, TraceEvent, event_of

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False),
    st.text(),
    st.text(st.characters()),  # lone surrogates as well
    st.binary(max_size=40),
    st.binary(max_size=40).map(bytearray),
    st.decimals(allow_nan=False),
    st.datetimes(timezones=st.just(UTC)).map(lambda time: time.replace(fold=0)),
    st.datetimes().map(lambda time: time.replace(fold=0)),
    st.datetimes(timezones=st.just(timezone(timedelta(hours=-3, minutes=-30)))).map(lambda time: time.replace(fold=0)),
)
keys = st.one_of(
    st.text(max_size=8),
    st.sampled_from(["$bytes", "$table", "$", "$decimal", "x-max-length"]),
    st.integers(-(2**63), 2**64 - 1),
    st.binary(max_size=4),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(keys, inner, max_size=4)),
    max_leaves=12,
)
tables = st.dictionaries(st.one_of(st.text(max_size=12), st.just("$bytes")), values, max_size=4)
bodies = st.one_of(
    st.binary(max_size=200), st.text(max_size=50).map(lambda text: text.encode("utf-8", "surrogatepass"))
)
frames = st.builds(
    event_of,
    connection=st.sampled_from(["a", "b", "c2"]),
    channel=st.integers(0, 65535),
    name=st.sampled_from(["basic.publish", "basic.deliver", "queue.declare", "socket.garbage"]),
    arguments=tables,
    sent=st.booleans(),
    content=st.one_of(st.none(), st.builds(Content, properties=tables, body=bodies)),
    time=st.floats(0, 1e9),
)


MEASUREMENT = Measurement("TIMEOUT-031", "basic.cancel", 1.75, 0.5, -0.0021, 0.1, 0.0)


def write_sequence(trace: TraceWriter, name: str, events: list[TraceEvent]) -> list[TraceRow]:
    rows = [
        trace.start(
            name, target="rabbitmq 4.3.6", product="RabbitMQ", version="4.3.6", dialect="rabbitmq-4.3",
            mode="lockstep", requirement="ACK-002", seed=7,
        )
    ]  # fmt: skip
    rows.append(trace.command(name, "a.1 basic.get q", 0.5))
    rows += [trace.event(name, event) for event in events]
    rows.append(trace.mark(name, "barrier", 0.75))
    rows.append(trace.mark(name, "quiescent", 1.0))
    rows.append(trace.mark(name, "overdue", 2.0, waited=5.0))
    end = write_end(trace, judgement(name))
    return [*rows, measurement_row(name, MEASUREMENT), end]


def judgement(name: str) -> SequenceJudgement:
    failure = Failure(
        "ACK-002", Shape.MISSING, "basic.get-ok", "a.1 basic.get q", "nothing", ("x", "y"), ("q: 1 ready",)
    )
    return SequenceJudgement(
        name, "rabbitmq 4.3.6", "rabbitmq-4.3", "ACK-002", Verdict.FAIL, (failure,), {"ACK-001": 3}, None, 2,
        measurements=(MEASUREMENT,),
    )  # fmt: skip


def frame(body: bytes | None = None, **arguments: Any) -> Method:
    content = None if body is None else Content({}, body)
    return Method("a", 1, "basic.publish", arguments, True, content, 0.25)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
@given(events=st.lists(frames, max_size=4))
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_whatever_was_written_is_read_back(tmp_path: Path, form: str, events: list[TraceEvent]) -> None:
    path = tmp_path / "trace.jsonl"
    with TraceWriter(path) as trace:
        written = write_sequence(trace, "s", events)
    if form == "parquet":
        jsonl_to_parquet(path, tmp_path / "trace.parquet")
        path = tmp_path / "trace.parquet"
    read = list(read_trace(path))
    assert read == written
    read_frames = [row_event(row) for row in read if row["kind"] == "frame"]
    assert read_frames == events
    assert [repr(event.arguments) for event in read_frames] == [repr(event.arguments) for event in events]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), Decimal("NaN"), -0.0])
def test_numbers_that_are_not_equal_to_themselves_or_look_alike_survive(tmp_path: Path, value: Any) -> None:
    with TraceWriter(tmp_path / "t.jsonl") as trace:
        trace.event("s", frame(x={"deep": [value]}))
    line = (tmp_path / "t.jsonl").read_text()
    json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    (row,) = read_trace(tmp_path / "t.jsonl")
    assert repr(row["arguments"]["x"]["deep"][0]) == repr(value)


def test_a_header_table_that_looks_like_a_tag_is_not_mistaken_for_one(tmp_path: Path) -> None:
    headers = {
        "$bytes": "AP8=",
        "other": {"$table": [[1, 2]]},
        5: "five",
        "$unknown": datetime(2024, 2, 29, tzinfo=UTC),
    }
    with TraceWriter(tmp_path / "t.jsonl") as trace:
        trace.event("s", frame(headers=headers))
    (row,) = read_trace(tmp_path / "t.jsonl")
    assert row["arguments"] == {"headers": headers}


def test_a_long_body_keeps_its_length_and_stays_equal_to_itself_only(tmp_path: Path) -> None:
    one, two = b"1" * (MAX_BODY + 5), b"2" * (MAX_BODY + 5)
    with TraceWriter(tmp_path / "t.jsonl") as trace:
        for body in (one, two, one, b"1" * MAX_BODY):
            trace.event("s", frame(body))
    assert (tmp_path / "t.jsonl").stat().st_size < MAX_BODY + 2000
    jsonl_to_parquet(tmp_path / "t.jsonl", tmp_path / "t.parquet")
    for name in ("t.jsonl", "t.parquet"):
        first, second, again, kept = [
            content.body for row in read_trace(tmp_path / name) if (content := row_event(row).content)
        ]
        assert len(first) == len(second) == MAX_BODY + 5
        assert first == again and first != second
        assert kept == b"1" * MAX_BODY


def test_a_row_is_on_disk_before_the_writer_returns(tmp_path: Path) -> None:
    """The process ends at once, without closing anything, and nothing is lost."""
    program = (
        "import os, sys\n"
        "from amqpspec.conformance.traces.trace import TraceWriter\n"
        "from amqpspec.model.protocol.methods import Method\n"
        "trace = TraceWriter(sys.argv[1])\n"
        "for n in range(3):\n"
        "    trace.event('s', Method('a', 1, 'basic.ack', {'delivery_tag': n}, True))\n"
        "os._exit(9)\n"
    )
    path = tmp_path / "t.jsonl"
    assert subprocess.run([sys.executable, "-c", program, path], check=False).returncode == 9
    assert [row["arguments"]["delivery_tag"] for row in read_trace(path)] == [0, 1, 2]


def test_labels_lose_the_user_part_of_urls(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "t.jsonl") as trace:
        trace.start("s", target="amqp://alice:s3@cret@host:5672/v", product="", version="", dialect="d", mode="burst")
    (row,) = read_trace(tmp_path / "t.jsonl")
    assert row["target"] == "amqp://host:5672/v"


def test_a_cut_last_line_is_named_and_the_lines_before_it_are_given(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    with TraceWriter(path) as trace:
        write_sequence(trace, "s", [frame(b"m1", routing_key="q")])
    whole = path.read_bytes()
    for cut in range(1, len(whole.splitlines(keepends=True)[-1]) - 1):
        path.write_bytes(whole[: -1 - cut])
        rows = read_trace(path)
        assert [next(rows)["kind"] for _ in range(7)] == ["start", "command", "frame", *["mark"] * 3, "measurement"]
        with pytest.raises(TraceError, match=r"trace\.jsonl:8:\d+: the last line is cut short"):
            next(rows)


GOOD = json.dumps(dict(event_row("s", frame(b"x", routing_key="q"))))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("{nonsense}", ":2:2: not JSON"),
        ('{"kind":"frame"} {}', ":2:17: not JSON: more than one value"),
        ("[1, 2]", ":2:1: a row must be a JSON object"),
        ('{"sequence":"s"}', ':2:1: the key "kind" is missing'),
        ('{"sequence":"s", "kind":"frames"}', ":2:18: unknown kind of row 'frames'"),
        ('{"kind":["frame"]}', ":2:2: unknown kind of row"),
        (
            GOOD.replace('"channel"', '"chanel"'),
            ':2:1: the key "channel" is missing in a row of kind "frame"',
        ),
        (GOOD.replace('"channel": 1', '"channel": "1"'), '"channel" has a value of a wrong type'),
        (GOOD.replace('"channel": 1', '"channel": true'), '"channel" has a value of a wrong type'),
        (GOOD.replace('"sent"', '"up"'), '"direction" must be one of sent, received'),
        (GOOD.replace('"body": "x"', '"body": 3'), '"body" has a value of a wrong type'),
        (GOOD.replace('"body": "x"', '"body_base64": "a"'), '"body_base64" is not base64'),
        (GOOD.replace('"body": "x"', '"body_size": 9'), "only make sense together"),
        (GOOD.replace('"body": "x"', '"body_size": -9, "body_sha256": ""'), '"body_size" is negative'),
        (GOOD.replace('"q"', '{"$bytes": 5}'), "the value of the tag $bytes is not one"),
        (GOOD.replace('"q"', '{"$datetime": "yesterday"}'), "the value of the tag $datetime is not one"),
        (GOOD.replace('"q"', '{"$table": [[[], 1]]}'), "the value of the tag $table is not one"),
        (GOOD.replace('"q"', '{"$secret": "x"}'), "unknown tag '$secret'"),
        (GOOD.replace('"q"', '{"$bytes": "", "x": 1}'), "must be the only key"),
        ("[" * 200_000, "nested too deep"),
    ],
)
def test_what_is_not_a_row_is_named_with_file_line_and_column(tmp_path: Path, line: str, expected: str) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(f"{GOOD}\n{line}\n{GOOD}\n")
    rows = read_trace(path)
    next(rows)
    with pytest.raises(TraceError) as caught:
        next(rows)
    assert str(caught.value).startswith(f"{path}:2:")
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_octets_that_are_not_utf8_are_named(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(b'{"kind": "\xff"}\n')
    with pytest.raises(TraceError, match=r":1:11: not UTF-8"):
        list(read_trace(path))


def test_unknown_keys_and_blank_lines_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(f'{GOOD[:-1]}, "later_version": 1}}\n\n  \r\n{GOOD}')
    assert len(list(read_trace(path))) == 2


def test_a_directory_stands_for_the_trace_in_it(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"holds no trace\.jsonl"):
        read_trace(tmp_path)
    with TraceWriter(tmp_path / "trace.jsonl") as trace:
        rows = write_sequence(trace, "s", [])
    jsonl_to_parquet(tmp_path, tmp_path / "trace.parquet")
    (tmp_path / "trace.jsonl").unlink()
    assert list(read_trace(tmp_path)) == rows


def test_a_trace_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    for name in ("none.jsonl", "none.parquet"):
        with pytest.raises(TraceError, match=f"{name}: the trace cannot be read"):
            list(read_trace(tmp_path / name))
    (tmp_path / "wrong.parquet").write_bytes(b"PAR1 is only how it begins")
    with pytest.raises(TraceError, match=r"wrong\.parquet: not a readable Parquet file"):
        list(read_trace(tmp_path / "wrong.parquet"))


def test_a_value_without_a_written_form_names_the_method(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "t.jsonl") as trace:
        with pytest.raises(TraceError, match=r"basic\.publish: a value of type set cannot be recorded"):
            trace.event("s", frame(x={1, 2}))
        with pytest.raises(TraceError, match="more than 64 bits"):
            trace.event("s", frame(x=2**64))
        deep: dict[str, Any] = {}
        for _ in range(5000):
            deep = {"d": deep}
        with pytest.raises(TraceError, match="nested too deep"):
            trace.event("s", frame(x=deep))


def test_interleaved_sequences_are_taken_apart_in_the_order_of_their_ends() -> None:
    rows: list[Any] = [
        {"kind": "start", "sequence": "one"},
        {"kind": "start", "sequence": "two"},
        {"kind": "command", "sequence": "one"},
        {"kind": "command", "sequence": "two"},
        {"kind": "end", "sequence": "two"},
        {"kind": "start", "sequence": "three"},
        {"kind": "end", "sequence": "one"},
        {"kind": "start", "sequence": "two"},
        {"kind": "end", "sequence": "two"},
    ]
    taken = [(group[0]["sequence"], [row["kind"] for row in group]) for group in sequences(iter(rows))]
    assert taken == [
        ("two", ["start", "command", "end"]),
        ("one", ["start", "command", "end"]),
        ("two", ["start", "end"]),
        ("three", ["start"]),
    ]
    with pytest.raises(TraceError, match="'x' comes before its start row"):
        list(sequences([{"kind": "end", "sequence": "x"}]))
    with pytest.raises(TraceError, match="'one' starts again"):
        list(sequences([rows[0], rows[0]]))


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_reading_is_flat_in_memory(tmp_path: Path, form: str) -> None:
    path = tmp_path / "trace.jsonl"
    with TraceWriter(path) as trace:
        for number in range(60_000):
            trace.event(f"s{number // 10}", frame(b"x" * 200, routing_key="q", delivery_tag=number))
    if form == "parquet":
        jsonl_to_parquet(tmp_path / "trace.jsonl", tmp_path / "trace.parquet")
        path = tmp_path / "trace.parquet"
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_trace(path)) == 60_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 12_000_000, f"{peak} octets at the peak for a trace of 60 000 rows"


@pytest.mark.parametrize("block", [1, 50, 1000])
def test_lines_are_told_apart_however_the_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    path = tmp_path / "trace.jsonl"
    rows = [f'{{"kind":"mark","sequence":"s","time":{number},"mark":"barrier"}}' for number in range(40)]
    monkeypatch.setattr("amqpspec.conformance.traces.trace._BLOCK", block)
    path.write_text("\n".join(rows))
    assert [row["time"] for row in read_trace(path)] == list(range(40))
    path.write_text("\n".join([*rows[:20], "", rows[20], '{"kind":"mark"}', *rows[21:]]) + "\n")
    with pytest.raises(TraceError, match=r"trace\.jsonl:23:\d+: the key \"sequence\" is missing"):
        list(read_trace(path))


def test_two_rows_on_one_line_and_one_on_two_are_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    row = '{"kind":"mark","sequence":"s","time":0.5,"mark":"barrier"}'
    path.write_text(f"{row},{row}\n{row}\n")
    with pytest.raises(TraceError, match=r"trace\.jsonl:1:"):
        list(read_trace(path))
    path.write_text(row.replace(",", ",\n", 1) + f"\n{row}\n")
    with pytest.raises(TraceError, match=r"trace\.jsonl:1:"):
        list(read_trace(path))
