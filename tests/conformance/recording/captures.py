"""Network captures for tests: conversations of TCP over IPv4 or IPv6, as segments that a test may lose or move."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path

from dpkt import ethernet, ip, ip6, pcap, tcp

CLIENT, BROKER = ("10.0.0.5", 41234), ("10.0.0.9", 5672)
CLIENT_6, BROKER_6 = ("fd00::5", 41234), ("fd00::9", 5672)
SYN, FIN, RST, ACK = tcp.TH_SYN, tcp.TH_FIN, tcp.TH_RST, tcp.TH_ACK
_BEGAN = 1_795_000_000.0  # 2026-11-18


@dataclass(frozen=True)
class Packet:
    time: float
    source: tuple[str, int]
    destination: tuple[str, int]
    number: int
    acknowledged: int
    flags: int
    data: bytes = b""

    def octets(self) -> bytes:
        """The packet as it is on Ethernet."""
        (source, sport), (destination, dport) = self.source, self.destination
        segment = tcp.TCP(
            sport=sport, dport=dport, seq=self.number % 2**32, ack=self.acknowledged % 2**32, flags=self.flags,
            data=self.data,
        )  # fmt: skip
        addresses = {"src": ip_address(source).packed, "dst": ip_address(destination).packed}
        size = 20 + len(self.data)
        if ":" in source:
            packet = ip6.IP6(**addresses, nxt=ip.IP_PROTO_TCP, plen=size, hlim=64, data=segment)
            packet.extension_hdrs = {}
            return bytes(ethernet.Ethernet(type=ethernet.ETH_TYPE_IP6, data=packet))
        packet = ip.IP(**addresses, p=ip.IP_PROTO_TCP, len=20 + size, data=segment)
        return bytes(ethernet.Ethernet(type=ethernet.ETH_TYPE_IP, data=packet))


@dataclass
class Conversation:
    """Builds the packets of one connection; each side acknowledges what it has. Numbers wrap soon."""

    client: tuple[str, int] = CLIENT
    broker: tuple[str, int] = BROKER
    packets: list[Packet] = field(default_factory=list)
    largest: int = 1000
    time: float = _BEGAN
    _next: dict[bool, int] = field(default_factory=lambda: {True: 2**32 - 500, False: 2**32 - 70})

    def open(self) -> Conversation:
        self._packet(True, SYN)
        self._packet(False, SYN | ACK)
        self._packet(True, ACK)
        return self

    def say(self, is_sent: bool, octets: bytes) -> None:
        for at in range(0, len(octets), self.largest):
            self._packet(is_sent, ACK, octets[at : at + self.largest])
        self._packet(not is_sent, ACK)

    def close(self, is_sent: bool = True) -> None:
        self._packet(is_sent, FIN | ACK)
        self._packet(not is_sent, FIN | ACK)

    def abort(self, is_sent: bool = True) -> None:
        self._packet(is_sent, RST | ACK)

    def _packet(self, is_sent: bool, flags: int, data: bytes = b"") -> None:
        source, destination = (self.client, self.broker) if is_sent else (self.broker, self.client)
        acknowledged = self._next[not is_sent] if flags & ACK else 0
        self.packets.append(Packet(self.time, source, destination, self._next[is_sent], acknowledged, flags, data))
        self._next[is_sent] += len(data) + bool(flags & (SYN | FIN))
        self.time += 0.001


def mixed(*conversations: Conversation) -> list[Packet]:
    return sorted((packet for each in conversations for packet in each.packets), key=lambda packet: packet.time)


def later(packets: Iterable[Packet], seconds: float) -> list[Packet]:
    return [replace(packet, time=packet.time + seconds) for packet in packets]


def write_pcap(path: Path, packets: Sequence[Packet], most: int = 1 << 16) -> Path:
    """`most`: octets of each packet that are captured."""
    with path.open("wb") as file:
        writer = pcap.Writer(file, snaplen=most)
        for packet in packets:
            writer.writepkt(packet.octets()[:most], packet.time)
    return path


def write_pcapng(path: Path, packets: Sequence[Packet]) -> Path:
    """With two interfaces: one of raw IP with nanoseconds, to which nothing came, and one of Ethernet."""

    def block(kind: int, body: bytes) -> bytes:
        body += b"\0" * (-len(body) % 4)
        size = len(body) + 12
        return struct.pack(">II", kind, size) + body + struct.pack(">I", size)

    nanoseconds = struct.pack(">HHB3xHH", 9, 1, 9, 0, 0)
    with path.open("wb") as file:
        file.write(block(0x0A0D0D0A, struct.pack(">IHHq", 0x1A2B3C4D, 1, 0, -1)))
        file.write(block(1, struct.pack(">HHI", 101, 0, 0) + nanoseconds))
        file.write(block(1, struct.pack(">HHI", 1, 0, 0)))
        for packet in packets:
            octets, units = packet.octets(), round(packet.time * 1e6)
            head = struct.pack(">IIIII", 1, units >> 32, units & 0xFFFFFFFF, len(octets), len(octets))
            file.write(block(6, head + octets))
    return path
