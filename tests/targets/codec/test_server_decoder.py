"""What the server makes of a client's octets: single frames round-trip, nothing raises, memory is bounded."""

from __future__ import annotations

import struct
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpspec.model.protocol.field_types import Float32, Int8, Int16, same_field
from amqpspec.model.protocol.methods import METHOD_IDS, Content, Method, Table, TraceEvent, event_of
from amqpspec.targets.codec.framing import framed
from amqpspec.targets.codec.methods_codec import (
    HEARTBEAT_OCTETS,
    PROTOCOL_HEADER,
    EncodingError,
    Heartbeat,
    ProtocolHeader,
    encode,
)
from amqpspec.targets.codec.server_decoder import OutOfRoom, ServerDecoder
from amqpspec.targets.codec.single_frames import as_understood

short = st.integers(0, 65_535)
octets_as_text = st.binary(max_size=40).map(bytes.hex)
unknown_methods = st.tuples(short, short).filter(lambda identifiers: identifiers not in set(METHOD_IDS.values()))


def single(method: str, arguments: Table, content: Content | None = None, channel: int = 1) -> Method:
    return event_of("", channel, method, arguments, True, content)


PUBLISH = single("basic.publish", {"exchange": "", "routing_key": "q", "mandatory": False, "immediate": False})


def header(size: int, **others: Any) -> Method:
    return single("frame.header", {"class_id": 60, "weight": 0, "body_size": size, "payload": "0000"} | others)


def body(octets: bytes, channel: int = 1) -> Method:
    return single("frame.body", {}, Content({}, octets), channel)


def test_numbers_keep_the_type_that_the_client_chose() -> None:
    arguments = {"x-max-length": Int8(5), "x-message-ttl": Int16(6000), "x-expires": 6000, "x": [Float32(1.5)]}
    [declare] = opened().feed(encode(single("queue.declare", {"queue": "q", "arguments": arguments})))
    assert isinstance(declare, Method) and same_field(declare.arguments["arguments"], arguments)


QOS = single("basic.qos", {"prefetch_size": 0, "prefetch_count": 1, "global_": False})


def opened(**limits: int) -> ServerDecoder:
    decoder = ServerDecoder("", **limits)
    assert decoder.feed(PROTOCOL_HEADER) == [ProtocolHeader(PROTOCOL_HEADER)]
    return decoder


def decoded(*events: TraceEvent, **limits: int) -> list[Any]:
    return opened(**limits).feed(b"".join(encode(event, 0) for event in events))


def known(method: Method) -> Method:
    """The frame with what its octets tell."""
    return as_understood(method)


class TestSingleFrames:
    @given(unknown_methods, octets_as_text, st.integers(0, 65_535))
    def test_a_method_that_does_not_exist(self, identifiers: tuple[int, int], payload: str, channel: int) -> None:
        class_id, method_id = identifiers
        arguments = {"class_id": class_id, "method_id": method_id, "payload": payload}
        method = single("frame.method", arguments, channel=channel)
        assert decoded(method) == [method]

    @given(short, short, st.integers(0, 2**64 - 1), octets_as_text)
    def test_a_content_header(self, class_id: int, weight: int, size: int, payload: str) -> None:
        arguments = {"class_id": class_id, "weight": weight, "body_size": size, "payload": payload}
        method = single("frame.header", arguments)
        (read,) = decoded(method)
        read.arguments.pop("properties", None)
        assert read == method

    @given(st.binary(max_size=100), short)
    def test_a_body(self, octets: bytes, channel: int) -> None:
        assert decoded(body(octets, channel)) == [body(octets, channel)]

    @given(st.sampled_from([0, 4, 5, 6, 7, 9, 255]), octets_as_text, short)
    def test_an_unknown_type(self, kind: int, payload: str, channel: int) -> None:
        method = single("frame.other", {"type": kind, "payload": payload}, channel=channel)
        assert decoded(method, QOS) == [method, QOS]

    @given(st.integers(0, 255), octets_as_text, st.integers(0, 255).filter(lambda end: end != 206))
    def test_a_wrong_end_is_the_last_frame(self, kind: int, payload: str, end: int) -> None:
        method = single("frame.other", {"type": kind, "payload": payload, "end": end})
        decoder = opened()
        assert decoder.feed(encode(method) + encode(QOS)) == [method]
        assert decoder.feed(encode(QOS)) == [] and decoder.is_lost

    @given(st.integers(0, 255), st.integers(131_073, 2**32 - 1))
    def test_what_says_that_it_is_too_long_is_not_waited_for(self, kind: int, size: int) -> None:
        decoder = opened()
        assert decoder.feed(struct.pack(">BHI", kind, 3, size)) == [
            single("frame.other", {"type": kind, "size": size}, channel=3)
        ]
        assert decoder.is_lost

    def test_eight_octets_too_many_are_tolerated(self) -> None:
        assert decoded(PUBLISH, header(131_072), body(bytes(131_072)))[-1].content == Content({}, bytes(131_072))

    @pytest.mark.parametrize(
        ("kind", "payload", "channel"), [(1, "003c00", 1), (2, "003c00000000", 1), (8, "78", 0), (8, "", 1)]
    )
    def test_what_is_too_short_or_no_heartbeat(self, kind: int, payload: str, channel: int) -> None:
        method = single("frame.other", {"type": kind, "payload": payload}, channel=channel)
        assert decoded(method) == [method]

    def test_a_heartbeat_that_is_right(self) -> None:
        assert opened().feed(HEARTBEAT_OCTETS) == [Heartbeat()]
        assert decoded(single("frame.other", {"type": 8}, channel=0)) == [Heartbeat()]

    @pytest.mark.parametrize(
        ("method", "arguments"),
        [
            ("frame.method", {"class_id": 65_536}),
            ("frame.header", {"body_size": -1}),
            ("frame.header", {"payload": "xy"}),
            ("frame.other", {"type": 256}),
            ("frame.other", {"end": 256}),
            ("frame.other", {"size": 2**32}),
        ],
    )
    def test_what_no_octets_can_express_is_told(self, method: str, arguments: Table) -> None:
        with pytest.raises(EncodingError, match=method):
            encode(single(method, arguments))


class TestArguments:
    @pytest.mark.parametrize("payload", ["0001", "000000000000000000", ""])
    def test_lengths_that_are_wrong(self, payload: str) -> None:
        method = single("frame.method", {"class_id": 60, "method_id": 10, "payload": payload})
        assert decoded(method) == [method]

    def test_a_table_that_is_wrong_inside(self) -> None:
        declare = {"class_id": 50, "method_id": 10, "payload": "000001710000000004016b5a31"}
        (frame,) = decoded(single("frame.method", declare))
        assert frame.arguments == {**declare, "fault": "table"}

    def test_a_table_that_is_wrong_inside_matters_only_where_the_lengths_are_right(self) -> None:
        (frame,) = decoded(
            single("frame.method", {"class_id": 50, "method_id": 10, "payload": "000001710000000004016b5a3100"})
        )
        assert "fault" not in frame.arguments

    def test_a_text_that_is_none(self) -> None:
        bind = {"class_id": 50, "method_id": 40, "payload": "000001ff00"}
        (frame,) = decoded(single("frame.method", bind))
        assert frame.arguments == {**bind, "fault": "text"}

    def test_a_password_is_any_octets(self) -> None:
        start_ok = single("connection.start-ok", {"response": "\0u\0\udcff", "mechanism": "PLAIN"}, channel=0)
        (frame,) = decoded(start_ok)
        assert frame.arguments["response"] == "\0u\0\udcff"

    def test_a_method_that_is_right_is_its_method(self) -> None:
        assert decoded(single("frame.method", {"class_id": 60, "method_id": 10, "payload": "00000000000100"})) == [QOS]
        understood = as_understood(
            single("frame.method", {"class_id": 60, "method_id": 10, "payload": "00000000000100"})
        )
        assert understood == QOS

    @given(st.sampled_from(sorted(METHOD_IDS.values())), st.binary(max_size=60))
    def test_the_suite_and_the_server_understand_the_same(self, identifiers: tuple[int, int], payload: bytes) -> None:
        class_id, method_id = identifiers
        method = single("frame.method", {"class_id": class_id, "method_id": method_id, "payload": payload.hex()})
        # channel 0, where no content is waited for
        method.channel = 0
        assert decoded(method) == [as_understood(method)]


class TestContents:
    def test_a_content_that_is_right_is_one_frame(self) -> None:
        whole = single("basic.publish", PUBLISH.arguments, Content({"delivery_mode": 2}, b"abcdef"))
        assert decoded(whole) == [whole]
        pieces = (PUBLISH, header(6), body(b""), body(b"abc"), body(b"def"))
        assert decoded(*pieces) == [single("basic.publish", PUBLISH.arguments, Content({}, b"abcdef"))]

    def test_channels_do_not_disturb_each_other(self) -> None:
        others = single("basic.qos", QOS.arguments, channel=2)
        whole = single("basic.publish", PUBLISH.arguments, Content({}, b"abc"))
        assert decoded(PUBLISH, others, header(3), others, body(b"abc")) == [others, others, whole]

    @pytest.mark.parametrize(
        ("methods", "given"),
        [
            ((PUBLISH, QOS), None),
            ((PUBLISH, body(b"abc")), None),
            ((PUBLISH, header(3, class_id=50)), None),
            ((PUBLISH, header(3, weight=1)), None),
            ((PUBLISH, header(6), body(b"ab"), QOS), None),
            ((PUBLISH, header(6), body(b"ab"), header(6)), None),
            ((PUBLISH, header(3), body(b"abcd")), None),
            ((PUBLISH, header(3), body(b"ab"), body(b"cd")), None),
            ((PUBLISH, PUBLISH), None),
            ((header(3),), None),
            ((body(b""),), None),
            # bodies that were right may come as one
            ((PUBLISH, header(9), body(b"ab"), body(b"cd"), QOS), (PUBLISH, header(9), body(b"abcd"), QOS)),
        ],
    )
    def test_what_does_not_fit_together_comes_in_pieces(
        self, methods: Sequence[Method], given: Sequence[Method] | None
    ) -> None:
        assert decoded(*methods) == [known(method) for method in given or methods]

    def test_then_the_channel_stays_in_pieces(self) -> None:
        methods = [PUBLISH, QOS, PUBLISH, header(3), body(b"abc")]
        assert decoded(*methods) == [known(method) for method in methods]

    def test_properties_that_cannot_be_read_are_given_with_their_content(self) -> None:
        strange = header(3, payload="8000")
        whole = single("basic.publish", PUBLISH.arguments, Content({}, b"xyz"))
        assert decoded(PUBLISH, strange, body(b"abc"), whole) == [PUBLISH, strange, body(b"abc"), whole]
        empty = header(0, payload="8000")
        assert decoded(PUBLISH, empty, whole) == [PUBLISH, empty, whole]

    def test_flags_without_a_property_are_ignored(self) -> None:
        methods = (PUBLISH, header(0, payload="100301"))
        assert decoded(*methods) == [single("basic.publish", PUBLISH.arguments, Content({"delivery_mode": 1}))]

    def test_contents_beyond_the_limit_come_in_pieces_and_the_next_whole_again(self) -> None:
        big = (PUBLISH, header(2500), body(bytes(1000)), body(bytes(1000)), body(bytes(500)))
        whole = single("basic.publish", PUBLISH.arguments, Content({}, b"xyz"))
        assert decoded(*big, whole, content_max=2000) == [*map(known, big), whole]

    def test_before_login_everything_comes_by_itself(self) -> None:
        methods = [PUBLISH, header(3), body(b"abc")]
        assert decoded(*methods, content_max=0) == list(map(known, methods))

    def test_methods_with_content_on_channel_0_are_not_waited_for(self) -> None:
        publish = single("basic.publish", PUBLISH.arguments, channel=0)
        assert decoded(publish) == [publish]


frame_like = st.one_of(
    st.sampled_from([PUBLISH, QOS, header(3), header(3, class_id=5), body(b"abc"), body(b"abcd"), header(10**12)]).map(
        encode
    ),
    st.builds(
        lambda kind, channel, size, payload, end: struct.pack(">BHI", kind, channel, size) + payload + end,
        st.sampled_from([0, 1, 2, 3, 8, 9, 65, 255]),
        st.sampled_from([0, 1, 2, 65_535]),
        st.integers(0, 30) | st.integers(0, 2**32 - 1),
        st.binary(max_size=30),
        st.sampled_from([b"\xce", b"", b"\x00"]),
    ),
    st.builds(
        lambda identifiers, payload: framed(1, 1, struct.pack(">HH", *identifiers) + payload),
        st.sampled_from(sorted(METHOD_IDS.values())) | st.tuples(short, short),
        st.binary(max_size=30),
    ),
    st.binary(max_size=40),
)


class TestAnyOctets:
    @given(st.lists(frame_like, max_size=12).map(b"".join), st.lists(st.integers(1, 50), max_size=30))
    def test_nothing_raises_and_the_cuts_make_no_difference(self, octets: bytes, cuts: list[int]) -> None:
        at_once = opened(frame_max=200, content_max=300).feed(octets)
        decoder, in_parts, at = opened(frame_max=200, content_max=300), [], 0
        for cut in [*cuts, len(octets)]:
            in_parts += decoder.feed(octets[at : at + cut])
            at += cut
        assert in_parts == at_once

    @given(st.binary(min_size=8, max_size=8), st.lists(frame_like, max_size=5).map(b"".join))
    def test_the_first_eight_octets_are_the_protocol_header(self, first: bytes, rest: bytes) -> None:
        decoder = ServerDecoder()
        assert decoder.feed(first[:5]) == []
        assert decoder.feed(first[5:] + rest)[0] == ProtocolHeader(first)

    @given(st.lists(frame_like, max_size=12).map(b"".join))
    def test_what_is_decoded_can_be_encoded(self, octets: bytes) -> None:
        for item in opened().feed(octets):
            if isinstance(item, TraceEvent):
                encode(item)


class TestMemory:
    def test_of_one_frame(self) -> None:
        decoder = opened(frame_max=10_000)
        for octet in struct.pack(">BHI", 3, 1, 9_000):
            decoder.feed(bytes((octet,)))
        for _ in range(8_999):
            assert decoder.feed(b"x") == []
        assert sys.getsizeof(decoder._rest) < 20_000

    def test_of_contents_on_all_channels(self) -> None:
        decoder = opened(content_max=200_000)
        items: list[Any] = []
        for channel in range(1, 65_536):
            items += decoder.feed(encode(single("basic.publish", PUBLISH.arguments, channel=channel)))
        assert items == [OutOfRoom()] and decoder.is_lost
        assert not decoder._unfinished

    def test_of_bodies_without_an_end(self) -> None:
        decoder = opened(content_max=200_000)
        decoder.feed(encode(PUBLISH) + encode(header(10**15)))
        piece = encode(body(bytes(100_000)))
        for _ in range(100):
            assert len(decoder.feed(piece)) == 1
        assert decoder._held == 0 and not decoder._unfinished

    def test_what_is_over_is_forgotten(self) -> None:
        decoder = opened(content_max=200_000)
        whole = encode(single("basic.publish", PUBLISH.arguments, Content({}, bytes(150_000))))
        for _ in range(20):
            assert len(decoder.feed(whole)) == 1
        assert decoder._held == 0


def test_whether_something_is_not_complete() -> None:
    decoder = opened()
    octets = encode(Method("", 1, "basic.publish", dict(PUBLISH.arguments), True, Content({}, b"m1")))
    for octet in octets[:-1]:
        decoder.feed(bytes((octet,)))
        assert decoder.is_within
    assert len(decoder.feed(octets[-1:])) == 1 and not decoder.is_within
