"""What came of a soak: what its trace says, and how it went."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from amqpspec.conformance.soak.judging import SoakJudgement
from amqpspec.conformance.soak.known import known_finding
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.model.promises.verdict import Verdict


@dataclass(frozen=True, slots=True)
class SoakResult:
    """`ended_early`: why it did not run to its end; "": it did. `lost`: why the broker does not answer any more.
    `seconds`: how long the clients ran. `trace`: where it is, and `octets` how long it would be uncompressed.
    """

    target: TargetDescription
    seed: int
    seconds: float
    faults: tuple[str, ...]
    not_offered: tuple[str, ...]
    judgement: SoakJudgement
    problems: tuple[str, ...] = ()
    ended_early: str = ""
    lost: str = ""
    trace: str = ""
    octets: int = 0
    #: seconds that were judged when the clients were done
    behind: float = 0.0
    phases: dict[str, float] | None = None
    tool_version: str = ""

    @property
    def wrong(self) -> int:
        """Deviations, each message counted."""
        return sum(self.judgement.wrong.values()) + len(self.judgement.failures)

    @property
    def not_known(self) -> int:
        """Those of them that are no finding about this version. Of each kind as many are known as were looked at."""
        judged = self.judgement
        loose = 0
        for what, count in judged.wrong.items():
            told = [each for each in judged.findings if each.what is what and not each.allowed]
            loose += count if any(not each.known for each in told) else 0
        return loose + len(judged.failures)

    @property
    def is_undecided(self) -> bool:
        """Could something not be decided, whatever is wrong?"""
        judged = self.judgement
        is_cut_short = bool(self.ended_early or self.lost or judged.errors)
        return is_cut_short or bool(judged.unknown_queues) or not judged.tally.total().sent

    @property
    def verdict(self) -> Verdict:
        if self.wrong:
            return Verdict.FAIL
        return Verdict.INCONCLUSIVE if self.is_undecided else Verdict.PASS

    def to_json(self) -> dict[str, Any]:
        judged = self.judgement
        return {
            "tool": {"name": "amqpspec", "version": self.tool_version},
            "target": asdict(self.target),
            "seed": self.seed,
            "seconds": round(self.seconds, 3),
            "faults": list(self.faults),
            "not_offered": list(self.not_offered),
            "verdict": str(self.verdict),
            "wrong": self.wrong,
            "not_known": self.not_known,
            "ended_early": self.ended_early,
            "lost": self.lost,
            "problems": list(self.problems),
            "errors": list(judged.errors),
            "frames": judged.frames,
            "connections": judged.connections,
            "trace": self.trace,
            "octets": self.octets,
            "behind": round(self.behind, 3),
            "phases": {name: round(time, 3) for name, time in (self.phases or {}).items()},
            "counts": judged.tally.to_json(),
            "total": judged.tally.total().to_json(),
            "windows": [
                {
                    "kind": each.kind.value,
                    "begin": each.begin,
                    "end": each.end if each.end < float("inf") else None,
                    "node": each.node,
                    "line": each.line,
                }
                for each in judged.windows
            ],
            "findings": [each.to_json() for each in judged.findings],
            "by_kind": {what.name.lower().replace("_", "-"): count for what, count in judged.wrong.items()},
            "allowed": [
                {"what": what.name.lower().replace("_", "-"), "sentence": what.sentence, "why": why, "count": count}
                for (what, why), count in judged.allowed.most_common()
            ],
            "failures": [
                {
                    "requirement": each.failure.requirement,
                    "detail": each.failure.detail,
                    "command": each.failure.command,
                    "observed": each.failure.observed,
                    "allowed": list(each.failure.allowed),
                    "sequence": each.sequence,
                    "line": each.line,
                    "connections": each.connections,
                }
                for each in judged.failures
            ],
            "undecided": {**judged.undecided, **judged.unknown_queues},
        }

    def with_known(self) -> SoakResult:
        """Findings that are known of the target are linked to what is known."""
        for each in self.judgement.findings:
            if not each.allowed:
                each.known = known_finding(each, self.judgement, self.target)
        return self
