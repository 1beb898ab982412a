"""How long an owed frame may take.

At first as long as was said; once several deadlines have passed in vain, a multiple of the slowest answer so far, which
on a busy machine is long as well. So a broker that owes many frames, and never sends them, is not waited for at length
each time.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Deadlines that pass in vain before there is less patience.
IN_VAIN = 3
#: So many times as long as the slowest answer so far.
MULTIPLE = 10
#: Seconds that an owed frame may take in any case.
FLOOR = 1.0


@dataclass(slots=True)
class Patience:
    """Shared by the sequences that are carried out in one place, in several threads: a lost update does no harm."""

    #: seconds
    most: float
    slowest: float = 0.0
    in_vain: int = 0

    @property
    def deadline(self) -> float:
        """Seconds that an owed frame may take."""
        if self.in_vain < IN_VAIN:
            return self.most
        return min(self.most, max(FLOOR, MULTIPLE * self.slowest))

    def waited(self, seconds: float) -> None:
        """What was owed has come, after so long."""
        self.slowest = max(self.slowest, seconds)

    def waited_in_vain(self) -> None:
        self.in_vain += 1
