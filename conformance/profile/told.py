"""Features that are tried and told, and not judged (`model.promises.features.TOLD`): how a broker does them is
RabbitMQ's own way, and whoever has applications of RabbitMQ wants to know whether it does.

The commands of each are in `told/`. What comes tells, whatever the judge says of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from amqpspec.conformance.language.names import plain
from amqpspec.conformance.profile.profile import BASE, SeenExtension, Working
from amqpspec.conformance.traces.trace_row import TraceRow, row_event
from amqpspec.conformance.verdicts.as_rabbitmq import RABBITMQS
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialects import dialect_named

#: By these a broker refuses what it was asked for.
_ENDS = ("channel.close", "connection.close", "socket.closed")
#: What is judged by the newest RabbitMQ while it is carried out, as the text takes the type for no type at all.
_AS_RABBITMQ = ("x-queue-type=quorum",)
#: Frames of which one is the effect, the command with which it can come at the earliest (the first one is 0), and what
#: there is without it.
_TOLD_BY: Mapping[str, tuple[tuple[str, ...], int, str]] = {
    # the consumer is told that it has ended, or its channel ends; or the message is there again in silence
    "x-consumer-timeout": (("basic.cancel", *_ENDS, "basic.get-ok"), 6, "nothing within 3 s"),
    "x-queue-type=quorum": (("basic.get-empty",), 3, "what is given back comes again beyond x-delivery-limit"),
}


def base_of_told(name: str) -> Dialect:
    """By which its commands are carried out."""
    return dialect_named(RABBITMQS[0]) if name in _AS_RABBITMQ else BASE


def seen_of_told(name: str, rows: Sequence[TraceRow]) -> SeenExtension | None:
    """What was seen of it; None: something else went wrong before."""
    effects, command, nothing = _TOLD_BY[name]
    commands = [row["text"] for row in rows if row["kind"] == "command"]
    refused: dict[str, str] = {}
    came = 0
    for row in rows:
        came += row["kind"] == "command"
        if row["kind"] != "frame" or row["direction"] == "sent":
            continue
        frame = row_event(row)
        if came > command and frame.name in effects and not (frame.name in _ENDS and _asks(commands[came - 1])):
            return SeenExtension(name, False, Working.WORKS, plain(str(frame)))
        if frame.name in _ENDS:
            refused.setdefault(frame.connection, plain(str(frame)))
    declaring = {each.partition(".")[0] for each in commands if " queue.declare " in each}
    if refused.keys() >= declaring:
        return SeenExtension(name, False, Working.REFUSED, next(iter(refused.values())))
    return SeenExtension(name, False, Working.IGNORED, nothing) if came > command else None


def _asks(command: str) -> bool:
    """Is it one of those that only ask what is left? What ends by it is no effect."""
    return " basic.get " in command
