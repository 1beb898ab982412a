"""The page of a store: its tables are made on Spark, and shown by `reports`."""

from __future__ import annotations

from pathlib import Path

from amqpspec.conformance.version import tool_version
from amqpspec.pipeline import tables
from amqpspec.pipeline.judging.judged_parts import TableSource, table_source
from amqpspec.pipeline.store.files import whole_file
from amqpspec.pipeline.store.store import open_store
from amqpspec.pipeline.table_engine import arrow_of, table_engine
from amqpspec.pipeline.views import judgements_of
from amqpspec.reports.store_page import render_store


def make_page(store: Path | str, master: str | None, out: Path) -> TableSource:
    """Write the page of what was judged in the store. Raises `StoreError`, `PipelineError`."""
    opened = open_store(store)
    source = table_source(opened)
    with table_engine(master) as engine:
        judgements = judgements_of(engine, opened, source.judged)
        compliance, failures, latency = (
            arrow_of(table(judgements)).to_pylist()
            for table in (tables.compliance, tables.failures_by_identity, tables.latency)
        )
    page = render_store(opened.name, compliance, failures, latency, f"amqpspec {tool_version()}")
    with whole_file(out.absolute()) as unfinished:
        unfinished.write_text(page, encoding="utf-8")
    if not compliance:
        source.problems.append(f"{opened}: no sequence that counts says anything of a requirement")
    return source
