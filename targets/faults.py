"""The faulty variants of the embedded broker: one defect each, and the requirement that must catch it.

They measure the suite: `amqpspec run embedded:NAME` must fail on the requirement. A new one is declared in the file of
its chapter (`targets.fault_settlement` and the others), with one of the decorators of `targets.fault_hooks`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from types import MappingProxyType

from targets.fault_cancel import CANCEL
from targets.fault_confirms import CONFIRMS
from targets.fault_contents import CONTENTS
from targets.fault_delivery import DELIVERY
from targets.fault_dispatch import DISPATCH
from targets.fault_dispatch_order import DISPATCH_ORDER
from targets.fault_hooks import Chapter, Fault
from targets.fault_messages import MESSAGES
from targets.fault_overflow import OVERFLOWING
from targets.fault_protocol import PROTOCOL
from targets.fault_qos import LIMITS
from targets.fault_quorum import QUORUM
from targets.fault_settlement import SETTLEMENT
from targets.fault_stream import STREAM
from targets.fault_time_to_live import TIME_TO_LIVE
from targets.fault_timeouts import TIMEOUTS
from targets.fault_timeouts_channels import TIMEOUTS_OF_CHANNELS
from targets.fault_timeouts_effects import TIMEOUT_EFFECTS
from targets.fault_topology import TOPOLOGY
from targets.fault_transactions import TRANSACTIONS

__all__ = ["FAULTS", "Fault", "UnknownFault", "fault_named"]

_CHAPTERS: tuple[Chapter, ...] = (
    SETTLEMENT, DELIVERY, CANCEL, LIMITS, DISPATCH, DISPATCH_ORDER, MESSAGES, STREAM, QUORUM, TOPOLOGY, PROTOCOL,
    TIME_TO_LIVE, TRANSACTIONS, OVERFLOWING, CONFIRMS, CONTENTS,
    TIMEOUTS, TIMEOUT_EFFECTS, TIMEOUTS_OF_CHANNELS,
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
