"""The segments of TCP in a network capture: pcap or pcapng, over IPv4 or IPv6. Packets are taken apart by dpkt.

Blocks of pcapng are read here, as dpkt's reader of whole files takes all packets to be of the first interface.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import lru_cache
from ipaddress import ip_address
from pathlib import Path
from typing import Any, BinaryIO

import dpkt
from dpkt import ethernet, ip, ip6, loopback, pcap, pcapng, sll, sll2, tcp

from amqpspec.conformance.recording.tcp_order import End, Segment
from amqpspec.conformance.traces.trace_row import TraceError

#: tcpdump.org/linktypes.html -> what takes such packets apart
_LINKS: dict[int, Callable[[bytes], Any]] = {
    0: loopback.Loopback, 1: ethernet.Ethernet, 108: loopback.Loopback, 113: sll.SLL, 228: ip.IP, 229: ip6.IP6,
    276: sll2.SLL2,
    **dict.fromkeys((12, 14, 101), lambda octets: (ip6.IP6 if octets[0] >> 4 == 6 else ip.IP)(octets)),
}  # fmt: skip
#: A block of pcapng that is longer is none.
_LONGEST_BLOCK = 64 * 1024 * 1024
_RESOLUTION, _OFFSET = pcapng.PCAPNG_OPT_IF_TSRESOL, pcapng.PCAPNG_OPT_IF_TSOFFSET


def segments(path: Path) -> Iterator[Segment]:
    """All of them, in the order of the capture. Raises `TraceError` where it cannot be read any further."""
    try:
        with path.open("rb") as file:
            for link, time, octets in _packets(file, path):
                segment = _segment(link, time, octets)
                if segment is not None:
                    yield segment
    except OSError as error:
        raise TraceError(f"{path}: the capture cannot be read: {error.strerror}") from error
    except (dpkt.Error, struct.error, ValueError) as error:
        raise TraceError(f"{path}: the capture is cut short or broken: {str(error) or 'no such format'}") from error


#: Of a packet: what takes it apart, seconds since 1970, and its octets.
_Packet = tuple[Callable[[bytes], Any], float, bytes]


def _packets(file: BinaryIO, path: Path) -> Iterator[_Packet]:
    is_pcapng = file.read(4) == b"\x0a\x0d\x0d\x0a"
    file.seek(0)
    if is_pcapng:
        yield from _of_blocks(file, path)
        return
    whole = _WholeReads(file)
    reader = pcap.Reader(whole)
    whole.is_head = True
    link = _link(reader.datalink(), path)
    for time, octets in reader:
        yield link, float(time), octets


class _WholeReads:
    """dpkt's reader takes what is left of a file that was cut for a whole packet; it reads a head, and then the octets
    of a packet, in turns.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.is_head = False

    def read(self, size: int) -> bytes:
        """Raises `ValueError` where the file ends in the middle."""
        octets = self._file.read(size)
        if len(octets) < size and (octets or not self.is_head):
            raise ValueError("it ends inside a packet")
        self.is_head = not self.is_head
        return octets


def _of_blocks(file: BinaryIO, path: Path) -> Iterator[_Packet]:
    interfaces: list[tuple[Callable[[bytes], Any], float, int]] = []
    order = "<"
    while head := file.read(8):
        kind, size = struct.unpack(f"{order}II", head)
        if kind == pcapng.PCAPNG_BT_SHB:  # which is the same in both orders
            mark = file.read(4)
            order = "<" if mark == b"\x4d\x3c\x2b\x1a" else ">"
            size = struct.unpack(f"{order}I", head[4:])[0]
            head += mark
            interfaces = []
        if not 12 <= size <= _LONGEST_BLOCK or size % 4:
            raise ValueError(f"a block of {size} octets")
        block = head + file.read(size - len(head))
        if len(block) < size:
            raise ValueError("the last block is not whole")
        is_little = order == "<"
        if kind == pcapng.PCAPNG_BT_IDB:
            of_interface: Any = pcapng.InterfaceDescriptionBlockLE if is_little else pcapng.InterfaceDescriptionBlock
            interfaces.append(_interface(of_interface(block), order, path))
        elif kind == pcapng.PCAPNG_BT_EPB:
            of_packet: Any = pcapng.EnhancedPacketBlockLE if is_little else pcapng.EnhancedPacketBlock
            packet = of_packet(block)
            if packet.iface_id >= len(interfaces):
                raise ValueError(f"a packet of interface {packet.iface_id}, which there is not")
            link, unit, offset = interfaces[packet.iface_id]
            yield link, offset + (packet.ts_high << 32 | packet.ts_low) * unit, packet.pkt_data


def _interface(block: Any, order: str, path: Path) -> tuple[Callable[[bytes], Any], float, int]:
    """What takes its packets apart, the seconds of a unit of its time stamps, and what is added to these."""
    unit, offset = 1e-6, 0
    for option in block.opts:
        if option.code == _RESOLUTION:
            power = option.data[0]
            unit = 2.0 ** -(power & 0x7F) if power & 0x80 else 10.0**-power
        elif option.code == _OFFSET:
            offset = struct.unpack(f"{order}q", option.data[:8])[0]
    return _link(block.linktype, path), unit, offset


def _link(kind: int, path: Path) -> Callable[[bytes], Any]:
    if kind not in _LINKS:
        raise TraceError(f"{path}: packets of link type {kind} cannot be read")
    return _LINKS[kind]


def _segment(link: Callable[[bytes], Any], time: float, octets: bytes) -> Segment | None:
    """The segment in a packet; None: there is none, or not even its head was captured."""
    try:
        packet = link(octets)
    except (dpkt.Error, IndexError, struct.error):
        return None
    while not isinstance(packet, (ip.IP, ip6.IP6)):
        packet = getattr(packet, "data", None)
        if packet is None or isinstance(packet, bytes):
            return None
    found = packet.data
    if not isinstance(found, tcp.TCP):
        return None
    flags = found.flags
    return Segment(
        time,
        _end(packet.src, found.sport),
        _end(packet.dst, found.dport),
        found.seq,
        found.ack if flags & tcp.TH_ACK else None,
        begins=bool(flags & tcp.TH_SYN),
        ends=bool(flags & tcp.TH_FIN),
        aborts=bool(flags & tcp.TH_RST),
        data=found.data,
        size=max(len(found.data), _size(packet, found)),
    )


@lru_cache(maxsize=4096)
def _end(address: bytes, port: int) -> End:
    return End(str(ip_address(address)), port)


def _size(packet: Any, found: Any) -> int:
    """Octets of data that the packet says it has; less than it has where its sender's device was to divide it."""
    if isinstance(packet, ip.IP):
        return int(packet.len - packet.hl * 4 - found.off * 4)
    if packet.all_extension_headers:
        return 0
    return int(packet.plen - found.off * 4)
