"""Octets of the broker that no peer may send: one cause, whatever was asked before them and whatever was due.

Requirements:

* SERVER-002: The server's frames can be read. All that the server sends are frames as the specification defines them:
  of a known type, of the size that they say and no larger than was agreed, with their last octet, contents whole and in
  their order, and a method with all of its arguments and nothing after them. [AMQP 0-9-1 sections 4.2.1, grammar;
  4.2.3, general frame format; 4.2.4, method payloads; 4.2.5, data fields]
"""

from __future__ import annotations

import re
from dataclasses import replace

from amqpspec.model.outputs.mismatch import Mismatch
from amqpspec.model.promises.verdict import Shape
from amqpspec.model.protocol.methods import OCTETS_BEHIND, TraceEvent

#: What differs from one frame to the next that is wrong in the same way.
_NUMBERS = re.compile(r"0x[0-9a-f]+|\d+")


def malformed(event: TraceEvent) -> Mismatch | None:
    """How the octets of that event are wrong; None: they are not. `fatal`: it is not clear what they mean."""
    if event.name == "socket.garbage":
        detail = _NUMBERS.sub("N", str(event.arguments.get("reason", event.name)))
        return Mismatch("SERVER-002", Shape.UNEXPECTED, detail, True, "a frame that can be read")
    if OCTETS_BEHIND in event.arguments:
        detail = f"{event.name}: N octets follow the last argument"
        allowed = {name: value for name, value in event.arguments.items() if name != OCTETS_BEHIND}
        return Mismatch("SERVER-002", Shape.UNEXPECTED, detail, False, str(replace(event, arguments=allowed)))
    return None
