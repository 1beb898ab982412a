"""The judge of the open world: any number of connections, each by itself, frame by frame."""

from __future__ import annotations

from enum import Enum

from amqpspec.model.open_world.channel import OpenChannel
from amqpspec.model.open_world.findings import Findings
from amqpspec.model.outputs.malformed import malformed
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.protocol.errors import REPLY_CODES
from amqpspec.model.protocol.methods import METHOD_IDS, OCTETS_BEHIND, OPERATOR, TraceEvent

#: Codes by which a broker says that the octets were no frames.
_MALFORMED = (501, 502, 505)
_FORCED = 320
#: By what was sent on a channel that is not open, or opened again, and by a consumer tag that is in use.
_CHANNEL_ERROR, _NOT_ALLOWED = 504, 530


class OpenJudge:
    """Fed a recording in its order. `findings` grows; nothing ends the judging."""

    def __init__(self, dialect: Dialect) -> None:
        self.findings = Findings()
        self._dialect = dialect
        self._connections: dict[str, _Connection] = {}

    def event(self, event: TraceEvent) -> None:
        if event.connection == OPERATOR:
            return
        name = event.name
        connection = self._connections.get(event.connection)
        if connection is None or name == "socket.open":
            is_seen = event.sent and name in ("socket.open", "protocol.header")
            is_seen = is_seen or name == "connection.start"
            connection = _Connection(self.findings, self._dialect, is_seen)
            self._connections[event.connection] = connection
        if event.sent:
            self.findings.last_sent = event
            connection.sent(event)
        else:
            connection.received(event)

    def end(self) -> None:
        """Nothing more was recorded."""
        for connection in self._connections.values():
            connection.end()


class _State(Enum):
    OPEN = "open"
    #: the client has asked to close it
    CLOSING = "closing"
    #: the broker has closed it
    REFUSED = "refused"
    #: close-ok has come, or the TCP connection is over
    OVER = "over"


_REFUSED, _OVER = _State.REFUSED, _State.OVER


class _Connection:
    """`is_seen`: its beginning was recorded."""

    def __init__(self, findings: Findings, dialect: Dialect, is_seen: bool) -> None:
        self._findings, self._dialect, self._is_seen = findings, dialect, is_seen
        self._channels: dict[int, OpenChannel] = {}
        self._state = _State.OPEN
        self._is_open = False
        #: the client asked to close it, perhaps when the broker had: that may be answered
        self._close_crossed = False
        #: methods that were sent on any channel
        self._methods: set[str] = set()
        self._capabilities: dict[str, object] = {}
        #: something was sent that is no method: what the broker makes of it is not told here
        self._is_odd = not is_seen
        #: the requirement by which what was sent must end the connection
        self._refused_by: str | None = None
        #: identifiers of the method that must end it, where no other frame had it
        self._refused_first: tuple[int, int] | None = None

    def _channel(self, number: int) -> OpenChannel:
        channel = self._channels.get(number)
        if channel is None:
            is_told = self._is_seen and self._capabilities.get("consumer_cancel_notify") is True
            channel = OpenChannel(self._findings, self._dialect, self._is_seen, is_told)
            self._channels[number] = channel
        return channel

    def sent(self, event: TraceEvent) -> None:
        name = event.name
        is_first = name not in self._methods
        if is_first:
            if name in METHOD_IDS:
                self._methods.add(name)
            elif name not in ("socket.open", "protocol.header"):
                self._is_odd = True
        if self._refused_by is not None or self._state is _REFUSED or self._state is _OVER:
            if name == "connection.close-ok":
                self._state = _State.OVER
            self._close_crossed = self._close_crossed or name == "connection.close"
            return
        if event.channel:
            self._refused_by = self._channel(event.channel).sent(event)
            if self._refused_by is not None and is_first:
                self._refused_first = METHOD_IDS.get(name)
        elif name == "connection.close":
            self._state = _State.CLOSING
            self._close_crossed = True
        elif name == "connection.start-ok":
            properties = event.arguments.get("client_properties") or {}
            capabilities = properties.get("capabilities") if isinstance(properties, dict) else None
            self._capabilities = capabilities if isinstance(capabilities, dict) else {}
        elif name == "socket.abort":
            self._end_all()

    def received(self, event: TraceEvent) -> None:
        name = event.name
        if OCTETS_BEHIND in event.arguments:
            self._note_form(event)
        if event.channel and self._state is not _OVER:
            if self._state is not _REFUSED:
                self._on_channel(event)
        elif name == "socket.closed":
            if self._state is _State.OPEN and self._is_seen and not self._is_odd:
                self._findings.undecidable("CONN-020", "the broker ended the connection without a word")
            self._end_all()
        elif name == "socket.garbage":
            if not self._is_odd:
                self._note_form(event)
            self._end_all()
        elif self._state is _State.OVER:
            if self._close_crossed and name == "connection.close-ok":
                self._close_crossed = False
            elif self._is_seen and not self._is_odd:
                self._findings.unexpected("CONN-020", event, detail=f"{name} behind the end of the connection")
        elif name == "connection.close":
            self._closed(event)
        elif name == "connection.close-ok":
            if self._state is not _State.CLOSING and self._is_seen and not self._close_crossed:
                self._findings.unexpected("CONN-020", event)
            else:
                self._findings.kept("CONN-020")
                self._findings.kept("SERVER-002")
            self._forget_all()
            self._state = _State.OVER
        elif name in ("connection.blocked", "connection.unblocked"):
            self._told_of_alarms(event)
        elif name == "connection.open-ok":
            self._is_open = True

    def _note_form(self, event: TraceEvent) -> None:
        wrong = malformed(event)
        if wrong is not None:
            self._findings.unexpected(wrong.requirement, event, wrong.allowed, detail=wrong.detail)

    def _told_of_alarms(self, event: TraceEvent) -> None:
        if self._is_seen and self._capabilities.get("connection.blocked") is not True:
            self._findings.unexpected("CAP-004", event)

    def _on_channel(self, event: TraceEvent) -> None:
        if event.name == "basic.cancel" and self._is_seen:
            if self._capabilities.get("consumer_cancel_notify") is not True:
                self._findings.unexpected("CANCEL-010", event)
            else:
                self._findings.kept("CANCEL-007")
        self._channel(event.channel).received(event)

    def _closed(self, event: TraceEvent) -> None:
        """connection.close: which code, for which method."""
        code = int(event.arguments.get("reply_code", 0))
        identifiers = int(event.arguments.get("class_id", 0)), int(event.arguments.get("method_id", 0))
        if not self._is_odd:
            known = identifiers == (0, 0) or any(METHOD_IDS[name] == identifiers for name in self._methods)
            if self._dialect.extensions and code in REPLY_CODES and not REPLY_CODES[code][1] and known:
                # before the connection is open any error ends it
                if "channel.open" in self._methods:
                    self._findings.wrong("CHAN-007", event, "reply-code", "a code that closes a connection")
            elif not known:
                self._findings.wrong("CHAN-007", event, "class-id and method-id", "those of what was sent")
            elif self._is_about_a_free_tag(code, identifiers):
                self._findings.unexpected("CANCEL-013", event, detail="connection.close for a free consumer tag")
            elif self._refused_first == identifiers and code != _CHANNEL_ERROR and self._dialect.extensions:
                allowed = f"reply-code={_CHANNEL_ERROR}"
                self._findings.wrong(self._refused_by or "CHAN-001", event, "reply-code", allowed)
            elif code in _MALFORMED and identifiers == (0, 0) and self._is_open:
                self._findings.unexpected("CHAN-007", event, detail="connection.close for frames that are right")
            elif code != _FORCED:
                self._findings.kept(self._refused_by or "CHAN-007")
        self._forget_all()
        self._state = _State.REFUSED

    def _is_about_a_free_tag(self, code: int, identifiers: tuple[int, int]) -> bool:
        if code != _NOT_ALLOWED or identifiers != METHOD_IDS["basic.consume"] or not self._dialect.extensions:
            return False
        return not any(channel.may_reuse_tag for channel in self._channels.values())

    def _forget_all(self) -> None:
        """What was due is not any more."""
        self._channels.clear()
        self._refused_by = None

    def _end_all(self) -> None:
        self.end()
        self._forget_all()
        self._state = _State.OVER

    def end(self) -> None:
        for channel in self._channels.values():
            channel.end()
        if self._refused_by is not None:
            self._findings.undecidable(self._refused_by, "nothing came behind what had to be refused")
