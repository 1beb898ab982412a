"""What failed in parts of a store: the distinct failures of each broker, and which of them are accepted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow.parquet as pq

from amqpspec.conformance.verdicts.acceptance import Acceptance
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.severity import rank
from amqpspec.model.promises.verdict import Failure, Shape
from amqpspec.pipeline.store.parts import Part
from amqpspec.pipeline.store.store import Store

_COLUMNS = ["sequence", "product", "version", "dialect", "repeats", "verdict", "failures"]


@dataclass(slots=True)
class Found:
    """A distinct failure of a broker: how many sequences showed it, the first of them, and why it is accepted."""

    target: TargetDescription
    failure: Failure
    run: str
    sequence: str
    accepted: str | None
    sequences: int = 0


@dataclass(slots=True)
class FoundFailures:
    """`red`, `green`: sequences that failed, with a failure that is not accepted, or with none."""

    distinct: dict[tuple[TargetDescription, str], Found] = field(default_factory=dict)
    red: int = 0
    green: int = 0

    def add(self, target: TargetDescription, run: str, sequence: str, failures: Iterable[Failure],
            acceptance: Acceptance) -> None:  # fmt: skip
        """A sequence that failed."""
        is_red = False
        for failure in failures:
            key = target, failure.identity
            if key not in self.distinct:
                self.distinct[key] = Found(target, failure, run, sequence, acceptance.why(failure, target))
            self.distinct[key].sequences += 1
            is_red = is_red or self.distinct[key].accepted is None
        self.red += is_red
        self.green += not is_red

    @property
    def not_accepted(self) -> list[Found]:
        """The gravest first."""
        found = [each for each in self.distinct.values() if each.accepted is None]
        return sorted(found, key=lambda each: (rank(each.failure), each.target.label, each.failure.identity))


def failures_in(store: Store, parts: Iterable[Part], acceptance: Acceptance) -> FoundFailures:
    """What failed in parts that were judged. Raises `StoreError`; files that cannot be read are told elsewhere."""
    found = FoundFailures()
    for part in parts:
        with store.files.reading(part.judgements) as whole, pq.ParquetFile(whole) as file:
            for batch in file.iter_batches(columns=_COLUMNS):
                for row in batch.to_pylist():
                    if row["verdict"] == "fail" and row["repeats"] is None:
                        failures = [failure_of(each) for each in row["failures"] or ()]
                        found.add(_target(part, row), part.run, row["sequence"], failures, acceptance)
    return found


def failure_of(row: Mapping[str, Any]) -> Failure:
    """The inverse of what `judgement_rows` makes of a failure."""
    return Failure(
        row["requirement"], Shape(row["shape"]), row["detail"] or "", row["command"] or "", row["observed"] or "",
        tuple(row["allowed"] or ()), tuple(row["state"] or ()), row["defect"] or "", row.get("like") or "",
    )  # fmt: skip


def _target(part: Part, row: Mapping[str, Any]) -> TargetDescription:
    return TargetDescription(part.target, *(row[name] or "" for name in ("product", "version", "dialect")))
