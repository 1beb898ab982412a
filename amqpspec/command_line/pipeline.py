"""`amqpspec pipeline`: recordings to verdicts to tables, in a store. docs/pipeline.md."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from importlib import import_module

from rich.console import Console
from rich.text import Text

from amqpspec.command_line.exit_codes import CONFORMS, DEVIATES, INCONCLUSIVE, TRACE_UNREADABLE
from amqpspec.command_line.logins import complain
from amqpspec.command_line.output_files import require_writable
from amqpspec.command_line.run_directory import make_directory, require_no_address
from amqpspec.command_line.suite_errors import tell_errors
from amqpspec.command_line.usage import UsageError
from amqpspec.conformance.interruption import Terminated
from amqpspec.conformance.recording.capture import PORT, CaptureOptions
from amqpspec.conformance.traces.extras import needed_for
from amqpspec.conformance.verdicts.judge import judge, judge_open
from amqpspec.conformance.verdicts.judgement import SuiteError
from amqpspec.reports.text import plural, visible


def execute(options: argparse.Namespace, console: Console) -> int:
    require_no_address(options.store)
    is_spread = bool(getattr(options, "spark", None))
    # the extra that brings both, where both are needed
    with needed_for(f"for amqpspec pipeline {options.action}", "spark" if is_spread else None):
        import_module("pyarrow")
        if is_spread:
            import_module("pyspark")
        elif options.action in ("table", "page"):
            import_module("duckdb")
    from amqpspec.pipeline.spark_session import PipelineError
    from amqpspec.pipeline.store.files import StoreError

    take_settings(options)
    try:
        return _ACTIONS[options.action](options, console)
    except (StoreError, PipelineError) as error:
        raise UsageError(str(error)) from None


def take_settings(options: argparse.Namespace) -> None:
    """The settings of `--conf` go with the master. Raises `UsageError`."""
    given = getattr(options, "conf", None)
    if not given:
        return
    if not options.spark:
        raise UsageError("--conf: is for Spark, and needs --spark MASTER")
    from amqpspec.pipeline.spark_session import Master

    options.spark = Master(options.spark, dict(given))


def _import(options: argparse.Namespace, console: Console) -> int:
    from amqpspec.pipeline.bulk_import import import_traces

    imported = import_traces(
        options.store, options.traces, options.spark, day=options.day, run=options.run, target=options.target,
        capture=CaptureOptions(options.ports or (PORT,), options.dialect),
    )  # fmt: skip
    _tell([*imported.notes, *imported.problems])
    known = f", {imported.known:,} that the store holds already" if imported.known else ""
    what = f"{plural(imported.traces, 'trace')}{known}: {plural(imported.sequences, 'sequence')}"
    console.print(Text(f"{what}, {imported.frames:,} frames"))
    return TRACE_UNREADABLE if imported.problems else CONFORMS


def _judge(options: argparse.Namespace, console: Console) -> int:
    from amqpspec.command_line.gates import acceptance_of, tell_failures, tell_stale
    from amqpspec.pipeline.bulk_judging import judge_store
    from amqpspec.pipeline.judging.found_failures import failures_in
    from amqpspec.pipeline.judging.outdated import Outdated
    from amqpspec.pipeline.store.store import open_store

    acceptance = acceptance_of(options)
    store = open_store(options.store)
    summary = judge_store(
        store,
        options.spark,
        again=options.again,
        outdated=Outdated(options.outdated, tuple(options.requirements)),
        judge=judge_open if options.open else judge,
        progress=progress_of(console, options.quiet),
    )
    _tell(summary.problems)
    if not options.quiet and summary.rows < summary.spark_took * _ROWS_A_SECOND:
        said = f"Spark took {summary.spark_took:.0f} s to start; so little is judged sooner without --spark"
        print(f"amqpspec: {said}", file=sys.stderr)
    errors = [SuiteError(name, line) for name, line in summary.errors]
    tell_errors(errors, [options.store], sequences=summary.erring_sequences)
    failing = set(summary.failing)
    found = failures_in(store, [part for part in store.contents().parts if part.id in failing], acceptance)
    tell_failures(found, console)
    before = f", {plural(summary.before, 'part')} judged before" if summary.before else ""
    beside = f" ({summary.repeats:,} that only repeat others are not counted)" if summary.repeats else ""
    accepted = f" ({found.green:,} more as is accepted)" if found.green else ""
    console.print(
        Text(
            f"{plural(summary.sequences, 'sequence')}{beside}, {summary.frames:,} frames judged{before}: "
            f"{found.red:,} failed{accepted}, {summary.inconclusive:,} inconclusive"
        ),
        soft_wrap=True,
    )
    is_stale = tell_stale(acceptance)
    if summary.unreadable or summary.broken_sequences:
        return TRACE_UNREADABLE
    return DEVIATES if found.red or is_stale else INCONCLUSIVE if summary.inconclusive else CONFORMS


def _compact(options: argparse.Namespace, console: Console) -> int:
    from amqpspec.pipeline.judging.compaction import compact
    from amqpspec.pipeline.store.store import open_store

    done = compact(open_store(options.store), options.grace)
    _tell(done.problems)
    console.print(Text(f"{plural(done.before, 'part')} became {done.after:,}; {plural(done.removed, 'file')} removed"))
    return TRACE_UNREADABLE if done.problems else CONFORMS


def _delete(options: argparse.Namespace, console: Console) -> int:
    from amqpspec.pipeline.judging.deletion import Choice, delete
    from amqpspec.pipeline.store.store import open_store

    before = options.before
    if options.keep_days is not None:
        kept_from = (datetime.now(UTC) - timedelta(days=options.keep_days - 1)).date().isoformat()
        before = min(filter(None, [before, kept_from]))
    choice = Choice(tuple(options.runs), options.day, before)
    if choice.is_all and not options.unnamed:
        raise UsageError("what is deleted is said by --run, --day, --before, --keep-days or --unnamed")
    done = delete(open_store(options.store), choice, options.grace, unnamed=options.unnamed)
    console.print(Text(f"{plural(len(done.parts), 'part')} deleted; {plural(done.removed, 'file')} removed"))
    return CONFORMS


def _status(options: argparse.Namespace, console: Console) -> int:
    from amqpspec.pipeline.judging.judged_parts import judged_parts
    from amqpspec.pipeline.store.parts import TRACES
    from amqpspec.pipeline.store.store import open_store

    store = open_store(options.store)
    contents = store.contents()
    found = judged_parts(store, contents.parts)
    judged = {part.id for part in found.judged}
    for day, target, run in sorted({(part.day, part.target, part.run) for part in contents.parts}):
        parts = [part for part in contents.parts if (part.day, part.target, part.run) == (day, target, run)]
        sums = f"{sum(part.sequences for part in parts):,} sequences, {sum(part.frames for part in parts):,} frames"
        done = sum(part.id in judged for part in parts)
        console.print(Text(visible(f"{day}  {target}  {run}: {sums}, {done:,} of {plural(len(parts), 'part')} judged")))
    there = {each.path for each in store.files.listed(TRACES)}
    missing = [store.named(part.trace) for part in contents.parts if part.trace not in there]
    foreign = store.foreign(contents)
    broken = [*contents.broken, *found.broken]
    _tell([*contents.problems, *broken, *(f"{file}: is missing" for file in missing)])
    _tell(f"{store.named(file)}: is in no commit of the manifest, and is not read" for file in foreign)
    size = sum(part.octets for part in contents.parts) / 1e6
    console.print(Text(f"{plural(len(contents.parts), 'part')}, {len(judged):,} judged, {size:,.1f} MB of traces"))
    return TRACE_UNREADABLE if contents.problems or broken or missing or foreign else CONFORMS


def _table(options: argparse.Namespace, console: Console) -> int:
    from amqpspec.pipeline.table_command import make_table

    if options.out is not None:
        make_directory(options.out.absolute().parent)
        require_writable(options.out)
    problems = make_table(options, console)
    _tell(problems)
    return TRACE_UNREADABLE if problems else CONFORMS


def _conservation(options: argparse.Namespace, console: Console) -> int:
    from amqpspec.command_line.gates import acceptance_of, tell_stale
    from amqpspec.pipeline.conservation_job import conservation_with_spark
    from amqpspec.pipeline.judging.conservation import conservation_of_run
    from amqpspec.pipeline.judging.kept_conservation import keep
    from amqpspec.pipeline.store.store import open_store

    acceptance = acceptance_of(options)
    store = open_store(options.store)
    if options.spark:
        found = conservation_with_spark(store, options.run, options.spark)
    else:
        found = conservation_of_run(store, options.run)
    kept = keep(store, options.run, found, acceptance)
    for each in kept["violations"]:
        line = f"{each['requirement']} in {each['queue']} at {each['time']:.3f} s: {each['body']}: {each['what']}"
        why = f" (accepted: {each['accepted']})" if each["accepted"] else ""
        console.print(Text(visible(line + why), style="" if why else "red"), soft_wrap=True)
    for queue, why in sorted(found.undecided.items()):
        console.print(Text(visible(f"not decidable of {queue or 'the run'}: {why}"), style="yellow"), soft_wrap=True)
    console.print(Text(f"{plural(found.messages, 'message')}, {plural(found.queues, 'queue')}: {found.wrong:,} wrong"))
    # those that are not named are counted, and nobody has accepted them
    is_red = any(not each["accepted"] for each in kept["violations"]) or found.wrong > len(found.violations)
    is_red = tell_stale(acceptance) or is_red
    return DEVIATES if is_red else INCONCLUSIVE if found.undecided else CONFORMS


def _live(options: argparse.Namespace, console: Console) -> int:
    from amqpspec.command_line.gates import acceptance_of, tell_stale
    from amqpspec.pipeline.live import Line, left_undone, live
    from amqpspec.pipeline.store.live_files import live_folder
    from amqpspec.pipeline.store.store import create_store

    out = options.out if options.into is None else live_folder(create_store(options.into), options.run)
    acceptance = acceptance_of(options)
    codes = {DEVIATES if tell_stale(acceptance) else CONFORMS}

    def told(number: int, lines: list[Line]) -> None:
        for line in lines:
            if not line.is_accepted:
                codes.add(INCONCLUSIVE if line.is_error else DEVIATES if line.is_failure else TRACE_UNREADABLE)
            console.print(Text(visible(line.text)), soft_wrap=True)

    try:
        live(options.store, out, options.spark, told, until_done=options.until_done, acceptance=acceptance)
    except (KeyboardInterrupt, Terminated):
        # that is how one ends it that goes on until then
        if options.until_done:
            raise
    if options.until_done and (left := left_undone(options.store, out)):
        _tell(left)
        codes.add(INCONCLUSIVE)
    return next(code for code in (TRACE_UNREADABLE, DEVIATES, INCONCLUSIVE, CONFORMS) if code in codes)


def _page(options: argparse.Namespace, console: Console) -> int:
    from amqpspec.pipeline.page_command import make_page

    make_directory(options.out.absolute().parent)
    require_writable(options.out)
    source = make_page(options.store, options.spark, options.out)
    console.print(Text(f"{options.out}"))
    _tell([*source.problems, *filter(None, [source.note])])
    return TRACE_UNREADABLE if source.problems else CONFORMS


def _sequence(options: argparse.Namespace, console: Console) -> int:
    from amqpspec.conformance.traces.trace_row import row_line
    from amqpspec.pipeline.one_sequence import find_sequence
    from amqpspec.pipeline.store.files import write_whole
    from amqpspec.pipeline.store.store import open_store

    if options.out is not None and options.out.suffix not in (".amqp", ".jsonl"):
        raise UsageError(f"{options.out}: its name must end in .amqp, for commands, or .jsonl, for rows")
    store = open_store(options.store)
    parts = [part for part in store.contents().parts if part.run == options.run]
    found = find_sequence(store, parts, options.name)
    if found is None:
        raise UsageError(f"{store}: there is no sequence {options.name!r} in a run {options.run!r}")
    if options.out is not None and options.out.suffix == ".jsonl":
        write_whole(options.out.absolute(), lambda file: file.write_bytes(b"".join(map(row_line, found.rows))))
        return CONFORMS
    if not found.commands:
        raise UsageError(f"{options.name!r} was recorded from an application, so it has no commands; --out FILE.jsonl")
    text = f"@title {found.name}\n" + "\n".join(found.commands) + "\n"
    if options.out is None:
        print(visible(text), end="")
    else:
        write_whole(options.out.absolute(), lambda file: file.write_text(text, encoding="utf-8"))
    return CONFORMS


#: That one process judges at the least.
_ROWS_A_SECOND = 10_000


_ACTIONS: dict[str, Callable[[argparse.Namespace, Console], int]] = {
    "import": _import,
    "judge": _judge,
    "compact": _compact,
    "delete": _delete,
    "sequence": _sequence,
    "status": _status,
    "table": _table,
    "page": _page,
    "live": _live,
    "conservation": _conservation,
}


def _tell(problems: Iterable[str]) -> None:
    for problem in problems:
        complain(visible(problem))


#: Seconds between two lines of progress in a log.
_LOGGED_EVERY = 30.0


def progress_of(console: Console, quiet: bool) -> Callable[[int, int], None] | None:
    """What tells how far a job is: on a terminal in one line, else, as in a log, by a line now and then."""
    if quiet:
        return None
    told = time.monotonic()

    def tell(done: int, of: int) -> None:
        print(f"\r{done:,} of {of:,} tasks", end="\n" if done == of else "", file=sys.stderr, flush=True)

    def log(done: int, of: int) -> None:
        nonlocal told
        if time.monotonic() - told >= _LOGGED_EVERY:
            told = time.monotonic()
            print(f"amqpspec: {done:,} of {of:,} tasks", file=sys.stderr, flush=True)

    return tell if console.is_terminal else log
