"""Which parts are worth judging again: those of another judge, or of a requirement that has changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow.parquet as pq

from amqpspec.conformance.version import judge_version
from amqpspec.model.promises.registry import requirements
from amqpspec.pipeline.store.files import StoreError
from amqpspec.pipeline.store.parts import Part
from amqpspec.pipeline.store.store import Store


@dataclass(frozen=True, slots=True)
class Outdated:
    """What is judged again. `by_version`: what another version judged, or this one by other rules; `of`: what something
    is said of these requirements in. With both, what is both; with neither, nothing.
    """

    by_version: bool = False
    of: tuple[str, ...] = ()

    def chosen(self, store: Store, judged: Iterable[Part]) -> list[Part]:
        """Those of the parts, which are judged. Raises `StoreError`, also for a requirement that there is not."""
        unknown = [id for id in self.of if id not in requirements()]
        if unknown:
            raise StoreError(f"--requirement {unknown[0]}: there is no such requirement")
        if not self.by_version and not self.of:
            return []
        return [part for part in judged if self._is_chosen(store, part)]

    def _is_chosen(self, store: Store, part: Part) -> bool:
        with store.files.reading(part.judgements) as whole, pq.ParquetFile(whole) as file:
            there = [name for name in ("judged_by", "said") if name in file.schema_arrow.names]
            rows = [row for batch in file.iter_batches(columns=there) for row in batch.to_pylist()]
        is_other = any(row.get("judged_by") != judge_version() for row in rows)
        says = any(each["requirement"] in self.of for row in rows for each in row.get("said") or ())
        return (is_other or not self.by_version) and (says or not self.of)
