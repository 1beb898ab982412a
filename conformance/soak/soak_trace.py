"""The trace of a soak: each connection is a sequence of its own, to be judged in the open world, and so are the faults.

It is compressed while it is written. Whoever reads it meanwhile sees all that was written up to the last `flush`.
"""

from __future__ import annotations

import time
import zlib
from pathlib import Path
from typing import BinaryIO

from amqpspec.conformance.soak.plan import SoakPlan
from amqpspec.conformance.traces.row_writer import RowWriter
from amqpspec.conformance.traces.trace_row import OPEN, TraceError, TraceRow
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.methods import OPERATOR, TraceEvent

NAME = "trace.jsonl.gz"
#: The sequence of the faults.
FAULTS = "faults"
#: Octets that are compressed at one time, and seconds after which everything is handed on.
_PIECE, _FLUSH = 64 * 1024, 0.5
_GZIP = 16 + zlib.MAX_WBITS
_RECORDED = "recorded, not judged"


class GzipRows(RowWriter):
    """Writes rows into a compressed file. Raises `TraceError` where it cannot be written."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._compressor = zlib.compressobj(1, zlib.DEFLATED, _GZIP)
        self._waiting: list[bytes] = []
        self._weight = 0
        self.octets = 0
        self.rows = 0
        try:
            self._file: BinaryIO = path.open("wb", buffering=0)
        except OSError as error:
            raise TraceError(f"{path}: the trace cannot be written: {error.strerror}") from error

    def _write(self, row: TraceRow) -> TraceRow:
        line = self._line(row)
        self._waiting.append(line)
        self._weight += len(line)
        self.octets += len(line)
        self.rows += 1
        if self._weight >= _PIECE:
            self._hand_on(self._compressed())
        return row

    def flush(self) -> None:
        """Who reads the file sees all rows."""
        self._hand_on(self._compressed() + self._compressor.flush(zlib.Z_SYNC_FLUSH))

    def close(self) -> None:
        if not self._file.closed:
            self._hand_on(self._compressed() + self._compressor.flush(zlib.Z_FINISH))
            self._file.close()

    def _compressed(self) -> bytes:
        octets = self._compressor.compress(b"".join(self._waiting))
        self._waiting.clear()
        self._weight = 0
        return octets

    def _hand_on(self, octets: bytes) -> None:
        try:
            self._file.write(octets)
        except OSError as error:
            raise TraceError(f"{self.path}: the trace cannot be written: {error.strerror}") from error


class SoakTrace:
    """Use as the observer of the client that drives the soak. `time`: that of the last frame."""

    def __init__(self, folder: Path, target: TargetDescription, plan: SoakPlan, virtual_host: str) -> None:
        self.rows = GzipRows(folder / NAME)
        self.time = 0.0
        self._target, self._plan, self._host = target, plan, virtual_host
        self._sequences: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._next_flush = 0.0
        self._start(FAULTS)

    def event(self, event: TraceEvent) -> None:
        """A frame, or what happened to the broker."""
        name, connection = event.name, event.connection
        self.time = event.time
        if connection == OPERATOR:
            self.rows.event(FAULTS, event)
            self.rows.flush()
            return
        sequence = self._sequences.get(connection)
        if name == "socket.open" or sequence is None:
            self._numbers[connection] = self._numbers.get(connection, 0) + 1
            sequence = self._sequences[connection] = f"{connection} #{self._numbers[connection]}"
            self._start(sequence)
        self.rows.event(sequence, event)
        if name in ("socket.closed", "socket.abort", "socket.garbage"):
            self.over(connection)
        now = time.monotonic()
        if now > self._next_flush:
            self._next_flush = now + _FLUSH
            self.rows.flush()

    def over(self, connection: str) -> None:
        """Nothing more comes on it."""
        sequence = self._sequences.pop(connection, None)
        if sequence is not None:
            self.rows.end(sequence, Verdict.NOT_EXERCISED, (), {}, reason=_RECORDED)

    def close(self) -> None:
        for connection in list(self._sequences):
            self.over(connection)
        self.rows.end(FAULTS, Verdict.NOT_EXERCISED, (), {}, reason=_RECORDED)
        self.rows.close()

    def _start(self, sequence: str) -> None:
        target = self._target
        self.rows.start(
            sequence, target=target.label, product=target.product, version=target.version, dialect=target.dialect,
            mode=OPEN, virtual_host=self._host, seed=self._plan.seed,
        )  # fmt: skip
