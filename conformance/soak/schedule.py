"""Which faults come in a soak, and when: it follows from the seed."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from amqpspec.model.protocol.methods import OPERATOR, Fault


class Kind(StrEnum):
    """What `--faults` names."""

    KILL = "kill"
    STOP = "stop"
    PAUSE = "pause"
    CUT = "cut"
    SLOW = "slow"
    TRANSFER_LEADER = "transfer-leader"
    #: clients crash, and close with much under way
    CLIENT = "client"


#: What the injector has to offer for each.
NEEDS: dict[Kind, tuple[str, ...]] = {
    Kind.KILL: ("broker.kill", "broker.restart"),
    Kind.STOP: ("broker.stop", "broker.restart"),
    Kind.PAUSE: ("broker.pause", "broker.resume"),
    Kind.CUT: ("network.cut", "network.heal"),
    Kind.SLOW: ("network.slow", "network.heal"),
    Kind.TRANSFER_LEADER: ("queue.transfer-leader",),
    Kind.CLIENT: (),
}
#: The suite can do these itself to single connections of its clients, whatever the target.
OWN = (Kind.CUT, Kind.SLOW, Kind.CLIENT)
#: Milliseconds by which a slow network is slow.
_SLOW_BY = (50, 200, 500)


@dataclass(frozen=True, slots=True)
class Disturbance:
    """A fault that comes `after` so many seconds without any, and lasts for `hold` seconds. `node`: 0 where there is
    one only. `choice`: decides what else is to be chosen, such as a queue.
    """

    kind: Kind
    after: float
    hold: float
    node: int = 0
    choice: int = 0

    def begins(self, connection: str = "") -> Fault:
        """What is done first, for all kinds but that of the clients. `connection`: of whose network it is."""
        return self._fault(NEEDS[self.kind][0], connection)

    def ends(self, connection: str = "") -> Fault | None:
        """What is done at its end."""
        names = NEEDS[self.kind]
        return self._fault(names[1], connection) if len(names) > 1 else None

    def _fault(self, name: str, connection: str) -> Fault:
        arguments: dict[str, Any] = {"node": self.node} if self.node else {}
        if connection:
            arguments = {"connection": connection}
        if name == "network.slow":
            arguments["milliseconds"] = _SLOW_BY[self.choice % len(_SLOW_BY)]
        return Fault(OPERATOR, 0, name, arguments, sent=True)


def offered(kinds: Collection[Kind], faults: Collection[str]) -> tuple[list[Kind], list[Kind]]:
    """Of these kinds, those that can be had where that is what the injector offers, and the others."""
    can = [kind for kind in kinds if kind in OWN or set(NEEDS[kind]) <= set(faults)]
    return can, [kind for kind in kinds if kind not in can]


def schedule(seed: int, kinds: Sequence[Kind], nodes: Sequence[int], seconds: float) -> list[Disturbance]:
    """What comes in a soak of that length; a few more than fit in. Each kind comes once before any comes again."""
    chosen = random.Random(f"schedule {seed}")
    found: list[Disturbance] = []
    if not kinds:
        return found
    mean = min(max(seconds / 12, 0.3), 20.0)
    passed = 0.0
    bag: list[Kind] = []
    while passed < seconds:
        if not bag:
            bag = sorted(kinds)
            chosen.shuffle(bag)
        kind = bag.pop()
        after = mean * chosen.uniform(0.5, 1.5)
        hold = 0.0 if kind in (Kind.CLIENT, Kind.TRANSFER_LEADER) else min(mean, 12.0) * chosen.uniform(0.2, 1.2)
        node = chosen.choice(nodes) if len(nodes) > 1 and kind is not Kind.CLIENT else 0
        found.append(Disturbance(kind, after, hold, node, chosen.randrange(1 << 16)))
        passed += after + hold
    return found
