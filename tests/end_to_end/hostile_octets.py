"""Octets that no broker should send, or not there: frames, properties and tables that are wrong in one way each."""

from __future__ import annotations

import struct

from amqpspec.model.protocol.methods import Content
from amqpspec.targets.codec.methods_codec import HEARTBEAT_OCTETS, PROTOCOL_HEADER
from tests.end_to_end.hostile_broker import method, raw

HTTP = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\n\r\n<html>no</html>"
TLS_ALERT = bytes.fromhex("15030100020228")
DELIVER = struct.pack(">HH", 60, 60) + b"\x01t" + bytes(8) + b"\x00" + b"\x00" + b"\x01q"


def short(octets: bytes) -> bytes:
    return bytes((len(octets),)) + octets


def long(octets: bytes) -> bytes:
    return struct.pack(">I", len(octets)) + octets


def deep(levels: int) -> bytes:
    """A table within a table …, its length before it."""
    table = long(b"")
    for _ in range(levels):
        table = long(short(b"t") + b"F" + table)
    return table


def deep_array(levels: int) -> bytes:
    array = long(b"")
    for _ in range(levels):
        array = long(b"A" + array)
    return long(short(b"a") + b"A" + array)


def start(properties: bytes = long(b""), mechanisms: bytes = b"PLAIN", locales: bytes = b"en_US") -> bytes:
    payload = struct.pack(">HHBB", 10, 10, 0, 9) + properties + long(mechanisms) + long(locales)
    return raw(1, payload, 0)


def says(**properties: bytes) -> bytes:
    """The server properties of connection.start, all long strings."""
    return long(b"".join(short(name.encode()) + b"S" + long(value) for name, value in properties.items()))


def content_header(size: int, properties: bytes = b"\0\0", class_id: int = 60, weight: int = 0) -> bytes:
    return raw(2, struct.pack(">HHQ", class_id, weight, size) + properties)


def with_headers(table: bytes) -> bytes:
    """A delivery whose property `headers` is this table (its length included)."""
    return raw(1, DELIVER) + content_header(1, struct.pack(">H", 0x2000) + table) + raw(3, b"x")


def field(kind: bytes, value: bytes) -> bytes:
    return long(short(b"k") + kind + value)


def close(kind: str, channel: int, code: int) -> bytes:
    text = "\udcff nonsense \udc80"
    return method(f"{kind}.close", channel, reply_code=code, reply_text=text, class_id=65535, method_id=65535)


#: What comes before a reply.
FRAMES: dict[str, bytes] = {
    "frame of 4 GiB": raw(1, b"", 1, size=2**32 - 1, end=b""),
    "body of 4 GiB": raw(3, bytes(1000), 1, size=2**32 - 1, end=b""),
    "frame above the limit": raw(3, bytes(200_000)),
    "wrong frame end": raw(1, struct.pack(">HH", 20, 11) + long(b""), end=b"\xcd"),
    "frame type 99": raw(99, b"abc"),
    "frame type 0": raw(0),
    "frame type 4": raw(4),
    "garbage": bytes(range(256)) * 20,
    "zeros": bytes(10_000),
    "protocol header": PROTOCOL_HEADER,
    "other protocol header": b"AMQP\x00\x01\x00\x00",
    "HTTP": HTTP,
    "TLS alert": TLS_ALERT,
    "heartbeat on a channel": raw(8, b"", 7),
    "heartbeat with a payload": raw(8, b"beat", 0),
    "channel method on channel 0": method("channel.open-ok", 0),
    "delivery on channel 0": method("basic.deliver", 0, Content({}, b"x"), consumer_tag="t", delivery_tag=1),
    "connection method on a channel": method("connection.unblocked", 1),
    "close-ok nobody waits for": method("connection.close-ok", 0),
    "channel 65535": method("basic.qos-ok", 65535),
    "delivery on channel 65535": method("basic.deliver", 65535, Content({}, b"x"), delivery_tag=1),
    "content header for class 10": raw(1, DELIVER) + content_header(1, class_id=10),
    "content header with weight": raw(1, DELIVER) + content_header(1, weight=1),
    "body before header": raw(1, DELIVER) + raw(3, b"x"),
    "header without method": content_header(1),
    "body without anything": raw(3, b"x"),
    "method within content": raw(1, DELIVER) + content_header(5) + method("basic.qos-ok"),
    "longer than announced": raw(1, DELIVER) + content_header(1) + raw(3, b"xyz"),
    "announces 2^63": raw(1, DELIVER) + content_header(2**63) + raw(3, bytes(100_000)),
    "announces 2^64 - 1": raw(1, DELIVER) + content_header(2**64 - 1),
    "method cut short": raw(1, DELIVER[:-2]),
    "method too long": raw(1, DELIVER + b"more"),
    "method of 3 octets": raw(1, b"\0\x3c\0"),
    "unknown class": raw(1, struct.pack(">HH", 99, 10)),
    "unknown method": raw(1, struct.pack(">HH", 60, 99)),
    "method of a client": method("basic.publish", 1, Content({}, b"x"), exchange="", routing_key="q"),
    "string not in UTF-8": method("queue.declare-ok", 1, queue="\udcff\udcfe\n\x1b[2J", message_count=2**32 - 1),
    "delivery not in UTF-8": method(
        "basic.deliver", 1, Content({"message_id": "\udcff", "headers": {"\udcff": "\udcfe"}}, b"\xff"),
        consumer_tag="\udcff", exchange="\udcff", routing_key="\udcff", delivery_tag=2**64 - 1,
    ),
    "return not in UTF-8": method("basic.return", 1, Content({}, b"\xed\xa0\x80"), reply_code=312, reply_text="\udcff",
        exchange="\udcff", routing_key="\udcff"),
    "cancel of nothing": method("basic.cancel", 1, consumer_tag="\udcff"),
    "ack of everything": method("basic.ack", 1, delivery_tag=2**64 - 1, multiple=True),
    "table 20000 deep": with_headers(deep(15_000)),
    "array 20000 deep": with_headers(deep_array(20_000)),
    "table 90 deep": with_headers(deep(90)),
    "table 101 deep": with_headers(deep(101)),
    "array 99 deep": with_headers(deep_array(98)),
    "table longer than its frame": with_headers(struct.pack(">I", 5000)),
    "table shorter than its content": with_headers(struct.pack(">I", 3) + field(b"l", bytes(8))[4:]),
    "field of unknown type": with_headers(field(b"?", bytes(8))),
    "string in a table cut short": with_headers(field(b"S", struct.pack(">I", 2**32 - 1))),
    "NaN": with_headers(field(b"d", b"\x7f\xf8" + bytes(6))),
    "infinity": with_headers(field(b"f", b"\xff\x80\0\0")),
    "signalling NaN": with_headers(field(b"f", b"\x7f\x80\0\1")),
    "timestamp out of range": with_headers(field(b"T", b"\xff" * 8)),
    "decimal of scale 255": with_headers(field(b"D", b"\xff" * 5)),
    "integer of 64 bits": with_headers(field(b"l", b"\x80" + bytes(7))),
    "a table that looks like a tag": with_headers(field(b"F", long(short(b"$bytes") + b"S" + long(b"\xff")))),
    "two fields of one name": with_headers(long((short(b"k") + b"V") * 2)),
    "100000 fields": with_headers(long(b"".join(short(b"%x" % n) + b"V" for n in range(16_000)))),
    "expiration and user not in UTF-8": method("basic.deliver", 1, Content({"expiration": "\udcff", "user_id": "\udcfe",
        "reply_to": "amq.rabbitmq.reply-to.\udcff", "delivery_mode": 255, "priority": 255}, b"x"), consumer_tag="t"),
    "close of a channel that is not open": close("channel", 77, 404),
    "close of channel 0": close("channel", 0, 404),
    "close with code 0": close("channel", 1, 0),
    "close with code 65535": close("channel", 1, 65535),
    "close of the connection with code 7": close("connection", 0, 7),
    "close-ok of a channel": method("channel.close-ok", 1),
    "connection.start": start(),
    "connection.secure": method("connection.secure", 0, challenge="\udcff" * 100),
    "connection.open-ok": method("connection.open-ok", 0),
}  # fmt: skip

#: What comes without end, and what comes before that.
FLOODS: dict[str, tuple[bytes, bytes]] = {
    "heartbeats": (b"", HEARTBEAT_OCTETS),
    "deliveries to nobody": (b"", method("basic.deliver", 1, Content({}, b"x" * 100), consumer_tag="nobody")),
    "channel.open-ok": (b"", method("channel.open-ok", 1)),
    "channel.close": (b"", method("channel.close", 1, reply_code=404)),
    "connection.close": (b"", method("connection.close", 0, reply_code=320)),
    "protocol headers": (b"", PROTOCOL_HEADER),
    "acknowledgements": (b"", method("basic.ack", 1, delivery_tag=1)),
    "garbage": (b"", bytes(range(256))),
    "a body of 2^63": (raw(1, DELIVER) + content_header(2**63), raw(3, bytes(100_000))),
    "a body of 127 MiB": (raw(1, DELIVER) + content_header(127 * 1024 * 1024), raw(3, bytes(100_000))),
    "empty bodies": (raw(1, DELIVER) + content_header(5), raw(3)),
    "contents that nothing ends": (b"", b"".join(raw(1, DELIVER, n) for n in range(1, 65536, 7))),
}  # fmt: skip

#: What may come at any time.
BLOCKED = method("connection.blocked", 0, reason="low on \udcff") + method("connection.unblocked", 0)
