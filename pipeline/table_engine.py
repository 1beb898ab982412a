"""What tables are made by: DuckDB in this process, or Spark where a master is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from amqpspec.pipeline.duckdb_source import duckdb_connection
from amqpspec.pipeline.spark_session import failing_in_a_line, spark_session

WHAT = "the table cannot be made"


@contextmanager
def table_engine(master: str | None) -> Iterator[Any]:
    """A session of Spark on `master`; None: a connection of DuckDB. Raises `StoreError`, `PipelineError`."""
    if master is None:
        with duckdb_connection() as connection:
            yield connection
        return
    with spark_session(master) as spark, failing_in_a_line(WHAT):
        yield spark


def arrow_of(table: Any) -> Any:
    """A DataFrame or a relation as a `pyarrow.Table`."""
    return table.toArrow() if hasattr(table, "sparkSession") else table.to_arrow_table()
