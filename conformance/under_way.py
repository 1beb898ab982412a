"""Which sequences of a run have begun, and which are over: a run that has to begin again goes on after these."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from amqpspec.conformance.session.command_sequence import CommandSequence

#: So many of those that are over may be looked at again, where the target is lost.
MOST_UNPROVEN = 12


class UnderWay:
    """By name, as each has one of its own in a run."""

    def __init__(self) -> None:
        #: those of which nothing is known yet, with whether they spend their time waiting
        self._begun: dict[str, tuple[CommandSequence, bool]] = {}
        self._over: set[str] = set()
        #: those that are over since the target was last seen to serve a fresh connection, without those that wait
        self._unproven: deque[CommandSequence] = deque(maxlen=MOST_UNPROVEN)

    def begin(self, sequence: CommandSequence, *, waits: bool = False) -> CommandSequence:
        self._begun[sequence.name] = sequence, waits
        return sequence

    def end(self, name: str) -> None:
        sequence, waits = self._begun.pop(name, (None, False))
        if sequence is not None and not waits:
            self._unproven.append(sequence)
        self._over.add(name)

    def proven(self) -> None:
        """The target serves a fresh connection: what is over has not ended it."""
        self._unproven.clear()

    def forget(self, names: Iterable[str]) -> None:
        """These were handed out, and never carried out."""
        for name in names:
            self._begun.pop(name, None)

    def is_over(self, name: str) -> bool:
        return name in self._over

    @property
    def names(self) -> list[str]:
        """Of those that have begun and are not over, in the order in which they began."""
        return list(self._begun)

    @property
    def unproven(self) -> list[CommandSequence]:
        """Those that may have ended a part of the target without a failure of their own, the last one first."""
        return list(reversed(self._unproven))

    @property
    def busy(self) -> list[CommandSequence]:
        """The sequences that have begun and are not over, without those that wait."""
        return [sequence for sequence, waits in self._begun.values() if not waits]
