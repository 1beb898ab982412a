"""A process beside this one that takes away its containers when it was killed, and could not do so itself.

It reads from a pipe that ends with this process, and belongs to a session of its own: a signal to all processes of a
run does not reach it. Whoever starts a broker in a container next takes away what is left all the same, where the guard
was killed as well.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import sys

from amqpspec.targets.brokers.owner import owner
from amqpspec.targets.brokers.readiness import BrokerUnavailable

_guards: dict[int, subprocess.Popen[bytes]] = {}


def ensure_guard() -> None:
    """Start it, if this process has none yet, and can be known. Raises BrokerUnavailable where it cannot be started."""
    if os.getpid() in _guards or not owner():
        return
    command = [sys.executable, "-m", __name__, owner()]
    nothing = subprocess.DEVNULL
    try:
        guard = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=nothing, stderr=nothing, start_new_session=True
        )
    except OSError as error:
        raise BrokerUnavailable(f"cannot start the guard of the containers: {error.strerror}") from error
    _guards[os.getpid()] = guard
    atexit.register(_end, os.getpid(), guard)


def _end(pid: int, guard: subprocess.Popen[bytes]) -> None:
    if pid == os.getpid():  # a process that was forked off has it from its parent
        guard.kill()
        guard.communicate()


def main(owner: str) -> None:
    """Wait for the end of that process, and take away what is its (`amqpspec.targets.brokers.owner`)."""
    sys.stdin.buffer.read()
    from amqpspec.targets.brokers.docker_engine import connect_to_engine, remove_all_of
    from amqpspec.targets.errors import TargetError

    try:
        client = connect_to_engine()
    except TargetError:
        return
    with contextlib.closing(client):
        remove_all_of(client, owner)


if __name__ == "__main__":
    main(sys.argv[1])
