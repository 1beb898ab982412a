"""What is known of brokers (docs/findings.md) that a soak meets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from amqpspec.conformance.soak.findings import CLOSED, Finding, What
from amqpspec.conformance.soak.judging import SoakJudgement
from amqpspec.conformance.soak.schedule import Kind
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.dialect_names import base_of
from amqpspec.model.promises.queue_types import QueueType

_CLASSIC, _QUORUM, _STREAM = QueueType.CLASSIC.value, QueueType.QUORUM.value, QueueType.STREAM.value
#: Seconds after a start in which not all is there.
_STARTING = 5.0
#: Seconds in which a quorum queue is new: what a node knows of it is on disk half a second after its declaration, on a
#: machine that has time for it.
_NEW = 2.0
_V3, _V40, _V43 = "rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"


@dataclass(frozen=True, slots=True)
class Known:
    """`finding`: its heading in docs/findings.md. `dialects`: of the brokers that do it; `type`: of the queues.
    `only_in_clusters`: of the suite's own.
    """

    finding: str
    whats: tuple[What, ...]
    dialects: tuple[str, ...]
    type: str
    is_so: Callable[[Finding, SoakJudgement], bool] = lambda finding, judgement: True
    only_in_clusters: bool = False


def _is_after_a_stop(finding: Finding, judgement: SoakJudgement) -> bool:
    return any(window.kind is Kind.STOP and window.begin < finding.time for window in judgement.windows)


def _is_right_after_a_start(finding: Finding, judgement: SoakJudgement) -> bool:
    starts = [window.end for window in judgement.windows if window.kind in (Kind.KILL, Kind.STOP)]
    return any(0.0 <= finding.published - start < _STARTING for start in starts)


def _is_of_queue_killed_when_new(finding: Finding, judgement: SoakJudgement) -> bool:
    declared = judgement.declared.get(finding.queue, -_NEW)
    kills = [window.begin for window in judgement.windows if window.kind is Kind.KILL]
    return any(begin - declared < _NEW and finding.published < begin for begin in kills)


def _is_of_limited_queue(finding: Finding, judgement: SoakJudgement) -> bool:
    return finding.queue in judgement.limited_queues


def _is_behind_a_close(finding: Finding, judgement: SoakJudgement) -> bool:
    return CLOSED in finding.lines


KNOWN: tuple[Known, ...] = (
    Known(
        "ACK-001 Settlements behind 32 commands to a quorum queue are lost when their channel is closed",
        (What.SETTLED,),
        (_V3, _V40, _V43),
        _QUORUM,
    ),
    Known(
        "docs/cluster.md: what a channel sends to a classic queue at another node is overtaken by what it sends later",
        (What.SETTLED,),
        (_V40, _V43),
        _CLASSIC,
        _is_behind_a_close,
        only_in_clusters=True,
    ),
    Known(
        "docs/cluster.md: what clients of other nodes hold when the node of a classic queue is stopped loses its flag",
        (What.UNFLAGGED,),
        (_V43,),
        _CLASSIC,
        _is_after_a_stop,
        only_in_clusters=True,
    ),
    Known(
        "DURABLE-002 A quorum queue that is killed right after it was declared has lost what was confirmed",
        (What.LOST_IN_RESTART,),
        (_V3, _V40, _V43),
        _QUORUM,
        _is_of_queue_killed_when_new,
    ),
    Known(
        "DURABLE-004 A restart drops what is beyond the limit of a queue that rejects publishes",
        (What.LOST_IN_RESTART,),
        (_V3, _V40, _V43),
        _CLASSIC,
        _is_of_limited_queue,
    ),
    Known(
        "DURABLE-004 Right after a start a stream gets nothing, and what is published is confirmed",
        (What.LOST_IN_RESTART, What.LOST, What.RETURNED),
        (_V3, _V40, _V43),
        _STREAM,
        _is_right_after_a_start,
    ),
    Known(
        "DURABLE-020 A classic queue forgets over a stop that it had delivered a message",
        (What.UNFLAGGED,),
        (_V43,),
        _CLASSIC,
        _is_after_a_stop,
    ),
    Known(
        "docs/soak.md: after a stop with transient messages a classic queue forgets who had a message before",
        (What.UNFLAGGED, What.MISORDERED),
        (_V3, _V40),
        _CLASSIC,
        _is_after_a_stop,
    ),
)


def known_finding(finding: Finding, judgement: SoakJudgement, target: TargetDescription) -> str:
    """The heading; "": it is not known of that target."""
    dialect, type = base_of(target.dialect), judgement.queue_types.get(finding.queue, "")
    for each in KNOWN:
        is_it = finding.what in each.whats and dialect in each.dialects and type == each.type
        is_it = is_it and (not each.only_in_clusters or target.label.startswith("cluster:"))
        if is_it and each.is_so(finding, judgement):
            return each.finding
    return ""
