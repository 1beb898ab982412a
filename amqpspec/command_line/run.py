"""`amqpspec run`: the main job."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import date
from importlib import import_module
from pathlib import Path

from rich.console import Console

from amqpspec.command_line.exit_codes import INTERRUPTED, TERMINATED
from amqpspec.command_line.logins import complain
from amqpspec.command_line.options import DEFAULT_SEQUENCES, available_processors, seed_of_run
from amqpspec.command_line.output_files import require_apart, require_place_of_trace, require_writable, write
from amqpspec.command_line.run_directory import held, make_directory, not_left_empty, require_no_address
from amqpspec.command_line.run_outputs import print_result, tell_of_errors, write_reports
from amqpspec.command_line.several_targets import run_each
from amqpspec.command_line.standard_output import heard_or_not
from amqpspec.command_line.suite_errors import as_far_as_possible
from amqpspec.command_line.targets import StartedTarget
from amqpspec.command_line.usage import UsageError
from amqpspec.conformance.failures.ladder import with_ladders
from amqpspec.conformance.interruption import Terminated
from amqpspec.conformance.run import Runner
from amqpspec.conformance.run_options import RunOptions
from amqpspec.conformance.scenarios.applicability import cannot_be_broken
from amqpspec.conformance.scenarios.scenario_files import own_scenarios
from amqpspec.conformance.search.machine import BREAKING, THEMES, themes_for
from amqpspec.conformance.traces.extras import needed_for
from amqpspec.conformance.traces.trace import TraceError, TraceWriter, read_trace
from amqpspec.conformance.verdicts.deviations import (
    Deviation,
    excuses,
    problem_of,
    read_deviations,
    with_deviations,
    with_problems,
)
from amqpspec.conformance.verdicts.deviations_to_write import as_toml, deviations_of, update
from amqpspec.conformance.verdicts.events import Event, Listener, RunFinished
from amqpspec.conformance.verdicts.gate import Gate, excuse_of, through
from amqpspec.conformance.verdicts.judgement import RunResult, TargetDescription
from amqpspec.conformance.workers import begin_loading
from amqpspec.model.defects.known_defects import strength_of
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.registry import select
from amqpspec.model.promises.strength import Strength
from amqpspec.model.promises.verdict import Failure
from amqpspec.reports.output_file import remove_former
from amqpspec.targets.brokers.embedded_broker import EmbeddedBrokerFailure
from amqpspec.targets.suite_error import line_of

#: Sequences of a search that stops and starts a real broker, if nothing else is said: each takes up to a minute.
_FEW = 10


def execute(options: argparse.Namespace, console: Console) -> int:
    with own_scenarios(options.scenarios):
        return run_each(options, console, _alone) if options.more or "," in options.driver else _alone(options, console)


def _alone(options: argparse.Namespace, console: Console) -> int:
    with not_left_empty(options.out):
        return _execute(options, console)


def _execute(options: argparse.Namespace, console: Console) -> int:
    began = time.monotonic()
    select(options.only)  # an unknown prefix is an error before anything is started
    if options.search_only and options.only:
        raise UsageError("--only chooses scenarios, and --search-only runs none")
    sequences = DEFAULT_SEQUENCES if options.sequences is None else options.sequences
    if options.search_only and not sequences:
        raise UsageError("--search-only with --sequences 0 leaves nothing to run")
    unknown = [name for name in options.theme if name not in THEMES]
    if unknown:
        raise UsageError(f"--theme {unknown[0]}: there is none of that name, but {', '.join(THEMES)}")
    if options.update_deviations and not options.deviations:
        raise UsageError("--update-deviations needs the file, by --deviations FILE")
    listed = read_deviations(options.deviations) if options.deviations else ()
    make_directory(options.out)
    reports = [
        path for path in (
            options.html or options.out / "report.html", options.json or options.out / "report.json", options.junit,
            options.markdown, options.badge, options.parquet,
        ) if path is not None
    ]  # fmt: skip
    trace_file = options.out / "trace.jsonl"
    written = [*reports, *filter(None, [options.write_deviations])]
    require_place_of_trace(trace_file)
    for path in written:
        require_writable(path)
    require_apart([trace_file, *written, *filter(None, [options.deviations])], may_be_alike=options.write_deviations)
    if options.write_deviations and not options.deviations and _has_text(options.write_deviations):
        what = "is there already, and would lose its reasons; give it by --deviations as well"
        raise UsageError(f"--write-deviations {options.write_deviations}: {what}")
    if options.store:
        _require_store(options.store)
    if options.parquet:
        with needed_for(f"to write {options.parquet}"):
            import_module("pyarrow")
    seed = seed_of_run(options)
    wanted = RunOptions(
        tuple(options.only), seed, sequences, options.steps, options.time_budget,
        gives_up=options.sequences is None and options.time_budget is None,
        search_only=options.search_only, themes=tuple(options.theme), jobs=options.jobs or _jobs(options.target),
        learns=options.learns, shrinking_time=options.shrinking_time,
    )  # fmt: skip
    finished = _Finished()
    interrupt: KeyboardInterrupt | None = None
    broken: list[EmbeddedBrokerFailure] = []
    with ExitStack() as stack:
        stack.enter_context(_kept_for_later(finished, broken))
        stack.enter_context(held(options.out))
        for path in reports:
            remove_former(path)  # what a run before has written says nothing of this one
        if wanted.jobs > 1:
            begin_loading()
        started = stack.enter_context(StartedTarget(options, apart=wanted.jobs > 1))
        target = started.target
        dialect = dialect_named(target.description.dialect)
        if options.theme and not themes_for(dialect, wanted.themes):
            raise UsageError(f"--theme {', '.join(options.theme)}: there is nothing of it to search in {dialect.title}")
        breaks = BREAKING in options.theme and target.own_broker is None
        if breaks and (why := cannot_be_broken(target)):
            raise UsageError(f"--theme {BREAKING}: {why}")
        trace = stack.enter_context(TraceWriter(options.out / "trace.jsonl", goes_on=True))
        fails = fails_the_run(listed, target.description, options.gate)
        listed_as = excuses(listed, target.description)
        wanted = replace(
            wanted, before=time.monotonic() - began, breaks=breaks,
            sequences=_FEW if breaks and options.sequences is None else wanted.sequences,
            accepted=lambda failure: listed_as(failure.identity) is not None,
            enough=fails if options.stop_at_first else None,
        )  # fmt: skip
        listeners: list[Listener] = [finished]
        shown_on = options.progress_on or (None if options.quiet else console)
        if shown_on is not None:
            from amqpspec.reports.live_display import LiveDisplay
            from amqpspec.reports.progress import PlainProgress

            is_live = shown_on.is_terminal
            display = LiveDisplay(shown_on, fails=fails) if is_live else PlainProgress(shown_on, fails=fails)
            listeners.append(stack.enter_context(display) if isinstance(display, LiveDisplay) else display)
        try:
            Runner(target, trace, wanted, listeners, started.restarts).run()
        except KeyboardInterrupt as error:
            interrupt = error
    if trace.lost is not None:
        complain(f"{trace.path} is not complete: {trace.lost}")
    if finished.result is None:
        raise interrupt or AssertionError("a run tells its result")
    result = _judged(_with_ladders(finished.result, options), listed, options)
    write_reports(result, options, None if interrupt is None else _exit_code_of(interrupt))
    tell_of_errors(result, options, console)
    if options.store:
        _add_to_store(options)
    if interrupt is not None:
        complain(f"what was found till then: {options.html or options.out / 'report.html'}")
        raise interrupt
    if broken:
        raise broken[0]
    with heard_or_not():
        as_far_as_possible("what is printed at the end", lambda: print_result(result, options, console))
        for problem in result.problems:
            complain(f"{options.deviations}: {problem}")
        if options.update_deviations:
            print(update(listed, result, date.today()) or f"# {options.deviations} may stay as it is")
        sys.stdout.flush()
    return result.exit_code


@contextmanager
def _kept_for_later(finished: _Finished, broken: list[EmbeddedBrokerFailure]) -> Iterator[None]:
    """An embedded broker that has broken down says so when it is stopped: the reports of its run come first."""
    try:
        yield
    except EmbeddedBrokerFailure as error:
        if finished.result is None:
            raise
        broken.append(error)


def _with_ladders(result: RunResult, options: argparse.Namespace) -> RunResult:
    """The result with the frames of its failures, as far as the trace could be written."""
    try:
        return with_ladders(result, read_trace(options.out / "trace.jsonl"))
    except (TraceError, OSError) as error:
        complain(f"the frames of failures are left out: {error}")
    except Exception as error:  # noqa: BLE001 - the failures are known without them
        complain(f"the frames of failures are left out: {line_of(error)}")
    return result


class _Finished:
    """Keeps the result, which is told after an interruption as well."""

    result: RunResult | None = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, RunFinished):
            self.result = event.result


def _judged(result: RunResult, listed: Sequence[Deviation], options: argparse.Namespace) -> RunResult:
    """The result with what the deviation file and the gate accept."""
    result = with_deviations(result, listed)
    if options.deviations and result.lost is None:
        result = with_problems(result, listed, date.today())
    if options.write_deviations and result.lost is not None:
        complain(f"{options.write_deviations} is as it was: the run is not complete")
    elif options.write_deviations:
        missing = deviations_of(result, date.today())
        kept = [each for each in listed if problem_of(each, result, date.today()) is None]
        write(options.write_deviations, as_toml([*kept, *missing]))
        result = with_deviations(result, missing)
    return through(result, options.gate)


def fails_the_run(listed: Sequence[Deviation], target: TargetDescription, gate: Gate) -> Callable[[Failure], bool]:
    """Does a failure make the run fail? What ends a run early must: else the rest is left out, and nothing says so."""
    listed_as = excuses(listed, target)

    def fails(failure: Failure) -> bool:
        accepted = (listed_as(failure.identity) or excuse_of(failure, target, gate)) is not None
        return not accepted and strength_of(failure) is not Strength.ARGUABLE

    return fails


def _jobs(target: str | None) -> int:
    """Sequences that this machine bears at one time: they wait for a broker, but for one that is in this process."""
    return available_processors() * (2 if target is None or target.startswith("embedded") else 3)


def _has_text(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def _require_store(folder: Path) -> None:
    """That nothing can be kept there is told before anything is run."""
    require_no_address(folder)
    with needed_for("for --store"):
        import_module("pyarrow")
    from amqpspec.pipeline.store.files import StoreError
    from amqpspec.pipeline.store.store import create_store

    try:
        create_store(folder)
    except StoreError as error:
        raise UsageError(str(error)) from None


def _add_to_store(options: argparse.Namespace) -> None:
    """The trace as it is written, all of it; the run keeps its result where the store cannot take it."""
    from amqpspec.pipeline.store.adding import add_trace
    from amqpspec.pipeline.store.files import StoreError
    from amqpspec.pipeline.store.store import open_store

    try:
        problems = add_trace(open_store(options.store), options.out / "trace.jsonl", day=options.day).problems
    except (StoreError, UnicodeError) as error:
        problems = [str(error)]
    for problem in problems:
        complain(f"the trace is not in the store: {problem}")


def _exit_code_of(interrupt: KeyboardInterrupt) -> int:
    return TERMINATED if isinstance(interrupt, Terminated) else INTERRUPTED
