"""The machine-readable report: one JSON object, the contract of `--json`."""

from __future__ import annotations

import json
from typing import Any

from conformance.judgement import FoundFailure, RunResult


def report_object(result: RunResult) -> dict[str, Any]:
    """The report as an object.

    `requirements[].reason` is there for inconclusive and not applicable only. `failures[].rate` is
    [failed, tried] when the commands were run again, `failures[].known` what explains a known deviation.
    """
    return {
        "tool": {"name": result.tool, "version": result.tool_version},
        "target": {
            "label": result.target.label,
            "product": result.target.product,
            "version": result.target.version,
            "dialect": result.target.dialect,
        },
        "seed": result.seed,
        "mode": result.mode,
        "summary": result.summary,
        "sequences": result.sequences,
        "frames": result.frames,
        "seconds": round(result.seconds, 3),
        "exit_code": result.exit_code,
        "lost": result.lost,
        "requirements": [
            {
                "id": requirement.id,
                "verdict": str(requirement.verdict),
                "exercised": requirement.exercised,
                **({} if requirement.reason is None else {"reason": requirement.reason}),
            }
            for requirement in result.requirements
        ],
        "failures": [_failure(found) for found in result.failures],
        "undecided": [{"sequence": sequence, "reason": reason} for sequence, reason in result.undecided],
    }


def _failure(found: FoundFailure) -> dict[str, Any]:
    failure = found.failure
    return {
        "requirement": failure.requirement,
        "identity": failure.identity,
        "shape": str(failure.shape),
        "detail": failure.detail,
        "sequence": found.sequence,
        "sequences": found.sequences,
        "command": failure.command,
        "commands": list(found.commands),
        "allowed": list(failure.allowed),
        "observed": failure.observed,
        "state": list(failure.state),
        "reproducer": found.reproducer,
        "known": found.known,
        "departure": failure.departure or None,
        "rate": None if found.rate is None else list(found.rate),
    }


def render_json(result: RunResult) -> str:
    """The report as text. Pure ASCII, since what a broker sent need not be proper text."""
    return json.dumps(report_object(result), indent=2) + "\n"
