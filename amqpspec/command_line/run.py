"""`amqpspec run`: the main job."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Container
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from amqpspec.command_line.options import available_processors, random_seed
from amqpspec.command_line.targets import target_under_test
from amqpspec.command_line.usage import UsageError
from amqpspec.conformance.run import Runner
from amqpspec.conformance.run_options import RunOptions
from amqpspec.conformance.search.machine import THEMES, themes_for
from amqpspec.conformance.traces.extras import MissingExtra
from amqpspec.conformance.traces.trace import TraceWriter, jsonl_to_parquet
from amqpspec.conformance.verdicts.deviations import read_deviations, with_known
from amqpspec.conformance.verdicts.events import Listener
from amqpspec.conformance.verdicts.judgement import RunResult
from amqpspec.model.defects.known_defects import strength_of
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.registry import requirements, select
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.verdict import Failure


def execute(options: argparse.Namespace, console: Console) -> int:
    select(options.only)  # an unknown prefix is an error before anything is started
    if options.search_only and options.only:
        raise UsageError("--only chooses scenarios, and --search-only runs none")
    if options.search_only and not options.sequences:
        raise UsageError("--search-only with --sequences 0 leaves nothing to run")
    unknown = [name for name in options.theme if name not in THEMES]
    if unknown:
        raise UsageError(f"--theme {unknown[0]}: there is none of that name, but {', '.join(THEMES)}")
    known = read_deviations(options.deviations) if options.deviations else {}
    _make_directory(options.out)
    for path in (options.html, options.json, options.junit):
        if path is not None and not path.absolute().parent.is_dir():
            raise UsageError(f"{path}: there is no directory {path.absolute().parent}")
    seed = random_seed() if options.seed is None else options.seed
    wanted = RunOptions(
        tuple(options.only), seed, options.sequences, options.steps, options.time_budget,
        search_only=options.search_only, enough=fails_the_run(known) if options.stop_at_first else None,
        themes=tuple(options.theme), jobs=options.jobs or _jobs(options.target),
    )  # fmt: skip
    with ExitStack() as stack:
        target = stack.enter_context(target_under_test(options))
        dialect = dialect_named(target.description.dialect)
        if options.theme and not themes_for(dialect, wanted.themes):
            raise UsageError(f"--theme {', '.join(options.theme)}: there is nothing of it to search in {dialect.title}")
        trace = stack.enter_context(TraceWriter(options.out / "trace.jsonl"))
        listeners: list[Listener] = []
        if console.is_terminal and not options.quiet:
            from amqpspec.reports.terminal import LiveDisplay

            listeners.append(stack.enter_context(LiveDisplay(console)))
        result = Runner(target, trace, wanted, listeners).run()
    result, unseen = with_known(result, known)
    _write_parquet(options.out)
    _write_reports(result, options)
    _print(result, options, console)
    for identity in unseen:
        print(f"amqpspec: listed as a deviation, but not seen in this run: {identity}", file=sys.stderr)
    return result.exit_code


def fails_the_run(known: Container[str]) -> Callable[[Failure], bool]:
    """Does a failure make the run fail? What ends a run early must: else the rest is left out, and nothing says so.

    `known`: the identities that the deviation file lists.
    """
    return lambda failure: failure.identity not in known and strength_of(failure) is not Strength.ARGUABLE


def _jobs(target: str | None) -> int:
    """Sequences that this machine bears at one time: they wait for a broker, but for one that is in this process."""
    return available_processors() * (1 if target is None or target.startswith("embedded") else 3)


def _make_directory(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{directory}: cannot be made: {error.strerror}") from None


def _write_parquet(directory: Path) -> None:
    """The trace as Parquet as well, where pyarrow is installed."""
    parquet = directory / "trace.parquet"
    try:
        jsonl_to_parquet(directory / "trace.jsonl", parquet)
    except MissingExtra as error:
        parquet.unlink(missing_ok=True)  # that of an earlier run
        print(f"amqpspec: trace.parquet was left out: {error}", file=sys.stderr)


def _write_reports(result: RunResult, options: argparse.Namespace) -> None:
    from amqpspec.reports.html import render_html
    from amqpspec.reports.json_report import render_json
    from amqpspec.reports.junit import render_junit

    registry = requirements()
    (options.html or options.out / "report.html").write_text(render_html(result, registry), encoding="utf-8")
    (options.json or options.out / "report.json").write_text(render_json(result), encoding="utf-8")
    if options.junit:
        options.junit.write_text(render_junit(result, registry), encoding="utf-8")
    failures = options.out / "failures"
    for number, found in enumerate(result.failures, 1):
        if found.commands:
            failures.mkdir(exist_ok=True)
            text = f"@title {found.failure.identity}\n" + "\n".join(found.commands) + "\n"
            (failures / f"{number:02}-{found.failure.requirement}.amqp").write_text(text, encoding="utf-8")


def _print(result: RunResult, options: argparse.Namespace, console: Console) -> None:
    from amqpspec.reports.terminal import print_report, print_verdict

    if options.quiet:
        print_verdict(console, result)
        return
    print_report(console, result, requirements())
    console.print(f"report: {options.html or options.out / 'report.html'}   trace: {options.out / 'trace.jsonl'}")
