"""What all parts of the ledger of a soak know: who published what, where each message is, and what was found."""

from __future__ import annotations

from collections.abc import Mapping

from amqpspec.conformance.soak.columns import Copies, Outcome, Published
from amqpspec.conformance.soak.findings import Finding, Findings, What
from amqpspec.conformance.soak.message import Identity
from amqpspec.conformance.soak.tally import Counts, FaultCounts, Tally
from amqpspec.conformance.soak.topology import Topology
from amqpspec.conformance.soak.windows import Windows
from amqpspec.model.promises.queue_types import QueueType

NO_FAULT = "none"


class Books:
    """`time` and `line`: of the row that is looked at. `latest`: the kind of the last fault."""

    def __init__(self) -> None:
        self.findings = Findings()
        self.tally = Tally()
        self.windows = Windows()
        self.topology = Topology()
        self.published: dict[str, Published] = {}
        #: by publisher and queue
        self.copies: dict[tuple[str, str], Copies] = {}
        #: queues that were found empty, by a request of that time, since when nothing came of them; streams that were
        #: read up to what was published then
        self.emptied: dict[str, float] = {}
        self.time = 0.0
        self.line = 0
        self.latest = NO_FAULT
        #: by node, when it last said anything
        self.heard: dict[int, float] = {}
        #: of each channel by its number: the line where its client asked to close it
        self.closings: dict[int, int] = {}
        #: of each, once it is over: when, whether in order, and the line
        self.ended: dict[int, tuple[float, bool, int]] = {}

    def message(self, identity: Identity | None) -> Published | None:
        """Those of its publisher, if it is among them."""
        published = self.published.get(identity.publisher) if identity is not None else None
        is_known = identity is not None and published is not None and identity.number < len(published.sent)
        return published if is_known else None

    def is_stream(self, queue: str) -> bool:
        return self.topology.type_of(queue) == QueueType.STREAM.value

    def is_classic(self, queue: str) -> bool:
        return self.topology.type_of(queue) == QueueType.CLASSIC.value

    def is_quorum(self, queue: str) -> bool:
        return self.topology.type_of(queue) == QueueType.QUORUM.value

    def counts(self, queue: str) -> Counts:
        """Of all queues of its type."""
        return self.tally.of_type(self.topology.type_of(queue))

    @property
    def fault_counts(self) -> FaultCounts:
        """Of what comes after the last fault."""
        return self.tally.of_fault(self.latest)

    def add(
        self, what: What, queue: str, identity: Identity, lines: Mapping[str, int], *, allowed: str = "",
        fault: str = "",
    ) -> None:  # fmt: skip
        """It was found now. `lines`: what happened besides, and where."""
        self.findings.add(self.finding(what, queue, identity, lines, allowed=allowed, fault=fault))

    def finding(
        self, what: What, queue: str, identity: Identity, lines: Mapping[str, int], *, allowed: str = "",
        fault: str = "",
    ) -> Finding:  # fmt: skip
        """As `add`, to be added later, or not."""
        found, sent = dict(lines), -1.0
        published, number = self.published.get(identity.publisher), identity.number
        if published is not None and 0 <= number < len(published.sent):
            sent = published.sent[number]
            if published.sent_line[number]:
                found["published"] = published.sent_line[number]
                if published.told_line[number]:
                    found[Outcome(published.outcome[number]).name.lower()] = published.told_line[number]
        window = self.windows.last_before(self.time)
        fault = fault or (window.name if window is not None else "")
        in_order = dict(sorted(found.items(), key=lambda item: item[1]))
        name = f"{identity.publisher}-{number}"
        return Finding(what, queue, name, self.time, in_order, fault, allowed, published=sent)
