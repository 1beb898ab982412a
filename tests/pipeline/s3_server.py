"""An S3 server on the loopback interface, and what may happen on the way to it.

It is moto's, which PyPI has; or `versitygw`, which stores in a folder, where that is on the PATH (`go install
github.com/versity/versitygw/cmd/versitygw@latest`).
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum, auto
from pathlib import Path

from obstore.store import S3Store

BUCKET = "bucket"
_MOTO = """
import logging, sys
logging.disable(logging.CRITICAL)
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
server.start()
print("port", server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""


def variables(port: int) -> dict[str, str]:
    """Where the server is and who may use it, as all of AWS's tools have it."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "suite", "AWS_SECRET_ACCESS_KEY": "a secret of the suite",
    }  # fmt: skip


@contextmanager
def s3_server(directory: Path) -> Iterator[int]:
    """The port of a server that has the bucket `BUCKET`, and nothing in it."""
    program = shutil.which("versitygw")
    with _moto() if program is None else _versitygw(program, directory) as port:
        yield port


@contextmanager
def _moto() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", _MOTO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.DEVNULL) as server:  # fmt: skip
        assert server.stdout is not None and server.stdin is not None
        port = next(int(line.split()[1]) for line in server.stdout if line.startswith("port "))
        with socket.create_connection(("127.0.0.1", port)) as made:
            made.sendall(f"PUT /{BUCKET} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 0\r\n\r\n".encode())
            assert b" 200 " in made.recv(1000)
        try:
            yield port
        finally:
            server.stdin.close()
            server.kill()


@contextmanager
def _versitygw(program: str, directory: Path) -> Iterator[int]:
    (directory / BUCKET).mkdir(parents=True)
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    said = variables(port)
    keys = ["--access", said["AWS_ACCESS_KEY_ID"], "--secret", said["AWS_SECRET_ACCESS_KEY"]]
    command = [program, "--port", f"127.0.0.1:{port}", *keys, "--quiet", "posix", str(directory)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            while server.poll() is None:
                with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.05)  # it does not say when it listens
            yield port
        finally:
            server.kill()


def files_in(port: int) -> set[str]:
    """The names of all objects of the bucket."""
    said = variables(port)
    store = S3Store(
        BUCKET, endpoint=said["AWS_ENDPOINT_URL"], access_key_id=said["AWS_ACCESS_KEY_ID"], allow_http=True,
        secret_access_key=said["AWS_SECRET_ACCESS_KEY"], region=said["AWS_REGION"],
    )  # fmt: skip
    return {each["path"] for batch in store.list() for each in batch}


class Halt(Enum):
    """Where the way to the server ends for the request that is waited for."""

    BEFORE = auto()
    #: the server has half of what is to be stored
    HALF = auto()
    #: it is stored, and nobody is told
    ANSWER = auto()


class Way:
    """A way to the server on which one request is halted: the first PUT of a name that has `name` in it.

    `halted` is set when that has come so far. `closes`: the connection is closed then, and others go on; else it stays.
    """

    def __init__(self, port: int, name: str, halt: Halt, *, closes: bool = False) -> None:
        self._server, self._name, self._halt, self._closes = port, name.encode(), halt, closes
        self.halted = threading.Event()
        self._claimed = False
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        #: heads of requests
        self.requests: list[str] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Way:
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with suppress(OSError), client, socket.create_connection(("127.0.0.1", self._server)) as server:
            while head := _until_blank(client):
                self.requests.append(head.partition(b"\r\n")[0].decode())
                body = _exactly(client, _length(head))
                is_it = head.startswith(b"PUT ") and self._name in head.partition(b"\r\n")[0] and not self._claimed
                self._claimed |= is_it
                if is_it and self._halt is not Halt.ANSWER:
                    if self._halt is Halt.HALF:
                        server.sendall(head + body[: len(body) // 2])
                    return self._end(client)
                server.sendall(head + body)
                answer = _until_blank(server)
                if head.startswith(b"HEAD") or answer.split(b" ", 2)[1] in (b"204", b"304"):
                    content = b""
                elif b"transfer-encoding: chunked" in answer.lower():
                    content = _chunks(server)
                else:
                    content = _exactly(server, _length(answer))
                if is_it:
                    return self._end(client)
                client.sendall(answer + content)
                if b"connection: close" in answer.lower():
                    return None

    def _end(self, client: socket.socket) -> None:
        self.halted.set()
        if not self._closes:
            client.recv(1)  # until the process that waits is gone


def _until_blank(connection: socket.socket) -> bytes:
    octets = b""
    while not octets.endswith(b"\r\n\r\n"):
        octet = connection.recv(1)
        if not octet:
            return b""
        octets += octet
    return octets


def _exactly(connection: socket.socket, number: int) -> bytes:
    octets = b""
    while len(octets) < number:
        more = connection.recv(number - len(octets))
        if not more:
            raise OSError("the connection ended")
        octets += more
    return octets


def _chunks(connection: socket.socket) -> bytes:
    octets = b""
    while True:
        line = b""
        while not line.endswith(b"\r\n"):
            line += _exactly(connection, 1)
        octets += line + _exactly(connection, int(line, 16) + 2)
        if int(line, 16) == 0:
            return octets


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0
