"""How long failures are shrunk: all of a run together, and each of them."""

from __future__ import annotations

import threading
import time

#: Seconds for shrinking all failures of a run, where nobody has said: as many as it took till then, within these.
LEAST_SHRINKING_TIME, MOST_SHRINKING_TIME = 20.0, 30.0
#: Seconds in which a run is to be over, shrinking included (reports come after it); after one that took longer, so many
#: are for shrinking.
WHOLE_RUN, LEAST_OF_LONG_RUN = 160.0, 10.0
#: Seconds for shrinking one failure.
SHRINKING_TIME = 20.0
#: The same for one that takes time to show.
WAITING_SHRINKING_TIME = 60.0
#: The gravest of those that are left has so many times its part of the time that is left, and at least so many seconds.
GENEROUS, LEAST_SHARE = 2.0, 1.0


def time_for_shrinking(took: float) -> float:
    """Seconds, where nobody has said: `took` is how long the run has taken till then."""
    left = max(WHOLE_RUN - took, LEAST_OF_LONG_RUN)
    return min(max(took, LEAST_SHRINKING_TIME), MOST_SHRINKING_TIME, left)


class ShrinkingTime:
    """Of so many failures (`of`), until the deadline (`time.monotonic`)."""

    def __init__(self, of: int, deadline: float) -> None:
        self.of = of
        self._deadline = deadline
        self._begun = 0
        self._lock = threading.Lock()
        self._ended_by: BaseException | None = None

    @property
    def left(self) -> float:
        """Seconds."""
        return self._deadline - time.monotonic()

    def begin(self, at_once: int) -> tuple[int, float]:
        """The number of the next failure, from 1, and how many seconds it may take. So many are shrunk at one time."""
        with self._lock:
            self._begun += 1
            number = self._begun
        waiting = self.of - number + 1
        share = max(self.left * GENEROUS * min(at_once, waiting) / (waiting + 1), LEAST_SHARE)
        return number, min(share, self.left)

    def end(self, by: BaseException) -> None:
        """There is no use in it any more."""
        self._ended_by = self._ended_by or by

    def go_on(self) -> None:
        """Raises what it was ended by."""
        if self._ended_by is not None:
            raise self._ended_by
