"""`amqpspec record` in a process of its own, for tests."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.patience import patience


@dataclass
class Proxy:
    """One that runs. `line`: what it said when it was ready; `errors`: once it has ended, what it complained of."""

    process: subprocess.Popen[str]
    line: str
    errors: str = ""

    @property
    def port(self) -> int:
        return int(self.line.split()[1].rpartition(":")[2])

    def end(self, number: int = signal.SIGTERM) -> int:
        """Ends it by a signal; gives its exit code."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        _, self.errors = self.process.communicate(timeout=patience(30))
        return self.process.returncode


@contextmanager
def recording(upstream: str, out: Path, *options: str) -> Iterator[Proxy]:
    """A proxy in front of `upstream`, on a free port; the trace is whole after the block."""
    command = [sys.executable, "-m", "amqpspec", "record", "--upstream", upstream, "--listen", "127.0.0.1:0"]
    with subprocess.Popen(
        [*command, "--out", str(out), *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        proxy = Proxy(process, process.stdout.readline())
        try:
            yield proxy
            if process.poll() is None:
                assert proxy.end() == 0, proxy.errors
        finally:
            process.kill()
