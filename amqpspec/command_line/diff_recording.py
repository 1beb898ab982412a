"""`amqpspec diff RECORDING BROKER|DIALECT`: which changes a recorded application meets."""

from __future__ import annotations

import argparse
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.text import Text

from amqpspec.command_line.exit_codes import CONFORMS, DEVIATES
from amqpspec.command_line.logins import complain
from amqpspec.command_line.options import run_options
from amqpspec.command_line.output_files import add_to_job_summary, write
from amqpspec.command_line.targets import target_under_test
from amqpspec.command_line.usage import UsageError
from amqpspec.conformance.profile.settings import measure_settings
from amqpspec.conformance.traces.extras import needed_for
from amqpspec.conformance.upgrade.meeting import Met, met_by
from amqpspec.conformance.verdicts.deviations import excuses, problems_of, read_deviations
from amqpspec.conformance.verdicts.gate import Gate
from amqpspec.conformance.verdicts.judgement import TargetDescription
from amqpspec.conformance.version import tool_version
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.dialects.settled import with_settings
from amqpspec.model.promises.versions import RABBITMQ
from amqpspec.pipeline.application_recordings import dialects_of, files_of, read_recordings, recorded_dialect
from amqpspec.reports.application_report import (
    application_html,
    application_json,
    application_markdown,
    counts,
    headline,
    terminal_lines,
)
from amqpspec.reports.text import visible
from amqpspec.targets.brokers.resolve import is_target


def execute(options: argparse.Namespace, console: Console) -> int:
    """`options.one` is a recording, `options.other` a target or a dialect."""
    if options.gate is Gate.KNOWN:
        raise UsageError("--gate known is for two brokers: all that a recording is asked for is a known change")
    other = _goal(options.other)
    found = met_in([Path(options.one)], other.dialect, options.spark)
    listed = read_deviations(options.deviations) if options.deviations else ()
    excuse_of = excuses(listed, other)
    found = replace(found, met=tuple(replace(each, known=excuse_of(each.change.identity)) for each in found.met))
    problems = problems_of(listed)
    code = DEVIATES if problems or any(map(counts, found.met)) else CONFORMS
    tool = f"amqpspec {tool_version()}"
    if options.html is not None:
        write(options.html, application_html(found, tool))
    if options.markdown is not None:
        write(options.markdown, application_markdown(found))
    if options.json is not None:
        write(options.json, application_json(found, tool, code))
    add_to_job_summary(application_markdown(found))
    tell(found, options.quiet, console)
    for problem in problems:
        complain(f"{options.deviations}: {problem}")
    return code


def met_in(paths: list[Path], other: str, spark: str | None) -> Met:
    """What the recordings show of the changes to the dialect of that name. Raises `TraceError` and `UsageError`."""
    from amqpspec.pipeline.store.files import StoreError

    if spark:
        with needed_for("for --spark", "spark"):
            import_module("pyspark")
    from amqpspec.pipeline.spark_session import PipelineError

    try:
        files = files_of(paths)
        one = recorded_dialect(files)
        application = read_recordings(files, one, other, spark)
    except (StoreError, PipelineError) as error:
        raise UsageError(str(error)) from None
    if len(dialects := dialects_of(application)) > 1:
        raise UsageError(f"recordings of several brokers ({', '.join(dialects)}): each by itself")
    return met_by(application, dialect_named(one), dialect_named(other))


def tell(found: Met, quiet: bool, console: Console) -> None:
    """All of it, or the last line."""
    if quiet:
        console.print(Text(visible(headline(found))))
        return
    for line, style in terminal_lines(found):
        console.print(Text(visible(line), style=style))


def _goal(other: str) -> TargetDescription:
    """The broker, which is asked what it is and how it is set, or one of that dialect. Raises as targets do."""
    if not is_target(other):
        return TargetDescription(other, "", "", dialect_named(other).name)
    with target_under_test(run_options([other, "--quiet"])) as target:
        described = target.description
        dialect = dialect_named(described.dialect)
        if described.product != RABBITMQ or not dialect.extensions:
            return described
        # also where it is as most are: what others refuse this one may permit
        seen, _ = measure_settings(target, dialect)
        settings = {each.choice.name: each.value.name for each in seen if each.value is not None}
        return replace(described, dialect=with_settings(dialect, settings).name)
