"""The faulty variants of the embedded broker: one defect each, and the requirement that must catch it.

They measure the suite: `amqpspec run embedded:NAME` must fail on the requirement. A new one is declared in the file of
its chapter (`targets.faults.settlement` and the others), with one of the decorators of `targets.embedded.hooks`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from types import MappingProxyType

from amqpspec.targets.embedded.hooks import Chapter, Fault
from amqpspec.targets.faults.cancel import CANCEL
from amqpspec.targets.faults.confirms import CONFIRMS
from amqpspec.targets.faults.contents import CONTENTS
from amqpspec.targets.faults.delivery import DELIVERY
from amqpspec.targets.faults.dispatch import DISPATCH
from amqpspec.targets.faults.dispatch_order import DISPATCH_ORDER
from amqpspec.targets.faults.header_types import HEADER_TYPES
from amqpspec.targets.faults.length_limits import OVERFLOWING
from amqpspec.targets.faults.messages import MESSAGES
from amqpspec.targets.faults.policies import POLICIES
from amqpspec.targets.faults.protocol import PROTOCOL
from amqpspec.targets.faults.qos import LIMITS
from amqpspec.targets.faults.quorum import QUORUM
from amqpspec.targets.faults.restarts import RESTARTS
from amqpspec.targets.faults.settlement import SETTLEMENT
from amqpspec.targets.faults.stream import STREAM
from amqpspec.targets.faults.time_to_live import TIME_TO_LIVE
from amqpspec.targets.faults.timeouts import TIMEOUTS
from amqpspec.targets.faults.timeouts_channels import TIMEOUTS_OF_CHANNELS
from amqpspec.targets.faults.timeouts_effects import TIMEOUT_EFFECTS
from amqpspec.targets.faults.topology import TOPOLOGY
from amqpspec.targets.faults.transactions import TRANSACTIONS

__all__ = ["FAULTS", "Fault", "UnknownFault", "fault_named"]

_CHAPTERS: tuple[Chapter, ...] = (
    SETTLEMENT, DELIVERY, CANCEL, LIMITS, DISPATCH, DISPATCH_ORDER, MESSAGES, STREAM, QUORUM, TOPOLOGY, PROTOCOL,
    TIME_TO_LIVE, TRANSACTIONS, OVERFLOWING, CONFIRMS, CONTENTS, HEADER_TYPES, POLICIES,
    TIMEOUTS, TIMEOUT_EFFECTS, TIMEOUTS_OF_CHANNELS, RESTARTS,
)  # fmt: skip


class UnknownFault(ValueError):
    """A fault was asked for that does not exist."""


def _all() -> dict[str, Fault]:
    everything: dict[str, Fault] = {}
    for chapter in _CHAPTERS:
        for name, fault in chapter.faults.items():
            if name in everything:
                raise ValueError(f"two faults are named {name}")
            everything[name] = fault
    return everything


#: Name to fault, chapter by chapter.
FAULTS: Mapping[str, Fault] = MappingProxyType(_all())


def fault_named(name: str) -> Fault:
    """The fault of that name; raises `UnknownFault`, which names the ones that come close."""
    fault = FAULTS.get(name)
    if fault is not None:
        return fault
    close = difflib.get_close_matches(name, FAULTS, n=3)
    hint = f": did you mean {' or '.join(close)}?" if close else ": `amqpspec faults` lists them"
    raise UnknownFault(f"unknown fault {name!r}{hint}")
