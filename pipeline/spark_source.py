"""Files of a store at an address as a DataFrame: a data source of Spark whose tasks read them as all tasks do here.

So no worker needs Hadoop's connector, whose bundle for S3 alone is half a gigabyte, and nothing of who may reach the
store is told to Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from amqpspec.pipeline.store.any_files import AddressedFiles, files_at
from amqpspec.pipeline.store.parts import Part

_NAME = "amqpspec"
#: Rows of a batch.
_BATCH = 4096


def read_files(spark: Any, files: AddressedFiles, parts: Mapping[str, Part], described: str, schema: pa.Schema) -> Any:
    """A DataFrame with the rows of all files, and `day`, `target` and `run` of their parts.

    `parts`: by the paths of files; `described`: the columns as Spark names them, `schema` without those three.
    """
    spark.dataSource.register(_Files)
    of_each = [[path, part.day, part.target, part.run] for path, part in parts.items()]
    reader = spark.read.format(_NAME).schema(described)
    options = {"url": files.url, "files": json.dumps(of_each), "columns": bytes(schema.serialize()).hex()}
    return reader.options(**options).load()


class _Files(DataSource):
    @classmethod
    def name(cls) -> str:
        return _NAME

    def reader(self, schema: Any) -> DataSourceReader:
        return _Reader(self.options)


class _Reader(DataSourceReader):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._url, self._files, self._columns = options["url"], json.loads(options["files"]), options["columns"]

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(each) for each in self._files]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        path, day, target, run = partition.value
        schema = ipc.read_schema(pa.py_buffer(bytes.fromhex(self._columns)))
        of_part = {"day": pa.scalar(date.fromisoformat(day)), "target": pa.scalar(target), "run": pa.scalar(run)}
        with files_at(self._url).reading(path) as whole, pq.ParquetFile(whole) as file:
            for batch in file.iter_batches(_BATCH):
                columns = [_column(batch, field) for field in schema]
                columns += [pa.repeat(value, batch.num_rows) for value in of_part.values()]
                yield pa.RecordBatch.from_arrays(columns, names=[*schema.names, *of_part])


def _column(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    """A file of an earlier version lacks columns, which are null then."""
    if field.name not in batch.schema.names:
        return pa.nulls(batch.num_rows, field.type)
    return batch.column(field.name).cast(field.type)
