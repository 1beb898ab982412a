"""`amqpspec diff`: the same commands on two targets, and what an application would notice; or what a recorded
application meets.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from amqpspec.command_line import diff_recording, run
from amqpspec.command_line.exit_codes import CONFORMS, DEVIATES, INCONCLUSIVE, TARGET_LOST
from amqpspec.command_line.logins import complain, without_logins
from amqpspec.command_line.options import DEFAULT_SEQUENCES, random_seed, run_options
from amqpspec.command_line.output_files import add_to_job_summary, require_none_of, require_writable, write
from amqpspec.command_line.suite_errors import tell_errors
from amqpspec.command_line.usage import UsageError
from amqpspec.conformance.scenarios.scenario_files import own_scenarios
from amqpspec.conformance.upgrade.comparison import Difference, Kind, Upgrade, nothing_compared, upgrade
from amqpspec.conformance.upgrade.entries import Entry, accepted, entries_of
from amqpspec.conformance.verdicts.deviations import excuses, problems_of, read_deviations
from amqpspec.conformance.verdicts.judgement import TargetDescription, leaves_decided
from amqpspec.conformance.version import tool_version
from amqpspec.model.promises.dialects import DIALECTS, UnknownDialect, dialect_named
from amqpspec.reports.stored_run import REPORT, StoredRun, read_run
from amqpspec.reports.text import visible
from amqpspec.reports.upgrade_report import headline, terminal_lines, upgrade_html, upgrade_json, upgrade_markdown
from amqpspec.targets.brokers.resolve import is_target

DEFAULT_OUT = Path("amqpspec-diff")
#: Options of the two runs, which runs that are there already do not take.
_OF_RUNS = ("only", "scenarios", "seed", "sequences", "steps", "jobs", "deadline", "out")


def execute(options: argparse.Namespace, console: Console) -> int:
    with own_scenarios(options.scenarios):  # also for the two runs, and for what is said of them
        return _execute(options, console)


def _execute(options: argparse.Namespace, console: Console) -> int:
    names = (options.one, options.other)
    listed = read_deviations(options.deviations) if options.deviations else ()
    for path in filter(None, (options.html, options.markdown, options.json)):
        require_none_of(path, [*map(Path, names), *filter(None, [options.deviations])])
        require_writable(path)
    targets = [name for name in names if is_target(name)]
    is_goal = _is_broker_or_dialect(options.other)
    is_recording = is_goal and options.one not in targets
    stored = [name for name in names[: 1 if is_goal else 2] if name not in targets]
    missing = [name for name in stored if not Path(name).exists()]
    if missing and _is_broker_or_dialect(missing[0]):
        raise UsageError(
            f"{missing[0]} is a dialect, which only a recording is compared with: amqpspec diff RECORDING"
            f" {options.other}; two versions need two brokers, and docs/versions.md has what differs"
        )
    if missing:
        raise UsageError(f"{missing[0]}: is no target or dialect, and there is no such file or directory of a run")
    if is_recording:
        if given := [name for name in _OF_RUNS if getattr(options, name) not in (None, [])]:
            raise UsageError(f"--{given[0]} is for two targets, and {options.one} is a recording")
        return diff_recording.execute(options, console)
    if options.spark:
        raise UsageError("--spark is for a recording and a broker or a dialect")
    if len(targets) == 1:
        raise UsageError(
            f"{options.one} is a target, and {options.other} is none: two targets, two directories of runs, or a"
            " recording and then a target or a dialect (a directory that is named as a target is ./NAME)"
        )
    found = _of_targets(options, console) if targets else _of_stored_runs(options)
    if found is None:
        return TARGET_LOST
    entries = accepted(entries_of(found.noticed), options.gate, excuses(listed, found.other))
    problems = problems_of(listed)
    code = _exit_code(found, entries, problems)
    _write(found, entries, code, options, console)
    for problem in problems:
        complain(f"{options.deviations}: {problem}")
    traces = [Path(name) for name in names] if not targets else [options.out / name for name in ("one", "other")]
    tell_errors(found.errors, traces, None if options.quiet else console)
    return code


def _is_broker_or_dialect(name: str) -> bool:
    """A file or directory comes before a dialect of that name."""
    if is_target(name) or Path(name).exists():
        return is_target(name)
    try:
        return bool(dialect_named(name))
    except UnknownDialect as error:
        if name.startswith(tuple(DIALECTS)):
            raise UsageError(str(error)) from None
        return False


def _exit_code(found: Upgrade, entries: Sequence[Entry], problems: Sequence[str]) -> int:
    if problems or any(each.known is None for each in entries):
        return DEVIATES
    is_undecided = not found.compared or not leaves_decided(len(found.errors), found.compared)
    return INCONCLUSIVE if is_undecided else CONFORMS


def _of_stored_runs(options: argparse.Namespace) -> Upgrade:
    if given := [name for name in _OF_RUNS if getattr(options, name) not in (None, [])]:
        raise UsageError(f"--{given[0]} is for two targets, and these are runs that are there already")
    one, other = Path(options.one), Path(options.other)
    found = upgrade(one, other)
    return _shrunk(found, read_run(other)) if (other / REPORT).is_file() else found


def _of_targets(options: argparse.Namespace, console: Console) -> Upgrade | None:
    """None: one of them was lost, which was said."""
    if options.seed is None:
        options.seed = random_seed()
    if options.sequences is None:
        options.sequences = DEFAULT_SEQUENCES
    options.out = options.out or DEFAULT_OUT
    first = _carried_out(options, options.one, "one", None, console)
    if first is None:
        return None
    second = _carried_out(options, options.other, "other", first.dialect, console)
    if second is None:
        return None
    if not first.sequences or not second.sequences:
        return nothing_compared(_described(first), _described(second), max(first.sequences, second.sequences))
    return _shrunk(upgrade(first.place, second.place), second)


def _described(run: StoredRun) -> TargetDescription:
    return TargetDescription(run.label, run.product, run.version, run.dialect)


def _carried_out(
    options: argparse.Namespace, target: str, name: str, dialect: str | None, console: Console
) -> StoredRun | None:
    """A run like any other, but that nothing which the target refuses is left out; None: the target was lost.

    The second one is judged by the first one's dialect, which makes its commands the same.
    """
    out = options.out / name
    words: list[object] = ["--seed", options.seed, "--sequences", options.sequences, "--out", out]
    words += [word for prefix in options.only for word in ("--only", prefix)]
    words += ["--dialect", dialect] if dialect is not None else []
    for option in ("steps", "jobs", "deadline"):
        given = getattr(options, option)
        words += [f"--{option}", given] if given is not None else []
    chosen = run_options([target, "--quiet", "--no-profile", *words])
    chosen.learns = chosen.adds_to_job_summary = False
    chosen.progress_on = None if options.quiet else console
    if not options.quiet:
        shown = without_logins(target) if "://" not in target else "the target"
        console.print(Text(visible(f"{name}: {shown}"), style="dim"))
    code = run.execute(chosen, Console(quiet=True))
    result = read_run(out)
    if code == TARGET_LOST:
        complain(visible(result.lost))
        return None
    return result


def _shrunk(found: Upgrade, second: StoredRun) -> Upgrade:
    """With the commands that the run of the second target has shrunk, if it was judged by the first one's dialect.

    Fewer commands may show a documented change where more of them break a promise, so that those stay as they are.
    """
    if second.dialect != found.one.dialect:
        return found

    def short(each: Difference) -> Difference:
        stored = second.failures.get(each.failure.identity)
        if each.kind is not Kind.AS_DOCUMENTED or stored is None or not 0 < len(stored.commands) < len(each.commands):
            return each
        failure = replace(each.failure, command=stored.command, allowed=stored.allowed, observed=stored.observed)
        return replace(each, failure=failure, commands=stored.commands)

    return replace(found, noticed=tuple(map(short, found.noticed)))


def _write(
    found: Upgrade, entries: Sequence[Entry], code: int, options: argparse.Namespace, console: Console
) -> None:
    tool = f"amqpspec {tool_version()}"
    if options.html is not None:
        write(options.html, upgrade_html(found, entries, tool))
    if options.markdown is not None:
        write(options.markdown, upgrade_markdown(found, entries))
    if options.json is not None:
        write(options.json, upgrade_json(found, entries, tool, code))
    add_to_job_summary(upgrade_markdown(found, entries))
    if options.quiet:
        console.print(Text(visible(headline(found, entries))))
        return
    for line, style in terminal_lines(found, entries):
        console.print(Text(visible(line), style=style))
