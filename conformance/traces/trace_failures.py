"""How a failure is written where results are kept: in the end rows of traces, and in what is added up in bulk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amqpspec.model.promises.verdict import Failure, Shape


def failure_to_json(failure: Failure) -> dict[str, Any]:
    """A failure as the object that traces and bulk results hold."""
    return {
        "requirement": failure.requirement,
        "shape": str(failure.shape),
        "detail": failure.detail,
        "command": failure.command,
        "observed": failure.observed,
        "allowed": list(failure.allowed),
        "state": list(failure.state),
        "known_defect": failure.defect,
        **({"like": failure.like} if failure.like else {}),
    }


def failure_from_json(written: Mapping[str, Any]) -> Failure:
    """The inverse of `failure_to_json`. Raises KeyError, TypeError or ValueError for anything else."""
    texts = {key: str(written[key]) for key in ("requirement", "detail", "command", "observed")}
    return Failure(
        shape=Shape(written["shape"]),
        allowed=tuple(map(str, written["allowed"])),
        state=tuple(map(str, written["state"])),
        # "departure" is what traces of version 0.1 call it
        defect=str(written.get("known_defect", written.get("departure", ""))),
        like=str(written.get("like", "")),
        **texts,
    )
