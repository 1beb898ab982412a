"""The traffic of a recorded sequence again, without anybody who judges it.

The same frames are sent, and before each the same number of frames is awaited as had come before it in the
recording. So what a judged run takes longer is what judging costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from amqpspec.conformance.session.cleanup import clean_up
from amqpspec.conformance.traces.trace import TraceRow, TraceWriter, row_event
from amqpspec.model.protocol.methods import Method, TraceEvent
from amqpspec.targets.address import Address
from amqpspec.targets.client.wire import WireClient

#: Seconds that a frame may take before the replay is given up.
DEADLINE = 30.0

#: A connection to open; a frame to send; a frame to await; a row to copy into the trace.
Step = tuple[str, str | TraceEvent | TraceRow | None]


class ReplayError(Exception):
    """The target did not send as many frames as it had in the recording."""


def steps_of(rows: Sequence[TraceRow]) -> list[Step]:
    """What has to be done, made ready so that reading the trace is no part of what is measured."""
    steps: list[Step] = []
    opened: set[str] = set()
    for row in rows:
        if row["kind"] in ("command", "mark"):
            steps.append(("copy", row))
        elif row["kind"] == "frame":
            event = row_event(row)
            if event.name == "connection.open-ok":
                opened.add(event.connection)
                steps.append(("open", event.connection))
            elif event.name == "socket.open":
                opened.discard(event.connection)
            elif event.connection in opened:
                steps.append(("send", event) if event.sent else ("await", None))
    return steps


@contextmanager
def replaying(
    address: Address, steps: Sequence[Step], sequence: str, trace: TraceWriter | None
) -> Iterator[Callable[[], None]]:
    """A function that sends it all; with a trace everything is recorded as in a judged run. Cleans up at the end.

    Raises `ReplayError` and `targets.errors.TargetError`.
    """

    def record(event: TraceEvent) -> None:
        if trace is not None:
            trace.event(sequence, event)

    made = {
        ("queue", step.arguments["queue"]): None
        for kind, step in steps
        if kind == "send" and isinstance(step, Method) and step.name == "queue.declare"
    }
    try:
        with WireClient(address, None if trace is None else record) as client:
            yield partial(_carry_out, client, steps, sequence, trace)
    finally:
        clean_up(address, made)


def _carry_out(client: WireClient, steps: Sequence[Step], sequence: str, trace: TraceWriter | None) -> None:
    for kind, what in steps:
        if kind == "await":
            event = client.receive(DEADLINE)
            if event is None or event.name in ("channel.close", "connection.close", "socket.closed"):
                raise ReplayError(f"in place of a frame of the recording came {event or 'nothing'}")
        elif isinstance(what, TraceEvent):
            client.send(what)
        elif isinstance(what, str):
            client.open(what)
        elif trace is not None and what is not None:
            if what["kind"] == "command":
                trace.command(sequence, what["text"], what["time"])
            else:
                trace.mark(sequence, what["mark"], what["time"], what.get("waited"))
