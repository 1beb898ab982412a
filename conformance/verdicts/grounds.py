"""Rules that a broker keeps as well which lacks what they are about: they pass only where the feature itself was seen.

Who never confirms anything keeps CONFIRM-018 (pending confirms are never sent once their channel has ended), and who
takes no notice of x-priority serves consumers in turn (PRIORITY-002). So in a run, or in traces that are judged
together, such a rule passes only where one that shows the feature has passed, and has not failed but for known defects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from amqpspec.conformance.verdicts.tally import VERDICT, Part
from amqpspec.model.promises.verdict import Verdict

_OF_A_FEATURE: tuple[tuple[str, str], ...] = (
    (
        "CONFIRM-001 CONFIRM-015 CONFIRM-018 CONFIRM-019",
        "CONFIRM-002 CONFIRM-003 CONFIRM-004 CONFIRM-008 CONFIRM-009 CONFIRM-010 CONFIRM-017",
    ),
    ("ACK-004 CAP-002", "ACK-014"),
    ("PRIORITY-002", "PRIORITY-001"),
    ("DLX-007 DLX-008", "DLX-001 DLX-002 DLX-005"),
    ("SAC-005", "SAC-001 SAC-002"),
    ("QUORUM-002 QUORUM-006 QUORUM-007 QUORUM-008", "QUORUM-001 QUORUM-003"),
    ("QUORUM-004", "QUORUM-003"),
    ("STREAM-005", "STREAM-003 STREAM-004 STREAM-008"),
    ("REPLY-002", "REPLY-001"),
    ("TIMEOUT-007 TIMEOUT-014 TIMEOUT-023 TIMEOUT-031", "TIMEOUT-001 TIMEOUT-008 TIMEOUT-009 TIMEOUT-010"),
)

#: By rule those of which one must have passed.
GROUNDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {rule: tuple(shown_by.split()) for rules, shown_by in _OF_A_FEATURE for rule in rules.split()}
)


def without_ground(parts: Iterable[Part]) -> set[tuple[str, str, str]]:
    """(requirement, target, dialect) of what was kept by a broker of which nothing shows that it has the feature."""
    passed: set[tuple[str, str, str]] = set()
    failed: set[tuple[str, str, str]] = set()
    for part in parts:
        key = part.requirement, part.target, part.dialect
        if part.kind == VERDICT and part.name == Verdict.PASS and part.exercised:
            passed.add(key)
        elif part.kind == VERDICT and part.as_known == Verdict.FAIL:
            failed.add(key)
    shown = passed - failed
    return {
        (rule, target, dialect)
        for rule, target, dialect in passed
        if rule in GROUNDS and not any((other, target, dialect) in shown for other in GROUNDS[rule])
    }


def why_not(rule: str) -> str:
    return f"nothing showed what it is about, as {' or '.join(GROUNDS[rule])} would"
