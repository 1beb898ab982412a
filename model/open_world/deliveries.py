"""Deliveries of one channel: their tags, who gets them, what may be out at a time, and how they are settled.

Any message may be ready, so a delivery may have any content. What the client has settled counts as settled from the
moment on at which it is sent, so that a limit is never said to be exceeded where it was not.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from amqpspec.model.open_world.findings import Findings
from amqpspec.model.promises.choices import ConsumerTimeouts, Dialect
from amqpspec.model.promises.verdict import Failure
from amqpspec.model.protocol.methods import TraceEvent

#: Consuming from it, one gets replies, of which some brokers count badly (REPLY-006).
_REPLY_ADDRESS = "amq.rabbitmq.reply-to"
#: Gaps in the tags of a channel that are remembered.
_MOST_SKIPPED = 20
_LACKING = "a delivery that the client has settled is not in the recording"


class ConsumerState(Enum):
    #: basic.consume was sent, and its reply has not come
    ASKED = "asked for"
    ACTIVE = "active"
    #: basic.cancel was sent, and nothing shows that it was processed
    LEAVING = "leaving"
    #: cancelled by its client
    CANCELLED = "cancelled"
    #: cancelled by the broker
    ENDED = "ended"


@dataclass(slots=True)
class Consumer:
    """`limit`: of its unacknowledged deliveries, 0 for none. `is_clear`: no other consumer with its tag is in the way
    of knowing what it may get.
    """

    tag: str
    limit: int
    no_ack: bool
    state: ConsumerState
    is_clear: bool = True
    held: int = 0


class Deliveries:
    """`is_whole`: the beginning of the channel was seen."""

    def __init__(self, findings: Findings, dialect: Dialect, is_whole: bool) -> None:
        self._findings, self._dialect = findings, dialect
        self._is_whole = is_whole
        #: None: not known
        self._next_tag: int | None = 1 if is_whole else None
        self._unsettled: dict[int, Consumer | None] = {}
        #: tags that no delivery had, up to the one before the second, with the failure that this is
        self._skipped: list[tuple[int, int, Failure | None]] = []
        #: the highest tag that the client has settled before a delivery had it
        self._settled_ahead = 0
        #: settled in a transaction that is not committed
        self._reserved: set[int] = set()
        #: nobody knows whether these are settled
        self._doubtful: set[int] = set()
        self._consumers: dict[str, Consumer] = {}
        self._prefetch = 0
        #: 0: none, or it came when there were consumers already
        self._channel_limit = 0
        self._held = 0
        self._has_consumed = self._counts_badly = self._is_recovering = False
        self._in_transaction = False
        #: how often all that was outstanding was settled at once, and how often the broker was seen to have read that;
        #: what it sends in between may have been settled on its way
        self.all_settled = self.all_read = 0
        #: consumers that the server gives a tag that nobody is told
        self._nameless = False
        #: something was asked for that may bring deliveries
        self._has_asked = not is_whole
        #: some settlement was sent that may have been unknown
        self.may_be_refused = False

    # ------------------------------------------------------------------------------------------ inputs

    def qos(self, event: TraceEvent) -> None:
        count = int(event.arguments.get("prefetch_count", 0))
        is_global = bool(event.arguments.get("global_"))
        if self._dialect.prefetch_is_shared:
            self._findings.undecidable("QOS-016", "a limit is shared with what is not looked at here")
        elif is_global and self._dialect.channel_prefetch:
            if self._has_consumed or self._channel_limit:
                self._findings.undecidable("QOS-011", "a limit of the whole channel came while there were consumers")
                self._channel_limit = 0
            else:
                self._channel_limit = count
        else:
            self._prefetch = count

    def ask(self) -> None:
        """basic.get was sent."""
        self._has_asked = True

    def consume(self, event: TraceEvent) -> bool:
        """basic.consume was sent; may its tag be in use?"""
        self._has_consumed = self._has_asked = True
        tag = str(event.arguments.get("consumer_tag", ""))
        nowait = bool(event.arguments.get("nowait"))
        if event.arguments.get("queue") == _REPLY_ADDRESS:
            self._counts_badly = True
        if not tag:
            self._nameless = self._nameless or nowait
            return False  # it has a tag when it is answered
        before = self._consumers.get(tag)
        self._begin(tag, event, ConsumerState.ACTIVE if nowait else ConsumerState.ASKED)
        return before is not None and before.state in (ConsumerState.ASKED, ConsumerState.ACTIVE)

    def consumed(self, request: TraceEvent, reply: TraceEvent) -> None:
        """basic.consume-ok."""
        tag = str(reply.arguments.get("consumer_tag", ""))
        consumer = self._consumers.get(tag)
        if not request.arguments.get("consumer_tag"):
            self._begin(tag, request, ConsumerState.ACTIVE)
        elif consumer is not None and consumer.state is ConsumerState.ASKED:
            consumer.state = ConsumerState.ACTIVE

    def _begin(self, tag: str, event: TraceEvent, state: ConsumerState) -> None:
        before = self._consumers.get(tag)
        is_clear = before is None or before.state in (ConsumerState.CANCELLED, ConsumerState.ENDED)
        limit = 0 if self._dialect.prefetch_is_shared else self._prefetch
        consumer = Consumer(tag, limit, bool(event.arguments.get("no_ack")), state, is_clear)
        self._consumers[tag] = consumer

    def cancel(self, event: TraceEvent) -> None:
        consumer = self._consumers.get(str(event.arguments.get("consumer_tag", "")))
        if consumer is not None and consumer.state in (ConsumerState.ASKED, ConsumerState.ACTIVE):
            consumer.state = ConsumerState.LEAVING

    def cancelled(self, reply: TraceEvent) -> None:
        """basic.cancel-ok."""
        consumer = self._consumers.get(str(reply.arguments.get("consumer_tag", "")))
        if consumer is not None and consumer.state is ConsumerState.LEAVING:
            consumer.state = ConsumerState.CANCELLED

    def settle(self, event: TraceEvent) -> str | None:
        """basic.ack, reject or nack; the requirement by which it is certainly refused, else None."""
        tag = int(event.arguments.get("delivery_tag", 0))
        multiple = bool(event.arguments.get("multiple"))
        if multiple and tag == 0:
            self.all_settled += 1
            self._settled(list(self._unsettled))
        elif tag in self._unsettled:
            self._settled(self._up_to(tag) if multiple else [tag])
        elif self._was_skipped(tag) or self._is_unclear(tag):
            self.may_be_refused = True
            self._settled_ahead = max(self._settled_ahead, tag)
            if multiple:
                doubtful = self._up_to(tag)
                self._settled(doubtful)
                self._doubtful.update(doubtful)
        else:
            self.may_be_refused = True
            if not self._has_asked and tag:
                return "ACK-006"
            return "ACK-005" if tag == 0 else "ACK-008" if multiple else "ACK-007"
        return None

    def _was_skipped(self, tag: int) -> bool:
        """Does the client settle what the recording does not have? Who settles a tag has had its delivery, so the
        recording lacks it, and it is nobody's failure: neither of the tags nor of the settlement.
        """
        for begin, end, failure in self._skipped:
            if begin <= tag < end:
                if failure is not None:
                    self._findings.withdraw(failure, _LACKING)
                return True
        return False

    def _is_unclear(self, tag: int) -> bool:
        """May it be outstanding at the broker, for all that is known?"""
        if tag in self._doubtful or not self._is_whole or self._is_recovering or self._counts_badly:
            return True
        return self._next_tag is None or (tag >= self._next_tag and self._has_asked)

    def _up_to(self, tag: int) -> list[int]:
        found = []
        for each in self._unsettled:
            if each > tag:
                break
            found.append(each)
        return found

    def _settled(self, tags: list[int]) -> None:
        for tag in tags:
            consumer = self._unsettled.pop(tag)
            if consumer is not None:
                consumer.held -= 1
                self._held -= 1
        if self._in_transaction:
            self._reserved.update(tags)

    def recover(self) -> None:
        """basic.recover or recover-async: everything goes back, at a moment that shows by a later reply."""
        self._is_recovering = True
        self._forget()

    def recovered(self) -> None:
        """A reply shows that it was processed."""
        if self._is_recovering:
            self._forget()
            self._is_recovering = False

    def _forget(self) -> None:
        self._doubtful.update(self._unsettled)
        self._settled(list(self._unsettled))

    def transaction(self, event: TraceEvent) -> None:
        """tx.select, commit or rollback was sent."""
        self._in_transaction = True
        if event.name == "tx.rollback":
            self._doubtful |= self._reserved
        self._reserved.clear()

    # ------------------------------------------------------------------------------------------ outputs

    def delivered(self, event: TraceEvent) -> None:
        """basic.deliver."""
        tag = self._count(event)
        name = str(event.arguments.get("consumer_tag", ""))
        consumer = self._consumers.get(name)
        if consumer is None:
            if self._is_whole and not self._nameless:
                self._findings.unexpected("CONSUME-001", event, detail="basic.deliver to nobody")
            self._doubtful.add(tag)
            return
        if not consumer.is_clear:
            pass
        elif consumer.state is ConsumerState.ASKED:
            detail = "basic.deliver before consume-ok"
            self._findings.unexpected("CONSUME-001", event, "basic.consume-ok", detail=detail)
        elif consumer.state is ConsumerState.CANCELLED:
            self._findings.unexpected("CANCEL-001", event, detail="basic.deliver behind cancel-ok")
        elif consumer.state is ConsumerState.ENDED:
            if not self._is_whole or self._dialect.consumer_timeouts is ConsumerTimeouts.OF_QUORUM_QUEUES:
                # one whose time was up may be served again when its delivery is settled late: by which broker, only the
                # beginning tells
                self._findings.undecidable("CANCEL-007", "why the broker cancelled a consumer is not recorded")
                return
            self._findings.unexpected("CANCEL-007", event, detail="basic.deliver behind basic.cancel")
        else:
            self._findings.kept("CONSUME-001")
        if consumer.no_ack:
            return
        self._hold(tag, consumer, event)

    def _hold(self, tag: int, consumer: Consumer, event: TraceEvent) -> None:
        if self._is_recovering or self.all_settled > self.all_read:
            self._doubtful.add(tag)
            return
        self._unsettled[tag] = consumer
        consumer.held += 1
        self._held += 1
        if consumer.limit and consumer.is_clear:
            if consumer.held > consumer.limit:
                self._findings.unexpected("QOS-006", event, f"at most {consumer.limit} unacknowledged")
            elif consumer.held == consumer.limit:
                self._findings.kept("QOS-001")
        if self._channel_limit:
            if self._held > self._channel_limit:
                self._findings.unexpected("QOS-008", event, f"at most {self._channel_limit} unacknowledged")
            elif self._held == self._channel_limit:
                self._findings.kept("QOS-008")

    def got(self, request: TraceEvent | None, event: TraceEvent) -> None:
        """basic.get-ok."""
        tag = self._count(event)
        if request is None or self._is_recovering or self.all_settled > self.all_read:
            self._doubtful.add(tag)
        elif not request.arguments.get("no_ack"):
            self._unsettled[tag] = None

    def _count(self, event: TraceEvent) -> int:
        tag = int(event.arguments.get("delivery_tag", 0))
        if self._next_tag is not None and not self._counts_badly:
            if tag != self._next_tag and not self._dialect.extensions and tag not in self._unsettled:
                pass  # numbers may be left out, and come later: their order is in no text
            elif tag != self._next_tag:
                failure = self._findings.wrong("CONSUME-014", event, "delivery-tag", f"delivery-tag={self._next_tag}")
                if failure is not None and self._next_tag <= self._settled_ahead < tag:
                    self._findings.withdraw(failure, _LACKING)
                self._skipped = [*self._skipped[1 - _MOST_SKIPPED :], (self._next_tag, tag, failure)]
            else:
                self._findings.kept("CONSUME-014")
        self._next_tag = tag + 1
        return tag

    def cancelled_by_broker(self, event: TraceEvent) -> None:
        """basic.cancel."""
        consumer = self._consumers.get(str(event.arguments.get("consumer_tag", "")))
        if self._dialect.extensions and not event.arguments.get("nowait"):
            self._findings.wrong("CANCEL-008", event, "nowait", "nowait=true")
        if consumer is not None:
            if consumer.is_clear and consumer.state is ConsumerState.CANCELLED:
                self._findings.unexpected("CANCEL-002", event, detail="basic.cancel behind cancel-ok")
            elif consumer.is_clear:
                consumer.state = ConsumerState.ENDED
        elif self._is_whole and not self._nameless:
            self._findings.unexpected("CANCEL-002", event, detail="basic.cancel of nobody")
