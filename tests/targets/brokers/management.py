"""A management API of our own: it answers what it is told to, and remembers what it was asked."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, Any]

ADMINISTRATOR: Mapping[str, Answer] = {
    "GET /api/whoami": (200, {"name": "guest", "tags": ["administrator"]}),
    "GET /api/overview": (200, {"cluster_name": "rabbit@here"}),
}


@dataclass
class Management:
    """`answers`: by method and path, with bytes for what is no JSON; else 204."""

    answers: Mapping[str, Answer]
    port: int = 0
    asked: list[tuple[str, Any]] = field(default_factory=list)
    logins: set[str] = field(default_factory=set)
    reasons: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def management(answers: Mapping[str, Answer] = ADMINISTRATOR) -> Iterator[Management]:
    told = Management(answers)

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            line = f"{self.command} {self.path.partition('?')[0]}"
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            told.logins.add(base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode())
            told.reasons += [self.headers["X-Reason"]] if "X-Reason" in self.headers else []
            if line not in ADMINISTRATOR:
                told.asked.append((line, json.loads(body) if body else None))
            status, said = told.answers.get(line, (204, b""))
            octets = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(octets)))
            self.end_headers()
            self.wfile.write(octets)

        do_GET = do_PUT = do_DELETE = _answer

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        told.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield told
        finally:
            server.shutdown()
            thread.join()
