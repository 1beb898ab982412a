"""The compliance table as a Parquet file."""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from amqpspec.pipeline.table import ComplianceTable, TableRow

TABLE_SCHEMA = pa.schema(
    [
        pa.field(each.name, pa.int64() if each.type == "int" else pa.string(), nullable=False)
        for each in fields(TableRow)
    ]
)


def write_table(table: ComplianceTable, path: Path | str) -> None:
    """Saves the rows as Parquet, with the columns of `TableRow`. Raises OSError."""
    rows = [asdict(row) for row in table.rows]
    pq.write_table(pa.Table.from_pylist(rows, schema=TABLE_SCHEMA), path)
