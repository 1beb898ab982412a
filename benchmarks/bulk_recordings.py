"""Recordings of any size, made of real ones: their sequences are repeated under new names, in a store.

    python -m benchmarks.bulk_recordings STORE --frames N [--traffic | --applications | --base TRACE …] [--planted]

Every copy is judged as its original is. The default base are the sequences of searches on RabbitMQ in tests/corpus that
pass, which is hard to judge; `--traffic` records plain publishing and consuming on the embedded broker for it,
`--applications` the programs of `applications.py`, which are judged in the open world, and `--base` takes any traces,
whatever they are judged to be.
With `--planted` one violation of each kind in `benchmarks.planted` is put somewhere among them.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from amqpspec.conformance.traces.trace import TraceRow, read_trace, sequences
from amqpspec.conformance.traces.trace_parquet import GROUP_ROWS, SCHEMA, write_parquet
from amqpspec.conformance.verdicts.judge import judge
from amqpspec.model.promises.verdict import Verdict
from amqpspec.pipeline.store.adding import PART_ROWS
from amqpspec.pipeline.store.parts import Part
from amqpspec.pipeline.store.store import Store, create_store
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from benchmarks.applications import run_all
from benchmarks.errors import Invalid
from benchmarks.planted import OPEN_KINDS, planted_sequences
from benchmarks.recordings import record_long
from tests.proxies import recording

CORPUS = Path(__file__).resolve().parent.parent / "tests" / "corpus"
#: Searches in which most sequences pass.
SEARCHES = ("publishing", "topology", "traffic", "protocol")
DAY, TARGET = "2026-11-23", "generated"


def passing(files: Iterable[Path]) -> Iterator[list[TraceRow]]:
    """The sequences of traces that pass, and show no failure of any kind."""
    for file in files:
        for rows in sequences(read_trace(file)):
            judgement = judge(rows)
            if judgement.verdict is Verdict.PASS and not judgement.failures:
                yield rows


def base_of_searches() -> list[list[TraceRow]]:
    """The sequences of the corpus that recordings are made of by default."""
    files = [file for theme in SEARCHES for file in sorted(CORPUS.glob(f"rabbitmq-*-search-{theme}.parquet"))]
    return list(passing(files))


def base_of_traffic(frames: int = 5_000) -> list[list[TraceRow]]:
    """One sequence of the workload (`workload.py`), recorded now on the embedded broker.

    It is plain publishing and consuming, which is less work to judge than a search.
    """
    with tempfile.TemporaryDirectory(prefix="amqpspec-bulk-") as folder:
        file = Path(folder) / "trace.jsonl"
        record_long(file, frames)
        return list(passing([file]))


def base_of_applications(messages: int = 60) -> list[list[TraceRow]]:
    """The connections of real clients, recorded now on the embedded broker by the proxy."""
    with tempfile.TemporaryDirectory(prefix="amqpspec-bulk-") as folder, EmbeddedBroker() as broker:
        with recording(f"amqp://127.0.0.1:{broker.address.port}", Path(folder)) as proxy:
            ended = run_all(f"amqp://guest:guest@127.0.0.1:{proxy.port}/", "app", messages, 60.0)
        if ended:
            raise Invalid(f"the applications did not do their work: {ended}")
        return list(passing(sorted(Path(folder).glob("*.jsonl"))))


def generate(
    store: Store,
    base: Sequence[list[TraceRow]],
    frames: int,
    planted: Sequence[list[TraceRow]] = (),
    part_rows: int = PART_ROWS,
    run: str = "generated",
) -> int:
    """Add copies of the sequences until there are `frames` frames; gives the number of sequences.

    Those that are `planted` come once each, under their own names, spread over the recording by chance.
    """
    block = as_table([row for rows in base for row in rows])
    in_block = sum(row["kind"] == "frame" for rows in base for row in rows)
    copies = -(-frames // in_block)
    in_part = max(1, part_rows // block.num_rows)
    chance = random.Random(1)
    at: dict[int, list[list[TraceRow]]] = {}
    for rows in planted:
        at.setdefault(chance.randrange(copies), []).append(rows)
    parts = []
    for first in range(0, copies, in_part):
        numbers = range(first, min(first + in_part, copies))
        tables, added = [], []
        for number in numbers:
            names = pc.binary_join_element_wise(block.column("sequence"), f"copy {number}", " ")
            tables.append(block.set_column(SCHEMA.get_field_index("sequence"), SCHEMA.field("sequence"), names))
            for rows in at.get(number, ()):
                added.append(rows)
                tables.append(as_table(rows))
        planted_frames = sum(row["kind"] == "frame" for rows in added for row in rows)
        counts = len(numbers) * in_block + planted_frames, len(numbers) * len(base) + len(added)
        parts.append(_write(store, pa.concat_tables(tables), run, *counts))
    store.commit(parts)
    return sum(part.sequences for part in parts)


def as_table(rows: Sequence[TraceRow]) -> pa.Table:
    """Rows in the schema of traces."""
    file = Path(tempfile.gettempdir()) / f"amqpspec-{uuid4().hex}.parquet"
    try:
        write_parquet(rows, file)
        return pq.read_table(file)
    finally:
        file.unlink(missing_ok=True)


def _write(store: Store, table: pa.Table, run: str, frames: int, sequences: int) -> Part:
    numbers = pa.array(range(1, table.num_rows + 1), pa.int64())
    part = Part(uuid4().hex, DAY, TARGET, run, table.num_rows, frames, sequences, 0)
    with store.files.writing(part.trace) as unfinished:
        numbered = table.set_column(0, SCHEMA.field("row"), numbers)
        pq.write_table(numbered, unfinished, compression="zstd", row_group_size=GROUP_ROWS)
        octets = unfinished.stat().st_size
    return Part(part.id, DAY, TARGET, run, part.rows, frames, sequences, octets)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bulk_recordings", description=__doc__)
    parser.add_argument("store", metavar="STORE", help="a folder, or an address")
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--base", type=Path, nargs="+", metavar="TRACE")
    parser.add_argument("--traffic", action="store_true", help="plain publishing and consuming")
    parser.add_argument("--applications", action="store_true", help="programs with real clients, in the open world")
    parser.add_argument("--planted", action="store_true", help="one violation of each kind of benchmarks.planted")
    options = parser.parse_args(arguments)
    store = create_store(options.store)
    if options.applications:
        base = base_of_applications()
    elif options.traffic:
        base = base_of_traffic()
    elif not options.base:
        base = base_of_searches()
    else:
        base = [rows for file in options.base for rows in sequences(read_trace(file))]
    planted = []
    if options.planted and options.applications:
        planted = list(planted_sequences(base, OPEN_KINDS).values())
    elif options.planted:
        planted = list(planted_sequences(passing(sorted(CORPUS.glob("rabbitmq-4.3-*.parquet")))).values())
    made = generate(store, base, options.frames, planted)
    contents = store.contents()
    frames, octets = sum(part.frames for part in contents.parts), sum(part.octets for part in contents.parts)
    print(f"{made:,} sequences, {frames:,} frames, {octets / 1e6:,.0f} MB in {len(contents.parts):,} parts")
    return 0


if __name__ == "__main__":
    sys.exit(main())
