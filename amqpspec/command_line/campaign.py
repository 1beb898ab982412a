"""`amqpspec campaign`: searches or soaks on targets, spread over the tasks of Spark. docs/pipeline.md."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from contextlib import ExitStack
from datetime import UTC, datetime
from importlib import import_module

from rich.console import Console
from rich.text import Text

from amqpspec.command_line import soak_campaign
from amqpspec.command_line.exit_codes import CONFORMS, DEVIATES, INCONCLUSIVE, TARGET_LOST
from amqpspec.command_line.logins import complain
from amqpspec.command_line.options import random_seed
from amqpspec.command_line.pipeline import progress_of, take_settings
from amqpspec.command_line.run_directory import require_no_address
from amqpspec.command_line.suite_errors import tell_errors
from amqpspec.command_line.targets import library_of, target_under_test
from amqpspec.command_line.usage import UsageError
from amqpspec.conformance.failures.shrinking_time import LEAST_SHRINKING_TIME, MOST_SHRINKING_TIME
from amqpspec.conformance.search.machine import THEMES
from amqpspec.conformance.traces.extras import needed_for
from amqpspec.conformance.verdicts.judgement import SuiteError
from amqpspec.reports.text import plural, visible


def execute(options: argparse.Namespace, console: Console) -> int:
    require_no_address(options.store)
    library_of(options.driver)
    # the extra that brings both, where both are needed
    with needed_for("for amqpspec campaign", "spark" if options.spark else None):
        import_module("pyarrow")
        if options.spark:
            import_module("pyspark")
    is_search = options.sequences is not None or options.time_budget is not None
    if not is_search and options.soak is None:
        raise UsageError("a campaign needs --sequences N or --time-budget SECONDS, or --soak SECONDS")
    if is_search and options.soak is not None:
        raise UsageError("--soak: a campaign of soaks has no --sequences and no --time-budget")
    if options.label and len(options.targets) > 1:
        raise UsageError("--target names one broker, and there are several")
    unknown = [name for name in options.theme if name not in THEMES]
    if unknown:
        raise UsageError(f"--theme {unknown[0]}: there is none of that name, but {', '.join(THEMES)}")
    from amqpspec.pipeline.spark_session import PipelineError
    from amqpspec.pipeline.store.files import StoreError

    take_settings(options)
    try:
        return soak_campaign.execute(options, console) if options.soak is not None else _search(options, console)
    except (StoreError, PipelineError) as error:
        raise UsageError(str(error)) from None


def _search(options: argparse.Namespace, console: Console) -> int:
    from amqpspec.command_line.gates import acceptance_of, tell_failures, tell_stale
    from amqpspec.pipeline.campaign import Campaign, search
    from amqpspec.pipeline.campaign_shrinking import Shown, shrink_new
    from amqpspec.pipeline.judging.found_failures import Found, FoundFailures
    from amqpspec.pipeline.store.store import create_store

    acceptance = acceptance_of(options)
    store = create_store(options.store)
    if options.run and options.seed is None and any(part.run == options.run for part in store.contents().parts):
        raise UsageError(f"--run {options.run}: the store has it; to go on with it, give its --seed as well")
    seed = random_seed() if options.seed is None else options.seed
    now = datetime.now(UTC)
    campaign = Campaign(
        options.run or f"campaign-{now:%Y%m%dT%H%M%S}-seed-{seed}", options.day or now.date().isoformat(), seed,
        options.sequences, options.time_budget, options.steps, tuple(options.theme),
        acceptance,
    )  # fmt: skip
    # told first: without them nobody goes on with a campaign that was stopped
    console.print(Text(visible(f"run {campaign.run}, seed {seed}")), soft_wrap=True)
    sequences, frames, failed, accepted, inconclusive, known = 0, 0, 0, 0, 0, 0
    lost: Counter[str] = Counter()
    shown: list[Shown] = []
    errors: list[SuiteError] = []
    began = time.monotonic()
    with ExitStack() as stack:
        targets = [stack.enter_context(target_under_test(_for_one(options, target))) for target in options.targets]
        for done in search(store, campaign, targets, options.spark, progress_of(console, options.quiet)):
            sequences, frames, failed = sequences + done.sequences, frames + done.frames, failed + done.failed
            accepted += done.accepted
            inconclusive += done.inconclusive
            known += done.known
            shown += done.shown
            errors += done.errors
            if done.lost is not None:
                lost[f"{done.target} was lost: {done.lost}"] += 1
        took = time.monotonic() - began
        seconds = options.shrinking_time
        if seconds is None:
            seconds = min(max(took, LEAST_SHRINKING_TIME), MOST_SHRINKING_TIME)
        shrunk = list(shrink_new(store, targets, shown, seconds, seed, errors)) if seconds else []
    for what in dict.fromkeys(f"{each.target} was lost: {each.lost}" for each in shrunk if each.lost):
        lost[what] += 0
    for what, times in lost.items():
        when = f"{plural(times, 'share')} ended early" if times else "while failures were shrunk"
        complain(f"{visible(what)} ({when})")
    described = {target.description.label: target.description for target in targets}
    found = FoundFailures()
    for one in shown:
        broker = described[one.target]
        why = acceptance.why(one.failure, broker)
        new = Found(broker, one.failure, campaign.run, one.sequence, why, 1)
        found.distinct.setdefault((broker, one.failure.identity), new)
    tell_failures(found, console)
    before = f" ({plural(known, 'share')} done before)" if known else ""
    beside = f" ({accepted:,} more as is accepted)" if accepted else ""
    undecided = f", {inconclusive:,} inconclusive" if inconclusive else ""
    whole = f"{plural(sequences, 'sequence')}, {frames:,} frames"
    console.print(Text(f"{whole}: {failed:,} failed{beside}{undecided}{before}"))
    for each in (shrunk_one for shrunk_one in shrunk if shrunk_one.file is not None):
        line = f"new on {each.target}: {each.found.failure.identity}: {each.file}"
        console.print(Text(visible(line)), soft_wrap=True)
    tell_errors(errors, [options.store], None if options.quiet else console)
    if tell_stale(acceptance) or lost or failed:
        return TARGET_LOST if lost else DEVIATES
    if inconclusive == sequences and not known and not errors:
        why = "none of the sequences was decided" if sequences else "the time was over before a sequence was begun"
        complain(f"{why}, so nothing is known of the {plural(len(targets), 'target')}")
        return INCONCLUSIVE
    return INCONCLUSIVE if errors else CONFORMS


def _for_one(options: argparse.Namespace, target: str) -> argparse.Namespace:
    return argparse.Namespace(**{**vars(options), "target": target, "mode": "lockstep"})
