"""What is kept of the connections that are open while recordings arrive, from one batch of files to the next."""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amqpspec.conformance.traces.trace_row import OPEN, TraceError, TraceRow
from amqpspec.conformance.verdicts.judge import judge
from amqpspec.conformance.verdicts.judgement import SequenceJudgement, undecided
from amqpspec.conformance.verdicts.open_judge import OpenSequenceJudge
from amqpspec.conformance.version import judge_version
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.pipeline.store.files import StoreError, whole_file

#: A recording and a sequence in it.
Name = tuple[str, str]


@dataclass(slots=True)
class LiveState:
    """A part of the connections. In the open world a judge is kept, whose size does not grow with what came; of other
    sequences, which are short, the rows are kept.
    """

    judges: dict[Name, OpenSequenceJudge] = field(default_factory=dict)
    starts: dict[Name, TraceRow] = field(default_factory=dict)
    rows: dict[Name, list[TraceRow]] = field(default_factory=dict)

    def take(self, recording: str, rows: Iterable[TraceRow]) -> Iterator[tuple[TraceRow, SequenceJudgement]]:
        """The next rows of a recording; gives each sequence that is complete with them, with its start row.

        Raises `TraceError` for a dialect that does not exist. A row that cannot be judged ends its sequence, which is
        undecided. Rows outside any sequence are left out.
        """
        for row in rows:
            name = recording, row["sequence"]
            if row["kind"] == "start":
                self.starts[name] = row
                if row["mode"] == OPEN:
                    self.judges[name] = OpenSequenceJudge(row)
                else:
                    self.rows[name] = [row]
            elif name in self.judges:
                try:
                    is_complete = self.judges[name].row(row)
                except TraceError as error:
                    del self.judges[name]
                    start = self.starts.pop(name)
                    yield start, undecided(start, str(error))
                    continue
                if is_complete:
                    yield self.starts.pop(name), self.judges.pop(name).judgement()
            elif name in self.rows:
                self.rows[name].append(row)
                if row["kind"] == "end":
                    start, rows_of_it = self.starts.pop(name), self.rows.pop(name)
                    try:
                        judgement = judge(rows_of_it)
                    except TraceError as error:
                        judgement = undecided(start, str(error))
                    yield start, judgement


def save(state: LiveState, file: Path) -> None:
    """Raises `StoreError`."""
    with whole_file(file) as unfinished, unfinished.open("wb") as target:
        _Pickler(target).dump((judge_version(), state))


def load(file: Path) -> LiveState:
    """What was saved; an empty state if nothing was. Raises `StoreError` where another version has saved it."""
    try:
        octets = file.read_bytes()
    except FileNotFoundError:
        return LiveState()
    except OSError as error:
        raise StoreError(f"{file}: cannot be read: {error.strerror}") from error
    version, state = _Unpickler(io.BytesIO(octets)).load()
    if version != judge_version():
        raise StoreError(f"{file}: was saved by version {version}; begin anew in another folder")
    found: LiveState = state
    return found


class _Pickler(pickle.Pickler):
    """Dialects are known by their names."""

    def persistent_id(self, thing: object) -> Any:
        return thing.name if isinstance(thing, Dialect) else None


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, name: Any) -> Dialect:
        return dialect_named(name)
