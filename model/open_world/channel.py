"""One channel in the open world: what its client sends, and what the broker may send on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType

from amqpspec.model.open_world.confirms import Publishes
from amqpspec.model.open_world.deliveries import Deliveries
from amqpspec.model.open_world.findings import Findings
from amqpspec.model.open_world.requests import REPLIES, Requests
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.protocol.errors import REPLY_CODES
from amqpspec.model.protocol.methods import METHOD_IDS, SYNCHRONOUS_METHODS, TraceEvent

_NAMES = {identifiers: name for name, identifiers in METHOD_IDS.items()}
SETTLEMENTS = ("basic.ack", "basic.reject", "basic.nack")
#: An expiration is milliseconds.
_NUMBER = re.compile(r"[+-]?\d+")
_PRECONDITION_FAILED = 406


class State(Enum):
    CLOSED = "closed"
    #: from the moment on at which its opening was sent
    OPEN = "open"
    #: the client has asked to close it
    CLOSING = "closing"
    #: the broker has closed it, and ignores all but close and close-ok
    REFUSED = "refused"


_OPEN, _CLOSING = State.OPEN, State.CLOSING


class OpenChannel:
    """`is_seen`: nothing of it was before the recording began. Otherwise its beginning is not known. `is_told`: the
    client asked to be told of consumers that end.
    """

    def __init__(self, findings: Findings, dialect: Dialect, is_seen: bool, is_told: bool) -> None:
        self._findings, self._dialect, self._is_told = findings, dialect, is_told
        #: the tag of a consumer may have been in use when it was asked for
        self.may_reuse_tag = not is_seen
        self.state = State.CLOSED if is_seen else State.OPEN
        self._begin(is_seen)

    def _begin(self, is_whole: bool) -> None:
        self.requests = Requests(self._findings, is_whole)
        self.publishes = Publishes(self._findings, self._dialect, is_whole)
        self.deliveries = Deliveries(self._findings, self._dialect, is_whole)
        self._is_whole = is_whole
        #: it is to be opened again, and that was sent before the end was seen
        self._is_reopened = False
        #: methods that were sent on it
        self._methods: set[str] = set()
        #: the client asked to close it, perhaps when the broker had: that may be answered
        self._close_crossed = False
        #: the requirement by which what was sent must end the channel
        self._refused_by: str | None = None

    def sent(self, event: TraceEvent) -> str | None:
        """The client sent a frame; the requirement by which the broker must end the connection for it, else None."""
        name = event.name
        if self.state is State.REFUSED:
            if name == "channel.close-ok":
                self.state = State.CLOSED
            elif name == "channel.close":
                self._close_crossed = True
            return None
        if name == "channel.open":
            if self.state is State.CLOSING:
                self._is_reopened = True  # which of the two is processed first is a race (CHAN-004)
                return None
            if self.state is State.OPEN and self._is_whole and "channel.open" in self._methods:
                return "CHAN-002"
            if self.state is State.CLOSED:
                self.state = State.OPEN
                self._begin(True)
        elif self.state is State.CLOSED:
            return "CHAN-001" if name in METHOD_IDS and name != "channel.close-ok" else None
        if name not in self._methods:
            self._methods.add(name)
            if name not in METHOD_IDS:
                self._is_whole = self.requests.is_whole = False  # what it does is not told here
        taken = _TAKEN.get(name)
        if taken is not None:
            taken(self, event)
        if name in SYNCHRONOUS_METHODS:
            self.requests.ask(event, self._refused_by, self.publishes.number, self.deliveries.all_settled)
        return None

    def _publish(self, event: TraceEvent) -> None:
        if event.content is not None and "expiration" in event.content.properties:
            expiration = event.content.properties["expiration"]
            if isinstance(expiration, str) and not _NUMBER.fullmatch(expiration):
                self._refuse("PUBLISH-014")
        self.publishes.publish(event)

    def _settle(self, event: TraceEvent) -> None:
        self._refuse(self.deliveries.settle(event))

    def _qos(self, event: TraceEvent) -> None:
        if event.arguments.get("prefetch_size"):
            self._refuse("QOS-007")
        self.deliveries.qos(event)

    def _get(self, event: TraceEvent) -> None:
        self.deliveries.ask()

    def _consume(self, event: TraceEvent) -> None:
        if self.deliveries.consume(event):
            self.may_reuse_tag = True
            if self._is_told:
                self._refuse("CONSUME-003")

    def _cancel(self, event: TraceEvent) -> None:
        self.deliveries.cancel(event)

    def _recover(self, event: TraceEvent) -> None:
        self.deliveries.recover()

    def _transaction(self, event: TraceEvent) -> None:
        if event.name == "tx.select" and "confirm.select" in self._methods:
            self._refuse("CONFIRM-015")
        elif event.name != "tx.select" and self._is_whole and "tx.select" not in self._methods:
            self._refuse("TX-001")
        self.deliveries.transaction(event)

    def _select(self, event: TraceEvent) -> None:
        if "tx.select" in self._methods:
            self._refuse("CONFIRM-015")
        self.publishes.select()

    def _flow(self, event: TraceEvent) -> None:
        if event.arguments.get("active") is False:
            self._refuse("CHAN-010")

    def _close(self, event: TraceEvent) -> None:
        self.state = State.CLOSING
        self._close_crossed = True

    def _refuse(self, requirement: str | None) -> None:
        """What was just sent must end the channel, or the connection, by that requirement; None: it need not.

        The text alone says so of a tag that is settled again, and of nothing else here.
        """
        is_demanded = self._dialect.extensions or requirement == "ACK-007"
        if requirement is not None and self._refused_by is None and is_demanded:
            self._refused_by = requirement
            self.publishes.refuse(requirement)

    def received(self, event: TraceEvent) -> None:
        """The broker sent a frame."""
        name = event.name
        if self.state is _OPEN or self.state is _CLOSING:
            if name in REPLIES:
                self._reply(event)
            elif name == "basic.deliver":
                self.deliveries.delivered(event)
            elif name in ("basic.ack", "basic.nack"):
                self.publishes.confirmed(event)
            else:
                self._told(event)
        elif name == "channel.close-ok" and self._close_crossed:
            self._close_crossed = False
            self.state = State.CLOSED  # both had asked to close it
        elif self._is_whole or self.state is State.REFUSED:
            detail = f"{name} on a channel that is {'closed' if self.state is State.CLOSED else 'closing'}"
            self._findings.unexpected("CHAN-003", event, detail=detail)

    def _told(self, event: TraceEvent) -> None:
        name = event.name
        if name == "basic.return":
            self.publishes.returned(event)
        elif name == "basic.cancel":
            self.deliveries.cancelled_by_broker(event)
            if self._refused_by == "CONSUME-003":
                self._forgive()  # the tag that was asked for again may be free by that
        elif name == "channel.close":
            self._closed(event)
        elif name != "channel.flow":
            self._findings.unexpected("CHAN-011", event, detail=f"{name} from a broker")

    def _reply(self, event: TraceEvent) -> None:
        request = self.requests.answer(event)
        name = event.name
        if name == "channel.close-ok":
            self._close_crossed = False
        if request is not None:
            self.deliveries.all_read = max(self.deliveries.all_read, request.all_settled)
            if request.refused_by is not None:
                self._forgive()
        if name == "channel.close-ok":
            self._forget_what_was_due()
            self.state = State.CLOSED
            if self._is_reopened:
                self._begin(False)
                self.state = State.OPEN
        elif name == "basic.get-ok":
            self.deliveries.got(request.event if request else None, event)
        elif request is None:
            return
        elif name == "basic.consume-ok":
            self.deliveries.consumed(request.event, event)
        elif name == "basic.cancel-ok":
            self.deliveries.cancelled(event)
        elif name == "basic.recover-ok":
            self.deliveries.recovered()
        elif name in ("queue.declare-ok",):
            self._declared(request.event, event)
        if request is not None and (not self._in_transaction or name in ("tx.commit-ok", "tx.rollback-ok")):
            self.publishes.are_routed(request.number)

    def _forgive(self) -> None:
        """Nothing is ended by what ought to have done so."""
        self._refused_by = None
        self.requests.forgive()
        self.publishes.forgive()

    @property
    def _in_transaction(self) -> bool:
        return "tx.select" in self._methods

    def _declared(self, request: TraceEvent, reply: TraceEvent) -> None:
        wanted, named = str(request.arguments.get("queue", "")), str(reply.arguments.get("queue", ""))
        if not wanted or wanted != wanted.replace("\r", "").replace("\n", ""):
            return
        if wanted != named:
            self._findings.wrong("QUEUE-001", reply, "queue", f"queue={wanted}")

    def _closed(self, event: TraceEvent) -> None:
        """channel.close: which code, for which method, with what reason."""
        code = int(event.arguments.get("reply_code", 0))
        identifiers = int(event.arguments.get("class_id", 0)), int(event.arguments.get("method_id", 0))
        method = _NAMES.get(identifiers)
        if self._is_whole:
            if code in REPLY_CODES and REPLY_CODES[code][1] and self._dialect.extensions:
                self._findings.wrong("CHAN-007", event, "reply-code", "a code that closes a channel")
            elif identifiers != (0, 0) and method not in self._methods:
                self._findings.wrong("CHAN-007", event, "class-id and method-id", "those of what was sent")
            elif method in SETTLEMENTS and code != _PRECONDITION_FAILED and self._dialect.extensions:
                self._findings.wrong("ACK-006", event, "reply-code", f"reply-code={_PRECONDITION_FAILED}")
            elif method in SETTLEMENTS and not self.deliveries.may_be_refused:
                self._findings.unexpected("ACK-006", event, detail=f"channel.close for {method} of a known tag")
            elif method == "basic.publish" and self.publishes.are_all_confirmed:
                detail = "channel.close for basic.publish, and each was confirmed"
                self._findings.unexpected("CONFIRM-019", event, detail=detail)
            else:
                self._findings.kept(self._refused_by or "CHAN-007")
        self._forget_what_was_due()
        self.state = State.REFUSED

    def _forget_what_was_due(self) -> None:
        self.requests.clear()
        self._refused_by = None

    def end(self) -> None:
        """The recording, or the connection, ends while the channel is open."""
        if self.state not in (State.OPEN, State.CLOSING) or not self._is_whole:
            return
        if self.publishes.unconfirmed:
            count = self.publishes.unconfirmed
            self._findings.undecidable("CONFIRM-003", f"{count} confirms had not come when the connection ended")
        for request in self.requests.unanswered:
            self._findings.undecidable("CHAN-019", f"{request.name} was not answered when the connection ended")
        if self._refused_by is not None:
            self._findings.undecidable(self._refused_by, "nothing came behind what had to be refused")


#: What is done with what a client sends.
_TAKEN: Mapping[str, Callable[[OpenChannel, TraceEvent], None]] = MappingProxyType(
    {
        "basic.publish": OpenChannel._publish,
        **dict.fromkeys(SETTLEMENTS, OpenChannel._settle),
        "basic.qos": OpenChannel._qos,
        "basic.get": OpenChannel._get,
        "basic.consume": OpenChannel._consume,
        "basic.cancel": OpenChannel._cancel,
        "basic.recover": OpenChannel._recover,
        "basic.recover-async": OpenChannel._recover,
        "tx.select": OpenChannel._transaction,
        "tx.commit": OpenChannel._transaction,
        "tx.rollback": OpenChannel._transaction,
        "confirm.select": OpenChannel._select,
        "channel.flow": OpenChannel._flow,
        "channel.close": OpenChannel._close,
    }
)
