"""Network captures to rows: whatever was lost, moved or sent twice, and wherever the capture begins."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from amqpspec.conformance.recording.capture import CaptureOptions, capture_rows, is_capture
from amqpspec.conformance.recording.mid_connection import FramesFromTheMiddle
from amqpspec.conformance.traces.trace import TraceError, TraceRow, read_trace, row_event, sequences
from amqpspec.conformance.verdicts.judge import judge_open
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.protocol.methods import Content, Method
from amqpspec.targets.codec.framing import HEARTBEAT_OCTETS
from amqpspec.targets.codec.methods_codec import PROTOCOL_HEADER, encode
from tests.conformance.recording.captures import (
    BROKER_6,
    CLIENT,
    CLIENT_6,
    Conversation,
    Packet,
    later,
    mixed,
    write_pcap,
    write_pcapng,
)

pytestmark = pytest.mark.quick

CORPUS = Path(__file__).parents[2] / "corpus"
SECRET = "\0someone\0a password"
BODY = b"m" * 5000


def octets(
    name: str, channel: int = 0, *, sent: bool = True, content: Content | None = None, **arguments: object
) -> bytes:
    return encode(Method("a", channel, name, arguments, sent, content), 4096)


PROPERTIES = {"product": "RabbitMQ", "version": "4.3.0", "capabilities": {}}
#: What is said, by the client (True) or the broker, one after the other.
SAID = [
    (True, PROTOCOL_HEADER),
    (False, octets("connection.start", sent=False, server_properties=PROPERTIES, mechanisms="PLAIN")),
    (True, octets("connection.start-ok", client_properties={}, mechanism="PLAIN", response=SECRET)),
    (False, octets("connection.tune", sent=False, channel_max=7, frame_max=4096, heartbeat=0)),
    (True, octets("connection.tune-ok", channel_max=7, frame_max=4096, heartbeat=0)),
    (True, octets("connection.open", virtual_host="v")),
    (False, octets("connection.open-ok", sent=False)),
    (True, octets("channel.open", 1)),
    (False, octets("channel.open-ok", 1, sent=False)),
    (True, HEARTBEAT_OCTETS),
    (True, octets("basic.publish", 1, content=Content({"message_id": "1"}, BODY), routing_key="q")),
    (True, octets("basic.get", 1, queue="q")),
    (False, octets("basic.get-ok", 1, sent=False, content=Content({}, BODY), delivery_tag=1, routing_key="q")),
    (True, octets("basic.ack", 1, delivery_tag=1)),
    (True, octets("connection.close", reply_code=200)),
    (False, octets("connection.close-ok", sent=False)),
]  # fmt: skip
METHODS = [
    "socket.open", "protocol.header", "connection.start", "connection.start-ok", "connection.tune",
    "connection.tune-ok", "connection.open", "connection.open-ok", "channel.open", "channel.open-ok", "basic.publish",
    "basic.get", "basic.get-ok", "basic.ack", "connection.close", "connection.close-ok", "socket.closed",
]  # fmt: skip


def conversation(*ends: tuple[str, int], said: Sequence[tuple[bool, bytes]] = SAID) -> Conversation:
    made = Conversation(*ends).open()
    for is_sent, each in said:
        made.say(is_sent, each)
    return made


def whole(*ends: tuple[str, int]) -> list[Packet]:
    made = conversation(*ends)
    made.close(is_sent=False)
    return made.packets


def read(path: Path, *ports: int) -> tuple[list[list[TraceRow]], list[str]]:
    told: list[str] = []
    assert is_capture(path)
    return list(sequences(capture_rows(path, CaptureOptions(ports or (5672,)), told.append))), told


def captured(path: Path, packets: Sequence[Packet], *ports: int) -> tuple[list[list[TraceRow]], list[str]]:
    return read(write_pcap(path / "some.dump", packets), *ports)


def methods(rows: Sequence[TraceRow]) -> list[str]:
    return [row["method"] for row in rows if row["kind"] == "frame"]


@pytest.mark.parametrize("ends", [(), (CLIENT_6, BROKER_6)], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("write", [write_pcap, write_pcapng])
def test_a_connection(tmp_path: Path, write: object, ends: tuple[tuple[str, int], ...]) -> None:
    assert callable(write)
    (rows,), told = read(write(tmp_path / "a capture", whole(*ends)))
    assert told == []
    assert methods(rows) == METHODS
    start = rows[0]
    broker = "[fd00::9]:5672" if ends else "10.0.0.9:5672"
    assert (start["mode"], start["target"], start["virtual_host"]) == ("open", f"amqp://{broker}", "v")
    assert start["sequence"] == f"connection 1 from {broker.replace('9]', '5]').replace('.9:', '.5:')}".replace(
        "5672", "41234"
    )
    assert (start["product"], start["dialect"]) == ("RabbitMQ", "rabbitmq-4.3")
    assert [row["body"] for row in rows if row["kind"] == "frame" and "body" in row] == [BODY.decode()] * 2
    times = [row["time"] for row in rows if row["kind"] == "frame"]
    assert times == sorted(times) and 0 < times[0] < times[-1] < 1
    judgement = judge_open(rows)
    assert judgement.verdict is Verdict.PASS and not judgement.undecided


def test_no_credentials_are_kept(tmp_path: Path) -> None:
    packets = whole()
    for since in range(len(packets)):
        found, _ = captured(tmp_path, packets[since:])
        assert "password" not in str(found) and b"password".hex() not in str(found)


def test_retransmissions_and_another_order_make_no_difference(tmp_path: Path) -> None:
    chance = random.Random(7)
    for _ in range(40):
        packets = whole()
        for _ in range(8):  # sent again, perhaps cut in another way
            at = chance.randrange(3, len(packets))
            again = packets[at]
            packets.insert(min(at + chance.randrange(4), len(packets)), again)
        for _ in range(8):  # captured after the next ones
            at = chance.randrange(3, len(packets) - 4)
            packets.insert(at + chance.randrange(4), packets.pop(at))
        (rows,), told = captured(tmp_path, packets)
        assert told == []
        assert methods(rows)[:-1] == METHODS[:-1]


def test_nothing_comes_before_its_cause(tmp_path: Path) -> None:
    """The answer was captured before the question."""
    packets = whole()
    at = next(number for number, packet in enumerate(packets) if b"\x00\x14\x00\x0a" in packet.data)  # channel.open
    reply = next(number for number, packet in enumerate(packets) if b"\x00\x14\x00\x0b" in packet.data)
    packets.insert(at, packets.pop(reply))
    (rows,), told = captured(tmp_path, packets)
    assert (methods(rows)[:-1], told) == (METHODS[:-1], [])


def test_behind_a_lost_segment_nothing_is_recorded(tmp_path: Path) -> None:
    packets = whole()
    for lost in [number for number, packet in enumerate(packets) if packet.data]:
        found, told = captured(tmp_path, [*packets[:lost], *packets[lost + 1 :]])
        whose = "client" if packets[lost].source == CLIENT else "broker"
        assert len(found) <= 1
        for rows in found:
            assert methods(rows) == METHODS[: len(methods(rows))]
            assert rows[-1]["reason"] == f"octets of its {whose} are missing in the capture"
            assert judge_open(rows).verdict is not Verdict.FAIL
        if found:
            (line,) = told
            missing = f"octets of its {whose} are missing in the capture"
            assert line.endswith(f"connection 1 from 10.0.0.5:41234: {missing}, and its recording ends there")


def test_a_lost_segment_is_not_waited_for(tmp_path: Path) -> None:
    """The capture goes on for long: nothing of the connection is held back until its end."""
    made = conversation()
    lost = len(made.packets)
    for _ in range(3000):
        made.say(False, HEARTBEAT_OCTETS)
    packets = [*made.packets[:lost], *made.packets[lost + 1 :], *later(whole(("10.0.0.6", 5)), 60)]
    rows = list(capture_rows(write_pcap(tmp_path / "long.pcap", packets), CaptureOptions(), lambda _: None))
    ends = [(row["sequence"][:12], row["kind"]) for row in rows if row["kind"] in ("start", "end")]
    assert ends == [(f"connection {number}", kind) for number in (1, 2) for kind in ("start", "end")]
    why = next(row["reason"] for row in rows if row["kind"] == "end")
    assert why == "octets of its broker are missing in the capture"


def test_segments_that_were_not_captured_as_a_whole_are_missing(tmp_path: Path) -> None:
    (rows,), told = read(write_pcap(tmp_path / "cut.pcap", whole(), most=600))
    assert methods(rows) == METHODS[: METHODS.index("basic.publish")]
    assert len(told) == 1 and "octets of its client are missing" in told[0]


def test_several_connections_and_ports_that_are_used_again(tmp_path: Path) -> None:
    packets = whole()
    again = later(conversation(said=SAID[:9]).packets, 10)
    shifted = [replace(each, number=each.number + 7, acknowledged=each.acknowledged + 7) for each in again]
    others = later(whole(("10.0.0.6", 5), ("10.0.0.9", 7777)), 0.0005)
    found, _ = captured(tmp_path, sorted([*packets, *others, *shifted], key=lambda packet: packet.time))
    names = [rows[0]["sequence"] for rows in found]
    assert names == [
        "connection 1 from 10.0.0.5:41234", "connection 2 from 10.0.0.6:5", "connection 3 from 10.0.0.5:41234",
    ]  # fmt: skip
    assert found[1][0]["target"] == "amqp://10.0.0.9:7777"
    assert methods(found[0]) == methods(found[1]) == METHODS


def test_who_ended_a_connection(tmp_path: Path) -> None:
    ends = {}
    for name, is_sent, is_aborted in (("a", True, False), ("b", True, True), ("c", False, False), ("d", False, True)):
        made = conversation(said=SAID[:9])
        (made.abort if is_aborted else made.close)(is_sent)
        (rows,), told = captured(tmp_path, made.packets)
        assert told == []
        ends[name] = methods(rows)[-1]
    assert ends == {"a": "socket.abort", "b": "socket.abort", "c": "socket.closed", "d": "socket.closed"}
    (rows,), _ = captured(tmp_path, conversation(said=SAID[:9]).packets)
    assert (methods(rows)[-1], rows[-1]["reason"]) == ("channel.open-ok", "the capture ended before the connection")


def test_what_is_not_amqp_is_left_out(tmp_path: Path) -> None:
    http = [(True, b"GET / HTTP/1.1\r\n\r\n"), (False, b"AMQP\x00\x00\x09\x01")]
    of_1_0 = [(True, b"AMQP\x03\x01\x00\x00"), (False, b"AMQP\x03\x01\x00\x00")]
    mysql = [(False, b"\x4a\x00\x00\x00\x0a8.0"), (True, b"AMQP\x00\x00\x09\x01")]
    packets = [
        *conversation(("10.0.0.5", 1), said=http).packets,
        *conversation(("10.0.0.5", 2), said=of_1_0).packets,
        *conversation(("10.0.0.5", 3), said=mysql).packets,
        *conversation(("10.0.0.5", 4), ("10.0.0.9", 80), said=http).packets,
        *conversation(("10.0.0.5", 5), said=[]).packets,
        *conversation(("10.0.0.5", 6), said=http * 3).packets[3:],
    ]
    found, told = captured(tmp_path, packets)
    assert found == []
    assert [line.partition(": ")[2] for line in told] == [
        f"the connection from 10.0.0.5:{port} is no AMQP 0-9-1, and was left out" for port in (1, 2, 3, 6)
    ]


def test_of_another_port_only_what_was_seen_to_begin(tmp_path: Path) -> None:
    packets = whole(("10.0.0.6", 5), ("10.0.0.9", 7777))
    assert len(captured(tmp_path, packets)[0]) == 1
    assert captured(tmp_path, packets[15:])[0] == []
    ((start, *_),), _ = captured(tmp_path, packets[15:], 7777)
    assert start["target"] == "amqp://10.0.0.9:7777"


def recorded(name: str) -> Iterator[list[tuple[bool, bytes]]]:
    """What was said on each connection of a recording of RabbitMQ, where nothing is wrong with it."""
    for rows in sequences(read_trace(CORPUS / f"{name}.parquet")):
        if judge_open(rows).failures:
            continue
        said: dict[str, list[tuple[bool, bytes]]] = {}
        for event in (row_event(row) for row in rows if row["kind"] == "frame"):
            if type(event) is Method:
                said.setdefault(event.connection, []).append((event.sent, encode(event, 4096)))
        yield from said.values()


@pytest.mark.parametrize("name", ["search-traffic", "search-consumers", "search-publishing", "scenarios"])
def test_wherever_a_capture_begins_nobody_is_blamed(tmp_path: Path, name: str) -> None:
    chance = random.Random(name)
    frames = 0
    for said in list(recorded(f"rabbitmq-4.3-{name}"))[:60]:
        made = Conversation(largest=chance.choice([60, 300, 1400]))
        for is_sent, each in said:
            made.say(is_sent, each)
        for _ in range(6):
            since = chance.randrange(len(made.packets))
            found, told = captured(tmp_path, made.packets[since:])
            assert not [line for line in told if "missing" in line]
            for rows in found:
                judgement = judge_open(rows)
                frames += judgement.frames
                assert judgement.failures == (), (said, since)
    assert frames > 200


def test_from_the_middle_of_a_frame(tmp_path: Path) -> None:
    """The first segment is the middle of a body."""
    packets = whole()
    at = next(number for number, packet in enumerate(packets) if b"\x00\x3c\x00\x28" in packet.data)  # basic.publish
    (rows,), told = captured(tmp_path, packets[at + 2 :])
    assert told == []
    assert methods(rows) == METHODS[METHODS.index("basic.get") :]
    assert judge_open(rows).verdict is not Verdict.FAIL


def test_contents_whose_method_was_not_seen_are_left_out() -> None:
    content = octets("basic.get-ok", 2, sent=False, content=Content({}, BODY), delivery_tag=1, routing_key="q")
    method = content[: content.index(b"\xce") + 1]
    other = octets("channel.open-ok", 1, sent=False)
    of_channel_2 = octets("basic.get-empty", 2, sent=False) + content
    stream = b"\x01\x00\x01\x00" + other + content[len(method) :] + other + of_channel_2
    for size in (1, 7, len(stream)):
        frames = FramesFromTheMiddle()
        pieces = [frames.feed(stream[at : at + size]) for at in range(0, len(stream), size)]
        assert b"".join(pieces) == other + other + of_channel_2


def test_what_was_on_its_way_when_a_capture_began_is_not_missing(tmp_path: Path) -> None:
    """The broker acknowledges it bit by bit, long before anything of the client is captured."""
    made = conversation()
    since = len(made.packets)
    for _ in range(1200):
        made.say(False, HEARTBEAT_OCTETS)
        made.say(True, HEARTBEAT_OCTETS)
    of_broker = [packet for packet in made.packets[since:] if packet.source != CLIENT]
    made.say(True, octets("channel.open", 2))
    packets = [*of_broker, *made.packets[since + 4 * 1200 :]]
    (rows,), told = captured(tmp_path, packets)
    assert (methods(rows), told) == (["channel.open"], [])


def test_a_capture_that_is_cut_short_or_of_no_known_kind(tmp_path: Path) -> None:
    octets = write_pcapng(tmp_path / "some.pcapng", whole()).read_bytes()
    (tmp_path / "some.pcapng").write_bytes(octets[:-300])
    told: list[str] = []
    rows = []
    with pytest.raises(
        TraceError, match=r"some.pcapng: the capture is cut short or broken: the last block is not whole"
    ):
        for row in capture_rows(tmp_path / "some.pcapng", CaptureOptions(), told.append):
            rows.append(row)
    assert rows[-1]["kind"] == "end" and methods(rows)[:5] == METHODS[:5]
    octets = write_pcap(tmp_path / "some.pcap", whole()).read_bytes()
    (tmp_path / "some.pcap").write_bytes(octets[:20] + b"\x93\0\0\0" + octets[24:])
    with pytest.raises(TraceError, match=r"some.pcap: packets of link type 147 cannot be read"):
        list(capture_rows(tmp_path / "some.pcap", CaptureOptions(), told.append))
    assert told == []


def test_mixed_conversations(tmp_path: Path) -> None:
    made = [conversation(("10.0.0.5", port)) for port in range(20, 40)]
    found, told = captured(tmp_path, mixed(*made))
    assert told == [] and len(found) == 20
    assert all(methods(rows) == METHODS[:-1] for rows in found)


@pytest.mark.parametrize("port", [5672, 9])
@pytest.mark.parametrize("moved", [(0,), (1,), (0, 1), (1, 0), (0, 1, 2)])
@pytest.mark.parametrize("behind", [4, 5, 8, 20])
def test_a_handshake_of_tcp_that_comes_late_in_the_file(
    tmp_path: Path, moved: tuple[int, ...], behind: int, port: int
) -> None:
    packets = whole(CLIENT, ("10.0.0.9", port))
    (expected,), _ = captured(tmp_path, packets)
    late = [packets[number] for number in moved]
    others = [packet for number, packet in enumerate(packets) if number not in moved]
    (rows,), told = captured(tmp_path, [*others[:behind], *late, *others[behind:]])
    assert told == []
    assert methods(rows) == methods(expected) == METHODS
    assert (rows[0]["target"], rows[0]["sequence"]) == (expected[0]["target"], expected[0]["sequence"])


def test_another_connection_of_the_same_ports_is_no_late_handshake(tmp_path: Path) -> None:
    first = whole()
    again = [replace(packet, number=packet.number + 10_000_000, acknowledged=packet.acknowledged + 10_000_000)
             for packet in later(whole(), 0.2)]  # fmt: skip
    (rows, others), told = captured(tmp_path, [*first[20:], *again])
    assert told == [] and methods(others) == METHODS
    assert "protocol.header" not in methods(rows) and methods(rows)[-1] == "socket.closed"


@pytest.mark.parametrize("ends", [(), (("10.0.0.5", 1), ("10.0.0.9", 9))])
def test_first_octets_that_are_missing_are_told(tmp_path: Path, ends: tuple[tuple[str, int], ...]) -> None:
    packets = whole(*ends)
    del packets[3]
    connections, told = captured(tmp_path, [*packets, *whole(("10.0.0.6", 2))])
    assert len(connections) == 1
    line = "the connection from 10.0.0.5:41234: octets of its client are missing in the capture, and was left out"
    assert [each.partition(": ")[2] for each in told] == ([] if ends else [line]), "of another port nobody knows"


@pytest.mark.parametrize("write", [write_pcap, write_pcapng])
def test_a_capture_that_is_cut_anywhere_says_so(tmp_path: Path, write: object) -> None:
    assert callable(write)
    octets = write(tmp_path / "whole", whole()).read_bytes()
    boundaries = {len(write(tmp_path / "part", whole()[:number]).read_bytes()) for number in range(len(whole()) + 1)}
    assert len(octets) in boundaries
    for size in [*range(len(octets) - 300, len(octets)), *range(24, len(octets), 97)]:
        file = tmp_path / "cut"
        file.write_bytes(octets[:size])
        if size in boundaries:
            read(file)
            continue
        with pytest.raises(TraceError, match="the capture is cut short or broken"):
            read(file)


def test_a_last_packet_that_was_not_captured_whole_is_told(tmp_path: Path) -> None:
    """With `tcpdump -s`, where nobody acknowledges it before the capture ends."""
    packets = whole()
    last = max(number for number, packet in enumerate(packets) if len(packet.data) > 500)
    (_,), told = read(write_pcap(tmp_path / "short", packets[: last + 1], most=300))
    assert [each.partition(": ")[2] for each in told] == [
        "connection 1 from 10.0.0.5:41234: octets of its client are missing in the capture, and its recording ends"
        " there"
    ]
