"""Reads a compressed trace while it is written."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from amqpspec.conformance.traces.json_text import parsed_lines
from amqpspec.conformance.traces.trace_row import TraceError, TraceRow
from amqpspec.conformance.traces.trace_values import TAG_MARK, decode_value

_PIECE = 256 * 1024
_GZIP = 16 + zlib.MAX_WBITS


class GrowingTrace:
    """`rows` gives what is there and was not given before. `line`: the number of the last line that was given."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("rb")
        self._decompressor = zlib.decompressobj(_GZIP)
        self._rest = b""
        self.line = 0

    def rows(self) -> Iterator[TraceRow]:
        """Raises `TraceError`."""
        while octets := self._file.read(_PIECE):
            try:
                text = self._rest + self._decompressor.decompress(octets)
            except zlib.error as error:
                raise TraceError(f"{self._path}: the trace cannot be read: {error}") from error
            whole = text.rfind(b"\n") + 1
            self._rest = text[whole:]
            if not whole:
                continue
            rows = parsed_lines(text[:whole])
            if rows is None:
                raise TraceError(f"{self._path}:{self.line + 1}: not JSON")
            for row in cast(list[TraceRow], rows):
                self.line += 1
                for key in ("arguments", "properties"):
                    if key in row and TAG_MARK in text:
                        row[key] = decode_value(row[key])
                yield row

    def close(self) -> None:
        self._file.close()
