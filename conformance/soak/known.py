"""What is known of brokers (docs/findings.md) that a soak meets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from amqpspec.conformance.soak.findings import Finding, What
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.verdict import Failure


@dataclass(frozen=True, slots=True)
class Known:
    """`finding`: its heading in docs/findings.md. `dialects`: of the brokers that it is known of. `types`: of queues."""

    finding: str
    what: What
    dialects: tuple[str, ...]
    types: tuple[str, ...]
    is_so: Callable[[Finding], bool] = lambda finding: True


KNOWN: tuple[Known, ...] = ()


def known_finding(finding: Finding, type: str, target: TargetDescription) -> str:
    """The heading; "": it is not known of that target."""
    for each in KNOWN:
        if each.what is finding.what and target.dialect in each.dialects and type in each.types and each.is_so(finding):
            return each.finding
    return ""


def known_failure(failure: Failure, target: TargetDescription) -> bool:
    """The same of what is wrong on a single connection."""
    return False
