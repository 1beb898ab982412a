"""The page of a store: its tables are made by DuckDB or on Spark, and shown by `reports`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from amqpspec.conformance.traces.trace_row import TraceError
from amqpspec.conformance.version import tool_version
from amqpspec.pipeline import tables
from amqpspec.pipeline.campaign_shrinking import shrunk_file
from amqpspec.pipeline.judging.judged_parts import TableSource, table_source
from amqpspec.pipeline.judging.kept_conservation import read_kept, rows_of_kept
from amqpspec.pipeline.one_sequence import again, find_sequence
from amqpspec.pipeline.store.any_files import AddressedFiles
from amqpspec.pipeline.store.files import StoreError, whole_file
from amqpspec.pipeline.store.parts import Part
from amqpspec.pipeline.store.store import Store, open_store
from amqpspec.pipeline.table_engine import arrow_of, table_engine
from amqpspec.pipeline.views import judgements_of
from amqpspec.reports.store_page import StoreTables, render_store

#: Failures whose sequences are shown.
_MOST_SHOWN = 40
#: Of a sequence.
_MOST_COMMANDS = 60


def make_page(store: Path | str, master: str | None, out: Path) -> TableSource:
    """Write the page of what was judged in the store. Raises `StoreError`, `PipelineError`."""
    opened = open_store(store)
    source = table_source(opened)
    made = (
        tables.compliance, tables.failures_by_identity, tables.latency, tables.regressed, tables.flaky
    )  # fmt: skip
    with table_engine(master) as engine:
        judgements = judgements_of(engine, opened, source.judged)
        compliance, failures, latency, regressed, flaky = (arrow_of(table(judgements)).to_pylist() for table in made)
    conservation = [row | {"stale": kept["stale"]} for kept in read_kept(opened) for row in rows_of_kept(kept)]
    shown = [*regressed, *(row for row in failures if not row["as_known"])]
    sequences = dict(_sequences(opened, source, shown, out.absolute().parent))
    content = StoreTables(compliance, failures, latency, regressed, flaky, conservation, sequences)
    page = render_store(opened.name, content, f"amqpspec {tool_version()}")
    with whole_file(out.absolute()) as unfinished:
        unfinished.write_text(page, encoding="utf-8")
    if not compliance:
        source.problems.append(f"{opened}: no sequence that counts says anything of a requirement")
    return source


def _sequences(
    store: Store, source: TableSource, rows: Iterable[Mapping[str, Any]], beside: Path
) -> Iterable[tuple[tuple[str, str], dict[str, Any]]]:
    """By target and identity of a failure: the sequence that shows it, its commands, and how to carry it out again."""
    told: set[tuple[str, str]] = set()
    for row in rows:
        key = row["target"], row["identity"]
        if key in told or len(told) == _MOST_SHOWN:
            continue
        told.add(key)
        parts = [part for part in source.judged if _has(part, row)]
        try:
            found = find_sequence(store, parts, row["sequence"])
        except (StoreError, TraceError) as error:
            source.problems.append(str(error))
            continue
        if found is None:
            continue
        shrunk = shrunk_file(row["target"], row["requirement"], row["identity"])
        has_shrunk = store.files.exists(shrunk)
        commands = found.commands
        yield key, {
            "name": found.name,
            "run": found.part.run,
            "commands": commands[:_MOST_COMMANDS],
            "more": max(0, len(commands) - _MOST_COMMANDS),
            # `replay` takes files of this machine
            "again": again(store, found.part, found.name, bool(commands), _file(store, shrunk) if has_shrunk else None),
            "shrunk": store.files.read(shrunk).decode() if has_shrunk else "",
            "trace": _link(store, found.part, beside),
        }


def _has(part: Part, row: Mapping[str, Any]) -> bool:
    return (part.target, part.run, part.day) == (row["target"], row["run"], str(row["day"]))


def _file(store: Store, path: str) -> str | None:
    """The path of a file of the store; None: it is at an address."""
    return None if isinstance(store.files, AddressedFiles) else store.named(path)


def _link(store: Store, part: Part, beside: Path) -> str:
    """From the page to the file with the sequence; "": there is none on this machine."""
    file = _file(store, part.trace)
    return "" if file is None else Path(os.path.relpath(file, beside)).as_posix()
