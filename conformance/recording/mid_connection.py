"""Where frames begin in the octets of a connection whose beginning was not recorded.

The first frame is looked for whose place is certain: a method that there is, whole and with its frame end, or a
heartbeat. After it, contents whose method was not seen are left out.
"""

from __future__ import annotations

import struct

from pamqp import constants

from amqpspec.model.protocol.methods import METHOD_IDS
from amqpspec.targets.codec.field_values import FieldSyntaxError
from amqpspec.targets.codec.framing import (
    DEFAULT_CONTENT_MAX,
    DEFAULT_FRAME_MAX,
    FRAME_HEADER,
    FRAME_OVERHEAD,
    HEARTBEAT_OCTETS,
)
from amqpspec.targets.codec.methods import decode_method_payload

_END = constants.FRAME_END
_METHODS = frozenset(struct.pack(">HH", *identifiers) for identifiers in METHOD_IDS.values())
_PARTS_OF_CONTENT = (constants.FRAME_HEADER, constants.FRAME_BODY)


class FramesFromTheMiddle:
    """One direction."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._is_found = self._is_lost = False
        #: channels on which a method was seen
        self._begun: set[int] = set()

    def feed(self, octets: bytes) -> bytes:
        """What of the octets a decoder can have, that begins between two frames."""
        if self._is_lost:
            return octets
        self._rest += octets
        if not self._is_found:
            self._find()
        return self._frames() if self._is_found else b""

    def _find(self) -> None:
        """Cuts off what comes before the first frame whose place is certain, or may still turn out to be."""
        at = 0
        while at < len(self._rest):
            said = _begins_at(self._rest, at)
            if said is not False:
                self._is_found = said is True
                break
            at += 1
        del self._rest[:at]

    def _frames(self) -> bytes:
        found = bytearray()
        at = 0
        while at + FRAME_HEADER.size <= len(self._rest):
            kind, channel, size = FRAME_HEADER.unpack_from(self._rest, at)
            if size > DEFAULT_CONTENT_MAX:
                self._is_lost = True  # whoever decodes it says so
                found += self._rest[at:]
                at = len(self._rest)
                break
            end = at + FRAME_OVERHEAD + size
            if end > len(self._rest):
                break
            if kind not in _PARTS_OF_CONTENT:
                self._begun.add(channel)
            if kind not in _PARTS_OF_CONTENT or channel in self._begun:
                found += self._rest[at:end]
            at = end
        del self._rest[:at]
        return bytes(found)


def _begins_at(octets: bytearray, at: int) -> bool | None:
    """Does a method or heartbeat begin there? None: more has to come to say so."""
    left = len(octets) - at
    if octets[at] == constants.FRAME_HEARTBEAT:
        is_alike = HEARTBEAT_OCTETS.startswith(octets[at : at + len(HEARTBEAT_OCTETS)])
        return is_alike if left >= len(HEARTBEAT_OCTETS) or not is_alike else None
    if octets[at] != constants.FRAME_METHOD:
        return False
    if left < FRAME_HEADER.size:
        return None
    size = FRAME_HEADER.unpack_from(octets, at)[2]
    if not 4 <= size <= DEFAULT_FRAME_MAX - FRAME_OVERHEAD:
        return False
    if left < FRAME_OVERHEAD + size:
        # what is there already may be no method
        identifiers = bytes(octets[at + FRAME_HEADER.size : at + FRAME_HEADER.size + 4])
        return None if len(identifiers) < 4 or identifiers in _METHODS else False
    if octets[at + FRAME_HEADER.size + size] != _END:
        return False
    try:
        decode_method_payload(bytes(octets[at + FRAME_HEADER.size : at + FRAME_HEADER.size + size]))
    except FieldSyntaxError:
        return False
    return True
