"""Judging a client library: what it sends against what it was asked for, and what it shows against what has come.

Of what a library does by itself only what an application relies on is judged: each method that it was asked for is sent
once, and each delivery, return, cancel and confirm that has come is shown once, as it came and in that order. A library
may give back what it has not shown, when a consumer is cancelled. Nothing that is found here is blamed on the broker.

* LIBRARY-SENT: What the application asks for is sent once, or refused with a reason; and nothing of it is sent unasked,
  or on a channel that is closed.
* LIBRARY-DELIVERY: Each delivery, and each answer to basic.get, is shown once, unchanged and in order.
* LIBRARY-RETURN: Each returned message is shown once.
* LIBRARY-CANCEL: Each cancel by the broker is shown, and as what it is.
* LIBRARY-CONFIRM: Each confirm is shown once, as what it is, and none that did not come.
* LIBRARY-ANSWER: A function that waits for an answer comes back when that has come.
* LIBRARY-CLOSE: A close that is shown has come.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping

from amqpspec.conformance.verdicts.library_frames import confirm, confirms, is_as_asked, is_returned, is_same
from amqpspec.model.promises.verdict import Failure, Shape
from amqpspec.model.protocol.methods import ChannelKey, TraceEvent
from amqpspec.targets.drivers.application import REFUSED, UNSENT, WAITS, connection_of, is_of_application

#: What the frames that a library shows come under.
_RULE_OF: Mapping[str, str] = {
    "basic.deliver": "LIBRARY-DELIVERY", "basic.get-ok": "LIBRARY-DELIVERY", "basic.get-empty": "LIBRARY-DELIVERY",
    "basic.return": "LIBRARY-RETURN", "basic.cancel": "LIBRARY-CANCEL",
    "basic.ack": "LIBRARY-CONFIRM", "basic.nack": "LIBRARY-CONFIRM",
    "channel.close": "LIBRARY-CLOSE", "connection.close": "LIBRARY-CLOSE",
}  # fmt: skip
#: What is shown in one order; else each method is a kind of its own.
_KIND_OF = {"basic.get-ok": "basic.get", "basic.get-empty": "basic.get", "basic.nack": "basic.ack"}
_IN_ANY_ORDER = ("LIBRARY-CONFIRM", "LIBRARY-CLOSE")
#: What an application is told by the next thing that it does, if at all.
_NOT_OWED = ("channel.close", "connection.close")
#: What a library may send unasked, besides all of channel 0.
_OPENS_OR_CLOSES = frozenset({"channel.open", "channel.close", "channel.close-ok"})
_OWN = _OPENS_OR_CLOSES | {"basic.cancel", "basic.cancel-ok"}
_CONFIRMS = frozenset({"basic.ack", "basic.nack"})
#: What a robust library may send again.
_MADE_ANEW = frozenset(
    {
        "exchange.declare", "exchange.bind", "queue.declare", "queue.bind", "basic.consume", "basic.qos",
        "confirm.select",
    }
)  # fmt: skip
#: The rules in short; docs/drivers.md has them in full.
TITLES = {
    "LIBRARY-SENT": "Sends what it is asked for, once",
    "LIBRARY-DELIVERY": "Shows each delivery once",
    "LIBRARY-RETURN": "Shows each returned message once",
    "LIBRARY-CANCEL": "Shows each cancel by the broker",
    "LIBRARY-CONFIRM": "Shows each confirm once",
    "LIBRARY-ANSWER": "Comes back when the answer has come",
    "LIBRARY-CLOSE": "Shows no close that has not come",
}
_SETTLEMENTS = frozenset({"basic.ack", "basic.nack", "basic.reject"})


def is_of_library(failure: Failure) -> bool:
    """Is it blamed on the client library, and not on the broker?"""
    return failure.requirement.startswith("LIBRARY-")


class LibraryJudge:
    """Fed all frames of a sequence, those of applications among them, in their order. A robust library makes anew by
    itself what was lost: what it was asked for before it may send again.
    """

    def __init__(self, is_robust: bool = False) -> None:
        self._is_robust = is_robust
        #: by connection: what it was asked for, and may make anew
        self._made: dict[str, list[TraceEvent]] = {}
        self.failures: list[Failure] = []
        self.exercised: Counter[str] = Counter()
        self._channels: dict[ChannelKey, _Channel] = {}
        self._command = ""

    def command(self, text: str) -> None:
        self._command = text

    def event(self, event: TraceEvent) -> None:
        name = connection_of(event.connection)
        if event.name == "socket.open":
            self._forget(name)
        elif event.name in ("socket.closed", "socket.abort", "socket.garbage", "connection.close-ok"):
            self._each(name, _Channel.end)
        else:
            channel = self._channels.setdefault((name, event.channel), _Channel(self))
            if event.name == "connection.close" and event.sent:
                self._each(name, _Channel.leave)
            if is_of_application(event.connection):
                if event.sent and self._is_robust:
                    self._note_made(name, event)
                (channel.asks if event.sent else channel.is_shown)(event)
            else:
                (channel.is_sent if event.sent else channel.comes)(event)

    def quiescent(self) -> None:
        """All that had come was to be shown by now."""
        for channel in self._channels.values():
            channel.quiescent()

    def _note_made(self, name: str, event: TraceEvent) -> None:
        made = self._made.setdefault(name, [])
        if event.name in _MADE_ANEW:
            made.append(event)
        elif event.name == "basic.cancel":
            tag = event.arguments.get("consumer_tag")
            made[:] = [each for each in made if not _is_consumer(each, event.channel, tag)]

    def may_make_anew(self, event: TraceEvent) -> bool:
        """Was it asked for something like that before? On whatever channel, as it may try on another one first."""
        if not self._is_robust:
            return False
        made = self._made.get(event.connection, [])
        return event.name == "basic.qos" or any(each.name == event.name and is_as_asked(event, each) for each in made)

    def _each(self, name: str, does: Callable[[_Channel], None]) -> None:
        """On each channel of the connection."""
        for key, channel in self._channels.items():
            if key[0] == name:
                does(channel)

    def _forget(self, name: str) -> None:
        for key in [key for key in self._channels if key[0] == name]:
            del self._channels[key]

    def kept(self, rule: str) -> None:
        self.exercised[rule] += 1

    def fail(self, rule: str, shape: Shape, detail: str, event: TraceEvent | None, allowed: Iterable[str] = ()) -> None:
        self.exercised[rule] += 1
        observed = "nothing" if event is None else str(event)
        self.failures.append(Failure(rule, shape, detail, self._command, observed, tuple(allowed), ()))


class _Channel:
    """One channel, or the connection itself (channel 0)."""

    def __init__(self, judge: LibraryJudge) -> None:
        self._judge = judge
        self._asked: deque[TraceEvent] = deque()
        #: what has come and was not shown yet, by its kind
        self._due: dict[str, deque[TraceEvent]] = {}
        #: the last that was shown, by its kind
        self._last: dict[str, TraceEvent] = {}
        #: publishes that are not confirmed, by their numbers
        self._unconfirmed: dict[int, TraceEvent] = {}
        self._published: int | None = None
        #: numbers of those that were returned: a library may take that for the end of it
        self._returned: set[object] = set()
        #: methods whose answers have come since they were sent last
        self._answers: set[str] = set()
        #: consumers that were cancelled, by the application or by the broker
        self._leaving: set[object] = set()
        self._is_left = False
        #: the library has said or heard that it is closed
        self._is_closed = False

    def begin(self) -> None:
        """It is opened again."""
        self._published = None
        self._unconfirmed.clear()
        self._returned.clear()
        self._due.clear()
        self._leaving.clear()
        self._is_left = self._is_closed = False

    def end(self) -> None:
        self._asked.clear()
        self.leave()

    def leave(self) -> None:
        """It is over, or its application gives it up: what comes may be shown, and need not be."""
        self._is_left = True

    def asks(self, event: TraceEvent) -> None:
        self._asked.append(event)
        if event.name == "basic.cancel":
            self._leaving.add(event.arguments.get("consumer_tag"))
        elif event.name == "basic.consume":
            self._leaving.discard(event.arguments.get("consumer_tag"))
        elif event.name == "channel.close":
            self.leave()

    def is_sent(self, event: TraceEvent) -> None:
        if self._is_closed and event.name not in _OPENS_OR_CLOSES:
            self._judge.fail("LIBRARY-SENT", Shape.UNEXPECTED, f"{event.name} on a channel that is closed", event)
            return
        self._answers.discard(event.name)
        if event.name == "channel.open":
            self.begin()
        elif event.name == "confirm.select" and self._published is None:
            self._published = 0
        elif event.name == "basic.publish" and self._published is not None:
            self._published += 1
            self._unconfirmed[self._published] = event
        elif event.name == "channel.close-ok":
            self._is_closed = True
            self.end()
        alike = [each for each in self._asked if each.name == event.name]
        wanted = next((each for each in alike if is_as_asked(event, each)), None)
        if wanted is None and alike and not self._judge.may_make_anew(event):
            wanted = alike[0]
        if wanted is None:
            self._is_sent_unasked(event)
            return
        self._asked.remove(wanted)
        self._judge.kept("LIBRARY-SENT")
        if not is_as_asked(event, wanted):
            detail = f"arguments of {event.name}"
            self._judge.fail("LIBRARY-SENT", Shape.WRONG_ARGUMENT, detail, event, [str(wanted)])

    def _is_sent_unasked(self, event: TraceEvent) -> None:
        if not event.channel or event.name in _OWN or self._judge.may_make_anew(event):
            return
        if event.name in _SETTLEMENTS and self._is_given_back(event):
            return
        self._judge.fail("LIBRARY-SENT", Shape.UNEXPECTED, f"{event.name} that was not asked for", event)

    def _is_given_back(self, event: TraceEvent) -> bool:
        """Is it a delivery that the application was not shown, and never will be?"""
        if event.name == "basic.ack" or event.arguments.get("requeue") is False:
            return False
        due = self._due.get("basic.deliver", deque())
        for each in due:
            if each.arguments.get("delivery_tag") == event.arguments.get("delivery_tag"):
                due.remove(each)
                return True
        return False

    def comes(self, event: TraceEvent) -> None:
        self._is_closed = self._is_closed or event.name == "channel.close-ok"
        self._answers.add(event.name.removesuffix("-ok").removesuffix("-empty"))
        if event.name in _CONFIRMS:
            for number in [each for each in self._unconfirmed if confirms(event, each)]:
                del self._unconfirmed[number]
                self._is_due(confirm(event, number))
        elif event.name in _RULE_OF:
            if event.name == "basic.cancel":
                self._leaving.add(event.arguments.get("consumer_tag"))
            elif event.name == "basic.return":
                self._note_returned(event)
            if event.name == "channel.close":
                self.leave()
            self._is_due(event)

    def _note_returned(self, event: TraceEvent) -> None:
        publishes = self._unconfirmed.items()
        of_it = (number for number, each in publishes if number not in self._returned and is_returned(each, event))
        number = next(of_it, None)
        if number is not None:
            self._returned.add(number)

    def _is_due(self, event: TraceEvent) -> None:
        self._due.setdefault(_KIND_OF.get(event.name, event.name), deque()).append(event)

    def is_shown(self, event: TraceEvent) -> None:
        if event.name == WAITS:
            if event.arguments["method"] in self._answers:
                detail = f"the end of {event.arguments['method']}, whose answer has come"
                self._judge.fail("LIBRARY-ANSWER", Shape.MISSING, detail, None, ["a function that comes back"])
            return
        if event.name in (REFUSED, UNSENT):
            method = event.arguments["method"]
            wanted = next((each for each in reversed(self._asked) if each.name == method), None)
            if wanted is not None:
                self._asked.remove(wanted)
            if event.name == UNSENT:
                allowed = f"{method} on the wire"
                self._judge.fail("LIBRARY-SENT", Shape.MISSING, f"{method} that was asked for", None, [allowed])
            return
        if event.name in _CONFIRMS and event.arguments.get("multiple"):
            due = self._due.get("basic.ack", deque())
            for each in [
                each for each in due if each.name == event.name and confirms(event, each.arguments["delivery_tag"])
            ]:
                self._shows(each)
        elif event.name in _RULE_OF:
            self._shows(event)

    def _shows(self, event: TraceEvent) -> None:
        rule, kind = _RULE_OF[event.name], _KIND_OF.get(event.name, event.name)
        due = self._due.setdefault(kind, deque())
        found = next((each for each in due if is_same(each, event)), None)
        if found is None:
            last = self._last.get(kind)
            again = last is not None and is_same(last, event)
            what = "shown twice" if again else "shown as it did not come"
            if not (again and rule == "LIBRARY-CLOSE"):  # each call on a closed channel may say so
                self._judge.fail(rule, Shape.UNEXPECTED, f"{event.name} {what}", event, map(str, list(due)[:1]))
            return
        if found is not due[0] and rule not in _IN_ANY_ORDER and not self._is_optional(due[0]):
            self._judge.fail(rule, Shape.UNEXPECTED, f"{event.name} shown out of order", event, [str(due[0])])
        else:
            self._judge.kept(rule)
        due.remove(found)
        self._last[kind] = event

    def _is_optional(self, event: TraceEvent) -> bool:
        """A delivery to a consumer that was cancelled, and the confirm of a publish that was returned."""
        if self._is_left:
            return True
        if event.name in _CONFIRMS:
            return event.arguments["delivery_tag"] in self._returned
        return event.name == "basic.deliver" and event.arguments.get("consumer_tag") in self._leaving

    def quiescent(self) -> None:
        if self._is_left:
            return
        for kind, due in self._due.items():
            if kind in _NOT_OWED:
                continue
            for event in due:
                if not self._is_optional(event):
                    what = f"{event.name} that has come"
                    self._judge.fail(_RULE_OF[event.name], Shape.MISSING, what, None, [str(event)])
            due.clear()


def _is_consumer(event: TraceEvent, channel: int, tag: object) -> bool:
    """Does it start the consumer of that tag on that channel?"""
    return event.name == "basic.consume" and event.channel == channel and event.arguments.get("consumer_tag") == tag
