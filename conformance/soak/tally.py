"""How many of what a soak saw: by type of queue, by fault, and by second."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any


@dataclass(slots=True)
class Counts:
    """Of messages in queues: a message that goes to two queues counts twice."""

    sent: int = 0
    confirmed: int = 0
    refused: int = 0
    #: nobody will tell whether it was taken
    unknown: int = 0
    #: of these, those that were delivered all the same
    unknown_delivered: int = 0
    #: first deliveries, and of streams all
    delivered: int = 0
    redelivered: int = 0
    settled: int = 0
    #: delivered again after they were settled
    settlements_lost: int = 0
    #: delivered again without the flag, or twice in a stream
    duplicates: int = 0
    #: confirmed and gone, where that is not allowed
    lost: int = 0
    #: gone, which is allowed
    lost_allowed: int = 0

    def to_json(self) -> dict[str, int]:
        return asdict(self)


@dataclass(slots=True)
class FaultCounts:
    """Of what came after faults of one kind, until the next one. `times`: how often it came."""

    times: int = 0
    connections_lost: int = 0
    unknown: int = 0
    redelivered: int = 0
    settlements_lost: int = 0
    duplicates: int = 0
    lost: int = 0
    lost_allowed: int = 0

    def to_json(self) -> dict[str, int]:
        return asdict(self)


#: What is counted by second, in this order.
BY_SECOND = ("sent", "confirmed", "refused", "delivered", "redelivered", "settled")
_INDEX = {name: index for index, name in enumerate(BY_SECOND)}


@dataclass(slots=True)
class Tally:
    """`of_types`: by type of queue. `of_faults`: by kind of fault; "none" before the first."""

    of_types: dict[str, Counts] = field(default_factory=dict)
    of_faults: dict[str, FaultCounts] = field(default_factory=dict)
    seconds: dict[int, list[int]] = field(default_factory=dict)

    def of_type(self, name: str) -> Counts:
        return self.of_types.setdefault(name, Counts())

    def of_fault(self, name: str) -> FaultCounts:
        return self.of_faults.setdefault(name, FaultCounts())

    def second(self, time: float, what: str) -> None:
        row = self.seconds.get(int(time))
        if row is None:
            row = self.seconds[int(time)] = [0] * len(BY_SECOND)
        row[_INDEX[what]] += 1

    def total(self) -> Counts:
        total = Counts()
        for counts in self.of_types.values():
            for each in fields(Counts):
                setattr(total, each.name, getattr(total, each.name) + getattr(counts, each.name))
        return total

    def to_json(self) -> dict[str, Any]:
        rows = {str(second): row for second, row in sorted(self.seconds.items())}
        return {
            "queue_types": {name: counts.to_json() for name, counts in self.of_types.items()},
            "faults": {name: counts.to_json() for name, counts in self.of_faults.items()},
            "seconds": {"columns": list(BY_SECOND), "rows": rows},
        }
