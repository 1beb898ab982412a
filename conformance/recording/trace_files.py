"""A recording in several files, each of which is there as a whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from amqpspec.conformance.traces.trace import TraceWriter
from amqpspec.conformance.traces.trace_row import TraceError, TraceRow

#: What a file is called before it is whole. Whoever looks for `*.jsonl` does not see it.
UNFINISHED = ".unfinished.jsonl.part"


class TraceFiles:
    """Writes `trace-000001.jsonl` and so on in a folder, with the rows that a `TraceWriter` writes.

    A file gets its name by `next_file` or `close`; there are no empty ones. Put together in their order they are one
    trace. Raises `TraceError`.
    """

    def __init__(self, folder: Path, longest_body: int) -> None:
        self._folder, self._longest_body = folder, longest_body
        self._number = 0
        self._writer: TraceWriter | None = None

    def start(self, *arguments: Any, **named: Any) -> TraceRow:
        return self._open().start(*arguments, **named)

    def event(self, *arguments: Any, **named: Any) -> TraceRow:
        return self._open().event(*arguments, **named)

    def end(self, *arguments: Any, **named: Any) -> TraceRow:
        return self._open().end(*arguments, **named)

    def next_file(self) -> None:
        """What was written up to now is one file."""
        if self._writer is None:
            return
        self._writer.close()
        self._writer = None
        self._number += 1
        try:
            (self._folder / UNFINISHED).replace(self._folder / f"trace-{self._number:06}.jsonl")
        except OSError as error:
            raise TraceError(f"{self._folder}: the trace cannot be written: {error.strerror}") from error

    def close(self) -> None:
        self.next_file()

    def _open(self) -> TraceWriter:
        if self._writer is None:
            self._writer = TraceWriter(self._folder / UNFINISHED, longest_body=self._longest_body)
        return self._writer
