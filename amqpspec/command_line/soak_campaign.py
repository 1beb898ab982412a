"""`amqpspec campaign --soak`: soaks on targets, spread over the tasks of Spark. docs/pipeline.md."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from amqpspec.command_line.exit_codes import CONFORMS, DEVIATES, INCONCLUSIVE, TARGET_LOST
from amqpspec.command_line.logins import complain
from amqpspec.command_line.options import random_seed
from amqpspec.command_line.pipeline import progress_of
from amqpspec.command_line.soak import patience_of
from amqpspec.command_line.targets import StartedTarget, label_of
from amqpspec.command_line.usage import UsageError
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.verdicts.gate import Gate
from amqpspec.model.promises.verdict import Verdict
from amqpspec.reports.text import plural, visible

if TYPE_CHECKING:
    from amqpspec.pipeline.soak_campaign import SoakDone


def execute(options: argparse.Namespace, console: Console) -> int:
    """Raises `UsageError`, `StoreError` and `PipelineError`."""
    from amqpspec.pipeline.soak_campaign import SoakCampaign, SoakTarget, soak_all
    from amqpspec.pipeline.store.store import create_store

    if options.deviations:
        raise UsageError("--deviations: what a soak finds has no identity; --gate known accepts what is known")
    store = create_store(options.store)
    has_run = any(part.run.startswith(f"{options.run}-soak-") for part in store.contents().parts)
    if options.run and options.seed is None and has_run:
        raise UsageError(f"--run {options.run}: the store has it; to go on with it, give its --seed as well")
    seed = random_seed() if options.seed is None else options.seed
    now = datetime.now(UTC)
    campaign = SoakCampaign(
        options.run or f"campaign-{now:%Y%m%dT%H%M%S}-seed-{seed}", options.day or now.date().isoformat(), seed,
        options.soak, options.soaks, options.faults, options.rate,
    )  # fmt: skip
    targets = [
        SoakTarget(options.label or label_of(target), partial(_started, _for_one(options, target)), patience_of(target))
        for target in options.targets
    ]
    console.print(Text(visible(f"run {campaign.run}, seed {seed}")), soft_wrap=True)
    done = list(soak_all(store, campaign, targets, options.spark, progress_of(console, options.quiet)))
    return _told(done, options.gate, console)


@contextmanager
def _started(options: argparse.Namespace) -> Iterator[TargetUnderTest]:
    """The target, started where this is called. Raises `TargetError`, and `PipelineError` for a `UsageError`."""
    from amqpspec.pipeline.spark_session import PipelineError

    try:
        with StartedTarget(options, keeps_data=True) as started:
            target = started.target
            # what somebody else has started other soaks use as well
            yield target if started.restarts is not None else replace(target, faults=None)
    except UsageError as error:
        raise PipelineError(str(error)) from None


def _for_one(options: argparse.Namespace, target: str) -> argparse.Namespace:
    """What a worker needs to start it."""
    return argparse.Namespace(
        target=target, label=options.label, mode="lockstep", driver=options.driver, dialect=options.dialect,
        deadline=options.deadline,
    )  # fmt: skip


def _told(done: Iterable[SoakDone], gate: Gate, console: Console) -> int:
    of_targets: dict[str, list[SoakDone]] = {}
    for each in done:
        of_targets.setdefault(each.target, []).append(each)
    verdicts: list[Verdict] = []
    is_lost = False
    for target, soaks in of_targets.items():
        counts: Counter[str] = Counter()
        reports = [(each, each.report) for each in soaks if each.report is not None]
        for _, report in reports:
            counts.update(report["total"])
            verdicts.append(_verdict(report, gate))
        known = sum(each.known for each in soaks)
        before = f" ({known:,} done before)" if known else ""
        names = ("sent", "confirmed", "lost", "duplicates")
        numbers = ", ".join(f"{counts[name]:,} {name}" for name in names)
        console.print(Text(visible(f"{target}: {plural(len(reports), 'soak')}{before}: {numbers}")), soft_wrap=True)
        for each, report in reports:
            if report["verdict"] != Verdict.PASS:
                wrong = f", {report['wrong']:,} wrong" if report["wrong"] else ""
                wrong += ", all of it known" if report["wrong"] and not report.get("not_known", 1) else ""
                said = f"  seed {each.seed}: {report['verdict']}{wrong}: {each.file}"
                console.print(Text(visible(said)), soft_wrap=True)
        for each in soaks:
            if each.lost:
                is_lost = True
                complain(visible(f"{target} was lost in the soak of seed {each.seed}: {each.lost}"))
    if Verdict.FAIL in verdicts or is_lost:
        return TARGET_LOST if is_lost else DEVIATES
    return INCONCLUSIVE if Verdict.INCONCLUSIVE in verdicts else CONFORMS


def _verdict(report: Mapping[str, Any], gate: Gate) -> Verdict:
    """That of a soak, by the gate; reports of earlier versions do not say what is known."""
    verdict = Verdict(report["verdict"])
    if verdict is not Verdict.FAIL or gate is Gate.PROMISE or report.get("not_known", 1):
        return verdict
    is_cut_short = report["ended_early"] or report["lost"] or report["errors"]
    return Verdict.INCONCLUSIVE if is_cut_short else Verdict.PASS
