"""How long failures are shrunk: all of a run together, and each of them."""

from __future__ import annotations

import math
import threading
import time

#: Seconds for shrinking all failures of a run, where nobody has said: as many as it took till then, within these.
LEAST_SHRINKING_TIME, MOST_SHRINKING_TIME = 20.0, 30.0
#: Seconds in which a run is to be over, shrinking included (reports come after it); after one that took longer, so many
#: are for shrinking.
WHOLE_RUN, LEAST_OF_LONG_RUN = 150.0, 10.0
#: Seconds for shrinking one failure.
SHRINKING_TIME = 20.0
#: The same for one that takes time to show.
WAITING_SHRINKING_TIME = 60.0
#: Failures that are shrunk to the end, whatever that leaves for the others: those that a reader sees first, whole. And
#: the seconds that each of them may take.
FIRST, FIRST_SHRINKING_TIME = 3, 90.0
#: The gravest of those that are left has so many times its part of the time that is left, and at least so many seconds.
GENEROUS, LEAST_SHARE = 2.0, 1.0


def time_for_shrinking(took: float) -> float:
    """Seconds, where nobody has said: `took` is how long the run has taken till then."""
    left = max(WHOLE_RUN - took, LEAST_OF_LONG_RUN)
    return min(max(took, LEAST_SHRINKING_TIME), MOST_SHRINKING_TIME, left)


class ShrinkingTime:
    """Of failures that are shrunk together, `at_once` at one time, and of others after them, one by one (`alone`).
    `deadline`: of `time.monotonic`.
    """

    def __init__(self, together: int, alone: int, at_once: int, deadline: float) -> None:
        self._together, self._alone, self._at_once = together, alone, at_once
        self._deadline = deadline
        self._begun = 0
        self._lock = threading.Lock()
        self._ended_by: BaseException | None = None

    @property
    def of(self) -> int:
        """How many there are."""
        return self._together + self._alone

    @property
    def left(self) -> float:
        """Seconds."""
        return self._deadline - time.monotonic()

    def begin(self, is_first: bool = False) -> tuple[int, float]:
        """The number of the next failure, from 1, and how many seconds it may take. `is_first`: it is of those that are
        shrunk to the end.
        """
        with self._lock:
            self._begun += 1
            number = self._begun
        if is_first:
            return number, FIRST_SHRINKING_TIME
        one_by_one = min(self._alone, self.of - number + 1)
        rounds = math.ceil(max(self._together - number + 1, 0) / self._at_once) + one_by_one
        return number, min(max(self.left * GENEROUS / (rounds + 1), LEAST_SHARE), self.left)

    def end(self, by: BaseException) -> None:
        """There is no use in it any more."""
        self._ended_by = self._ended_by or by

    def go_on(self) -> None:
        """Raises what it was ended by."""
        if self._ended_by is not None:
            raise self._ended_by
