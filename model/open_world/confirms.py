"""Publishes of one channel: each is confirmed once, and returned before that if at all (areas CONFIRM and PUBLISH).

The n-th publish after the first confirm.select has the number n (CONFIRM-002). When a confirm comes is open, and so
is whether a publish is refused: that depends on queues.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from amqpspec.model.open_world.findings import Findings
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.protocol.methods import Content, TraceEvent

#: So many mandatory publishes are remembered of which nothing tells whether they were returned.
_MOST_REMEMBERED = 20_000
_NO_ROUTE, _NO_CONSUMERS = 312, 313


class Publishes:
    """`is_whole`: the beginning of the channel was seen."""

    def __init__(self, findings: Findings, dialect: Dialect, is_whole: bool) -> None:
        self.number = 0
        self._findings, self._dialect = findings, dialect
        self._is_whole = is_whole
        #: how many publishes were not counted when the channel began to confirm; None: it does not
        self._uncounted: int | None = None
        #: numbers that wait for their confirm, as keys in order; True: none did when it was published
        self._unconfirmed: dict[int, bool] = {}
        #: mandatory publishes by number that may still be returned
        self._mandatory: dict[int, TraceEvent] = {}
        #: the last ones that were confirmed
        self._confirmed: deque[TraceEvent] = deque(maxlen=64)
        self._forgot_some = False
        #: a publish from this number on had to be refused with the channel, by that requirement
        self._refused: tuple[int, str] | None = None

    @property
    def unconfirmed(self) -> int:
        return len(self._unconfirmed)

    def select(self) -> None:
        """The client sent confirm.select."""
        if self._uncounted is None and self._is_whole:
            self._uncounted = self.number

    def publish(self, event: TraceEvent) -> None:
        self.number += 1
        if self._uncounted is not None:
            self._unconfirmed[self.number] = not self._unconfirmed
        if event.arguments.get("mandatory") or event.arguments.get("immediate"):
            self._mandatory[self.number] = event
            if len(self._mandatory) > _MOST_REMEMBERED:
                del self._mandatory[next(iter(self._mandatory))]
                self._forgot_some = True

    @property
    def are_all_confirmed(self) -> bool:
        """All of the channel, of which there are some."""
        return self._uncounted == 0 < self.number and not self._unconfirmed

    def forgive(self) -> None:
        """What had to be refused was not."""
        self._refused = None

    def refuse(self, requirement: str) -> None:
        """What comes from now on is not processed: what came before has ended the channel."""
        if self._refused is None:
            self._refused = self.number, requirement

    def confirmed(self, event: TraceEvent) -> None:
        """The broker sent basic.ack or basic.nack."""
        if not self._is_whole:
            return
        if self._uncounted is None:
            self._findings.unexpected("CONFIRM-003", event, detail=f"{event.name} without confirm.select")
            return
        tag = int(event.arguments.get("delivery_tag", 0))
        number = tag + self._uncounted
        if number > self.number:
            self._findings.unexpected("CONFIRM-002", event, detail=f"{event.name} of what was not published")
            return
        is_multiple = bool(event.arguments.get("multiple"))
        if self._dialect.extensions:
            self._look_at_flags(event, number, is_multiple)
        if is_multiple:
            numbers = []
            for each in self._unconfirmed:
                if each > number:
                    break
                numbers.append(each)
        else:
            numbers = [number] if number in self._unconfirmed else []
        if not numbers:
            self._findings.unexpected("CONFIRM-003", event, detail=f"{event.name} of what was confirmed before")
            return
        self._findings.kept("CONFIRM-003")
        if self._refused is not None and numbers[-1] > self._refused[0]:
            self._findings.missing(self._refused[1], event, "channel.close")
            self._refused = None
        for each in numbers:
            del self._unconfirmed[each]
            mandatory = self._mandatory.pop(each, None)
            if mandatory is not None:
                self._confirmed.append(mandatory)

    def _look_at_flags(self, event: TraceEvent, number: int, is_multiple: bool) -> None:
        """A confirm of one publish by itself: `multiple` is set in a nack only. Every nack has `requeue`."""
        is_nack = event.name == "basic.nack"
        if is_nack and not event.arguments.get("requeue"):
            self._findings.wrong("CONFIRM-007", event, "requeue", "requeue=true")
        # nothing was outstanding when it was published, so it is no part of a batch with what came before it
        if is_nack != is_multiple and self._unconfirmed.get(number) and (is_nack or len(self._unconfirmed) == 1):
            self._findings.wrong("CONFIRM-006", event, "multiple", f"multiple={str(is_nack).lower()}")

    def returned(self, event: TraceEvent) -> None:
        """The broker sent basic.return."""
        found = next((n for n, each in self._mandatory.items() if _is_of(event, each)), None)
        if found is None:
            self._no_publish_of(event)
            return
        published = self._mandatory.pop(found)
        self._findings.kept("PUBLISH-007")
        if self._uncounted is not None:
            self._findings.kept("CONFIRM-009")
        allowed = (_NO_ROUTE, _NO_CONSUMERS) if published.arguments.get("immediate") else (_NO_ROUTE,)
        if event.arguments.get("reply_code") not in allowed:
            self._findings.wrong("PUBLISH-007", event, "reply-code", f"reply-code={_NO_ROUTE}")
        if not _same_properties(published.content, event.content):
            self._findings.wrong("PUBLISH-007", event, "content", str(published))
        if self._uncounted is None:
            # those before it were routed, as returns come in the order of publishes
            self.are_routed(found)

    def are_routed(self, number: int) -> None:
        """What was published up to that number, and not returned, will not be, as far as no confirm is due."""
        for each in list(self._mandatory):
            if each > number:
                break
            if self._uncounted is None or each <= self._uncounted:
                del self._mandatory[each]

    def _no_publish_of(self, event: TraceEvent) -> None:
        if any(_is_of(event, each) for each in self._confirmed):
            self._findings.unexpected("CONFIRM-009", event, detail="basic.return behind the confirm")
        elif not self._is_whole or self._forgot_some:
            self._findings.undecidable("PUBLISH-008", "what was published before was not recorded, or is too long ago")
        else:
            self._findings.unexpected("PUBLISH-008", event)


def _is_of(returned: TraceEvent, published: TraceEvent) -> bool:
    one, other = returned.arguments, published.arguments
    return (
        one.get("routing_key", "") == other.get("routing_key", "")
        and one.get("exchange", "") == other.get("exchange", "")
        and _body(returned.content) == _body(published.content)
    )


def _body(content: Content | None) -> bytes:
    return content.body if content is not None else b""


def _same_properties(one: Content | None, other: Content | None) -> bool:
    return _told(one) == _told(other)


def _told(content: Content | None) -> dict[str, Any]:
    """The properties; BCC is taken out on the way (PUBLISH-011)."""
    properties = dict(content.properties) if content is not None else {}
    headers = {key: value for key, value in (properties.pop("headers", None) or {}).items() if key != "BCC"}
    return {**properties, "headers": headers} if headers else properties
