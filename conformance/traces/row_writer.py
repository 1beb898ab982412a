"""The rows of a trace, made of what happens, whatever becomes of them then."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path

from amqpspec.conformance.traces.trace_failures import failure_to_json
from amqpspec.conformance.traces.trace_row import (
    MAX_BODY,
    Mark,
    TraceError,
    TraceRow,
    digest_of,
    event_row,
    measurement_row,
    row_line,
    without_credentials,
)
from amqpspec.conformance.traces.trace_values import ValueNotRecordable
from amqpspec.model.broker.measurement import Measurement
from amqpspec.model.promises.verdict import Failure, Verdict
from amqpspec.model.protocol.methods import TraceEvent


class RowWriter(ABC):
    """Each method gives the row that it has written. `path`: what the rows are of, for errors. Of bodies longer than
    `longest_body` octets size and digest are kept. Raises `TraceError` for a value that has no written form.
    """

    def __init__(self, path: Path, longest_body: int = MAX_BODY) -> None:
        self.path = path
        self._longest_body = longest_body

    def start(
        self,
        sequence: str,
        *,
        target: str,
        product: str,
        version: str,
        dialect: str,
        mode: str,
        virtual_host: str = "/",
        user: str | None = None,
        requirement: str | None = None,
        seed: int | None = None,
        repeats: str | None = None,
        planned: Iterable[str] | None = None,
        driver: str | None = None,
    ) -> TraceRow:
        """A sequence begins. `target` is a label for people; `seed` fits in 64 bits with sign.

        `virtual_host`: the one that exists. `user`: the name of the target's user, where it is no secret.
        `repeats`: the sequence that this one is a repetition of, or a shorter form. `planned`: the texts of the
        commands that are to be carried out, if nothing ends it before. `driver`: the client library that carries them,
        with its version.
        """
        if seed is not None and not -(2**63) <= seed < 2**63:
            raise TraceError(f"{self.path}: the seed {seed} does not fit in 64 bits")
        row = TraceRow(
            kind="start",
            sequence=sequence,
            target=without_credentials(target),
            product=product,
            version=version,
            dialect=dialect,
            mode=mode,
            virtual_host=virtual_host,
            user=user,
            requirement=requirement,
            seed=seed,
            repeats=repeats,
            planned=None if planned is None else digest_of(map(without_credentials, planned)),
        )
        if driver is not None:
            row["driver"] = driver
        return self._write(row)

    def command(self, sequence: str, text: str, time: float) -> TraceRow:
        """A command, in its canonical text, is carried out at `time` (seconds since the trace began)."""
        return self._write(TraceRow(kind="command", sequence=sequence, text=without_credentials(text), time=time))

    def event(self, sequence: str, event: TraceEvent) -> TraceRow:
        """A frame went over the wire."""
        return self._write(event_row(sequence, event, self._longest_body))

    def mark(self, sequence: str, mark: Mark, time: float, waited: float | None = None) -> TraceRow:
        """A barrier begins or is complete ("quiescent"), or `waited` seconds went by in vain ("overdue")."""
        row = TraceRow(kind="mark", sequence=sequence, time=time, mark=mark)
        if waited is not None:
            row["waited"] = waited
        return self._write(row)

    def end(
        self,
        sequence: str,
        verdict: Verdict,
        failures: Iterable[Failure],
        exercised: Mapping[str, int],
        *,
        reason: str | None = None,
        measurements: Iterable[Measurement] = (),
    ) -> TraceRow:
        """A sequence is over: what was measured and found live. Gives the last row."""
        for measurement in measurements:
            self._write(measurement_row(sequence, measurement))
        row = TraceRow(
            kind="end",
            sequence=sequence,
            verdict=str(verdict),
            failures=[failure_to_json(failure) for failure in failures],
            exercised=dict(exercised),
            reason=reason,
        )
        return self._write(row)

    def _line(self, row: TraceRow) -> bytes:
        """The row as a line of JSON. Raises `TraceError`."""
        try:
            return row_line(row)
        except ValueNotRecordable as error:
            raise TraceError(f"{self.path}: {row.get('method', row['kind'])}: {error}") from error

    @abstractmethod
    def _write(self, row: TraceRow) -> TraceRow: ...


class RowList(RowWriter):
    """Keeps the rows, for who takes them away."""

    def __init__(self, path: Path, longest_body: int = MAX_BODY) -> None:
        super().__init__(path, longest_body)
        self.rows: list[TraceRow] = []

    def _write(self, row: TraceRow) -> TraceRow:
        self._line(row)
        self.rows.append(row)
        return row
