"""What a client asked for, and the replies in their order.

basic.consume-ok and basic.cancel-ok are sent by way of the queue, so they may come after replies to later requests
(CHAN-019), and so may tx.commit-ok, which waits for what was published (TX-004). All others come in the order of the
requests.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from amqpspec.model.open_world.findings import Findings
from amqpspec.model.protocol.methods import SYNCHRONOUS_METHODS, TraceEvent

#: Frames of a broker that answer a request.
REPLIES = frozenset(f"{name}-ok" for name in SYNCHRONOUS_METHODS) | {"basic.get-empty"}
_NO_REQUESTS: deque[Request] = deque()
_GET = ("basic.get-ok", "basic.get-empty")
#: What a reply breaks that nobody asked for, or that comes out of turn.
_BROKEN = {
    "channel.open-ok": "CHAN-002", "channel.close-ok": "CHAN-003", "channel.flow-ok": "CHAN-009",
    "basic.consume-ok": "CONSUME-001", "basic.cancel-ok": "CANCEL-001", "basic.qos-ok": "QOS-014",
    "basic.get-ok": "GET-001", "basic.get-empty": "GET-001", "basic.recover-ok": "RECOVER-001",
    "confirm.select-ok": "CONFIRM-001", "tx.select-ok": "TX-001", "tx.commit-ok": "TX-001", "tx.rollback-ok": "TX-001",
    "queue.declare-ok": "QUEUE-001", "queue.bind-ok": "BIND-006", "queue.unbind-ok": "BIND-002",
    "queue.purge-ok": "QUEUE-024", "queue.delete-ok": "QUEUE-024", "exchange.declare-ok": "EXCHANGE-006",
    "exchange.delete-ok": "EXCHANGE-007", "exchange.bind-ok": "BIND-004", "exchange.unbind-ok": "BIND-004",
}  # fmt: skip


def broken_by(reply: str) -> str:
    """The requirement that a reply breaks which comes out of turn."""
    return _BROKEN.get(reply, "CHAN-019")


@dataclass(slots=True)
class Request:
    """A request that waits for its reply. `refused_by`: a requirement by which what was sent before it had to end the
    channel, so that nothing may answer it. `number`: how many publishes were sent on the channel before it;
    `all_settled`: how often all that was outstanding was settled before it.
    """

    event: TraceEvent
    refused_by: str | None
    number: int
    all_settled: int


@dataclass(slots=True)
class Requests:
    """Those of one channel, of methods that are answered. `is_whole`: its beginning was seen, so all are known."""

    findings: Findings
    is_whole: bool
    _lanes: dict[str, deque[Request]] = field(default_factory=dict)
    #: replies that somebody asked not to have, and which would be CHAN-018
    _unwanted: set[str] = field(default_factory=set)

    def ask(self, event: TraceEvent, refused_by: str | None, number: int, all_settled: int) -> None:
        if event.arguments.get("nowait"):
            self._unwanted.add(f"{event.name}-ok")
            return
        request = Request(event, refused_by, number, all_settled)
        self._lanes.setdefault(_lane(f"{event.name}-ok"), deque()).append(request)

    def answer(self, reply: TraceEvent) -> Request | None:
        """The request that this answers; None where there is none, which is a failure or cannot be known."""
        lane = self._lanes.get(_lane(reply.name), _NO_REQUESTS)
        if lane and _answers(reply, lane[0].event):
            self.findings.kept(broken_by(reply.name))
            return self._answered(lane.popleft(), reply)
        is_loose = reply.name in ("basic.consume-ok", "basic.cancel-ok")
        found = next((each for each in lane if _answers(reply, each.event)), None)
        if found is None:
            if self.is_whole:
                is_unwanted = reply.name in self._unwanted
                self.findings.unexpected("CHAN-018" if is_unwanted else broken_by(reply.name), reply)
            return None
        if found is not lane[0] and not is_loose:
            first = lane[0].event.name
            detail = f"{reply.name} in place of the reply to {first}"
            self.findings.unexpected(broken_by(f"{first}-ok"), reply, f"{first}-ok", detail=detail)
            while lane[0] is not found:
                lane.popleft()
        else:
            self.findings.kept(broken_by(reply.name))
        lane.remove(found)
        return self._answered(found, reply)

    def _answered(self, request: Request, reply: TraceEvent) -> Request:
        if request.refused_by is not None:
            self.findings.missing(request.refused_by, reply, "channel.close")
        return request

    def pending(self, method: str) -> list[TraceEvent]:
        """The requests of that name that wait for their reply."""
        lane = self._lanes.get(_lane(f"{method}-ok"), ())
        return [each.event for each in lane if each.event.name == method]

    def forgive(self) -> None:
        """The channel was not ended, so nothing will be by what ought to have ended it."""
        for lane in self._lanes.values():
            for each in lane:
                each.refused_by = None

    def clear(self) -> None:
        """Nothing will be answered any more."""
        self._lanes.clear()
        self._unwanted.clear()

    @property
    def unanswered(self) -> list[TraceEvent]:
        return [each.event for lane in self._lanes.values() for each in lane]


def _lane(reply: str) -> str:
    if reply in ("basic.consume-ok", "basic.cancel-ok"):
        return "consumers"
    return "commit" if reply == "tx.commit-ok" else "channel"


def _answers(reply: TraceEvent, request: TraceEvent) -> bool:
    name = reply.name
    if name in _GET:
        return request.name == "basic.get"
    if name != f"{request.name}-ok":
        return False
    if name in ("basic.consume-ok", "basic.cancel-ok"):
        wanted = request.arguments.get("consumer_tag", "")
        return wanted in ("", reply.arguments.get("consumer_tag", ""))
    return True
