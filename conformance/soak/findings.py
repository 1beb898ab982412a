"""What the ledger of a soak finds: what is wrong with a message, and what is otherwise than usual and allowed."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

#: Of what is told of a finding: its client asked to close its channel.
CLOSED = "channel closed by its client"
#: Findings of each kind that are told one by one; more are counted.
MOST_TOLD = 100


class What(Enum):
    """The requirement, and what is wrong."""

    LOST = ("CONFIRM-010", "confirmed, never settled, and its queue was empty at the end")
    LOST_IN_RESTART = ("DURABLE-004", "confirmed, never settled, and not there any more after a restart")
    UNPUBLISHED = ("PUBLISH-016", "delivered, and published by nobody")
    CHANGED = ("PUBLISH-016", "delivered otherwise than it was published")
    MISROUTED = ("PUBLISH-003", "delivered from a queue that it was not for")
    UNFLAGGED = ("ACK-015", "delivered again without the flag redelivered")
    FLAGGED = ("ACK-015", "delivered with the flag redelivered, and nobody can have had it before")
    FLAGGED_BY_STOP = ("DURABLE-013", "flagged as redelivered after a stop, as more are than anybody can have had")
    HELD = ("ACK-001", "delivered while another client holds it")
    SETTLED = ("ACK-001", "delivered again after it was settled")
    MISORDERED = ("PUBLISH-015", "delivered after a later message of its channel")
    UNCONFIRMED = ("CONFIRM-003", "never confirmed")
    RETURNED = ("PUBLISH-007", "returned, though its queue is bound")
    REFUSED = ("CONFIRM-013", "nacked, and delivered all the same")
    OUTLIVED = ("DURABLE-001", "transient, and there after a restart")
    COUNT = ("QUORUM-001", "its x-delivery-count did not go up as it should")
    COUNT_ANEW = ("DURABLE-010", "its x-delivery-count did not go on over a restart")
    CONSUMERS = ("DURABLE-006", "counts more consumers than there are")
    GAP = ("STREAM-003", "a reader of a stream was not handed what lies before it")
    OFFSET = ("DURABLE-008", "at the offset of another confirmed message of its stream")
    TWICE_IN_STREAM = ("PUBLISH-002", "is in its stream twice")

    @property
    def requirement(self) -> str:
        return self.value[0]

    @property
    def sentence(self) -> str:
        return self.value[1]


@dataclass(slots=True)
class Finding:
    """`message`: its name, such as `p1-17`. `lines`: what happened, and where the trace says so. `allowed`: why it may
    be so; "": it may not. `fault`: the last one before it. `known`: the finding about a broker that this is.
    """

    what: What
    queue: str
    message: str
    time: float
    lines: dict[str, int] = field(default_factory=dict)
    fault: str = ""
    allowed: str = ""
    known: str = ""
    #: when its message was published; -1: it is not known
    published: float = -1.0

    def to_json(self) -> dict[str, Any]:
        found = asdict(self)
        found["what"] = self.what.name.lower().replace("_", "-")
        return {"requirement": self.what.requirement, "sentence": self.what.sentence, **found}


class Findings:
    """Deviations, and what is allowed. `wrong` and `allowed` count all."""

    def __init__(self) -> None:
        self.told: list[Finding] = []
        self.wrong: Counter[What] = Counter()
        self.allowed: Counter[tuple[What, str]] = Counter()
        #: what is wrong by second of the trace
        self.seconds: Counter[int] = Counter()

    def add(self, finding: Finding) -> None:
        if finding.allowed:
            key = (finding.what, finding.allowed)
            self.allowed[key] += 1
            if self.allowed[key] <= MOST_TOLD // 10:
                self.told.append(finding)
            return
        self.wrong[finding.what] += 1
        self.seconds[int(finding.time)] += 1
        if self.wrong[finding.what] <= MOST_TOLD:
            self.told.append(finding)
