"""Judging a client library: what it sends against what it was asked for, and what it shows against what has come.

Of what a library does by itself only what an application relies on is judged: each method that it was asked for is sent
once, and each delivery, return, cancel and confirm that has come is shown once, as it came and in that order. A library
may give back what it has not shown, when a consumer is cancelled. Nothing that is found here is blamed on the broker.

* LIBRARY-SENT: What the application asks for is sent once, or refused with a reason; and nothing of it is sent unasked.
* LIBRARY-DELIVERY: Each delivery, and each answer to basic.get, is shown once, unchanged and in order.
* LIBRARY-RETURN: Each returned message is shown once.
* LIBRARY-CANCEL: Each cancel by the broker is shown, and as what it is.
* LIBRARY-CONFIRM: Each confirm is shown once, as what it is, and none that did not come.
* LIBRARY-ANSWER: A function that waits for an answer comes back when that has come.
* LIBRARY-CLOSE: A close that is shown has come.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping

from amqpspec.model.promises.verdict import Failure, Shape
from amqpspec.model.protocol.methods import ChannelKey, Content, TraceEvent
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
_OWN = frozenset({"channel.open", "channel.close", "channel.close-ok", "basic.cancel", "basic.cancel-ok"})
_SETTLEMENTS = frozenset({"basic.ack", "basic.nack", "basic.reject"})
#: What tells two frames of one kind apart.
_COMPARED = (
    "delivery_tag", "consumer_tag", "redelivered", "exchange", "routing_key", "message_count", "reply_code",
)  # fmt: skip


class LibraryJudge:
    """Fed all frames of a sequence, those of applications among them, in their order."""

    def __init__(self) -> None:
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
            for key, channel in self._channels.items():
                if key[0] == name:
                    channel.end()
        else:
            channel = self._channels.setdefault((name, event.channel), _Channel(self))
            if is_of_application(event.connection):
                (channel.asks if event.sent else channel.is_shown)(event)
            else:
                (channel.is_sent if event.sent else channel.comes)(event)

    def quiescent(self) -> None:
        """All that had come was to be shown by now."""
        for channel in self._channels.values():
            channel.quiescent()

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
        #: numbers of publishes that are not confirmed
        self._unconfirmed: dict[int, None] = {}
        self._published: int | None = None
        #: what has come behind what it answers
        self._answers: set[str] = set()
        #: consumers that were cancelled by the application
        self._leaving: set[object] = set()

    def begin(self) -> None:
        """It is opened again."""
        self._published = None
        self._unconfirmed.clear()
        self._due.clear()
        self._leaving.clear()

    def end(self) -> None:
        """What was not shown by now need not be."""
        self._asked.clear()
        self._due = {kind: due for kind, due in self._due.items() if kind in _NOT_OWED}

    def asks(self, event: TraceEvent) -> None:
        self._asked.append(event)
        if event.name == "basic.cancel":
            self._leaving.add(event.arguments.get("consumer_tag"))
        elif event.name == "basic.consume":
            self._leaving.discard(event.arguments.get("consumer_tag"))

    def is_sent(self, event: TraceEvent) -> None:
        self._answers.discard(f"{event.name}-ok")
        if event.name == "channel.open":
            self.begin()
        elif event.name == "confirm.select" and self._published is None:
            self._published = 0
        elif event.name == "basic.publish" and self._published is not None:
            self._published += 1
            self._unconfirmed[self._published] = None
        elif event.name == "channel.close-ok":
            self.end()
        alike = [each for each in self._asked if each.name == event.name]
        wanted = next((each for each in alike if _is_as_asked(event, each)), alike[0] if alike else None)
        if wanted is None:
            self._is_sent_unasked(event)
            return
        self._asked.remove(wanted)
        self._judge.kept("LIBRARY-SENT")
        if not _is_as_asked(event, wanted):
            detail = f"arguments of {event.name}"
            self._judge.fail("LIBRARY-SENT", Shape.WRONG_ARGUMENT, detail, event, [str(wanted)])

    def _is_sent_unasked(self, event: TraceEvent) -> None:
        if not event.channel or event.name in _OWN:
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
        self._answers.add(event.name)
        if event.name in ("basic.ack", "basic.nack"):
            tag, multiple = int(event.arguments.get("delivery_tag", 0)), bool(event.arguments.get("multiple"))
            for number in [
                each for each in self._unconfirmed if each == tag or (multiple and (each <= tag or not tag))
            ]:
                del self._unconfirmed[number]
                self._is_due(_confirm(event, number))
        elif event.name in _RULE_OF:
            if event.name == "channel.close":
                self.end()
            self._is_due(event)

    def _is_due(self, event: TraceEvent) -> None:
        self._due.setdefault(_KIND_OF.get(event.name, event.name), deque()).append(event)

    def is_shown(self, event: TraceEvent) -> None:
        if event.name == WAITS:
            if f"{event.arguments['method']}-ok" in self._answers:
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
        rule = _RULE_OF.get(event.name)
        if rule is None:
            return
        kind = _KIND_OF.get(event.name, event.name)
        due = self._due.setdefault(kind, deque())
        found = next((each for each in due if _is_same(each, event)), None)
        if found is None:
            last = self._last.get(kind)
            again = last is not None and _is_same(last, event)
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
        """A delivery to a consumer that its client has cancelled."""
        return event.name == "basic.deliver" and event.arguments.get("consumer_tag") in self._leaving

    def quiescent(self) -> None:
        for kind, due in self._due.items():
            for event in due:
                if kind not in _NOT_OWED and not self._is_optional(event):
                    self._judge.fail(
                        _RULE_OF[event.name], Shape.MISSING, f"{event.name} that has come", None, [str(event)]
                    )
            if kind not in _NOT_OWED:
                due.clear()


def _is_as_asked(sent: TraceEvent, asked: TraceEvent) -> bool:
    """An argument that was not given, or is empty, is for the library to choose."""
    given = ((name, value) for name, value in asked.arguments.items() if value and name != "arguments")
    return all(sent.arguments.get(name, value) == value for name, value in given)


def _confirm(event: TraceEvent, number: int) -> TraceEvent:
    return type(event)(event.connection, event.channel, event.name, {"delivery_tag": number}, sent=False)


def _is_same(came: TraceEvent, shown: TraceEvent) -> bool:
    """Is it the same frame? Values of header tables have other types in libraries, so they are not compared."""
    if came.name != shown.name:
        return False
    for name in _COMPARED:
        if name in shown.arguments and shown.arguments[name] != came.arguments.get(name):
            return False
    if shown.content is None or came.content is None:
        return shown.content is came.content
    return shown.content.body == came.content.body and _set_in(shown.content) == _set_in(came.content)


def _set_in(content: Content) -> set[str]:
    """Properties that say something: for an empty one a library may have none."""
    return {name for name, value in content.properties.items() if value not in (None, "", {})}
