"""What is known of one connection that a library has made: what is under way within the library."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future
from dataclasses import dataclass, field

from amqpspec.model.protocol.methods import TraceEvent
from amqpspec.targets.drivers.library import LibraryClient
from amqpspec.targets.drivers.tap import Tap

#: What a library answers by itself.
ANSWERS = frozenset({"channel.close-ok", "connection.close-ok"})


@dataclass(slots=True)
class Call:
    """A function of the library that was asked for a method."""

    event: TraceEvent
    done: Future[None]
    #: the library has the answer of the broker
    is_answered: bool = False
    #: nobody waits for it, as it takes too long: until its answer has come
    is_given_up: bool = False

    def is_answered_by(self, event: TraceEvent) -> bool:
        asks = event.name.removesuffix("-ok").removesuffix("-empty")
        return (asks, event.channel) == (self.event.name, self.event.channel)


@dataclass(slots=True)
class Connection:
    """`shown_each`: the methods that the library shows its application one by one, some time after they have come."""

    tap: Tap
    client: LibraryClient
    shown_each: frozenset[str]
    #: the caller has been told of its end
    is_end_told: bool = False
    #: of `shown_each`: how many have come, and how many were shown
    come: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)
    #: those that have not come back yet
    calls: list[Call] = field(default_factory=list)
    #: closes that were received, and those that the library has answered
    closes: Counter[tuple[int, str]] = field(default_factory=Counter)
    answers: Counter[tuple[int, str]] = field(default_factory=Counter)

    @property
    def is_held(self) -> bool:
        """Does what is asked for wait behind something that was given up?"""
        return any(each.is_given_up and not each.done.done() for each in self.calls)

    @property
    def is_about_to_answer(self) -> bool:
        """Has the library what a function of it waits for?"""
        return any(each.is_answered and not each.is_given_up and not each.done.done() for each in self.calls)

    @property
    def lacks(self) -> bool:
        """Is something to be shown yet, or answered to the application, that is worth waiting for?"""
        if self.tap.is_over or self.is_held:
            return False
        is_under_way = any(not each.done.done() for each in self.calls)
        return is_under_way or any(self.seen[name] < many for name, many in self.come.items())

    def asks(self, event: TraceEvent, done: Future[None]) -> Call:
        call = Call(event, done)
        self.calls = [*(each for each in self.calls if not each.done.done()), call]
        return call

    def tells(self, event: TraceEvent) -> None:
        """The tap tells of a frame."""
        if event.sent:
            if event.name in ANSWERS:
                self.answers[event.channel, event.name] += 1
            return
        if event.name in self.shown_each:
            self.come[event.name] += 1
        for call in self.calls:
            if call.is_answered_by(event):
                call.is_answered, call.is_given_up = True, False

    def give_up(self) -> list[Call]:
        """What was not shown by now is not waited for again; the functions that have not come back."""
        self.seen = Counter(self.come)
        waiting = [each for each in self.calls if not each.done.done()]
        for call in waiting:
            call.is_given_up = True
        return waiting
