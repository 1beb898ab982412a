"""What the proxy tells the recorder: one note for each piece of a stream, with its time and connection."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import BinaryIO, Final


class NoteKind(IntEnum):
    """What a note is about; `octets` are what it carries."""

    BEGUN = 0
    #: octets of the client
    SENT = 1
    #: octets of the broker
    RECEIVED = 2
    CLIENT_LEFT = 3
    #: the octets are the reason, a sentence in UTF-8
    BROKER_LEFT = 4
    #: the recording ends, with this connection open
    STOPPED = 5
    #: of no connection: a new file is due
    ROTATE = 6


@dataclass(frozen=True, slots=True)
class Note:
    """`connection`: its number, from 1. `time`: seconds since the recording began."""

    kind: NoteKind
    connection: int
    time: float
    octets: bytes = b""


_HEAD: Final = struct.Struct(">BIdI")


def note_octets(note: Note) -> bytes:
    """A note as it goes through a pipe."""
    return _HEAD.pack(note.kind, note.connection, note.time, len(note.octets)) + note.octets


def read_notes(pipe: BinaryIO) -> Iterator[Note]:
    """All notes up to the end of the pipe; what is cut short there is left out."""
    while len(head := pipe.read(_HEAD.size)) == _HEAD.size:
        kind, connection, time, size = _HEAD.unpack(head)
        octets = pipe.read(size)
        if len(octets) < size:
            return
        yield Note(NoteKind(kind), connection, time, octets)
