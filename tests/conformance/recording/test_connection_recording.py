"""Octets of both directions to rows: whatever they are, they are recorded, and no credentials with them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amqpspec.conformance.recording.connection_recording import ConnectionRecording
from amqpspec.conformance.traces.trace import TraceRow, TraceWriter, read_trace
from amqpspec.model.protocol.methods import Content, Method, RawFrame
from amqpspec.targets.codec.methods_codec import PROTOCOL_HEADER, encode

SECRET = "\0guest\0a password"
CLIENT = PROTOCOL_HEADER + b"".join(
    encode(Method("a", channel, name, arguments, True, content), 0)
    for channel, name, arguments, content in (
        (0, "connection.start-ok", {"client_properties": {}, "mechanism": "PLAIN", "response": SECRET}, None),
        (0, "connection.tune-ok", {"channel_max": 7, "frame_max": 4096, "heartbeat": 0}, None),
        (0, "connection.open", {"virtual_host": "v"}, None),
        (1, "channel.open", {}, None),
        (1, "basic.publish", {"routing_key": "q"}, Content({"message_id": "1"}, b"x" * 3000)),
        (0, "connection.update-secret", {"new_secret": SECRET, "reason": ""}, None),
    )
)
PROPERTIES = {"product": "RabbitMQ", "version": "4.0.5"}
START = encode(Method("a", 0, "connection.start", {"server_properties": PROPERTIES, "mechanisms": "PLAIN"}, False), 0)


def rows_of(path: Path, *pieces: tuple[bool, bytes], **options: int) -> list[TraceRow]:
    """The rows of a connection in which these octets were (sent?, octets)."""
    with TraceWriter(path / "trace.jsonl", **options) as trace:
        recording = ConnectionRecording(trace, "connection 1", "a broker", None, 0.5)
        for is_sent, octets in pieces:
            (recording.sent if is_sent else recording.received)(octets, 1.0)
        recording.client_left(2.0)
    return list(read_trace(path))


def methods(rows: list[TraceRow]) -> list[str]:
    return [row["method"] for row in rows if row["kind"] == "frame"]


def test_a_connection(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, (True, CLIENT[:8]), (False, START), (True, CLIENT[8:]))
    start = rows[0]
    assert (start["kind"], start["mode"], start["virtual_host"]) == ("start", "open", "v")
    assert (start["product"], start["version"], start["dialect"]) == ("RabbitMQ", "4.0.5", "rabbitmq-4.0")
    assert methods(rows) == [
        "socket.open", "protocol.header", "connection.start", "connection.start-ok", "connection.tune-ok",
        "connection.open", "channel.open", "basic.publish", "connection.update-secret", "socket.abort",
    ]  # fmt: skip
    assert rows[8]["body"] == "x" * 3000
    assert rows[-1]["kind"] == "end"
    assert "password" not in (tmp_path / "trace.jsonl").read_text()


@settings(deadline=None, max_examples=50)
@given(cuts=st.lists(st.integers(0, len(CLIENT)), max_size=6))
def test_how_the_octets_come_makes_no_difference(tmp_path_factory: pytest.TempPathFactory, cuts: list[int]) -> None:
    path = tmp_path_factory.mktemp("pieces")
    ends = [0, *sorted(cuts), len(CLIENT)]
    pieces = [(True, CLIENT[begin:end]) for begin, end in pairwise(ends)]
    assert methods(rows_of(path, *pieces)) == methods(rows_of(path, (True, CLIENT)))


@settings(deadline=None, max_examples=200)
@given(at=st.integers(8, len(CLIENT) - 1), octet=st.integers(0, 255))
def test_broken_octets_tell_no_credentials(tmp_path_factory: pytest.TempPathFactory, at: int, octet: int) -> None:
    path = tmp_path_factory.mktemp("broken")
    broken = CLIENT[:at] + bytes([octet]) + CLIENT[at + 1 :]
    rows_of(path, (True, broken))
    written = (path / "trace.jsonl").read_text()
    assert "password" not in written
    assert b"password".hex() not in written


def test_of_digests_the_bodies_are_left_out(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, (True, CLIENT), longest_body=-1)
    (publish,) = [row for row in rows if row.get("method") == "basic.publish"]
    assert publish["body_size"] == 3000
    assert "body" not in publish


def test_what_cannot_be_decoded_is_recorded(tmp_path: Path) -> None:
    odd = encode(RawFrame("a", 1, "frame.method", {"class_id": 60, "method_id": 999, "payload": "01"}, True), 0)
    rows = rows_of(tmp_path, (True, CLIENT), (True, odd), (False, START), (False, b"not AMQP"), (False, b"nor this"))
    frames = [row for row in rows if row["kind"] == "frame"]
    assert frames[-4]["method"] == "frame.method"
    assert frames[-4]["arguments"]["method_id"] == 999
    assert [row["method"] for row in frames[-3:]] == ["connection.start", "socket.garbage", "socket.abort"]
    assert frames[-2]["arguments"]["octets"] == b"not AMQP".hex()


def test_who_leaves_is_told(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "trace.jsonl") as trace:
        recording = ConnectionRecording(trace, "connection 1", "a broker", "rabbitmq-3", 0.5)
        recording.broker_left(1.0, "it cannot be reached")
        recording.client_left(2.0)
    rows = list(read_trace(tmp_path))
    assert [row["kind"] for row in rows] == ["start", "frame", "frame", "end"]
    assert rows[0]["dialect"] == "rabbitmq-3"
    assert rows[2]["method"] == "socket.closed"
    assert rows[2]["arguments"] == {"reason": "it cannot be reached"}
