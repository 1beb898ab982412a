"""Frames as such: where one ends, what types there are, and where each may stand (0-9-1 section 4.2; CONN-014 to -018).

RabbitMQ: rabbit_reader:handle_input, handle_frame; rabbit_command_assembler:analyze_frame. What is fatal there is that
the place of the next frame is lost: after the close nothing more is read. `model.rules.connection.assembly` is the
next step.

Requirements:

* CHAN-012: Content frames without method. A content header or body frame when none is expected is hard error 505, also
  on a channel that is not open; a body that follows a content header of body-size 0 is one. On channel 0 the text shows
  the first octets. In amqp-0-9-1: 505 or 503. [rabbit_command_assembler:process; rabbit_reader:handle_frame; AMQP 0-9-1
  4.2]
* CHAN-020: Heartbeat on a channel. A heartbeat frame on a channel other than 0 is hard error 505, whether that channel
  is open or not. In amqp-0-9-1: 503 or 501. [rabbit_reader.erl:handle_frame; AMQP 0-9-1 4.2.7 has 501]
* CONN-013: channel-max limits the count, not the number. The server limits the NUMBER OF OPEN channels; a channel id
  above the negotiated channel-max is accepted while the count is below it. A channel that the server closed counts
  until the client's close-ok. Any frame on one channel more is refused with 530, whatever it is. In amqp-0-9-1: a
  number above channel-max is refused, or a channel more than so many. [rabbit_reader.erl:create_channel]
* CONN-014: Frame larger than negotiated frame-max. A frame that says that its payload exceeds frame-max is a hard error
  501 at once, whatever its type, before any of the payload; nothing more is read. RabbitMQ tolerates the 8 octets by
  which frame-max minus 8 is exceeded then. [rabbit_reader.erl:handle_input frame_header; AMQP 0-9-1 4.2]
* CONN-015: Bad frame-end octet. A frame not terminated by 0xCE is a hard error 501, whatever its type, or the end of
  the TCP connection without a word. Nothing more is read; RabbitMQ, which says 501, ends the TCP connection three
  seconds later. In amqp-0-9-1: the connection ends and nothing further is sent on it. [rabbit_reader.erl:handle_input;
  AMQP 0-9-1 4.2]
* CONN-016: Unknown frame type. A frame with an unknown type octet is hard error 501, or the end of the TCP connection
  without a word; so is a method or a content header that is too short to be one, and a heartbeat with a payload. In
  amqp-0-9-1: the connection ends and nothing further is sent on it; a heartbeat with a payload is 501.
  [rabbit_reader.erl:handle_frame; AMQP 0-9-1 4.2]
* CONN-017: Unknown method ends the connection without a close frame. A method frame with an unknown class (99/10), or
  an unknown method of a known class (60/250), ends the TCP connection at once, on every channel, and no
  connection.close is sent. [rabbit_reader.erl:handle_frame; rabbit_command_assembler:analyze_frame (log:
  {unknown_method_id,{99,10}})]
* CONN-018: Truncated method arguments. Arguments that are cut short or go on too long give hard error 501 carrying the
  offending class/method, also on a channel that is not open. A short string that is not UTF-8 (but not in
  basic.publish) is 501 without them, something wrong inside a table the end of the TCP connection. On channel 0 lengths
  and tables give 541. In amqp-0-9-1: 501 or 502. [rabbit_framing_amqp_0_9_1:decode_method_fields]
"""

from __future__ import annotations

from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, ChannelState
from amqpspec.model.broker.connections import Connection
from amqpspec.model.protocol.errors import REPLY_CODES, FrameError, SilentEnd
from amqpspec.model.protocol.methods import EMPTY_CONTENT, METHOD_IDS, Content, RawFrame
from amqpspec.model.protocol.patterns import Printed

_METHOD, _HEADER, _BODY, _HEARTBEAT = 1, 2, 3, 8
_END = 206
#: Octets of a frame around its payload.
_AROUND = 8
#: Octets of the payload of which an error tells (rabbit_reader:payload_snippet).
_SHOWN = 16
#: What a payload has at least, by type: a method's identifiers; class, weight and size.
_LEAST = {_METHOD: 4, _HEADER: 12, _BODY: 0}
_SINGLE_TYPES = {"frame.method": _METHOD, "frame.header": _HEADER, "frame.body": _BODY}
#: Methods of RabbitMQ's definition that nobody uses and the alphabet leaves out: access.request, basic.credit.
_LEFT_OUT = frozenset({(30, 10), (30, 11), (60, 200), (60, 201), (60, 202)})
_KNOWN = frozenset(METHOD_IDS.values()) | _LEFT_OUT


def frame_input(broker: Broker, connection: Connection, frame: RawFrame) -> RawFrame | None:
    """What is to be made of a single frame; None: nothing.

    Raises `FrameError` and `SilentEnd`.
    """
    if frame.name == "frame.other":
        other = _other(broker, connection, frame)
        if other is None:
            return None
        frame = other
    if frame.name == "frame.method":
        arguments = frame.arguments
        if (arguments.get("class_id", 0), arguments.get("method_id", 0)) not in _KNOWN:
            raise SilentEnd("CONN-017")  # rabbit_framing_amqp_0_9_1:lookup_method_name
    if frame.channel:
        return frame
    if frame.name == "frame.method":
        # rabbit_reader:handle_method0 takes the error for its own
        if frame.arguments.get("fault") == "text":
            identifiers = (frame.arguments.get("class_id", 0), frame.arguments.get("method_id", 0))
            raise FrameError("CONN-018", 501, "Malformed UTF-8 in shortstr", identifiers=identifiers)
        raise FrameError("CONN-018", 541, "")
    raise _printed("CHAN-012", 505, _SINGLE_TYPES[frame.name], _payload(frame), "")


def admit_channel(broker: Broker, connection: Connection, channel: Channel) -> None:
    """CONN-013; rabbit_reader:create_channel, for whatever frame is the first one of a closed channel."""
    limit = connection.channel_max
    if not limit or channel.assembly is not None:
        return
    if broker.dialect.text.channel_max_is_a_number:
        if channel.number > limit:
            raise FrameError("CONN-013", 504, f"channel {channel.number} is beyond the limit {limit}")
        return
    count = sum(
        each.connection == connection.name and (each.state is not ChannelState.CLOSED or each.assembly is not None)
        for each in broker.channels.values()
    )
    if count >= limit:
        text = f"number of channels opened ({count}) has reached the negotiated channel_max ({limit})"
        raise FrameError("CONN-013", 530, text)


def cannot_decode(frame: RawFrame) -> Exception:
    """The error for a method frame whose arguments are wrong, on a channel that awaits a method."""
    arguments = frame.arguments
    fault = arguments.get("fault")
    if fault == "table":
        return SilentEnd("CONN-018")  # rabbit_binary_parser:parse_table crashes the reader
    if fault == "text":
        return FrameError("CONN-018", 501, "Malformed UTF-8 in shortstr")
    octets = ",".join(map(str, bytes.fromhex(arguments.get("payload", ""))))
    identifiers = (arguments.get("class_id", 0), arguments.get("method_id", 0))
    return FrameError("CONN-018", 501, f"cannot decode <<{octets}>>", identifiers=identifiers)


def _other(broker: Broker, connection: Connection, frame: RawFrame) -> RawFrame | None:
    """A frame that says of itself what it is."""
    arguments = frame.arguments
    kind = arguments.get("type", _METHOD)
    payload = bytes.fromhex(arguments.get("payload", ""))
    size = arguments.get("size", len(payload))
    end = arguments.get("end", _END)
    limit = connection.frame_max
    if limit and size > limit:  # rabbit_reader: FRAME_SIZE_FUDGE
        text = f"type {kind}, all octets = <<>>: {{frame_too_large,{size},{limit - _AROUND}}}"
        raise FrameError("CONN-014", 501, text, fatal=True)
    if size != len(payload):
        if size > len(payload) or payload[size] == _END:
            connection.out_of_step = connection.may_end = connection.may_announce_end = True
            return None
        payload, end = payload[:size], payload[size]
    if end != _END:
        raise _bad_frame(broker, "CONN-015", kind, payload, f"{{invalid_frame_end_marker,{end}}}", fatal=True)
    if kind == _HEARTBEAT and not payload:
        if frame.channel:
            code = 503 if broker.dialect.text.heartbeat_of_channel_is_invalid else 505
            raise _printed("CHAN-020", code, kind, payload, "")
        return None
    if kind == _HEARTBEAT and broker.dialect.text.wrong_heartbeat_is_told:
        raise _printed("CONN-016", 501, kind, payload, "")
    if kind not in _LEAST or len(payload) < _LEAST[kind]:
        raise _bad_frame(broker, "CONN-016", kind, payload, "unknown_frame")
    return _reread(frame, kind, payload)


def _reread(frame: RawFrame, kind: int, payload: bytes) -> RawFrame:
    def made(method: str, arguments: dict[str, Any], content: Content | None = None) -> RawFrame:
        return RawFrame(frame.connection, frame.channel, method, arguments, True, content, frame.time)

    def number(start: int, end: int) -> int:
        return int.from_bytes(payload[start:end], "big")

    if kind == _METHOD:
        arguments = {"class_id": number(0, 2), "method_id": number(2, 4), "payload": payload[4:].hex()}
        return made("frame.method", arguments)
    if kind == _HEADER:
        numbers = {"class_id": number(0, 2), "weight": number(2, 4), "body_size": number(4, 12)}
        return made("frame.header", {**numbers, "payload": payload[12:].hex()})
    return made("frame.body", {}, Content({}, payload))


def _payload(frame: RawFrame) -> bytes:
    """The payload of a content frame, as far as errors show it."""
    if frame.name == "frame.body":
        return (frame.content or EMPTY_CONTENT).body
    arguments = frame.arguments
    numbers = (arguments.get("class_id", 60), 2), (arguments.get("weight", 0), 2), (arguments.get("body_size", 0), 8)
    beginning = b"".join(number.to_bytes(octets, "big") for number, octets in numbers)
    return beginning + bytes.fromhex(arguments.get("payload", "0000"))


def _bad_frame(
    broker: Broker, requirement: str, kind: int, payload: bytes, error: str, fatal: bool = False
) -> Exception:
    if broker.dialect.ends_silently_without_frame_end:
        return SilentEnd(requirement)
    return _printed(requirement, 501, kind, payload, f": {error}", fatal)


def _printed(requirement: str, code: int, kind: int, payload: bytes, after: str, fatal: bool = False) -> FrameError:
    whose = "all" if len(payload) <= _SHOWN else f"first {_SHOWN}"
    before, after = f"type {kind}, {whose} octets = <<", f">>{after}"
    shown = payload[:_SHOWN]
    if shown and all(32 <= octet < 127 and octet not in b'"\\' for octet in shown):
        octets = f'"{shown.decode()}"'
    else:
        octets = ",".join(map(str, shown))
    text = f"{before}{octets}{after}"
    pattern = Printed(f"{REPLY_CODES[code][0]} - {before}", after, f"{REPLY_CODES[code][0]} - {text}")
    return FrameError(requirement, code, text, pattern=pattern, fatal=fatal)
