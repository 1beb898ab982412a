"""Makes a trace of what the proxy passes on, in a process of its own, so that nobody waits for it.

`python -m amqpspec.conformance.recording.recorder OPTIONS` reads notes from standard input to their end. OPTIONS is one
JSON object with the fields of `RecorderOptions`. Signals do not end it: the end of its input does. It ends with exit
code 1 and one line on standard error where the trace cannot be written.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterable
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from amqpspec.conformance.recording.connection_recording import ConnectionRecording
from amqpspec.conformance.recording.notes import Note, NoteKind, read_notes
from amqpspec.conformance.recording.trace_files import TraceFiles
from amqpspec.conformance.traces.trace import TraceWriter
from amqpspec.conformance.traces.trace_row import MAX_BODY, TraceError

#: Of the trace, where it is one file.
NAME = "trace.jsonl"


@dataclass(frozen=True, slots=True)
class RecorderOptions:
    """`folder`: of the trace. `target`: the label of the broker. `dialect`: to judge by; None: as the broker says.
    `digests`: of bodies only size and digest are kept. `rotates`: the trace is several files.
    """

    folder: str
    target: str
    dialect: str | None = None
    digests: bool = False
    rotates: bool = False

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def record(notes: Iterable[Note], options: RecorderOptions) -> int:
    """Write the trace of what the notes tell; gives the number of connections. Raises `TraceError`."""
    recordings: dict[int, ConnectionRecording] = {}
    number = 0
    folder, longest = Path(options.folder), -1 if options.digests else MAX_BODY
    written = TraceFiles(folder, longest) if options.rotates else TraceWriter(folder / NAME, longest_body=longest)
    with closing(written) as trace:
        for note in notes:
            if note.kind is NoteKind.BEGUN:
                number += 1
                name = f"connection {note.connection}"
                recordings[note.connection] = ConnectionRecording(
                    trace, name, options.target, options.dialect, note.time
                )
            elif note.kind is NoteKind.ROTATE and isinstance(trace, TraceFiles):
                trace.next_file()
            elif note.connection in recordings:
                _take(recordings, note)
        for recording in recordings.values():
            recording.end("the recording ended before the connection")
    return number


def _take(recordings: dict[int, ConnectionRecording], note: Note) -> None:
    recording = recordings[note.connection]
    try:
        if note.kind is NoteKind.SENT:
            recording.sent(note.octets, note.time)
            return
        if note.kind is NoteKind.RECEIVED:
            recording.received(note.octets, note.time)
            return
        if note.kind is NoteKind.CLIENT_LEFT:
            recording.client_left(note.time)
        elif note.kind is NoteKind.BROKER_LEFT:
            recording.broker_left(note.time, note.octets.decode("utf-8", "replace"))
        else:
            recording.end("the recording was stopped before the connection ended")
    except TraceError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever is in the octets of one connection costs that one only
        recording.end(f"the recorder itself failed: {error!r}")
    del recordings[note.connection]


def main() -> int:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    try:
        record(read_notes(sys.stdin.buffer), RecorderOptions(**json.loads(sys.argv[1])))
    except TraceError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
