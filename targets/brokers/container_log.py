"""The log of a container, followed in the background."""

from __future__ import annotations

import contextlib
import queue
import threading
import time

from docker.errors import DockerException
from docker.models.containers import Container

from amqpspec.targets.brokers.readiness import LogMemory


class ContainerLog:
    """Each piece of it is a sign of life, its end is the end."""

    def __init__(self, container: Container) -> None:
        self.signs: queue.SimpleQueue[object] = queue.SimpleQueue()
        self.ended = threading.Event()
        self.memory = LogMemory()
        self._container = container
        threading.Thread(target=self._follow, name=f"log of {container.name}", daemon=True).start()

    def _follow(self) -> None:
        # A lost log stream is no judgement on the broker: only an end that the engine tells is one.
        with contextlib.suppress(DockerException, OSError, ValueError):
            for piece in self._container.logs(stream=True, follow=True, since=int(time.time()) - 1):
                self.memory.add(piece.decode("utf-8", errors="replace"))
                self.signs.put(piece)
            self.ended.set()
        self.signs.put("")
