"""The proxy from outside: octets pass through, it ends when it shall, and says in a line what it cannot do."""

from __future__ import annotations

import signal
import socket
import ssl
import subprocess
import sys
import threading
from pathlib import Path

import pika
import pytest

from amqpspec import EmbeddedBroker
from amqpspec.conformance.recording.forwarder import Place, forward
from amqpspec.conformance.recording.recorder import RecorderOptions
from amqpspec.conformance.traces.trace import TraceError, read_trace
from amqpspec.targets.address import parse_address
from tests.patience import patience
from tests.proxies import recording
from tests.targets.client.test_wire import certificate, server_tls  # noqa: F401

PATIENCE = 20.0


def test_tls_on_both_sides(tmp_path: Path, certificate: Path, server_tls: ssl.SSLContext) -> None:  # noqa: F811
    with EmbeddedBroker(ssl_context=server_tls) as broker:
        upstream = f"amqps://{broker.address.host}:{broker.address.port}?cacertfile={certificate}"
        with recording(upstream, tmp_path / "out", "--certfile", str(certificate)) as proxy:
            trusting = pika.SSLOptions(ssl.create_default_context(cafile=certificate), "127.0.0.1")
            parameters = pika.ConnectionParameters("127.0.0.1", proxy.port, ssl_options=trusting)
            with pika.BlockingConnection(parameters) as connection:
                channel = connection.channel()
                channel.queue_declare("q")
                channel.confirm_delivery()
                body = bytes(range(256)) * 4000
                channel.basic_publish("", "q", body)
                assert channel.basic_get("q", auto_ack=True)[2] == body
            assert proxy.end(signal.SIGINT) == 0
    rows = list(read_trace(tmp_path / "out"))
    assert "connection.close-ok" in [row["method"] for row in rows[-3:] if row["kind"] == "frame"]
    assert rows[-1]["kind"] == "end"


def test_octets_pass_unchanged_and_a_lost_broker_closes_the_client(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(patience(PATIENCE))
        with recording(f"amqp://127.0.0.1:{listener.getsockname()[1]}", tmp_path / "out") as proxy:
            listener.accept()[0].close()  # it has tried whether there is a broker
            with socket.create_connection(("127.0.0.1", proxy.port), patience(PATIENCE)) as client:
                broker = listener.accept()[0]
                broker.settimeout(patience(PATIENCE))
                sent = bytes(range(256)) * 20_000
                writing = threading.Thread(target=client.sendall, args=(sent,))
                writing.start()
                received = bytearray()
                while len(received) < len(sent):
                    received += broker.recv(1 << 20)
                writing.join()
                assert received == sent
                broker.sendall(b"\xff" * 1000)
                answer = b""
                while len(answer) < 1000:
                    answer += client.recv(1000)
                assert answer == b"\xff" * 1000
                broker.close()
                assert client.recv(1) == b""
    frames = [row["method"] for row in read_trace(tmp_path / "out") if row["kind"] == "frame"]
    assert frames == ["socket.open", "protocol.header", "frame.other", "socket.garbage", "socket.closed"]


@pytest.mark.parametrize("what", ["unreachable", "trace", "port", "disk"])
def test_what_it_cannot_do_is_one_line(tmp_path: Path, what: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        upstream, out, code = f"amqp://u:secret@127.0.0.1:{port}", tmp_path / "out", 3
        listen, said = "127.0.0.1:0", f"cannot listen on 127.0.0.1 port {port}: Address already in use"
        if what == "unreachable":
            listener.close()
            said = f"cannot connect to 127.0.0.1 port {port}: Connection refused"
        elif what == "trace":
            out.mkdir()
            (out / "trace.jsonl").touch()
            code, said = 2, f"{out}/trace.jsonl is there already; --out takes a folder without a trace"
        elif what == "port":
            listen = f"127.0.0.1:{port}"
        else:
            out, code = Path("/proc/self/nowhere"), 2
            said = f"{out}: cannot be made: No such file or directory"
        command = ["record", "--upstream", upstream, "--listen", listen, "--out", str(out)]
        done = subprocess.run(
            [sys.executable, "-m", "amqpspec", *command], capture_output=True, text=True, timeout=patience(60)
        )
        assert (done.stderr, done.returncode) == (f"amqpspec: {said}\n", code)


def test_a_recorder_that_cannot_write_ends_the_recording() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        upstream = parse_address(f"amqp://127.0.0.1:{listener.getsockname()[1]}")
        options = RecorderOptions("/proc/self/nowhere", "broker")
        with pytest.raises(TraceError, match=r"nowhere/trace\.jsonl: the trace cannot be written: No such file"):
            forward(upstream, None, Place("127.0.0.1", 0), options, lambda host, port: None)
