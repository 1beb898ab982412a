"""What goes wrong around an application's broker: some few things that applications must live with.

These are no defects of a broker: whatever is sent is right, if it comes. (Those are `targets.faults`; they measure the
suite.) All but `publish-refused` happens between the model and the wire, in the loop's thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from amqpspec.model.protocol.methods import ChannelKey, TraceEvent
from amqpspec.targets.clock import Clock

_NEVER = float("inf")


class Mishap(NamedTuple):
    """`what`: a sentence, in which NUMBER stands for the number. `default`: the number where none is given; 0: it has
    none. The number counts something, or it is `in_seconds`.
    """

    name: str
    what: str
    default: float = 1
    in_seconds: bool = False

    def number(self, given: float | None) -> float:
        """Raises ValueError for one that makes no sense."""
        if given is None:
            return self.default
        if not self.default:
            raise ValueError(f"fault {self.name}: it takes no number")
        is_number = isinstance(given, int | float) and 0 < given < _NEVER
        if not is_number or not (self.in_seconds or given == int(given)):
            wanted = "number of seconds" if self.in_seconds else "whole number"
            raise ValueError(f"fault {self.name}: {given!r} is no positive {wanted}")
        return given


#: By name.
MISHAPS = {
    each.name: each
    for each in (
        Mishap("no-answer", "Nothing is read or sent any more, heartbeats neither; connections stay open.", 0),
        Mishap(
            "lost-after-publishes", "The connection is lost when NUMBER publishes are processed; unconfirmed, once."
        ),
        Mishap(
            "lost-before-acks",
            "The connection is lost at the NUMBERth ack, which is not processed: messages are delivered again; once.",
        ),
        Mishap("lost-in-content", "The connection is lost in the middle of the NUMBERth content that is sent; once."),
        Mishap(
            "publish-refused", "Each NUMBERth publish is refused: it reaches no queue, and its confirm is a nack.", 2
        ),
        Mishap("confirms-late", "Confirms come NUMBER seconds late.", 0.1, in_seconds=True),
        Mishap("confirms-together", "Confirms come when NUMBER publishes of a channel wait for theirs.", 10),
        Mishap("slow", "Each frame of a client takes NUMBER seconds.", 0.05, in_seconds=True),
        Mishap("blocked", "A resource alarm from the NUMBERth publish on: connections that publish are blocked."),
        Mishap("cancelled", "The consumer of the NUMBERth delivery that is sent is cancelled behind it; once."),
    )
}


class Mishaps:
    """Those that are on, with their numbers. The loop asks, and does what is answered."""

    def __init__(self, clock: Clock, unconfirmed: Callable[[ChannelKey], int]) -> None:
        #: some are; nothing is to be said; an alarm was raised
        self.are_on = self.is_mute = self.have_blocked = False
        self._clock = clock
        self._unconfirmed = unconfirmed
        self._numbers: dict[str, float] = {}
        self._counts: dict[str, int] = {}
        #: by channel, when its first confirm was held back
        self._held_since: dict[ChannelKey, float] = {}
        self._released: set[ChannelKey] = set()

    def begin(self, name: str, number: float) -> None:
        self._numbers[name] = number
        self._counts[name] = 0
        self._note()

    def end(self, name: str = "") -> None:
        """That one; "": all."""
        for each in [name] if name else list(self._numbers):
            self._numbers.pop(each, None)
        if name in ("", "blocked"):
            self.have_blocked = False
        self._held_since.clear()
        self._note()

    def forget_connections(self) -> None:
        """All are over, and names may be used again."""
        self._held_since.clear()
        self._released.clear()

    def _note(self) -> None:
        self.are_on = bool(self._numbers)
        self.is_mute = "no-answer" in self._numbers

    @property
    def seconds_for_a_frame(self) -> float:
        return self._numbers.get("slow", 0.0)

    def refuses(self, event: TraceEvent) -> bool:
        """Is this publish refused?"""
        return event.name == "basic.publish" and self._is_each("publish-refused")

    def loses_before(self, event: TraceEvent) -> bool:
        """Is the connection lost in place of what the client sent?"""
        return event.name == "basic.ack" and self._is_time_for("lost-before-acks")

    def loses_after(self, event: TraceEvent) -> bool:
        """Is the connection lost once this is processed?"""
        return event.name == "basic.publish" and self._is_time_for("lost-after-publishes")

    def blocks(self, event: TraceEvent) -> bool:
        """Does an alarm come just before this?"""
        if event.name != "basic.publish" or not self._is_time_for("blocked"):
            return False
        self.have_blocked = True
        return True

    def cancels_behind(self, event: TraceEvent) -> bool:
        """Is the consumer cancelled once it has got this?"""
        return event.name == "basic.deliver" and self._is_time_for("cancelled")

    def loses_in(self, event: TraceEvent) -> bool:
        """Is it lost while this is sent?"""
        return event.content is not None and self._is_time_for("lost-in-content")

    def holds(self, event: TraceEvent) -> bool:
        """Does this wait?"""
        if event.name != "basic.ack":
            return False
        key = (event.connection, event.channel)
        together = self._numbers.get("confirms-together")
        if together is not None and self._unconfirmed(key) < together:
            return True
        late = self._numbers.get("confirms-late")
        if late is None:
            return False
        now = self._clock.now()
        if now < self._held_since.setdefault(key, now) + late:
            return True
        self._released.add(key)
        return False

    def wait(self) -> float:
        """Seconds until something that is held may go."""
        late = self._numbers.get("confirms-late")
        if late is None or not self._held_since:
            return _NEVER
        for key in list(self._held_since):
            if key in self._released or not self._unconfirmed(key):
                del self._held_since[key]  # the next publish waits as long
        self._released.clear()
        return min(self._held_since.values(), default=_NEVER) + late - self._clock.now()

    def _is_each(self, name: str) -> bool:
        if name not in self._numbers:
            return False
        self._counts[name] += 1
        return self._counts[name] % self._numbers[name] == 0

    def _is_time_for(self, name: str) -> bool:
        """It is over then."""
        if not self._is_each(name):
            return False
        self.end(name)
        return True
