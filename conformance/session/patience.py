"""How long an owed frame may take.

At first as long as was said; once several deadlines have passed in vain, a multiple of the slowest answer of late,
which on a busy machine is long as well. So a broker that owes many frames, and never sends them, is not waited for at
length each time. An answer that took long counts for less with each that comes after it: one moment in which the
machine stood still says little of the hundreds of answers since.

Logins are a matter of their own: a broker may take a second to look at a password, and let in one client after another.
How fast it answers otherwise tells nothing of that.
"""

from __future__ import annotations

from typing import Protocol

#: Deadlines that pass in vain before there is less patience.
IN_VAIN = 3
#: So many times as long as the slowest answer of late.
MULTIPLE = 10
#: What an answer counts for once another one has come, of what it counted for before: a third after a hundred.
FADING = 0.99
#: The same after a wait in vain: a broker that answers nothing any more has no fast answers that would tell.
FADING_IN_VAIN = 0.7
#: So many deadlines a login may take at the most, however slow others were.
LONGEST_LOGIN = 6
#: Deadlines for several answers one after another.
SEVERAL = 2
#: Seconds that an owed frame may take in any case.
FLOOR = 1.0
#: The same once so many deadlines have passed in vain: there is no doubt any more that frames are missing. Not before
#: so many answers have come: with fewer nothing is known of the machine. (Tried with this floor from the first frame
#: on, two processors and a load of 30: of a sound broker's first answers two were taken for missing, of those after
#: them none in 960 sequences.)
LOW_FLOOR, MANY_IN_VAIN, ENOUGH_ANSWERS = 0.3, 20, 100


class Memory(Protocol):
    """So many numbers (`NUMBERS`): a list, or an array that processes share."""

    def __getitem__(self, place: int, /) -> float: ...

    def __setitem__(self, place: int, number: float, /) -> None: ...


_SLOWEST, _IN_VAIN, _ANSWERS, _QUEUES, _EXCHANGES, _LOGIN = range(6)
NUMBERS = 6
_OF_KIND = {"queue": _QUEUES, "exchange": _EXCHANGES}
#: For `_OF_KIND`: one was deleted, so that the broker knows how to.
_CAN = -1.0
#: After so many deletions of a kind without an answer, and none with one, the suite deletes no more of that kind.
NEVER = 2


class Patience:
    """Shared by the sequences that are carried out on one target, in threads and processes: a lost update does no harm.

    `most`: seconds. `login`: seconds that the first login took.
    """

    def __init__(self, most: float, login: float = 0.0) -> None:
        self.most = most
        self._seen: Memory = [0.0] * NUMBERS
        self._seen[_LOGIN] = login
        self._fading = FADING

    def renewed(self) -> Patience:
        """For the same target, started again: it is taken to be as fast as it was. What was waited for in vain of late
        was waited for by one that hung, and counts for no more than a beginning.
        """
        renewed = Patience(self.most)
        for place in (_SLOWEST, _QUEUES, _EXCHANGES, _LOGIN):
            renewed._seen[place] = self._seen[place]
        renewed._seen[_IN_VAIN] = min(self._seen[_IN_VAIN], IN_VAIN)
        return renewed

    def share(self, memory: Memory, processes: int) -> None:
        """Go on in memory that so many processes share: what each of them learns is known to all."""
        for place in range(NUMBERS):
            if self._seen[place]:  # else there is nothing to tell
                memory[place] = max(memory[place] or self._seen[place], self._seen[place])
        self._seen = memory
        self._fading = FADING ** (1 / processes)

    @property
    def deadline(self) -> float:
        """Seconds that an owed frame may take."""
        seen = self._seen
        if seen[_IN_VAIN] < IN_VAIN:
            return self.most
        is_sure = seen[_IN_VAIN] >= MANY_IN_VAIN and seen[_ANSWERS] >= ENOUGH_ANSWERS
        floor = LOW_FLOOR if is_sure else FLOOR
        return min(self.most, max(floor, MULTIPLE * seen[_SLOWEST]))

    @property
    def login_deadline(self) -> float:
        """Seconds that an owed frame of a handshake may take."""
        return max(self.deadline, self._for_slow_logins)

    @property
    def _for_slow_logins(self) -> float:
        return min(LONGEST_LOGIN * self.most, MULTIPLE * self._seen[_LOGIN])

    def waited_for_login(self, seconds: float) -> None:
        """A frame of a handshake has come, after so long."""
        self._seen[_LOGIN] = max(self._seen[_LOGIN] * self._fading, seconds)

    def waited(self, seconds: float) -> None:
        """What was owed has come, after so long."""
        self._seen[_ANSWERS] += 1
        self._seen[_SLOWEST] = max(self._seen[_SLOWEST] * self._fading, seconds)

    def waited_in_vain(self) -> None:
        self._seen[_IN_VAIN] += 1
        self._seen[_SLOWEST] *= FADING_IN_VAIN

    def deletes(self, kind: str) -> bool:
        """May it be that the broker answers when a queue or exchange is deleted? Not where it never has."""
        return self._seen[_OF_KIND[kind]] < NEVER

    def deleted(self, kind: str, is_answered: bool) -> None:
        if is_answered:
            self._seen[_OF_KIND[kind]] = _CAN
        elif self._seen[_OF_KIND[kind]] != _CAN:
            self._seen[_OF_KIND[kind]] += 1

    def generous(self, least: float, most: float) -> float:
        """Seconds for a login and what takes several answers, within these; more where logins are slow."""
        return max(min(most, max(least, SEVERAL * self.deadline)), self._for_slow_logins)
