"""What `conservation` found of runs, kept in the store for its tables and its page: `conservation/run=RUN.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow.parquet as pq

from amqpspec.conformance.verdicts.acceptance import Acceptance
from amqpspec.conformance.verdicts.deviations import excuses
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.conformance.version import tool_version
from amqpspec.pipeline.judging.conservation import Conservation, Violation
from amqpspec.pipeline.store.files import StoreError
from amqpspec.pipeline.store.parts import Part, folder_name
from amqpspec.pipeline.store.store import Store

CONSERVATION = "conservation"


def identity_of(violation: Violation) -> str:
    """By what a deviation file names it."""
    return f"{violation.requirement}|conservation|{violation.what}"


def keep(store: Store, run: str, found: Conservation, acceptance: Acceptance) -> dict[str, Any]:
    """Write what was found of a run, in the place of what was found before; gives that. Raises `StoreError`."""
    parts = _parts(store, run)
    described = _described(store, parts[0])
    excuse_of = excuses(acceptance.listed, described)
    written = {
        "run": run,
        "day": min(part.day for part in parts),
        "targets": sorted({part.target for part in parts}),
        "product": described.product,
        "version": described.version,
        # so that it is seen when more is added to the run
        "frames": sum(part.frames for part in parts),
        "messages": found.messages,
        "queues": found.queues,
        "wrong": found.wrong,
        "violations": [
            {
                "identity": identity_of(each), "requirement": each.requirement, "what": each.what,
                "queue": each.queue, "time": each.time, "body": each.body, "accepted": excuse_of(identity_of(each)),
            }
            for each in found.violations
        ],
        "undecided": found.undecided,
        "judged_by": tool_version(),
    }  # fmt: skip
    octets = json.dumps(written, indent=1).encode("utf-8", "surrogatepass")
    store.files.put(_path(run), octets)
    return written


def read_kept(store: Store) -> list[dict[str, Any]]:
    """What was found of the runs that the store still has, in the order of days and runs, with `stale`: more was added
    to the run since. Raises `StoreError`.
    """
    frames: dict[str, int] = {}
    for part in store.contents().parts:
        frames[part.run] = frames.get(part.run, 0) + part.frames
    found: list[dict[str, Any]] = []
    for file in store.files.listed(CONSERVATION):
        if not file.path.endswith(".json"):
            continue
        try:
            kept = json.loads(store.files.read(file.path).decode("utf-8", "surrogatepass"))
            if kept["run"] in frames:
                found.append({**kept, "stale": frames[kept["run"]] != kept["frames"]})
        except FileNotFoundError:
            continue
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{store.named(file.path)}: is not what conservation has written: {error!r}") from error
    return sorted(found, key=lambda each: (each["day"], each["run"]))


def rows_of_kept(kept: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of the table `conservation`: one for each run, requirement, what is wrong and queue, or for each queue
    of which something is undecided; a run of which all is right has one too.
    """
    run = {"day": kept["day"], "run": kept["run"], "target": ", ".join(kept["targets"]), "version": kept["version"]}
    counted: dict[tuple[str, ...], dict[str, Any]] = {}
    for each in kept["violations"]:
        key = each["requirement"], each["what"], each["queue"]
        row = counted.setdefault(
            key, run | {"verdict": "fail", "requirement": key[0], "what": key[1], "queue": key[2], "messages": 0,
                        "first": each["time"], "body": each["body"], "accepted": each["accepted"] or ""}
        )  # fmt: skip
        row["messages"] += 1
    empty = {"requirement": "", "messages": 0, "first": None, "body": "", "accepted": ""}
    undecided = [
        run | empty | {"verdict": "inconclusive", "what": why, "queue": queue}
        for queue, why in sorted(kept["undecided"].items())
    ]
    right = run | empty | {"verdict": "pass", "what": "", "queue": "", "messages": kept["messages"]}
    return [*counted.values(), *undecided] or [right]


def _parts(store: Store, run: str) -> list[Part]:
    return [part for part in store.contents().parts if part.run == run]


def _path(run: str) -> str:
    return f"{CONSERVATION}/run={folder_name(run)}.json"


def _described(store: Store, part: Part) -> TargetDescription:
    """The broker of the run, by its first start row."""
    names = ["product", "version", "dialect"]
    with store.files.reading(part.trace) as whole, pq.ParquetFile(whole) as file:
        batch = next(file.iter_batches(1, columns=names), None)
    row = batch.to_pylist()[0] if batch is not None and batch.num_rows else {}
    return TargetDescription(part.target, *(row.get(name) or "" for name in names))
