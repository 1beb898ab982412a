"""The opening of a connection as a server, from the protocol header to connection.open (areas CONN and CAP).

Decides what to answer; the octets are the connection's work, connection.open-ok is the model's.
"""

from __future__ import annotations

import hmac
import platform
from dataclasses import dataclass, field
from enum import Enum
from importlib import metadata

from model.alphabet import METHOD_IDS, Frame, Table
from model.dialects import Dialect
from model.errors import REPLY_CODES
from targets.codec import DEFAULT_FRAME_MAX, PROTOCOL_HEADER, Decoded, ProtocolHeader
from targets.field_values import FieldSyntaxError, decode_table
from targets.handshake import Tune

#: CONN-002: the header of 0-9, which means 0-9-1 as well
_LEGACY_HEADER = b"AMQP\x01\x01\x00\x09"
_MECHANISMS = ("PLAIN", "AMQPLAIN")
#: frame-min-size of the 0-9-1 text (CONN-012)
_FRAME_MIN = 4096
OFFER = Tune(channel_max=2047, frame_max=DEFAULT_FRAME_MAX, heartbeat=60)
#: CAP-001
_CAPABILITIES = (
    "publisher_confirms",
    "exchange_exchange_bindings",
    "basic.nack",
    "consumer_cancel_notify",
    "connection.blocked",
    "consumer_priorities",
    "authentication_failure_close",
    "per_consumer_qos",
    "direct_reply_to",
)


@dataclass(frozen=True, slots=True)
class Access:
    """Who may log in, and to what."""

    user: str = "guest"
    password: str = field(default="guest", repr=False)
    vhost: str = "/"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server does next: frames to send; frames for the model; or the end of the connection.

    `octets` go out first, then `frames`. `closes`: the last frame is a connection.close, to be answered.
    `hangs_up`: nothing follows but the end of the stream.
    """

    octets: bytes = b""
    frames: tuple[Frame, ...] = ()
    for_model: tuple[Frame, ...] = ()
    closes: bool = False
    hangs_up: bool = False


class _Step(Enum):
    HEADER = "protocol header"
    START_OK = "connection.start-ok"
    TUNE_OK = "connection.tune-ok"
    OPEN = "connection.open"


_HANG_UP = Answer(hangs_up=True)


class ServerHandshake:
    """One connection's opening. `tune` is what was agreed, once `complete`."""

    def __init__(self, connection: str, dialect: Dialect, access: Access) -> None:
        self._connection = connection
        self._dialect = dialect
        self._access = access
        self._step = _Step.HEADER
        self._tells_login_failure = False
        self.tune = OFFER
        self.complete = False

    def advance(self, item: Decoded) -> Answer:
        """The answer to what the client sent; heartbeats must be kept from here."""
        if isinstance(item, ProtocolHeader) or self._step is _Step.HEADER:
            return self._header(item)
        assert isinstance(item, Frame)
        if item.channel == 0 and item.method == "connection.close":
            return Answer(frames=(self._frame("connection.close-ok", {}),), hangs_up=True)
        if item.channel != 0 or item.method != self._step.value:
            state = {_Step.START_OK: "starting", _Step.TUNE_OK: "tuning", _Step.OPEN: "opening"}[self._step]
            return self.refusal(504, f"unexpected method in connection state {state}", item.method)
        if self._step is _Step.START_OK:
            return self._start_ok(item)
        if self._step is _Step.TUNE_OK:
            return self._tune_ok(item)
        return self._open(item)

    def refusal(self, code: int, explanation: str, method: str = "") -> Answer:
        """The server's connection.close because of a method ("": none)."""
        return Answer(frames=(closing(self._connection, code, explanation, method),), closes=True)

    def refused_header(self) -> Answer:
        """CONN-003: the header that is understood here, and no more."""
        return Answer(octets=PROTOCOL_HEADER, hangs_up=True)

    def awaits_header(self) -> bool:
        return self._step is _Step.HEADER

    def _header(self, item: Decoded) -> Answer:
        if self._step is not _Step.HEADER:
            return _HANG_UP
        if not isinstance(item, ProtocolHeader) or item.octets not in (PROTOCOL_HEADER, _LEGACY_HEADER):
            return self.refused_header()
        self._step = _Step.START_OK
        start = {
            "version_major": 0,
            "version_minor": 9,
            "server_properties": server_properties(self._dialect),
            "mechanisms": " ".join(_MECHANISMS),
            "locales": "en_US",
        }
        return Answer(frames=(self._frame("connection.start", start),))

    def _start_ok(self, frame: Frame) -> Answer:
        arguments = frame.arguments
        capabilities = arguments["client_properties"].get("capabilities")
        told = isinstance(capabilities, dict) and capabilities.get("authentication_failure_close") is True
        mechanism = arguments["mechanism"]
        if mechanism not in _MECHANISMS:
            return _HANG_UP  # CONN-007
        if not self._admits(mechanism, arguments["response"]):
            if not told:
                return _HANG_UP  # CONN-006
            return self.refusal(  # CONN-005
                403,
                f"Login was refused using authentication mechanism {mechanism}. For details see the broker logfile.",
            )
        self._step = _Step.TUNE_OK
        offer: Table = {
            "channel_max": OFFER.channel_max,
            "frame_max": OFFER.frame_max,
            "heartbeat": OFFER.heartbeat,
        }
        return Answer(frames=(self._frame("connection.tune", offer),), for_model=(frame,))

    def _admits(self, mechanism: str, response: str) -> bool:
        octets = response.encode("utf-8", "surrogateescape")
        if mechanism == "PLAIN":
            parts = octets.split(b"\0")
            if len(parts) != 3:
                return False
            user, password = parts[1], parts[2]
        else:
            try:
                table, _ = decode_table(len(octets).to_bytes(4, "big") + octets, 0)
            except FieldSyntaxError:
                return False
            user, password = (
                str(table.get(name, "")).encode("utf-8", "surrogateescape") for name in ("LOGIN", "PASSWORD")
            )
        right_user = hmac.compare_digest(user, self._access.user.encode())
        return hmac.compare_digest(password, self._access.password.encode()) and right_user

    def _tune_ok(self, frame: Frame) -> Answer:
        tune = Tune(frame.arguments["channel_max"], frame.arguments["frame_max"], frame.arguments["heartbeat"])
        # CONN-011 and CONN-012: an end without a word
        if not 0 < tune.channel_max <= OFFER.channel_max or not _FRAME_MIN <= tune.frame_max <= OFFER.frame_max:
            return _HANG_UP
        self.tune = tune
        self._step = _Step.OPEN
        return Answer(for_model=(frame,))

    def _open(self, frame: Frame) -> Answer:
        vhost = frame.arguments["virtual_host"]
        if vhost != self._access.vhost:
            return self.refusal(530, f"vhost {vhost} not found", frame.method)  # CONN-008
        self.complete = True
        return Answer(for_model=(frame,))

    def _frame(self, method: str, arguments: Table) -> Frame:
        return Frame(self._connection, 0, method, arguments, sent=False)


def closing(connection: str, code: int, explanation: str, method: str = "") -> Frame:
    """A connection.close by the server itself; the reply text is cut to what a short string holds."""
    class_id, method_id = METHOD_IDS.get(method, (0, 0))
    text = f"{REPLY_CODES[code][0]} - {explanation}".encode()[:255].decode(errors="ignore")
    arguments = {"reply_code": code, "reply_text": text, "class_id": class_id, "method_id": method_id}
    return Frame(connection, 0, "connection.close", arguments, sent=False)


def server_properties(dialect: Dialect) -> Table:
    """CONN-025. The product is our own name: the dialect is chosen by whoever starts the server, and known to him."""
    return {
        "capabilities": dict.fromkeys(_CAPABILITIES, True) if dialect.extensions else {},
        "cluster_name": "amqpspec@embedded",
        "copyright": "The amqpspec authors",
        "information": f"The reference model of amqpspec, as {dialect.title}",
        "platform": f"Python {platform.python_version()}",
        "product": "amqpspec",
        "version": _version(),
    }


def _version() -> str:
    try:
        return metadata.version("amqpspec")
    except metadata.PackageNotFoundError:
        return "unknown"
