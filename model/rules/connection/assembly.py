"""Contents: a method, its content header and its bodies, one frame after the other (0-9-1 section 4.2.6; CHAN-012 …).

RabbitMQ: rabbit_command_assembler:process, which does not know yet whether the channel is open; nor is what it says an
error of the channel's, as all of them close the connection.

Requirements:

* CHAN-012: Content frames without method. A content header or body frame when none is expected is hard error 505, also
  on a channel that is not open; a body that follows a content header of body-size 0 is one. On channel 0 the text shows
  the first octets. In amqp-0-9-1: 505 or 503. [rabbit_command_assembler:process; rabbit_reader:handle_frame; AMQP 0-9-1
  4.2]
* CHAN-013: Method while content expected. Anything but a content header after basic.publish, and anything but a body
  until all of the body has come, is hard 505; what is in it is not looked at. Bodies may be empty. Other channels are
  not concerned. [rabbit_command_assembler; AMQP 0-9-1 4.2]
* CHAN-014: Content header for wrong class. Content header with class-id other than 60 after basic.publish is hard 505
  or 501. One with a weight other than 0 is not taken for a content header at all. In amqp-0-9-1: 505, 501 or 503.
  [rabbit_command_assembler; AMQP 0-9-1 4.2.6 (505, of a wrong class as well) and 4.2.6.1 (501)]
* CHAN-015: Body longer than announced. More body octets than body-size are a hard error 501. In rabbitmq-3: broken:
  bodies are taken for ever, until 505 at the next frame that is no body. In rabbitmq-4.0: broken up to 4.2.5: bodies
  are taken for ever, until 505 at the next frame that is no body. [rabbit_command_assembler:process (501); AMQP 0-9-1
  4.2.6 (a connection exception, of code 505)]
* CHAN-021: Content properties that cannot be decoded. A property list that is cut short, or goes on after the last
  property, is a hard error 541 once the whole content has come; the message is not published. The two lowest flags,
  which stand for no property, are ignored. [rabbit_channel.erl:handle_method basic.publish;
  rabbit_binary_parser:ensure_content_decoded]
* CHAN-022: Largest body that may be announced. A content header with a body-size above 536870912 is a hard error 501,
  before any of the body, or is taken: no text names a limit. [rabbit_command_assembler:process (MAX_MSG_SIZE), after
  4.0]
* PUBLISH-013: Max message size. Body larger than max_message_size is 406 after the content was received. In rabbitmq-3:
  default limit 128 MiB (16 MiB+1 accepted). In rabbitmq-4.0: default 16 MiB. In rabbitmq-4.3: default 16 MiB.
  [rabbit_channel.erl:check_msg_size]
"""

from __future__ import annotations

from dataclasses import replace

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Assembly, Channel, ChannelState
from amqpspec.model.protocol.errors import FrameError, ProtocolError
from amqpspec.model.protocol.methods import CONTENT_METHODS, EMPTY_CONTENT, METHOD_IDS, Content, Method, RawFrame
from amqpspec.model.rules.basic.publish import exchange_of
from amqpspec.model.rules.connection.frames import cannot_decode

_BASIC = 60
#: No more of a body is kept: nobody sends so much in single frames but to see it refused.
_MOST_KEPT = 128 * 1024 * 1024
#: Some refuse that more is announced (CHAN-022).
_MOST_ANNOUNCED = 536_870_912


def assembled(broker: Broker, channel: Channel, frame: Method | RawFrame) -> Method | None:
    """The whole method that is to be processed now; None: something is still to come.

    Raises `FrameError`, `SilentEnd`, and `ProtocolError` for what the channel itself would find.
    """
    assembly = channel.assembly
    if assembly is None:
        return _awaiting_method(broker, channel, frame)
    broker.blame(channel, "CHAN-015" if assembly.missing else "CHAN-014")
    if assembly.missing is None:
        return _awaiting_header(broker, channel, assembly, frame)
    return _awaiting_body(broker, channel, assembly, frame)


def _awaiting_method(broker: Broker, channel: Channel, frame: Method | RawFrame) -> Method | None:
    if isinstance(frame, RawFrame):
        if frame.name == "frame.method":
            raise cannot_decode(frame)
        raise FrameError("CHAN-012", 505, "expected method frame, got non method frame instead")
    if frame.content is None and frame.name in CONTENT_METHODS:
        channel.assembly = Assembly(frame)
        broker.blame(channel, "CHAN-013")
        return None
    return frame


def _awaiting_header(broker: Broker, channel: Channel, assembly: Assembly, frame: Method | RawFrame) -> Method | None:
    identifiers = METHOD_IDS[assembly.method.name]
    arguments = frame.arguments
    if frame.name != "frame.header" or arguments.get("weight", 0):
        raise FrameError(
            "CHAN-013" if frame.name != "frame.header" else "CHAN-014",
            505,
            f"expected content header for class {_BASIC}, got non content header frame instead",
            identifiers=identifiers,
        )
    class_id, size = arguments.get("class_id", _BASIC), arguments.get("body_size", 0)
    if class_id != _BASIC:
        raise FrameError(
            "CHAN-014",
            broker.dialect.wrong_content_class,
            f"expected content header for class {_BASIC}, got one for class {class_id} instead",
            identifiers=identifiers,
        )
    largest = broker.dialect.largest_announced_body
    if largest is not None and size > largest:
        text = f"content body size {size} exceeds maximum allowed size {largest}"
        raise FrameError("CHAN-022", 501, text, identifiers=identifiers)
    if size > _MOST_ANNOUNCED:
        # nobody says whether a broker takes that: it may refuse it, for which no round trip can wait
        broker.connections[channel.connection].may_announce_end = True
    properties = arguments.get("properties")
    if properties is None and arguments.get("payload", "0000") == "0000":
        properties = {}
    channel.assembly = replace(assembly, missing=size, size=size, properties=properties)
    return None if size else _complete(broker, channel, channel.assembly)


def _awaiting_body(broker: Broker, channel: Channel, assembly: Assembly, frame: Method | RawFrame) -> Method | None:
    missing = assembly.missing or 0
    identifiers = METHOD_IDS[assembly.method.name]
    if frame.name != "frame.body":
        raise FrameError(
            "CHAN-013",
            505,
            "expected content body, got non content body frame instead",
            identifiers=identifiers,
        )
    body = (frame.content or EMPTY_CONTENT).body
    if len(body) > missing:
        text = "content body frame exceeds remaining content size"
        raise FrameError("CHAN-015", 501, text, identifiers=identifiers)
    is_kept = assembly.size <= _MOST_KEPT
    pieces = (*assembly.pieces, body) if is_kept and body else assembly.pieces if is_kept else ()
    channel.assembly = replace(assembly, missing=missing - len(body), pieces=pieces)
    return _complete(broker, channel, channel.assembly) if missing == len(body) else None


def _complete(broker: Broker, channel: Channel, assembly: Assembly) -> Method | None:
    channel.assembly = None
    method = assembly.method
    body = b"".join(assembly.pieces)
    whole = replace(method, content=Content(assembly.properties or {}, body))
    if channel.state is not ChannelState.OPEN or method.name != "basic.publish":
        return whole  # nobody looks at the content
    if len(body) != assembly.size:
        limit = min(broker.dialect.max_message_size, _MOST_KEPT)
        text = f"message size {assembly.size} is larger than configured max size {limit}"
        raise ProtocolError("PUBLISH-013", 406, text, identifiers=METHOD_IDS[method.name])
    if assembly.properties is None:
        exchange_of(broker, channel, whole)
        # the channel's process crashes over it (rabbit_binary_parser:ensure_content_decoded)
        raise ProtocolError("CHAN-021", 541, "", identifiers=(0, 0))
    return whole
