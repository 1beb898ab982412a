"""The octets of a TCP connection that was captured, in the order in which its two ends can have read them.

A capture holds segments as they passed: some twice, some late, some not at all. The reassembly of scapy 2.8 looks at
one direction and fills what is missing with zeros, so this is our own. A segment counts when all before it in its own
direction has counted, and all that it acknowledges of the other direction: who acknowledges octets has had them, so
nothing comes here before its cause, even where the capture has it in another order. What was acknowledged and was not
captured a while later is missing for good, and the connection is not followed any further.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

#: Seconds, and segments, that what was acknowledged may be captured late.
PATIENCE, MOST_LATER = 1.0, 1000
#: Octets that wait for others before them: more than any window of TCP.
_MOST_WAITING = 256 * 1024 * 1024
NUMBERS = 1 << 32


@dataclass(frozen=True, slots=True)
class End:
    """One end of a connection. `address`: as text."""

    address: str
    port: int

    def __str__(self) -> str:
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment of TCP. `time`: seconds since 1970. `number`: of its first octet. `acknowledged`: the number of the
    octet that its sender waits for; None: it does not say. `size`: octets of data that it had, of which `data` were
    captured.
    """

    time: float
    source: End
    destination: End
    number: int
    acknowledged: int | None
    begins: bool
    ends: bool
    aborts: bool
    data: bytes
    size: int


class Listener(Protocol):
    """Is told what happens on a connection; times are those of the segments."""

    def sent(self, octets: bytes, time: float) -> None: ...
    def received(self, octets: bytes, time: float) -> None: ...
    def client_left(self, time: float) -> None: ...
    def broker_left(self, time: float) -> None: ...
    def end(self, reason: str) -> None: ...


@dataclass(slots=True)
class _Direction:
    #: the number of the next octet, from which on nothing has counted; None: not known. It is not cut to 32 bits.
    next: int | None = None
    #: it is what the other end acknowledged, as no data of this direction were seen yet
    is_assumed: bool = True
    #: how far the other end has said that it has it
    acknowledged: int = 0

    @property
    def is_missing(self) -> bool:
        return self.next is not None and self.acknowledged > self.next


@dataclass(slots=True)
class _Waiting:
    is_sent: bool
    number: int
    needs: int
    segment: Segment


@dataclass(slots=True)
class TcpOrder:
    """One connection. `is_over`: nothing of it is followed any more. `problem`: why, where something is missing."""

    listener: Listener | None
    is_over: bool = False
    problem: str | None = None
    _sent: _Direction = field(default_factory=_Direction)
    _received: _Direction = field(default_factory=_Direction)
    _waiting: list[_Waiting] = field(default_factory=list)
    _octets_waiting: int = 0
    #: since when something is missing, and how many segments came since then
    _since: float | None = None
    _later: int = 0

    def begins_at(self, is_sent: bool, number: int) -> None:
        """The number of the first octet of a direction is known."""
        direction = self._sent if is_sent else self._received
        direction.next, direction.is_assumed, direction.acknowledged = number, False, number

    def take(self, is_sent: bool, segment: Segment) -> None:
        """The next segment of the capture."""
        if self.is_over:
            return
        own, other = (self._sent, self._received) if is_sent else (self._received, self._sent)
        number = _near(segment.number, own.next)
        if own.next is None or (own.is_assumed and number > own.next):
            own.next = number
        own.is_assumed = own.is_assumed and not segment.size
        needs = 0
        if segment.acknowledged is not None:
            needs = _near(segment.acknowledged, other.next)
            if other.next is None or (other.is_assumed and needs > other.next):
                other.next = needs
            other.acknowledged = max(other.acknowledged, needs)
        if segment.size or segment.ends:
            self._waiting.append(_Waiting(is_sent, number, needs, segment))
            self._octets_waiting += len(segment.data)
            self._release()
        if segment.aborts and not self.is_over and not self._look_for_missing(segment.time, at_end=True):
            self._leave(is_sent, segment.time)
        self._look_for_missing(segment.time)

    def finish(self, reason: str) -> None:
        """Nothing more was captured."""
        if not self.is_over and not self._look_for_missing(None, at_end=True) and self.listener is not None:
            self.listener.end(reason)
        self._forget()

    def _release(self) -> None:
        """Whatever can count now does."""
        is_moving = True
        while is_moving and not self.is_over:
            is_moving = False
            left = []
            for each in self._waiting:
                if not self.is_over and self._counts(each):
                    is_moving = True
                else:
                    left.append(each)
            self._waiting = left

    def _counts(self, each: _Waiting) -> bool:
        own, other = (self._sent, self._received) if each.is_sent else (self._received, self._sent)
        assert own.next is not None
        if each.number > own.next or each.needs > (other.next or 0):
            return False
        segment = each.segment
        self._octets_waiting -= len(segment.data)
        new = segment.data[own.next - each.number :]
        if new and self.listener is not None:
            own.next += len(new)
            (self.listener.sent if each.is_sent else self.listener.received)(new, segment.time)
        if (
            len(segment.data) < segment.size
        ):  # a capture with `-s`: the rest was there, whether it is acknowledged or not
            own.acknowledged = max(own.acknowledged, each.number + segment.size)
        if segment.ends and own.next == each.number + segment.size:
            own.next += 1
            self._leave(each.is_sent, segment.time)
        return True

    def _leave(self, is_sent: bool, time: float) -> None:
        if self.listener is not None:
            (self.listener.client_left if is_sent else self.listener.broker_left)(time)
        self._forget()

    def _look_for_missing(self, time: float | None, at_end: bool = False) -> bool:
        """Is something missing for good? Then it is over."""
        if self.is_over:
            return False
        is_full = self._octets_waiting > _MOST_WAITING
        if not (self._sent.is_missing or self._received.is_missing or is_full or (at_end and self._waiting)):
            self._since, self._later = None, 0
            return False
        if self._since is None:
            self._since = time
        self._later += 1
        late = time is not None and self._since is not None and time - self._since > PATIENCE
        if not (late or self._later > MOST_LATER or at_end or is_full):
            return False
        is_sent = self._has_hole(True) or not self._has_hole(False)
        self.problem = f"octets of its {'client' if is_sent else 'broker'} are missing in the capture"
        if self.listener is not None:
            self.listener.end(self.problem)
        self._forget()
        return True

    def _has_hole(self, is_sent: bool) -> bool:
        """Is it this direction that lacks octets, rather than one whose segments wait for the other direction?"""
        own = self._sent if is_sent else self._received
        begins = [each.number for each in self._waiting if each.is_sent == is_sent]
        return (own.is_missing or bool(begins)) and not any(begin <= (own.next or 0) for begin in begins)

    def _forget(self) -> None:
        self.is_over = True
        self._waiting, self.listener, self._octets_waiting = [], None, 0


def _near(number: int, other: int | None) -> int:
    """The number of 32 bits that is next to another one, not cut to 32 bits."""
    if other is None:
        return number + NUMBERS
    return other + (number - other + NUMBERS // 2) % NUMBERS - NUMBERS // 2
