"""AMQP out of a network capture, as the rows of a trace: each TCP connection a sequence of the open world.

A connection is AMQP 0-9-1 by the first octets of its client, whatever the port; one that had begun before the capture
is by its port, and is recorded from the first frame on whose place is certain.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from amqpspec.conformance.recording.connection_recording import ConnectionRecording
from amqpspec.conformance.recording.mid_connection import FramesFromTheMiddle
from amqpspec.conformance.recording.tcp_order import MOST_LATER, NUMBERS, PATIENCE, End, Segment, TcpOrder
from amqpspec.conformance.traces.extras import needed_for
from amqpspec.conformance.traces.row_writer import RowList
from amqpspec.conformance.traces.trace_row import TraceError, TraceRow

#: The port of AMQP without TLS.
PORT = 5672
_MAGIC = frozenset(
    bytes.fromhex(each) for each in ("a1b2c3d4", "d4c3b2a1", "a1b23c4d", "4d3cb2a1", "a1b2cd34", "34cdb2a1", "0a0d0d0a")
)
#: Octets that may be sent while the handshake of TCP is out of order in the capture.
_NEAR = 1 << 24
#: What a client of 0-9-1 or an older version begins with. 1.0 has a version of 1 after one more octet.
_HEADER, _HEADER_SIZE = b"AMQP", 8


def is_capture(path: Path) -> bool:
    """Is the file one of pcap or pcapng? By its first octets, as captures have names of all kinds."""
    try:
        with path.open("rb") as file:
            return file.read(4) in _MAGIC
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class CaptureOptions:
    """`ports`: of brokers, for connections that had begun before. `dialect`: to judge by; None: as the broker says."""

    ports: Collection[int] = (PORT,)
    dialect: str | None = None


def began_at(path: Path) -> float | None:
    """Seconds since 1970 of the first segment; None: there is none. Raises as `capture_rows`."""
    with needed_for(f"to read {path}"):
        from amqpspec.conformance.recording.capture_file import segments
    return next((segment.time for segment in segments(path)), None)


def capture_rows(path: Path, options: CaptureOptions, told: Callable[[str], None]) -> Iterator[TraceRow]:
    """The rows of all connections, mixed. `told` gets a line for each connection of which something is missing, or
    which is of the port and no AMQP 0-9-1. Raises `TraceError` where the capture cannot be read any further, after
    all that came before; `MissingExtra` without dpkt.
    """
    with needed_for(f"to read {path}"):
        from amqpspec.conformance.recording.capture_file import segments
    rows = RowList(path)
    connections = _Connections(rows, options, lambda line: told(f"{path}: {line}"))
    broken: TraceError | None = None
    try:
        for segment in segments(path):
            connections.take(segment)
            if rows.rows:
                yield from rows.rows
                rows.rows.clear()
    except TraceError as error:
        broken = error
    connections.finish()
    yield from rows.rows
    if broken is not None:
        raise broken


@dataclass(slots=True, eq=False)
class _Connection:
    """`number`: 0 until it is known to be AMQP."""

    client: End
    broker: End
    order: TcpOrder = field(default_factory=lambda: TcpOrder(None))
    number: int = 0
    #: the number of the first octet of the client (True) and the broker, as far as they were seen
    begins: dict[bool, int] = field(default_factory=dict)
    #: segments that came before the handshake of TCP, which may only be out of order in the capture; None: it is not
    #: waited for any more
    early: list[Segment] | None = None
    is_told: bool = False


class _Connections:
    def __init__(self, rows: RowList, options: CaptureOptions, told: Callable[[str], None]) -> None:
        self._rows, self._options, self._told = rows, options, told
        self._connections: dict[frozenset[End], _Connection] = {}
        self._number = 0
        self.began: float | None = None

    def take(self, segment: Segment) -> None:
        if self.began is None:
            self.began = segment.time
        ends = frozenset((segment.source, segment.destination))
        connection = self._connections.get(ends)
        if segment.begins:
            self._begun(connection, segment, ends)
            return
        if segment.size and connection is None:
            connection = self._connections[ends] = _Connection(segment.source, segment.destination)
        if connection is None:
            return
        if not connection.order.is_over and connection.order.listener is None and (segment.size or connection.early):
            connection.early = [*(connection.early or ()), segment]
            if segment.time - connection.early[0].time > PATIENCE or len(connection.early) > MOST_LATER:
                self._from_the_middle(connection)
        else:
            self._pass_on(connection, segment)

    def _pass_on(self, connection: _Connection, segment: Segment) -> None:
        connection.order.take(segment.source == connection.client, segment)
        self._tell(connection)

    def finish(self) -> None:
        for connection in self._connections.values():
            self._from_the_middle(connection)
            connection.order.finish("the capture ended before the connection")
            self._tell(connection)

    def _begun(self, known: _Connection | None, segment: Segment, ends: frozenset[End]) -> None:
        """SYN, or the answer to it."""
        is_answer = segment.acknowledged is not None
        client, broker = segment.source, segment.destination
        if is_answer:
            client, broker = broker, client
        first = segment.number + 1
        early = known.early if known is not None and _follow(known.early, segment.source, first) else None
        if known is None or not known.begins or known.begins.get(not is_answer, first) != first:
            if known is not None and early is None:
                self._from_the_middle(known)
                known.order.finish("another connection with the same ports began")
                self._tell(known)
            known = self._connections[ends] = _Connection(client, broker, early=early)
        known.begins.setdefault(not is_answer, first)
        if is_answer and known.order.listener is None and not known.order.is_over:
            known.order.listener = _FromTheBeginning(self, known)
            known.order.begins_at(True, segment.acknowledged or 0)
            known.order.begins_at(False, first)
            waited, known.early = known.early or (), None
            for each in waited:
                self._pass_on(known, each)

    def _from_the_middle(self, connection: _Connection) -> None:
        """It had begun before, or the answer to its SYN was not captured, if anything waits for these."""
        if not connection.early:
            return
        waited, connection.early = connection.early, None
        if connection.broker.port not in self._options.ports:
            connection.client, connection.broker = connection.broker, connection.client
        connection.order.listener = _FromTheMiddle(self, connection)
        connection.order.is_over = connection.broker.port not in self._options.ports
        for segment in waited:
            self._pass_on(connection, segment)

    def recording(self, connection: _Connection, time: float, *, is_seen: bool) -> ConnectionRecording:
        """What makes rows of the connection, which is AMQP."""
        self._number += 1
        connection.number = self._number
        name, target = f"connection {self._number} from {connection.client}", f"amqp://{connection.broker}"
        return ConnectionRecording(self._rows, name, target, self._options.dialect, time, is_seen=is_seen)

    def leave_out(self, connection: _Connection) -> None:
        """It is no AMQP 0-9-1."""
        connection.order.is_over = True
        if connection.order.problem is None and connection.broker.port in self._options.ports:
            self._told(f"the connection from {connection.client} is no AMQP 0-9-1, and was left out")

    def _tell(self, connection: _Connection) -> None:
        problem = connection.order.problem
        if problem is None or connection.is_told:
            return
        if connection.number:
            connection.is_told = True
            name = f"connection {connection.number} from {connection.client}"
            self._told(f"{name}: {problem}, and its recording ends there")
        elif connection.broker.port in self._options.ports:
            connection.is_told = True
            self._told(f"the connection from {connection.client}: {problem}, and was left out")


def _follow(early: list[Segment] | None, source: End, first: int) -> bool:
    """Are these what comes next behind a SYN, whose first octet has that number?"""
    said = [each.number if each.source == source else each.acknowledged for each in early or ()]
    distances = [(number - first) % NUMBERS for number in said if number is not None]
    return bool(distances) and max(distances) < _NEAR


class _Listening:
    """What is common to both ways: nothing is recorded before it is known to be AMQP."""

    def __init__(self, connections: _Connections, connection: _Connection) -> None:
        self._connections, self._connection = connections, connection
        self._recording: ConnectionRecording | None = None

    def _time(self, time: float) -> float:
        """Since the capture began, to the microsecond: more would be what is left of large numbers."""
        return round(time - (self._connections.began or 0.0), 6)

    def _begin(self, time: float, *, is_seen: bool) -> ConnectionRecording:
        self._recording = self._connections.recording(self._connection, self._time(time), is_seen=is_seen)
        return self._recording

    def _record(self, is_sent: bool, octets: bytes, time: float) -> None:
        recording = self._recording
        if recording is None:
            return
        try:
            (recording.sent if is_sent else recording.received)(octets, self._time(time))
        except TraceError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever is in the octets of one connection costs that one only
            recording.end(f"the recorder itself failed: {error!r}")

    def client_left(self, time: float) -> None:
        if self._recording is not None:
            self._recording.client_left(self._time(time))

    def broker_left(self, time: float) -> None:
        if self._recording is not None:
            self._recording.broker_left(self._time(time))

    def end(self, reason: str) -> None:
        if self._recording is not None:
            self._recording.end(reason)


class _FromTheBeginning(_Listening):
    """A connection that was seen from its SYN on."""

    _held = b""

    def sent(self, octets: bytes, time: float) -> None:
        if self._recording is None:
            self._held += octets
            begins_right = _HEADER.startswith(self._held[: len(_HEADER)])
            if begins_right and len(self._held) < _HEADER_SIZE:
                return
            if not begins_right or _is_of_1_0(self._held):
                self._connections.leave_out(self._connection)
                return
            self._begin(time, is_seen=True)
            octets = self._held
        self._record(True, octets, time)

    def received(self, octets: bytes, time: float) -> None:
        if self._recording is None:  # who speaks first is no broker
            self._connections.leave_out(self._connection)
        self._record(False, octets, time)


class _FromTheMiddle(_Listening):
    def __init__(self, connections: _Connections, connection: _Connection) -> None:
        super().__init__(connections, connection)
        self._frames = {True: FramesFromTheMiddle(), False: FramesFromTheMiddle()}

    def sent(self, octets: bytes, time: float) -> None:
        self._take(True, octets, time)

    def received(self, octets: bytes, time: float) -> None:
        self._take(False, octets, time)

    def end(self, reason: str) -> None:
        if self._recording is None:
            self._connections.leave_out(self._connection)
        super().end(reason)

    def _take(self, is_sent: bool, octets: bytes, time: float) -> None:
        frames = self._frames[is_sent].feed(octets)
        if frames and self._recording is None:
            self._begin(time, is_seen=False)
        self._record(is_sent, frames, time)


def _is_of_1_0(header: bytes) -> bool:
    """AMQP 1.0, or its TLS or SASL."""
    return header[4] in (0, 2, 3) and header[5] == 1
