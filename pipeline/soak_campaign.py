"""Campaigns of soaks, spread over the tasks of a Spark job: their traces in a store, and what came of each.

A share is one soak with a seed of its own. Its task starts the target itself, so that faults are done to a broker that
no other soak uses, and on the machine where the task is. It writes the trace to `incoming` in the store as it goes, and
adds it as a recording of the run `RUN-soak-SEED` when it is done: the bodies of two soaks are equal. What came of it is
kept beside, as `amqpspec soak` has it in soak.json.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from typing import Any

from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.soak.options import SoakOptions
from amqpspec.conformance.soak.schedule import Kind, offered
from amqpspec.conformance.soak.soak import soak
from amqpspec.conformance.traces.trace import TraceError
from amqpspec.conformance.version import tool_version
from amqpspec.pipeline.spark_session import PipelineError, spark_session
from amqpspec.pipeline.spark_tasks import Progress, run_tasks
from amqpspec.pipeline.store.adding import add_trace
from amqpspec.pipeline.store.files import StoreError
from amqpspec.pipeline.store.labels import label_in_store
from amqpspec.pipeline.store.parts import Part, folder_name
from amqpspec.pipeline.store.store import Store
from amqpspec.targets.errors import TargetError

#: What came of soaks.
SOAKS = "soaks"


@dataclass(frozen=True, slots=True)
class SoakCampaign:
    """`soaks`: on each target, with the seeds from `seed` on. The others as for `SoakOptions`."""

    run: str
    day: str
    seed: int
    seconds: float
    soaks: int = 1
    faults: tuple[Kind, ...] = tuple(Kind)
    rate: float = 0.0


@dataclass(frozen=True, slots=True)
class SoakTarget:
    """`start` starts it, where it is called; it raises `TargetError`, and `PipelineError` where it cannot be had."""

    label: str
    start: Callable[[], AbstractContextManager[TargetUnderTest]]
    patience: float


@dataclass(frozen=True, slots=True)
class SoakShare:
    """One soak. `commit`: by which its trace is in the store; `report`: the file in the store of what came of it."""

    target: SoakTarget
    seed: int
    run: str
    commit: str
    report: str


@dataclass(frozen=True, slots=True)
class SoakDone:
    """What came of a share. `report`: as in soak.json; None: it was lost before it began. `lost`: why it ended early;
    `known`: it was done before; `fatal`: nothing can be kept, or no target be had.
    """

    target: str
    seed: int
    file: str
    report: Mapping[str, Any] | None = None
    lost: str = ""
    known: bool = False
    commit: str | None = None
    parts: tuple[Part, ...] = ()
    fatal: str | None = None


def shares_of(campaign: SoakCampaign, targets: Sequence[SoakTarget]) -> list[SoakShare]:
    """The tasks of a campaign, the targets in turns."""
    seeds = range(campaign.seed, campaign.seed + campaign.soaks)
    return [_share(campaign, target, seed) for seed in seeds for target in targets]


def _share(campaign: SoakCampaign, target: SoakTarget, seed: int) -> SoakShare:
    # another soak by what it does is another one, whatever its name
    said = f"{campaign.run}\n{target.label}\n{seed}\n{campaign.seconds} {' '.join(campaign.faults)} {campaign.rate}"
    digest = sha256(f"{said} {target.patience}".encode()).hexdigest()[:32]
    folder = f"{SOAKS}/target={folder_name(label_in_store(target.label))}/run={folder_name(campaign.run)}"
    report = f"{folder}/seed-{seed}-{digest[:12]}.json"
    return SoakShare(target, seed, f"{campaign.run}-soak-{seed}", f"soak-{digest}", report)


def soak_all(
    store: Store,
    campaign: SoakCampaign,
    targets: Sequence[SoakTarget],
    master: str | None = None,
    progress: Progress | None = None,
) -> Iterator[SoakDone]:
    """Carry out a campaign; `master`: of Spark, None: in this process. Raises `StoreError` and `PipelineError`.

    Soaks of a campaign of the same name and seed that were done before are not done again: what came of them is read.
    """
    work = shares_of(campaign, targets)
    if master is None:
        for number, share in enumerate(work, start=1):
            yield from _checked(store, [_carry_out(store, campaign, share)])
            if progress is not None:
                progress(number, len(work))
        return

    def carry_out(share: SoakShare) -> list[SoakDone]:
        return [_carry_out(store, campaign, share)]

    with spark_session(master) as spark:
        yield from _checked(store, run_tasks(spark, work, carry_out, progress))


def _checked(store: Store, done: Sequence[SoakDone]) -> Sequence[SoakDone]:
    """Raises `StoreError` where a worker could not do its share, or kept it where nobody else sees it."""
    for each in done:
        if each.fatal is not None:
            raise StoreError(each.fatal)
    store.require_arrived((part for each in done for part in each.parts), (each.commit for each in done if each.commit))
    return done


def _carry_out(store: Store, campaign: SoakCampaign, share: SoakShare) -> SoakDone:
    """Do a share, where it is done."""
    label, seed, file = share.target.label, share.seed, store.named(share.report)
    try:
        store.require_seen()
        if store.has_commit(share.commit) and store.files.exists(share.report):
            return SoakDone(label, seed, file, _read(store, share.report), known=True, commit=share.commit)
        with store.incoming(folder_name(campaign.run), f"{folder_name(label)}-soak-{seed}") as folder:
            report, lost = _soaked(campaign, share, folder)
            if report is None:
                return SoakDone(label, seed, file, lost=lost)
            store.files.put(share.report, (json.dumps(report, indent=1) + "\n").encode())
            # one that was lost is done again by the next campaign of that name
            added = add_trace(
                store, folder, day=campaign.day, run=share.run, target=label, commit=None if lost else share.commit
            )
            rmtree(folder)
    except (StoreError, TraceError, PipelineError) as error:
        return SoakDone(label, seed, file, fatal=str(error))
    except OSError as error:
        return SoakDone(label, seed, file, fatal=f"{error.filename}: {error.strerror}")
    return SoakDone(label, seed, file, report, lost, commit=added.commit, parts=tuple(added.parts))


def _soaked(campaign: SoakCampaign, share: SoakShare, folder: Path) -> tuple[Mapping[str, Any] | None, str]:
    """What came of it, and why the target was lost."""
    report: Mapping[str, Any] | None = None
    lost = ""
    try:
        with share.target.start() as target:
            kinds, missing = offered(campaign.faults, tuple(target.faults.offered) if target.faults else ())
            options = SoakOptions(
                share.seed, campaign.seconds, tuple(kinds), folder, tuple(missing), campaign.rate,
                share.target.patience, judges_meanwhile=False,
            )  # fmt: skip
            result = soak(target, options)
            report, lost = replace(result, tool_version=tool_version()).to_json(), result.lost
    except TargetError as error:
        lost = lost or str(error)
    return report, lost


def _read(store: Store, path: str) -> Mapping[str, Any]:
    try:
        report: Mapping[str, Any] = json.loads(store.files.read(path))
        report["total"]["sent"]
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{store.named(path)}: not what came of a soak: {error!r}") from error
    return report
