"""What a sequence was judged to be as a row of a table (docs/pipeline.md, Judgements)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from amqpspec.conformance.traces.trace_row import TraceRow
from amqpspec.conformance.verdicts.judgement import SequenceJudgement, requirement_verdicts
from amqpspec.conformance.verdicts.known_behaviour import defects_tested
from amqpspec.conformance.verdicts.tally import reason_of
from amqpspec.conformance.version import judge_version
from amqpspec.model.defects.known_defects import is_as_known, strength_of
from amqpspec.model.promises.verdict import Failure, Verdict

_TEXT, _COUNT, _NUMBER = pa.string(), pa.int64(), pa.float64()


def _list_of(**fields: pa.DataType) -> pa.DataType:
    return pa.list_(pa.struct([pa.field(name, kind) for name, kind in fields.items()]))


#: Days, targets and runs are in the names of the folders.
JUDGEMENTS = pa.schema(
    [
        pa.field("sequence", _TEXT, nullable=False),
        pa.field("first_row", _COUNT, nullable=False),
        pa.field("requirement", _TEXT),
        pa.field("product", _TEXT),
        pa.field("version", _TEXT),
        pa.field("dialect", _TEXT),
        pa.field("mode", _TEXT),
        pa.field("seed", _COUNT),
        pa.field("repeats", _TEXT),
        pa.field("commands", _TEXT),
        pa.field("verdict", _TEXT, nullable=False),
        pa.field("reason", _TEXT),
        pa.field("problem", _TEXT),
        pa.field("ended_by", _TEXT),
        pa.field("frames", _COUNT, nullable=False),
        pa.field("said", _list_of(requirement=_TEXT, verdict=_TEXT, as_known=_TEXT, exercised=_COUNT)),
        pa.field(
            "failures",
            _list_of(
                identity=_TEXT, requirement=_TEXT, shape=_TEXT, detail=_TEXT, defect=_TEXT, as_known=pa.bool_(),
                strength=_TEXT, command=_TEXT, observed=_TEXT, allowed=pa.list_(_TEXT), state=pa.list_(_TEXT),
                like=_TEXT,
            ),
        ),
        pa.field("defects", _list_of(name=_TEXT, seen=pa.bool_())),
        pa.field(
            "measurements",
            _list_of(
                requirement=_TEXT, method=_TEXT, time=_NUMBER, nominal=_NUMBER, least=_NUMBER, most=_NUMBER,
                tick=_NUMBER, expected=pa.bool_(),
            ),
        ),
        pa.field("latencies", _list_of(what=_TEXT, seconds=_NUMBER, times=_COUNT)),
        pa.field("judged_by", _TEXT),
    ]
)  # fmt: skip


def judgement_row(
    judgement: SequenceJudgement,
    start: TraceRow,
    first_row: int,
    commands: str,
    latencies: Mapping[str, Counter[float]],
) -> dict[str, Any]:
    """The row of a sequence that was judged. `commands`: a digest of those that were carried out, where the recording
    does not have that of those that were planned (a failure may end a sequence); `latencies` as `Latencies.found`."""
    explained = judgement.verdict in (Verdict.INCONCLUSIVE, Verdict.NOT_APPLICABLE)
    distinct = {failure.identity: failure for failure in reversed(judgement.failures)}
    tested = defects_tested(judgement.failures, judgement.refuted, judgement.dialect, judgement.version)
    return _start_columns(start, first_row) | {
        "commands": start.get("planned") or commands,
        "verdict": str(judgement.verdict),
        "reason": reason_of(judgement) if explained else _undecided(judgement),
        "ended_by": judgement.ended_by,
        "frames": judgement.frames,
        "said": [
            {"requirement": id, "verdict": str(verdict), "as_known": str(as_known), "exercised": exercised}
            for id, (verdict, as_known, exercised) in requirement_verdicts(judgement).items()
        ],
        "failures": [_failure(failure, judgement) for failure in reversed(distinct.values())],
        "defects": [{"name": name, "seen": seen} for name, seen in tested.items()],
        "measurements": [
            {
                "requirement": each.requirement, "method": each.method, "time": each.time, "nominal": each.nominal,
                "least": each.least, "most": each.most, "tick": each.tick, "expected": each.is_expected,
            }
            for each in judgement.measurements
        ],
        "latencies": [
            {"what": what, "seconds": seconds, "times": times}
            for what, counts in latencies.items()
            for seconds, times in sorted(counts.items())
        ],
    }  # fmt: skip


def _undecided(judgement: SequenceJudgement) -> str | None:
    """What a recording did not tell, with the requirements concerned."""
    return "; ".join(f"{id}: {reason}" for id, reason in judgement.undecided.items()) or None


def problem_row(start: TraceRow, first_row: int, problem: str, frames: int) -> dict[str, Any]:
    """The row of a sequence that could not be judged: it is inconclusive, and blamed on nobody."""
    return _start_columns(start, first_row) | {
        "verdict": str(Verdict.INCONCLUSIVE),
        "reason": problem,
        "problem": problem,
        "frames": frames,
        "said": [],
        "failures": [],
        "defects": [],
        "measurements": [],
        "latencies": [],
    }


def _start_columns(start: TraceRow, first_row: int) -> dict[str, Any]:
    names = ("sequence", "requirement", "product", "version", "dialect", "mode", "seed", "repeats")
    columns: dict[str, Any] = {name: start.get(name) for name in names}
    return columns | {"first_row": first_row, "judged_by": judge_version()}


def _failure(failure: Failure, judgement: SequenceJudgement) -> dict[str, Any]:
    return {
        "identity": failure.identity,
        "requirement": failure.requirement,
        "shape": str(failure.shape),
        "detail": failure.detail,
        "defect": failure.defect,
        "as_known": is_as_known(failure, judgement.dialect, judgement.version),
        "strength": str(strength_of(failure)),
        "command": failure.command,
        "observed": failure.observed,
        "allowed": list(failure.allowed),
        "state": list(failure.state),
        "like": failure.like,
    }
