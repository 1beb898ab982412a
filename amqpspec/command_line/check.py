"""`amqpspec check`: judging recorded traces again."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from amqpspec.command_line import diff_recording
from amqpspec.command_line.exit_codes import DEVIATES, INCONCLUSIVE, TRACE_UNREADABLE
from amqpspec.command_line.logins import complain
from amqpspec.command_line.output_files import require_none_of, require_writable
from amqpspec.command_line.pipeline import take_settings
from amqpspec.command_line.suite_errors import tell_errors
from amqpspec.command_line.usage import UsageError
from amqpspec.conformance.recording.capture import is_capture
from amqpspec.conformance.traces.extras import needed_for
from amqpspec.conformance.traces.trace import TraceError, read_trace
from amqpspec.conformance.verdicts.judge import judge_as, judge_open
from amqpspec.conformance.verdicts.judgement import SuiteError
from amqpspec.conformance.verdicts.minor import AS_RABBITMQ, RECOMMENDED, what_it_is
from amqpspec.model.defects.known_defects import KNOWN_DEFECTS, strength_of
from amqpspec.model.promises.dialect_names import in_short
from amqpspec.model.promises.recommended import recommendation
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.promises.versions import newer_sentence, version_of
from amqpspec.reports.application_report import counts
from amqpspec.reports.output_file import output_file
from amqpspec.reports.text import plural, visible
from amqpspec.targets.suite_error import suite_error_in

if TYPE_CHECKING:
    from amqpspec.pipeline.table import ComplianceTable


def execute(options: argparse.Namespace, console: Console) -> int:
    if options.out:
        require_none_of(options.out, options.traces)
        with needed_for(f"for --out {options.out}"):
            # before anything is judged in vain
            from amqpspec.pipeline.table_file import write_table
        require_writable(options.out)
    for path in options.traces:
        if is_capture(path):
            raise UsageError(f"{path}: a network capture, which amqpspec pipeline import takes into a store")
    unreadable: list[TraceError] = []
    errors: list[SuiteError] = []
    table = _judged(options, unreadable, errors)
    if table.sequences or table.repeats:
        if options.out:
            try:
                with output_file(options.out) as unfinished:
                    write_table(table, unfinished)
            except OSError as error:
                raise UsageError(f"{options.out}: cannot be written: {error.strerror or error}") from None
        _print(table, options, console)
    elif not unreadable:
        raise TraceError(f"{', '.join(map(str, options.traces))}: no sequence in it, so nothing was judged")
    if errors:
        first = replace(errors[0], commands=_commands(options.traces, errors[0].sequence))
        tell_errors([first, *errors[1:]], options.traces, None if options.quiet else console)
    for each in unreadable:
        complain(str(each))
    if unreadable:
        return TRACE_UNREADABLE
    return _exit_code_with_changes(options, table.exit_code, console) if options.dialect else table.exit_code


def _exit_code_with_changes(options: argparse.Namespace, code: int, console: Console) -> int:
    """Tells which changes to the dialect what was recorded meets: to meet one is to deviate."""
    found = diff_recording.met_in(options.traces, options.dialect, options.spark)
    diff_recording.tell(found, options.quiet, console)
    return DEVIATES if any(map(counts, found.met)) else code


def _print(table: ComplianceTable, options: argparse.Namespace, console: Console) -> None:
    from amqpspec.pipeline.table import table_view

    if not options.quiet:
        console.print(table_view(table))
    for found in table.failures:
        failure = found.failure
        what = f"{failure.requirement} on {found.target}: {failure.shape}, {failure.detail}"
        console.print(Text(visible(what), style="red"))
        where = f"    in {found.sequence} (and {found.sequences - 1} more) after {failure.command}"
        console.print(Text(visible(where)))
        console.print(Text(visible(f"    observed {failure.observed}")))
        for allowed in failure.allowed:
            console.print(Text(visible(f"    allowed  {allowed}")))
        if failure.defect:
            whose = "" if found.is_as_known else f", not known of {in_short(found.dialect)} or of that version of it"
            console.print(Text(f"    known defect {failure.defect}{whose}"))
        is_recommended = recommendation(failure, found.dialect) is not None
        why = RECOMMENDED if is_recommended else AS_RABBITMQ if failure.like else ""
        minor = f", {what_it_is(why)}" if found.is_minor else ""
        console.print(Text(f"    strength {strength_of(failure)}{minor}"))
    for each in table.defects:
        if not each.seen:
            by_chance = KNOWN_DEFECTS[each.defect].by_chance
            may = "could" if by_chance else "would"
            where = f"{each.target}, though {plural(each.refuted, 'sequence')} {may} have shown it"
            perhaps = "" if by_chance or each.target in table.not_fixed else ": fixed?"
            how = ", which shows by chance," if by_chance else ""
            said = f"known defect {each.defect}{how} not seen on {where}{perhaps}"
            console.print(Text(visible(said), style="" if by_chance else "yellow"))
    for target, version in table.newer:
        console.print(Text(visible(f"{target}: {newer_sentence(version_of(version))}"), style="yellow"))
    for measured in table.accuracies:
        console.print(Text(visible(f"{measured.target}: {measured.accuracy.text}")))
    if table.is_harmless_only:
        console.print(Text("no failure that is more than arguable or minor"))
    beside = f" ({table.repeats:,} that only repeat others are not counted)" if table.repeats else ""
    console.print(Text(f"{table.sequences:,} sequences{beside}, {table.frames:,} frames judged"))
    if options.quiet and table.exit_code == INCONCLUSIVE:
        console.print(Text(visible(_why_inconclusive(table)), style="yellow"), soft_wrap=True)


def _why_inconclusive(table: ComplianceTable) -> str:
    """One line, as the table with all reasons is not shown."""
    undecided = [row for row in table.rows if row.verdict == Verdict.INCONCLUSIVE]
    first = undecided[0]
    more = f" (and {len(undecided) - 1} more)" if len(undecided) > 1 else ""
    where = f"{first.requirement or '(search)'} on {first.target}, {plural(first.sequences, 'sequence')}"
    return f"inconclusive: {where}: {first.reason}{more}"


def _commands(traces: Iterable[Path], sequence: str) -> tuple[str, ...]:
    """Those of the first sequence of that name."""
    for path in traces:
        with suppress(TraceError):
            rows = [row for row in read_trace(path) if row["sequence"] == sequence]
            if rows:
                return tuple(row["text"] for row in rows if row["kind"] == "command")
    return ()


def _judged(
    options: argparse.Namespace, unreadable: list[TraceError], errors: list[SuiteError]
) -> ComplianceTable:
    """What cannot be read goes to `unreadable`, or is raised by Spark; errors of this suite go to `errors`."""
    take_settings(options)
    if not options.spark:
        from amqpspec.pipeline.table import check_in_process

        return check_in_process(
            options.traces, is_open=options.open, unreadable=unreadable, errors=errors, dialect=options.dialect
        )
    with needed_for("for --spark", "spark"):
        import_module("pyspark")
        from amqpspec.pipeline.spark_check import check_with_spark
    from amqpspec.pipeline.spark_session import PipelineError

    try:
        judge = partial(judge_as, options.dialect, options.open) if options.dialect else None
        table = check_with_spark(options.traces, options.spark, judge_open if options.open and not judge else judge)
        # of each verdict an example is known
        erring = (row for row in table.rows if suite_error_in(row.reason))
        errors += [SuiteError(row.requirement or "(search)", row.reason) for row in erring]
        return table
    except PipelineError as error:
        raise UsageError(str(error)) from None
