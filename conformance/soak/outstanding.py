"""What the clients of a soak still wait for, as far as they know: how much, so that queues do not grow without end,
and when they are empty. What is lost is told by the ledger (`ledger.py`), not here.
"""

from __future__ import annotations

from amqpspec.conformance.soak.message import Identity


class Outstanding:
    """Messages that were published to each queue, not refused, and not settled. Streams are not counted."""

    def __init__(self, queues: tuple[str, ...]) -> None:
        self._in: dict[str, set[Identity]] = {queue: set() for queue in queues}
        self.published = self.confirmed = self.refused = self.delivered = self.settled = 0

    def publish(self, queues: tuple[str, ...], identity: Identity) -> None:
        self.published += 1
        for queue in queues:
            if queue in self._in:
                self._in[queue].add(identity)

    def confirm(self) -> None:
        self.confirmed += 1

    def refuse(self, queues: tuple[str, ...], identity: Identity) -> None:
        """Nacked or returned."""
        self.refused += 1
        self._doubt(queues, identity)

    def lose_sight(self, queues: tuple[str, ...], identity: Identity) -> None:
        """Nobody will tell whether it was taken."""
        self._doubt(queues, identity)

    def _doubt(self, queues: tuple[str, ...], identity: Identity) -> None:
        for queue in queues:
            if queue in self._in and identity in self._in[queue]:
                self._in[queue].discard(identity)

    def settle(self, queue: str, identity: Identity | None) -> None:
        self.settled += 1
        if identity is not None and queue in self._in:
            self._in[queue].discard(identity)

    def of(self, queue: str) -> int:
        found = self._in.get(queue)
        return len(found) if found is not None else 0

    def forget(self, queue: str, publishers: frozenset[str]) -> None:
        """What these have published may be gone."""
        if queue in self._in:
            self._in[queue] = {each for each in self._in[queue] if each.publisher not in publishers}
