"""What a run leaves behind: its reports, the command files of its failures, and what it prints at its end."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.text import Text

from amqpspec.command_line.logins import complain
from amqpspec.command_line.output_files import add_to_job_summary, job_summary, write
from amqpspec.command_line.suite_errors import as_far_as_possible, tell_errors, write_errors
from amqpspec.command_line.targets import label_of
from amqpspec.conformance.language.command_file import judged_by
from amqpspec.conformance.traces.trace import TraceError, jsonl_to_parquet
from amqpspec.conformance.verdicts.gate import Gate
from amqpspec.conformance.verdicts.judgement import FoundFailure, RunResult
from amqpspec.model.promises.registry import requirements
from amqpspec.model.promises.verdict import Failure
from amqpspec.reports.output_file import output_file
from amqpspec.targets.brokers.management_address import parse_management_address

#: Options of which a command that repeats a run says nothing if they have these values.
_USUAL: Mapping[str, object] = {"steps": 30, "driver": "wire", "mode": "lockstep", "gate": Gate.PROMISE}

#: Ends the name of the program that shows a failure, which is beside its commands.
PROGRAM = ".py"


def write_reports(result: RunResult, options: argparse.Namespace, ended_with: int | None) -> None:
    """`ended_with`: the exit code of a run that a signal has ended. A report that cannot be made costs no other."""
    from amqpspec.reports.badge import render_badge
    from amqpspec.reports.html import render_html
    from amqpspec.reports.json_report import render_json
    from amqpspec.reports.junit import render_junit
    from amqpspec.reports.summary import render_summary

    registry = requirements()
    files = _command_files(result, options.out)
    replays = {found.failure.identity: _replay_of(file, result, options) for found, file in files}
    reports: list[tuple[Path | None, Callable[[], str]]] = [
        (options.html or options.out / "report.html", lambda: render_html(result, registry, replays)),
        (options.json or options.out / "report.json", lambda: render_json(result, ended_with)),
        (options.junit, lambda: render_junit(result, registry)),
        (options.markdown, lambda: render_summary(result)),
        (options.badge, lambda: render_badge(result)),
    ]
    for path, render in reports:
        if path is not None:
            as_far_as_possible(path, partial(_write_rendered, path, render))
    if options.parquet:
        try:
            with output_file(options.parquet) as unfinished:
                jsonl_to_parquet(options.out / "trace.jsonl", unfinished)
        except (TraceError, OSError, UnicodeError) as error:
            complain(f"{options.parquet} was left out: {error}")
    if options.adds_to_job_summary and job_summary() is not None:
        as_far_as_possible("the job summary", lambda: add_to_job_summary(render_summary(result)))
    for ending in (".amqp", PROGRAM):
        for former in (options.out / "failures").glob(f"[0-9][0-9]-*-[0-9]*{ending}"):
            former.unlink(missing_ok=True)  # of a run before, whose report is gone as well
    for found, file in _command_files(result, options.out):
        write(file, _head_of(found.failure) + judged_by(result.target.dialect) + "\n".join(found.commands) + "\n")
        if found.reproducer:
            write(file.with_suffix(PROGRAM), found.reproducer)


def _head_of(failure: Failure) -> str:
    """What stands above the commands: where the rule is the user's own, all that the file is read by."""
    rule = requirements().get(failure.requirement)
    if rule is None or not rule.severity:
        return f"@title {failure.identity}\n"
    return f"@requirement {rule.id}\n@title {rule.title}\n@severity {rule.severity}\n"


def _write_rendered(path: Path, render: Callable[[], str]) -> None:
    write(path, render())


def tell_of_errors(result: RunResult, options: argparse.Namespace, console: Console) -> None:
    """Of this suite, with the files to be sent to the project."""
    files = write_errors(result.errors, options.out, write)
    tell_errors(result.errors, [*files, options.out / "trace.jsonl"], None if options.quiet else console)


def _command_files(result: RunResult, directory: Path) -> Iterator[tuple[FoundFailure, Path]]:
    """The failures whose commands are known, each with the file that they are kept in."""
    for number, found in enumerate(result.failures, 1):
        if found.commands:
            yield found, directory / "failures" / f"{number:02}-{found.failure.requirement}.amqp"


def print_result(result: RunResult, options: argparse.Namespace, console: Console) -> None:
    from amqpspec.reports.terminal import print_report, print_verdict
    from amqpspec.reports.text import visible

    if options.quiet:
        print_verdict(console, result)
        return
    print_report(console, result, requirements(), list(_next_steps(result, options)))
    console.print(Text(visible(f"run it again: {_again(result, options)}")), soft_wrap=True)
    console.print(f"report: {options.html or options.out / 'report.html'}   trace: {options.out / 'trace.jsonl'}")


def _replay_of(file: Path, result: RunResult, options: argparse.Namespace) -> str:
    """The command that carries out the file as the run did."""
    dialect = [] if options.dialect is None else ["--dialect", str(options.dialect)]
    driver = [] if options.driver == _USUAL["driver"] else ["--driver", options.driver]
    at = [_again_at(options), *_managed_again(options)]
    return shlex.join(["amqpspec", "replay", str(file), *at, *dialect, *driver])


def _again(result: RunResult, options: argparse.Namespace) -> str:
    """The command that makes the same run again."""
    words: list[object] = [_again_at(options), *_managed_again(options), "--seed", result.seed]
    for name, values in (("only", options.only), ("theme", options.theme)):
        words += [word for value in values for word in (f"--{name}", value)]
    words += ["--scenarios", options.scenarios] if getattr(options, "scenarios", None) else []
    for name in ("sequences", "steps", "time_budget", "dialect", "driver", "mode", "gate"):
        value = getattr(options, name, None)
        if value is not None and value != _USUAL.get(name):
            words += [f"--{name.replace('_', '-')}", value]
    words += ["--search-only"] if options.search_only else []
    return shlex.join(["amqpspec", "run", *map(str, words)])


def _again_at(options: argparse.Namespace) -> str:
    """The target as it is given again, without credentials."""
    return label_of(options.target)


def _managed_again(options: argparse.Namespace) -> list[str]:
    """Without credentials as well."""
    url = getattr(options, "management", None)
    return [] if url is None else ["--management", str(parse_management_address(url))]


def _next_steps(result: RunResult, options: argparse.Namespace) -> Iterator[str]:
    """What the reader may do about the failures."""
    files = _command_files(result, options.out)
    new = ((found, file) for found, file in files if found.known is None and not result.is_as_known(found))
    if first := next(new, None):
        found, file = first
        yield f"see it again: {_replay_of(file, result, options)}"
        if found.reproducer:
            yield f"as a program for pika: {file.with_suffix(PROGRAM)}"
    if result.fails and not options.deviations:
        yield "accept what fails today: the same command with --write-deviations FILE"
    if result.fails and not any(found.known is None and not result.is_as_known(found) for found in result.failures):
        yield "hear of new failures only: --gate known"
