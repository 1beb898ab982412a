"""Network captures in a store: imported, judged, and one line for what is missing in them."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NoReturn

import pika
import pytest

from amqpspec import EmbeddedBroker
from amqpspec.command_line import main
from amqpspec.conformance.traces.trace import TraceRow, read_trace, sequences
from amqpspec.model.protocol.methods import Content
from tests.conformance.recording.captures import write_pcap, write_pcapng
from tests.conformance.recording.test_capture import (
    BODY,
    METHODS,
    SAID,
    SECRET,
    conversation,
    later,
    methods,
    octets,
    whole,
)
from tests.patience import patience
from tests.proxies import recording

PATH = f"{os.environ.get('PATH', '')}:/usr/sbin"
ENDS = ("socket.closed", "socket.abort")


def stored(store: Path) -> list[list[TraceRow]]:
    return [rows for part in sorted(store.glob("traces/*/*/*/*.parquet")) for rows in sequences(read_trace(part))]


def test_a_capture_is_imported_and_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "store"
    packets = [*whole(), *later(conversation(("10.0.0.5", 7)).packets, 1)]
    captures = [write_pcap(tmp_path / "some.dump", packets), write_pcapng(tmp_path / "other.pcapng", packets)]
    assert main(["pipeline", "import", str(store), *map(str, captures)]) == 0
    assert capsys.readouterr().out == f"2 traces: 4 sequences, {2 * (2 * len(METHODS) - 1)} frames\n"
    assert [each.name for each in (store / "traces").iterdir()] == ["day=2026-11-18"], "that of the capture"
    assert main(["pipeline", "import", str(store), str(captures[0])]) == 0
    assert "1 that the store holds already" in capsys.readouterr().out
    assert main(["pipeline", "judge", str(store)]) == 0
    assert "4 sequences" in capsys.readouterr().out
    assert {rows[0]["target"] for rows in stored(store)} == {"amqp://10.0.0.9:5672"}
    assert all(SECRET.encode() not in file.read_bytes() for file in store.rglob("*") if file.is_file())


def test_what_is_missing_is_told_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packets = whole()
    del packets[-6]
    capture = write_pcap(tmp_path / "some.pcap", packets)
    assert main(["pipeline", "import", str(tmp_path / "store"), str(capture)]) == 5
    told = capsys.readouterr()
    assert told.err == (
        f"amqpspec: {capture}: connection 1 from 10.0.0.5:41234: octets of its client are missing in the capture, and "
        "its recording ends there\n"
    )
    assert told.out.startswith("1 trace: 1 sequence")
    (rows,) = stored(tmp_path / "store")
    assert methods(rows) == METHODS[: METHODS.index("connection.close")]


def test_a_capture_that_is_cut_inside_a_packet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capture = write_pcap(tmp_path / "some.pcap", whole())
    capture.write_bytes(capture.read_bytes()[:-9])
    assert main(["pipeline", "import", str(tmp_path / "store"), str(capture)]) == 5
    told = capsys.readouterr()
    assert told.err == f"amqpspec: {capture}: the capture is cut short or broken: it ends inside a packet\n"
    assert told.out.startswith("1 trace: 1 sequence")


@pytest.mark.parametrize("master", [(), ("--spark", "local[2]")])
def test_where_something_is_missing_nothing_is_said_to_be_lost(
    spark: object, tmp_path: Path, capsys: pytest.CaptureFixture[str], master: tuple[str, ...]
) -> None:
    """One client publishes, and another one consumes; of the first one something was not captured."""
    store = str(tmp_path / "store")
    delivery = octets("basic.get-ok", 1, sent=False, content=Content({}, b"x"), delivery_tag=1, routing_key="q")
    declared = [
        (True, octets("queue.declare", 1, queue="q")),
        (False, octets("queue.declare-ok", 1, sent=False, queue="q")),
    ]
    said = [*SAID[:9], *declared, (True, octets("basic.get", 1, queue="q")), (False, delivery), *SAID[-2:]]
    consumer = conversation(("10.0.0.6", 7), said=said).packets
    publisher = whole()
    lost = next(number for number, packet in enumerate(publisher) if BODY[:500] in packet.data)
    for run, packets in (("whole", publisher), ("lacking", publisher[:lost] + publisher[lost + 1 :])):
        capture = write_pcap(tmp_path / f"{run}.pcap", [*packets, *later(consumer, 2)])
        main(["pipeline", "import", store, str(capture), "--run", run])
    assert main(["pipeline", "conservation", store, "--run", "whole", *master]) == 1
    assert "PUBLISH-016" in capsys.readouterr().out
    for _ in range(2):
        assert main(["pipeline", "conservation", store, "--run", "lacking", *master]) == 4
        told = capsys.readouterr().out
        assert "not decidable of the run: not all of it was imported: " in told and ": 0 wrong" in told
        assert main(["pipeline", "compact", store]) == 0


def test_a_dialect_for_what_began_before(tmp_path: Path) -> None:
    capture = write_pcap(tmp_path / "some.pcap", whole(("10.0.0.5", 1), ("10.0.0.9", 9))[20:])
    options = ["--port", "9", "--dialect", "rabbitmq-4.0"]
    assert main(["pipeline", "import", str(tmp_path / "store"), str(capture), *options]) == 0
    ((start, *_),) = stored(tmp_path / "store")
    assert (start["dialect"], start["product"]) == ("rabbitmq-4.0", "unknown")


def test_without_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    capture = write_pcap(tmp_path / "some.pcap", whole())
    monkeypatch.delitem(sys.modules, "amqpspec.conformance.recording.capture_file", raising=False)
    monkeypatch.setitem(sys.modules, "dpkt", None)
    assert main(["pipeline", "import", str(tmp_path / "store"), str(capture)]) == 2
    assert capsys.readouterr().err.endswith(f"dpkt is missing to read {capture}: pip install 'amqpspec[capture]'\n")


def test_check_says_who_takes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capture = write_pcap(tmp_path / "trace", whole())
    assert main(["check", str(capture)]) == 2
    assert f"{capture}: a network capture, which amqpspec pipeline import takes" in capsys.readouterr().err


#: Sent as a datagram when all is over: what was captured before it is complete.
LAST = b"that was all"


@contextmanager
def capturing(port: int, file: Path) -> Iterator[None]:
    """tcpdump on the loopback interface; after the block the file has all that went over it."""
    program = shutil.which("tcpdump", path=PATH)
    if program is None:
        cannot_capture("tcpdump is not installed")
    options = ["-i", "lo", "--immediate-mode", "-B", "65536", "-U", "-w", "-", "port", str(port)]
    piped = subprocess.PIPE
    with subprocess.Popen([program, *options], stdout=piped, stderr=piped) as process:
        assert process.stdout is not None and process.stderr is not None
        if not any(b"listening on" in line for line in process.stderr):
            cannot_capture("tcpdump may not capture here")
        reader = threading.Thread(target=copy_to_last, args=(process.stdout, file))
        reader.start()
        try:
            yield
        finally:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
                udp.sendto(LAST, ("127.0.0.1", port))
            reader.join(patience(60))
            process.kill()
        assert not reader.is_alive()


def copy_to_last(captured: IO[bytes], file: Path) -> None:
    octets = bytearray()
    while LAST not in octets[-4096:] and (more := os.read(captured.fileno(), 2048)):
        octets += more
    file.write_bytes(octets)


def cannot_capture(why: str) -> NoReturn:
    if os.environ.get("AMQPSPEC_REQUIRE_BROKERS") == "1":
        pytest.fail(why)
    pytest.skip(why)


def test_what_tcpdump_captures_is_what_the_proxy_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, capture = tmp_path / "recorded", tmp_path / "some.pcap"
    with (
        EmbeddedBroker() as broker,
        recording(f"amqp://127.0.0.1:{broker.address.port}", out) as proxy,
        capturing(proxy.port, capture),
    ):
        for size in (10, 3000, 300_000):
            use(proxy.port, size)
    store = tmp_path / "store"
    assert main(["pipeline", "import", str(store), str(capture), "--port", str(proxy.port)]) == 0
    assert main(["pipeline", "judge", str(store)]) == 0
    assert "3 sequences" in capsys.readouterr().out
    for of_capture, of_proxy in zip(stored(store), sequences(read_trace(out)), strict=True):
        for direction in ("sent", "received"):
            assert frames(of_capture, direction) == frames(of_proxy, direction)


def use(port: int, size: int) -> None:
    """A connection that sends and gets bodies of that size."""
    with pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        queue = channel.queue_declare("", exclusive=True).method.queue
        for _ in range(20):
            channel.basic_publish("", queue, b"m" * size)
        for _, _ in zip(range(20), channel.consume(queue, auto_ack=True), strict=False):
            pass


def frames(rows: list[TraceRow], direction: str) -> list[object]:
    """Who ended the TCP connection first is a race."""
    keys = ("method", "channel", "arguments", "properties", "body", "body_sha256")
    return [
        [row.get(key) for key in keys]
        for row in rows
        if row["kind"] == "frame" and row["direction"] == direction and row["method"] not in ENDS
    ]
