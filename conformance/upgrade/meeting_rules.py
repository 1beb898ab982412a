"""By which frames of an application a change is met: one rule or more for each choice of a dialect.

A rule looks at one frame. What it says holds where the queue is as `need` says (`conformance.upgrade.needs`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from amqpspec.conformance.upgrade.application import Rule, Rules
from amqpspec.conformance.upgrade.changes import Change
from amqpspec.conformance.upgrade.rule_parts import Meeting
from amqpspec.conformance.upgrade.rules_of_messages import MESSAGES
from amqpspec.conformance.upgrade.rules_of_topology import TOPOLOGY

#: By choice: on which frames its rules look, and what makes them.
MEETINGS: Mapping[str, tuple[Meeting, ...]] = {**TOPOLOGY, **MESSAGES}

#: Choices that no frame of an application tells anything of.
NOT_IN_A_RECORDING: Mapping[str, str] = {
    "nodes_pause_themselves": "whether nodes of its cluster are ever cut off from each other",
}


def rules_of(changes: Iterable[Change]) -> Rules:
    """The rules of these changes, by the frames that they look at."""
    found: dict[tuple[str, bool], list[tuple[str, Rule]]] = {}
    for change in changes:
        for frames, make in MEETINGS.get(change.choice, ()):
            rule = make(change)
            for frame in frames:
                found.setdefault(frame, []).append((change.choice, rule))
    return {frame: tuple(rules) for frame, rules in found.items()}
