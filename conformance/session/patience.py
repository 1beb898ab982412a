"""How long an owed frame may take.

At first as long as was said; once several deadlines have passed in vain, a multiple of the slowest answer of late,
which on a busy machine is long as well. So a broker that owes many frames, and never sends them, is not waited for at
length each time. An answer that took long counts for less with each that comes behind it: one moment in which the
machine stood still says little of the hundreds of answers since.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Deadlines that pass in vain before there is less patience.
IN_VAIN = 3
#: So many times as long as the slowest answer of late.
MULTIPLE = 10
#: What an answer counts for once another one has come, of what it counted for before: a third behind a hundred.
FADING = 0.99
#: Seconds that an owed frame may take in any case.
FLOOR = 1.0
#: The same once so many deadlines have passed in vain: there is no doubt any more that frames are missing. Not before
#: so many answers have come: with fewer nothing is known of the machine. (Tried with this floor from the first frame
#: on, two processors and a load of 30: of a sound broker's first answers two were taken for missing, of those behind
#: them none in 960 sequences.)
LOW_FLOOR, MANY_IN_VAIN, ENOUGH_ANSWERS = 0.3, 20, 100


@dataclass(slots=True)
class Patience:
    """Shared by the sequences that are carried out in one place, in several threads: a lost update does no harm."""

    #: seconds
    most: float
    #: the slowest answer of late
    slowest: float = 0.0
    in_vain: int = 0
    answers: int = 0

    @property
    def deadline(self) -> float:
        """Seconds that an owed frame may take."""
        if self.in_vain < IN_VAIN:
            return self.most
        is_sure = self.in_vain >= MANY_IN_VAIN and self.answers >= ENOUGH_ANSWERS
        floor = LOW_FLOOR if is_sure else FLOOR
        return min(self.most, max(floor, MULTIPLE * self.slowest))

    def waited(self, seconds: float) -> None:
        """What was owed has come, after so long."""
        self.answers += 1
        self.slowest = max(self.slowest * FADING, seconds)

    def waited_in_vain(self) -> None:
        self.in_vain += 1
