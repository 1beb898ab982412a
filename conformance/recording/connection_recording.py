"""The octets of one connection of an application, in both directions, as the rows of one sequence.

What cannot be decoded is recorded too: of a client as frames of the class `frame`, of a broker as `socket.garbage`,
after which nothing of that direction is decoded any more.

No credentials are kept: the responses of the login are `***` whatever they hold. Of what cannot be decoded the payload
is left out before the connection is open, on channel 0, in methods of the class `connection`, and where it is lost
which octets are a frame.
"""

from __future__ import annotations

from dataclasses import replace

from amqpspec.conformance.recording.trace_files import TraceFiles
from amqpspec.conformance.traces.row_writer import RowWriter
from amqpspec.conformance.traces.trace_row import OPEN, TraceError
from amqpspec.model.promises.dialects import dialect_of
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.methods import MASK, HeaderEvent, Method, RawFrame, SocketEvent, TraceEvent
from amqpspec.targets.codec.decoder import Decoder
from amqpspec.targets.codec.framing import FrameSyntaxError, Heartbeat, ProtocolHeader
from amqpspec.targets.codec.server_decoder import OutOfRoom, ServerDecoder

#: Frames that are held until it is known what broker and virtual host these are.
_MOST_HELD = 32
#: Product and version of a broker that has not said them.
UNKNOWN = "unknown"
#: Characters of a product's name or version that are kept.
_LONGEST_NAME = 100
_SECRETS = {
    "connection.start-ok": "response",
    "connection.secure-ok": "response",
    "connection.update-secret": "new_secret",
}
#: The class-id of the methods of a connection.
_CONNECTION = 10


class ConnectionRecording:
    """Writes the sequence `name`. `target` is the label of the broker, `dialect` the one to judge by (None: as the
    broker says of itself). Times are seconds since the trace began. One that is not `is_seen` had begun before: the
    octets of both directions begin between two frames. Raises `TraceError` where the trace cannot be written.
    """

    def __init__(
        self,
        trace: RowWriter | TraceFiles,
        name: str,
        target: str,
        dialect: str | None,
        time: float,
        *,
        is_seen: bool = True,
    ) -> None:
        self._trace, self._name, self._target, self._dialect = trace, name, target, dialect
        self._client, self._broker = ServerDecoder("a", awaits_header=is_seen), Decoder("a")
        self._held: list[TraceEvent] | None = []
        if is_seen:
            self._held.append(SocketEvent("a", 0, "socket.open", {}, sent=True, time=time))
        else:
            self._client.frame_max = self._broker.frame_max = 0  # what was agreed is not known
        self._properties: dict[str, object] = {}
        self._virtual_host = "/"
        self._is_open = self._is_closing = self._is_over = False

    def sent(self, octets: bytes, time: float) -> None:
        """The client sent octets."""
        for item in self._client.feed(octets):
            if isinstance(item, ProtocolHeader):
                arguments = {"octets": item.octets.hex()}
                self._event(HeaderEvent("a", 0, "protocol.header", arguments, sent=True, time=time))
            elif isinstance(item, OutOfRoom):
                self._event(RawFrame("a", 0, "frame.other", {"type": 0, "payload": ""}, sent=True, time=time))
            elif not isinstance(item, Heartbeat):
                item.time = time
                self._note_sent(item)
                self._event(item)

    def received(self, octets: bytes, time: float) -> None:
        """The broker sent octets."""
        garbage: FrameSyntaxError | None = None
        try:
            decoded = self._broker.feed(octets)
        except FrameSyntaxError as error:
            if not error.before and self._broker_is_lost:
                return
            decoded, garbage = error.before, error
        for item in decoded:
            if isinstance(item, ProtocolHeader):
                arguments = {"octets": item.octets.hex()}
                self._event(HeaderEvent("a", 0, "protocol.header", arguments, sent=False, time=time))
            elif not isinstance(item, Heartbeat):
                item.time = time
                if item.name == "connection.start":
                    self._properties = item.arguments.get("server_properties") or {}
                self._is_closing = self._is_closing or item.name == "connection.close-ok"
                self._event(item)
        if garbage is not None and not self._broker_is_lost:
            self._broker_is_lost = True
            arguments = {"octets": garbage.octets.hex(), "reason": str(garbage)}
            self._event(SocketEvent("a", 0, "socket.garbage", arguments, sent=False, time=time))

    _broker_is_lost = False

    def client_left(self, time: float) -> None:
        """The client ended the TCP connection."""
        if not self._is_closing and not self._is_over:
            self._event(SocketEvent("a", 0, "socket.abort", {}, sent=True, time=time))
        self.end("recorded, not judged")

    def broker_left(self, time: float, reason: str = "the broker ended the connection") -> None:
        """The broker ended the TCP connection, or could not be reached."""
        if not self._is_over:
            self._event(SocketEvent("a", 0, "socket.closed", {"reason": reason}, sent=False, time=time))
        self.end("recorded, not judged")

    def end(self, reason: str) -> None:
        """Nothing more is recorded of this connection."""
        if not self._is_over:
            self._write_held()
            self._is_over = True
            self._trace.end(self._name, Verdict.NOT_EXERCISED, (), {}, reason=reason)

    def _note_sent(self, event: TraceEvent) -> None:
        if event.channel:
            return
        if event.name == "connection.tune-ok":
            self._client.frame_max = self._broker.frame_max = int(event.arguments.get("frame_max", 0))
        elif event.name == "connection.open":
            self._virtual_host = str(event.arguments.get("virtual_host", "/"))
            self._is_open = True
        elif event.name == "connection.close-ok":
            self._is_closing = True

    def _event(self, event: TraceEvent) -> None:
        if self._is_over:
            return
        event = self._without_secrets(event)
        if self._held is None:
            self._write(event)
            return
        self._held.append(event)
        if self._is_open or len(self._held) >= _MOST_HELD:
            self._write_held()

    def _write_held(self) -> None:
        held, self._held = self._held, None
        if held is None:
            return
        product, version = (str(self._properties.get(key, UNKNOWN))[:_LONGEST_NAME] for key in ("product", "version"))
        # a product that says nothing of itself is none that one could hold to more than the text
        dialect = self._dialect or dialect_of(self._properties).name
        self._trace.start(
            self._name, target=self._target, product=product, version=version, dialect=dialect, mode=OPEN,
            virtual_host=self._virtual_host,
        )  # fmt: skip
        for event in held:
            self._write(event)

    def _write(self, event: TraceEvent) -> None:
        try:
            self._trace.event(self._name, event)
        except TraceError as error:
            if isinstance(error.__cause__, OSError):
                raise
            # a value that has no written form: that there was such a frame is kept
            other = RawFrame if event.sent else SocketEvent
            name = "frame.other" if event.sent else "socket.garbage"
            arguments = {"type": 1, "payload": ""} if event.sent else {"octets": "", "reason": event.name}
            self._trace.event(self._name, other("a", event.channel, name, arguments, event.sent, time=event.time))

    def _without_secrets(self, event: TraceEvent) -> TraceEvent:
        if isinstance(event, Method):
            secret = _SECRETS.get(event.name)
            return event if secret is None else replace(event, arguments={**event.arguments, secret: MASK})
        if not isinstance(event, RawFrame):
            return event
        is_lost = event.name == "frame.other"  # where the next frame begins, so what is in this one as well
        if self._is_open and event.channel and not is_lost and event.arguments.get("class_id") != _CONNECTION:
            return event
        arguments = {key: value for key, value in event.arguments.items() if key != "properties"}
        if "payload" in arguments:
            arguments["payload"] = ""
        return replace(event, arguments=arguments, content=None)
