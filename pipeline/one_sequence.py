"""One sequence out of a store: its commands, to carry them out again, or its rows, to judge them again."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from amqpspec.conformance.traces.trace_parquet import batch_rows, columns_of
from amqpspec.conformance.traces.trace_row import TraceRow
from amqpspec.pipeline.store.files import StoreError
from amqpspec.pipeline.store.parts import Part
from amqpspec.pipeline.store.store import Store

#: How targets begin that can be given to a command as their labels say.
_GIVEN_AGAIN = ("amqp://", "amqps://", "docker:", "cluster:", "process:", "embedded")


@dataclass(frozen=True, slots=True)
class OneSequence:
    """A sequence of a run, with all its rows."""

    part: Part
    name: str
    rows: list[TraceRow]

    @property
    def commands(self) -> list[str]:
        """What was carried out; nothing in recordings of applications."""
        return [row["text"] for row in self.rows if row["kind"] == "command"]


def find_sequence(store: Store, parts: Iterable[Part], name: str) -> OneSequence | None:
    """The first sequence of that name in these parts; None: there is none. Raises `StoreError`, `TraceError`."""
    for part in parts:
        try:
            with store.files.reading(part.trace) as whole, pq.ParquetFile(whole) as file:
                wanted = columns_of(file.schema_arrow.names, store.named(part.trace))
                for batch in file.iter_batches(columns=["sequence"]):
                    if pc.any(pc.equal(batch.column(0), name)).as_py():
                        break
                else:
                    continue
                rows: list[TraceRow] = []
                for batch in file.iter_batches(columns=wanted):
                    chosen = batch.filter(pc.equal(batch.column("sequence"), name))
                    rows += batch_rows(chosen, store.named(part.trace)) if chosen.num_rows else []
                return OneSequence(part, name, rows)
        except (OSError, pa.ArrowException) as error:
            raise StoreError(f"{store.named(part.trace)}: cannot be read: {' '.join(str(error).split())}") from error
    return None


def again(store: Store, part: Part, name: str, has_commands: bool, shrunk: str | None = None) -> str:
    """The commands of a shell that carry out a sequence again, or judge it again. `shrunk`: the file of the shortest
    commands that show the same, if there is one.
    """
    target = part.target if part.target.startswith(_GIVEN_AGAIN) else "TARGET"
    if shrunk is not None:
        return shlex.join(["amqpspec", "replay", shrunk, target])
    file = "again.amqp" if has_commands else "again.jsonl"
    words = ["amqpspec", "pipeline", "sequence", str(store), name, "--run", part.run, "--out", file]
    then = ["amqpspec", "replay", file, target] if has_commands else ["amqpspec", "check", file]
    return f"{shlex.join(words)} && {shlex.join(then)}"
