"""The codec against pamqp's (an independent reading of the same protocol), against itself, and against liars."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pamqp.frame
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pamqp import commands
from pamqp.base import Frame as PamqpMethod
from pamqp.body import ContentBody
from pamqp.header import ContentHeader

from amqpspec.model.protocol.methods import (
    CONTENT_METHODS,
    METHOD_IDS,
    OCTETS_BEHIND,
    Content,
    Method,
    RawFrame,
    Table,
    event_of,
)
from amqpspec.targets.codec.field_values import FarTimestamp
from amqpspec.targets.codec.methods_codec import (
    HEARTBEAT_OCTETS,
    PROTOCOL_HEADER,
    Decoded,
    Decoder,
    EncodingError,
    FrameSyntaxError,
    Heartbeat,
    ProtocolHeader,
    encode,
    encode_content,
    encode_method,
)
from amqpspec.targets.codec.server_decoder import ServerDecoder

_RESERVED = {"ticket", "out_of_band", "insist", "capabilities", "known_hosts", "channel_id", "cluster_id"}
_RENAMED = {"exchange_type": "type"}
_SAMPLES: dict[str, Any] = {
    "octet": 9, "short": 65_535, "long": 4_294_967_295, "longlong": 77, "shortstr": "naïve \x00/%", "bit": True,
    "longstr": "long " * 100, "table": {"x-a": 1, "t": {"deep": [True, None, "é"]}},
}  # fmt: skip

names = st.text(max_size=60)
moments = st.integers(0, 253_402_300_799).map(lambda seconds: datetime.fromtimestamp(seconds, tz=UTC))
decimals = st.builds(
    lambda mantissa, places: Decimal(mantissa).scaleb(-places),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(0, 255),
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | moments
    | decimals
    | st.integers(253_402_300_800, 2**64 - 1).map(FarTimestamp)
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4), max_leaves=12
)
tables = st.dictionaries(names, values, max_size=6)
octet = st.integers(0, 255)
_STRING_PROPERTIES = (
    "content_type", "content_encoding", "correlation_id", "reply_to", "expiration", "message_id", "type",
    "user_id", "app_id", "cluster_id",
)  # fmt: skip
properties = st.fixed_dictionaries(
    {},
    optional={
        "headers": tables,
        "delivery_mode": octet,
        "priority": octet,
        "timestamp": st.integers(0, 2**64 - 1),
        **dict.fromkeys(_STRING_PROPERTIES, names),
    },
)


def sent(method: str, arguments: Table, content: Content | None = None, channel: int = 1) -> Method:
    return event_of("", channel, method, arguments, True, content)


def decode(octets: bytes, frame_max: int = 131_072, content_max: int = 1_000_000) -> list[Decoded]:
    return Decoder(sent=True, frame_max=frame_max, content_max=content_max).feed(octets)


def framed(kind: int, channel: int, payload: bytes, end: int = 0xCE) -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + bytes([end])


def definition(method: str) -> type[PamqpMethod]:
    class_id, method_id = METHOD_IDS[method]
    return commands.INDEX_MAPPING[class_id << 16 | method_id]


def sample_fields(method: str) -> dict[str, Any]:
    """pamqp's name of each field that is not reserved, with a value that is not zero."""
    its = definition(method)
    return {name: _SAMPLES[its.amqp_type(name)] for name in its.attributes() if name not in _RESERVED}


def as_arguments(fields: dict[str, Any]) -> Table:
    return {_RENAMED.get(name, name): value for name, value in fields.items()}


@pytest.mark.filterwarnings("ignore:This command is deprecated")
@pytest.mark.parametrize("method", METHOD_IDS)
class TestEveryMethod:
    def test_pamqp_reads_what_we_write(self, method: str) -> None:
        fields = sample_fields(method)
        octets = encode_method(7, method, as_arguments(fields))
        used, channel, read = pamqp.frame.unmarshal(octets)
        assert (used, channel, type(read)) == (len(octets), 7, definition(method))
        assert {name: getattr(read, name) for name in fields} == fields
        for name in set(definition(method).attributes()) - set(fields):
            assert not getattr(read, name), f"reserved {name} is not zero"

    def test_we_read_what_pamqp_writes(self, method: str) -> None:
        fields = sample_fields(method)
        written = definition(method).__new__(definition(method))
        for name in definition(method).attributes():
            kind = definition(method).amqp_type(name)
            zero: Any = "" if kind.endswith("str") else {} if kind == "table" else 0
            setattr(written, name, fields.get(name, zero))
        # Not pamqp's own marshal: that validates first, and refuses what the protocol can express.
        written.validate = lambda: None  # type: ignore[method-assign]
        octets = pamqp.frame.marshal(written, 7)
        if method in CONTENT_METHODS:
            octets += encode_content(7, Content())
        content = Content() if method in CONTENT_METHODS else None
        assert decode(octets) == [sent(method, as_arguments(fields), content, channel=7)]

    def test_each_bit_has_its_own_place(self, method: str) -> None:
        its = definition(method)
        for name in its.attributes():
            if its.amqp_type(name) == "bit" and name not in _RESERVED:
                spelled = _RENAMED.get(name, name)
                octets = encode_method(1, method, {spelled: True})
                read = pamqp.frame.unmarshal(octets)[2]
                on = [bit for bit in its.attributes() if its.amqp_type(bit) == "bit" and getattr(read, bit)]
                assert on == [name]

    def test_what_is_left_out_is_zero(self, method: str) -> None:
        octets = encode(sent(method, {}, Content() if method in CONTENT_METHODS else None))
        (frame,) = decode(octets)
        assert isinstance(frame, Method) and frame.name == method
        assert set(frame.arguments) == set(as_arguments(sample_fields(method)))
        assert not any(frame.arguments.values())

    def test_each_truncation_is_a_syntax_error_and_an_extension_is_told_with_the_method(self, method: str) -> None:
        payload = encode_method(1, method, as_arguments(sample_fields(method)))[7:-1]
        for length in range(len(payload)):
            with pytest.raises(FrameSyntaxError) as caught:
                decode(framed(1, 1, payload[:length]))
            assert caught.value.reply_code == 502
        (frame,) = decode(framed(1, 1, payload + b"\x00") + (EMPTY_HEADER if method in CONTENT_METHODS else b""))
        assert isinstance(frame, Method) and frame.name == method
        assert frame.arguments[OCTETS_BEHIND] == "00"
        (frame,) = ServerDecoder(awaits_header=False).feed(framed(1, 1, payload + b"\x00"))
        assert isinstance(frame, RawFrame), "a client must not do that either, and is told so"


class TestMethods:
    def test_known_octets(self) -> None:
        method = sent("queue.declare", {"queue": "q", "durable": True, "nowait": True, "arguments": {"x": 5}})
        payload = b"\x00\x32\x00\x0a\x00\x00\x01q\x12\x00\x00\x00\x07\x01xI\x00\x00\x00\x05"
        assert encode(method) == b"\x01\x00\x01" + struct.pack(">I", len(payload)) + payload + b"\xce"

    def test_tags_have_64_unsigned_bits(self) -> None:
        method = sent("basic.ack", {"delivery_tag": 2**64 - 1, "multiple": False})
        assert decode(encode(method)) == [method]

    def test_reserved_fields_can_be_sent(self) -> None:
        read = pamqp.frame.unmarshal(encode(sent("basic.get", {"ticket": 3, "queue": "q"})))[2]
        assert (read["ticket"], read["queue"]) == (3, "q")  # type: ignore[index]

    def test_what_pamqp_refuses_can_be_sent(self) -> None:
        method = sent("queue.declare", {"queue": "a\n\x7f*ü" * 20, "arguments": {"k" * 255: "v"}})
        (read,) = decode(encode(method))
        assert isinstance(read, Method) and read.arguments["queue"] == method.arguments["queue"]
        assert read.arguments["arguments"] == method.arguments["arguments"]

    def test_octets_that_are_not_utf8_round_trip(self) -> None:
        octets = framed(1, 1, b"\x00\x32\x00\x0b\x03\xff\x00\xfe" + bytes(8))
        (frame,) = decode(octets)
        assert isinstance(frame, Method)
        assert encode(frame) == octets

    @pytest.mark.parametrize(
        ("method", "arguments", "named"),
        [
            ("queue.declare", {"que": "q"}, "que"),
            ("queue.invent", {}, "queue.invent"),
            ("queue.declare", {"queue": "x" * 256}, "queue"),
            ("queue.declare", {"queue": 5}, "queue"),
            ("basic.qos", {"prefetch_count": 65_536}, "prefetch_count"),
            ("basic.qos", {"prefetch_count": -1}, "prefetch_count"),
            ("basic.ack", {"delivery_tag": "1"}, "delivery_tag"),
            ("queue.declare", {"arguments": {"x": 2**63}}, "arguments"),
            ("queue.declare", {"arguments": {"x": object()}}, "arguments"),
            ("queue.declare", {"arguments": {"x": Decimal("1e40")}}, "arguments"),
            ("queue.declare", {"arguments": {"x": Decimal("NaN")}}, "arguments"),
            ("queue.declare", {"arguments": {"x": Decimal("1E+2")}}, "arguments"),
            ("queue.declare", {"arguments": {"x": Decimal("-0")}}, "arguments"),
            ("queue.declare", {"arguments": {"x": datetime(2024, 1, 1, microsecond=5, tzinfo=UTC)}}, "arguments"),
            ("queue.declare", {"arguments": {"x": datetime(2024, 1, 1)}}, "arguments"),
            ("queue.declare", {"arguments": {"x": datetime(1969, 1, 1, tzinfo=UTC)}}, "arguments"),
            ("queue.declare", {"arguments": {"x" * 256: 1}}, "arguments"),
            ("queue.declare", {"arguments": "x"}, "arguments"),
            ("queue.declare", {"queue": "\ud800"}, "queue"),
        ],
    )
    def test_what_has_no_octets_is_refused_by_name(self, method: str, arguments: Table, named: str) -> None:
        with pytest.raises(EncodingError, match=named):
            encode(sent(method, arguments))

    def test_channel_numbers_have_16_bits(self) -> None:
        for channel in (-1, 65_536):
            with pytest.raises(EncodingError, match="channel"):
                encode(sent("basic.qos", {}, channel=channel))


class TestFieldValues:
    @given(tables)
    def test_round_trip(self, table: Table) -> None:
        (frame,) = decode(encode(sent("queue.declare", {"arguments": table})))
        assert isinstance(frame, Method)
        assert frame.arguments["arguments"] == table
        assert_same_types(frame.arguments["arguments"], table)

    @pytest.mark.parametrize(
        ("value", "octets"),
        [
            (True, b"t\x01"),
            (1, b"I\x00\x00\x00\x01"),
            (-(2**31), b"I\x80\x00\x00\x00"),
            (2**31, b"l\x00\x00\x00\x00\x80\x00\x00\x00"),
            (1.5, b"d\x3f\xf8\x00\x00\x00\x00\x00\x00"),
            ("é", b"S\x00\x00\x00\x02\xc3\xa9"),
            (b"\xff", b"x\x00\x00\x00\x01\xff"),
            (None, b"V"),
            ([1], b"A\x00\x00\x00\x05I\x00\x00\x00\x01"),
            ({}, b"F\x00\x00\x00\x00"),
            (Decimal("-1.25"), b"D\x02\xff\xff\xff\x83"),
            (datetime(2106, 2, 7, 6, 28, 17, tzinfo=UTC), b"T\x00\x00\x00\x01\x00\x00\x00\x01"),
        ],
    )
    def test_wire_types(self, value: Any, octets: bytes) -> None:
        table = b"\x01k" + octets
        # After the identifier: ticket, empty name, no bits.
        expected = bytes(4) + struct.pack(">I", len(table)) + table
        assert encode_method(1, "queue.declare", {"arguments": {"k": value}})[11:-1] == expected

    @pytest.mark.parametrize(
        ("octets", "value"),
        [
            (b"b\xff", -1), (b"B\xff", 255), (b"s\xff\xff", -1), (b"u\xff\xff", 65_535),
            (b"i\xff\xff\xff\xff", 2**32 - 1), (b"L" + b"\xff" * 8, -1), (b"f\x3f\xc0\x00\x00", 1.5),
            (b"\x00", None), (b"t\x02", True),
        ],
    )  # fmt: skip
    def test_types_that_only_others_write(self, octets: bytes, value: Any) -> None:
        assert decode_headers(b"\x01k" + octets) == {"k": value}

    @pytest.mark.parametrize(
        "octets",
        [
            b"\x01k", b"\x05k", b"\x01kZ", b"\x01kI\x00\x00\x00", b"\x01kS\x00\x00\x00\x02a", b"\x01kS\x00\x00",
            b"\x01kF\x00\x00\x00\x01", b"\x01kA\x00\x00\x00\x01", b"\x01kx\xff\xff\xff\xff", b"\x01kT\x00",
            b"\x01kD\x00\x00", b"\x01kt", b"\x01kA\x00\x00\x00\x01S", b"\x01kF\x00\x00\x00\x02\x05k",
        ],
    )  # fmt: skip
    def test_malformed(self, octets: bytes) -> None:
        with pytest.raises(FrameSyntaxError) as caught:
            decode_headers(octets)
        assert caught.value.reply_code == 502

    def test_a_table_must_not_reach_into_what_follows_it(self) -> None:
        # The string inside the table would fit in the frame, but not in the table.
        table = b"\x01kS\x00\x00\x00\x03ab"
        payload = struct.pack(">HHQH", 60, 0, 0, 0x3000) + struct.pack(">I", len(table)) + table + b"\x02"
        with pytest.raises(FrameSyntaxError, match="cut short"):
            decode(encode_method(1, "basic.publish", {}) + framed(2, 1, payload))

    def test_depth_is_bounded(self) -> None:
        assert nested_dict(decode_headers(nested(100))) == 100
        for depth in (101, 5_000):
            with pytest.raises(FrameSyntaxError, match="deep"):
                decode_headers(nested(depth))

    def test_deep_values_are_not_encoded(self) -> None:
        table: Table = {}
        for _ in range(20_000):
            table = {"k": table}
        with pytest.raises(EncodingError, match="deep"):
            encode(sent("queue.declare", {"arguments": table}))

    def test_wide_tables_take_linear_time(self) -> None:
        octets = b"".join(b"\x03%03dt\x01" % (number % 1000) for number in range(350_000))
        begin = time.process_time()
        assert len(decode_headers(octets, frame_max=0)) == 1000
        assert time.process_time() - begin < 15  # 0.3 s; about a minute if each field copied what follows it


def assert_same_types(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, dict):
        for key in one:
            assert_same_types(one[key], other[key])
    if isinstance(one, list):
        for left, right in zip(one, other, strict=True):
            assert_same_types(left, right)


def decode_headers(fields: bytes, frame_max: int = 131_072) -> Table:
    """The headers of a content whose table holds these octets."""
    payload = struct.pack(">HHQH", 60, 0, 0, 0x2000) + struct.pack(">I", len(fields)) + fields
    octets = encode_method(1, "basic.publish", {}) + framed(2, 1, payload)
    (frame,) = decode(octets, frame_max, content_max=10_000_000)
    assert isinstance(frame, Method) and frame.content is not None
    headers: Table = frame.content.properties["headers"]
    return headers


def nested(depth: int) -> bytes:
    octets = b"\x00V"
    for _ in range(depth - 1):
        octets = b"\x00F" + struct.pack(">I", len(octets)) + octets
    return octets


def nested_dict(value: Any) -> int:
    return 1 + nested_dict(value[""]) if isinstance(value, dict) else 0


class TestContent:
    @given(properties)
    def test_properties_round_trip(self, given_properties: Table) -> None:
        method = sent("basic.publish", full_publish(), Content(given_properties, b"x"))
        assert decode(encode(method)) == [method]

    def test_all_properties_at_once_as_pamqp_reads_them(self) -> None:
        its = commands.Basic.Properties
        samples = _SAMPLES | {"timestamp": 1_700_000_000}
        fields = {name: samples[its.amqp_type(name)] for name in its.attributes()}
        given = {("type" if name == "message_type" else name): value for name, value in fields.items()}
        header = pamqp.frame.unmarshal(encode_content(1, Content(given, b"")))[2]
        assert isinstance(header, ContentHeader)
        fields["timestamp"] = datetime.fromtimestamp(1_700_000_000, tz=UTC)
        assert {name: getattr(header.properties, name) for name in fields} == fields

    def test_an_empty_property_is_not_an_absent_one(self) -> None:
        method = sent("basic.publish", full_publish(), Content({"content_type": "", "headers": {}}))
        assert decode(encode(method)) == [method]

    def test_unknown_properties_are_refused(self) -> None:
        with pytest.raises(EncodingError, match="message_type"):
            encode_content(1, Content({"message_type": "x"}))
        with pytest.raises(EncodingError, match="priority"):
            encode_content(1, Content({"priority": 256}))

    @given(st.binary(max_size=300), st.integers(9, 64), st.lists(st.integers(1, 40)))
    def test_bodies_are_cut_to_frame_max_and_put_together(self, body: bytes, frame_max: int, cuts: list[int]) -> None:
        method = sent("basic.publish", full_publish(), Content({}, body))
        octets = encode(method, frame_max)
        sizes = [len(each) for each in split_frames(octets)[2:]]
        assert all(size <= frame_max for size in sizes)
        assert len(sizes) == -(-len(body) // (frame_max - 8))
        decoder = Decoder(sent=True)
        decoded: list[Decoded] = []
        for cut in cuts:
            decoded += decoder.feed(octets[:cut])
            octets = octets[cut:]
        decoded += decoder.feed(octets)
        assert decoded == [method]
        assert not decoder.mid_frame

    def test_pamqp_reads_the_parts(self) -> None:
        octets = encode(sent("basic.publish", {}, Content({}, b"abcdefghij")), frame_max=12)
        parts = [pamqp.frame.unmarshal(each)[2] for each in split_frames(octets)]
        assert isinstance(parts[1], ContentHeader) and parts[1].body_size == 10
        assert [part.value for part in parts[2:] if isinstance(part, ContentBody)] == [b"abcd", b"efgh", b"ij"]

    def test_no_limit(self) -> None:
        assert len(split_frames(encode(sent("basic.publish", {}, Content({}, bytes(500_000))), 0))) == 3
        assert len(split_frames(encode(sent("basic.publish", {}, Content()), 0))) == 2

    def test_frame_max_without_room(self) -> None:
        with pytest.raises(EncodingError, match="frame-max"):
            encode(sent("basic.publish", {}, Content({}, b"x")), 8)

    def test_contents_of_channels_interleave(self) -> None:
        one = sent("basic.publish", full_publish(), Content({}, b"one" * 10), channel=1)
        two = sent("basic.publish", full_publish(), Content({}, b"two" * 20), channel=2)
        other = sent("basic.qos", {"prefetch_size": 0, "prefetch_count": 1, "global_": False}, channel=3)
        first, second = split_frames(encode(one, 18)), split_frames(encode(two, 18))
        octets = first[0] + second[0] + second[1] + encode(other) + first[1]
        octets += b"".join(a + b for a, b in zip(first[2:], second[2:], strict=False)) + b"".join(second[5:])
        assert decode(octets) == [other, one, two]


def full_publish() -> Table:
    return {"exchange": "e", "routing_key": "k", "mandatory": True, "immediate": False}


def split_frames(octets: bytes) -> list[bytes]:
    def walk() -> Iterator[bytes]:
        at = 0
        while at < len(octets):
            end = at + 8 + int(struct.unpack_from(">I", octets, at + 3)[0])
            assert octets[end - 1] == 0xCE
            yield octets[at:end]
            at = end

    return list(walk())


PUBLISH = encode_method(1, "basic.publish", {})
EMPTY_HEADER = framed(2, 1, struct.pack(">HHQH", 60, 0, 0, 0))
FIVE = framed(2, 1, struct.pack(">HHQH", 60, 0, 5, 0))
QOS = encode_method(1, "basic.qos", {})


class TestDecoder:
    def test_heartbeats_and_protocol_headers(self) -> None:
        assert decode(PROTOCOL_HEADER + HEARTBEAT_OCTETS) == [ProtocolHeader(PROTOCOL_HEADER), Heartbeat()]
        assert bytes.fromhex("08000000000000ce") == HEARTBEAT_OCTETS

    def test_frames_carry_the_given_connection_and_direction(self) -> None:
        (frame,) = Decoder("b").feed(QOS)
        assert isinstance(frame, Method) and (frame.connection, frame.sent, frame.time) == ("b", False, 0.0)

    def test_octet_by_octet(self) -> None:
        octets = PROTOCOL_HEADER + QOS + HEARTBEAT_OCTETS + PUBLISH + FIVE + framed(3, 1, b"hello") + QOS
        decoder, decoded = Decoder(sent=True), []
        for value in octets:
            decoded += decoder.feed(bytes([value]))
        assert decoded == decode(octets) and len(decoded) == 5

    def test_octet_by_octet_takes_linear_time(self) -> None:
        octets = encode(sent("basic.publish", {}, Content({}, bytes(1_200_000))), 0)
        decoder, decoded = Decoder(sent=True, frame_max=0), []
        begin = time.process_time()
        for value in octets:
            decoded += decoder.feed(bytes([value]))
        assert len(decoded) == 1
        assert time.process_time() - begin < 10  # 0.4 s; half a minute if each octet copied those before it

    @pytest.mark.parametrize(
        ("octets", "message", "reply_code"),
        [
            (b"HTTP/1.1 400 Bad Request", "frame type 72", 501),
            (b"\x00", "frame type 0", 501),
            (b"\x04", "frame type 4", 501),
            (b"AMQX", "protocol header", 501),
            (b"AN", "protocol header", 501),
            (framed(1, 1, QOS[7:-1], end=0), "ends with 0x00", 501),
            (b"\x01\x00\x01\x7f\xff\xff\xff", "exceeds the limit", 501),
            (framed(8, 1, b""), "heartbeat", 501),
            (framed(8, 0, b"x"), "heartbeat", 501),
            (framed(1, 1, b""), "no method", 502),
            (framed(1, 1, b"\x00\x3c\x00\x63"), "no method", 502),
            (EMPTY_HEADER, "without a method", 505),
            (framed(3, 1, b"x"), "without a header", 505),
            (PUBLISH + framed(3, 1, b"x"), "without a header", 505),
            (PUBLISH + QOS, "interrupts", 505),
            (PUBLISH + FIVE + QOS, "interrupts", 505),
            (PUBLISH + FIVE + FIVE, "without a method", 505),
            (PUBLISH + FIVE + framed(3, 1, b"sixsix"), "longer", 501),
            (PUBLISH + EMPTY_HEADER + framed(3, 1, b""), "without a header", 505),
            (PUBLISH + framed(2, 1, struct.pack(">HHQH", 50, 0, 0, 0)), "class 50", 505),
            (PUBLISH + framed(2, 1, struct.pack(">HHQH", 60, 1, 0, 0)), "weight 1", 505),
            (PUBLISH + framed(2, 1, struct.pack(">HHQH", 60, 0, 0, 1)), "flags", 502),
            (PUBLISH + framed(2, 1, struct.pack(">HHQH", 60, 0, 0, 2)), "flags", 502),
            (PUBLISH + framed(2, 1, struct.pack(">HHQH", 60, 0, 0, 0) + b"x"), "follow", 502),
            (PUBLISH + framed(2, 1, struct.pack(">HHQH", 60, 0, 0, 0x0800)), "priority", 502),
            (PUBLISH + framed(2, 1, struct.pack(">HHQ", 60, 0, 0)), "flags", 502),
            (PUBLISH + framed(2, 1, b"\x00\x3c"), "cut short", 502),
            (PUBLISH + framed(2, 1, struct.pack(">HHQH", 60, 0, 2**63, 0)), "exceeds the limit", 501),
        ],
    )
    def test_malformed(self, octets: bytes, message: str, reply_code: int) -> None:
        with pytest.raises(FrameSyntaxError, match=message) as caught:
            decode(octets)
        assert caught.value.reply_code == reply_code
        assert 0 < len(caught.value.octets) <= 64 and octets.endswith(caught.value.octets)

    @pytest.mark.parametrize(("behind", "kept"), [(b"\0", "00"), (bytes(100), "00" * 64)])
    def test_octets_behind_the_last_argument_are_told_with_the_method(self, behind: bytes, kept: str) -> None:
        payload = encode_method(1, "basic.qos-ok", {})[7:-1]
        content = encode_content(1, Content({}, b"five5"))
        delivery = encode_method(1, "basic.deliver", {"consumer_tag": "t"})[7:-1]
        octets = framed(1, 1, payload + behind) + framed(1, 1, delivery + behind) + content
        qos, delivered = Decoder().feed(octets)
        assert isinstance(qos, Method) and isinstance(delivered, Method)
        assert (qos.name, qos.arguments) == ("basic.qos-ok", {OCTETS_BEHIND: kept})
        assert delivered.content == Content({}, b"five5")
        assert (delivered.arguments["consumer_tag"], delivered.arguments[OCTETS_BEHIND]) == ("t", kept)

    def test_what_came_before_is_not_lost(self) -> None:
        decoder = Decoder(sent=True)
        with pytest.raises(FrameSyntaxError) as caught:
            decoder.feed(QOS + HEARTBEAT_OCTETS + b"garbage")
        assert caught.value.before == [*decode(QOS), Heartbeat()]
        assert caught.value.octets == b"garbage"
        with pytest.raises(FrameSyntaxError, match="frame type 103") as again:
            decoder.feed(QOS)
        assert again.value.before == []

    def test_frame_max_counts_the_whole_frame(self) -> None:
        frame = framed(1, 1, encode_method(1, "queue.declare", {"queue": "q" * 100})[7:-1])
        assert len(decode(frame, frame_max=len(frame))) == 1
        with pytest.raises(FrameSyntaxError, match="exceeds the limit"):
            decode(frame, frame_max=len(frame) - 1)

    def test_frame_max_0_is_bounded_by_the_content(self) -> None:
        assert len(decode(encode(sent("basic.publish", {}, Content({}, bytes(900))), 0), frame_max=0)) == 1
        with pytest.raises(FrameSyntaxError, match="exceeds the limit of 500"):
            decode(framed(3, 1, bytes(600)), frame_max=0, content_max=500)

    def test_unfinished_contents_are_bounded_over_all_channels(self) -> None:
        decoder = Decoder(content_max=200_000)
        with pytest.raises(FrameSyntaxError, match="unfinished contents exceed"):
            for channel in range(1, 10):
                frames = split_frames(encode(sent("basic.publish", {}, Content({}, bytes(150_000)), channel)))
                decoder.feed(b"".join(frames[:-1]))
        decoder = Decoder(content_max=200_000)
        for _ in range(10):  # finished ones do not count
            decoder.feed(encode(sent("basic.publish", {}, Content({}, bytes(150_000)))))

    def test_headers_of_unfinished_contents_count(self) -> None:
        decoder = Decoder(content_max=200_000)
        header = encode_content(1, Content({"headers": {"h": "x" * 50_000}}, b"x"))
        with pytest.raises(FrameSyntaxError, match="unfinished contents exceed"):
            for channel in range(1, 10):
                moved = bytes([2]) + struct.pack(">H", channel) + split_frames(header)[0][3:]
                decoder.feed(encode_method(channel, "basic.publish", {}) + moved)

    @given(st.binary(max_size=200))
    def test_any_octets_are_frames_or_a_syntax_error(self, octets: bytes) -> None:
        feed_quietly(octets)

    @settings(max_examples=300)
    @given(st.data())
    def test_damaged_frames_are_frames_or_a_syntax_error(self, data: st.DataObject) -> None:
        table = {"a": [1, {"b": b"x", "d": Decimal("1.5")}], "t": datetime(2020, 1, 1, tzinfo=UTC)}
        octets = bytearray(
            encode(sent("queue.declare", {"queue": "q", "arguments": table}))
            + encode(sent("basic.publish", {"exchange": "e"}, Content({"headers": table, "priority": 1}, b"12345")))
        )
        for _ in range(data.draw(st.integers(1, 4))):
            octets[data.draw(st.integers(0, len(octets) - 1))] = data.draw(octet)
        feed_quietly(bytes(octets))


def feed_quietly(octets: bytes) -> None:
    decoder = Decoder()
    try:
        decoder.feed(octets)
    except FrameSyntaxError as error:
        assert str(error) and len(error.octets) <= 64
