"""`amqpspec diff`: the same commands on two targets, and what an application would notice."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from amqpspec.command_line import run
from amqpspec.command_line.exit_codes import CONFORMS, DEVIATES, TARGET_LOST
from amqpspec.command_line.options import random_seed, run_options
from amqpspec.command_line.usage import UsageError
from amqpspec.conformance.upgrade import Difference, Upgrade, upgrade
from amqpspec.conformance.version import tool_version
from amqpspec.reports.stored_run import REPORT, StoredRun, read_run
from amqpspec.reports.text import visible
from amqpspec.reports.upgrade_report import headline, terminal_lines, upgrade_html, upgrade_markdown


def execute(options: argparse.Namespace, console: Console) -> int:
    for path in (options.html, options.markdown):
        if path is not None and not path.absolute().parent.is_dir():
            raise UsageError(f"{path}: there is no directory {path.absolute().parent}")
    if options.seed is None:
        options.seed = random_seed()
    places = [Path(target) for target in (options.one, options.other)]
    there = [place.exists() for place in places]
    if all(there):
        found = upgrade(*places)
        if (places[1] / REPORT).is_file():
            found = _shrunk(found, read_run(places[1]))
    elif any(there):
        raise UsageError("two targets, or two directories of runs: not one of each")
    else:
        first = _carried_out(options, options.one, "one", None, console)
        if first is None:
            return TARGET_LOST
        second = _carried_out(options, options.other, "other", first.dialect, console)
        if second is None:
            return TARGET_LOST
        found = _shrunk(upgrade(first.place, second.place), second)
    _write(found, options, console)
    return DEVIATES if found.noticed else CONFORMS


def _carried_out(
    options: argparse.Namespace, target: str, name: str, dialect: str | None, console: Console
) -> StoredRun | None:
    """A run like any other, but that nothing which the target refuses is left out; None: the target was lost.

    The second one is judged by the first one's dialect, which makes its commands the same.
    """
    out = options.out / name
    words = ["--seed", options.seed, "--sequences", options.sequences, "--steps", options.steps, "--out", out]
    words += [word for prefix in options.only for word in ("--only", prefix)]
    words += ["--dialect", dialect] if dialect is not None else []
    words += ["--jobs", options.jobs] if options.jobs is not None else []
    chosen = run_options([target, "--deadline", options.deadline, "--quiet", "--no-profile", *words])
    chosen.learns = False
    if not options.quiet:
        console.print(Text(visible(f"{name}: {target if '://' not in target else 'the target'}"), style="dim"))
    code = run.execute(chosen, Console(quiet=True))
    result = read_run(out)
    if code == TARGET_LOST:
        print(f"amqpspec: {' '.join(visible(result.lost).split())}", file=sys.stderr)
        return None
    return result


def _shrunk(found: Upgrade, second: StoredRun) -> Upgrade:
    """With the commands that the run of the second target has shrunk, if it was judged by the first one's dialect."""
    if second.dialect != found.one.dialect:
        return found

    def short(each: Difference) -> Difference:
        stored = second.failures.get(each.failure.identity)
        if stored is None or not 0 < len(stored.commands) < len(each.commands):
            return each
        failure = replace(each.failure, command=stored.command, allowed=stored.allowed, observed=stored.observed)
        return replace(each, failure=failure, commands=stored.commands)

    return replace(found, noticed=tuple(map(short, found.noticed)))


def _write(found: Upgrade, options: argparse.Namespace, console: Console) -> None:
    if options.html is not None:
        options.html.write_text(upgrade_html(found, f"amqpspec {tool_version()}"), encoding="utf-8")
    if options.markdown is not None:
        options.markdown.write_text(upgrade_markdown(found), encoding="utf-8")
    if options.quiet:
        console.print(Text(visible(headline(found))))
        return
    for line, style in terminal_lines(found):
        console.print(Text(visible(line), style=style))
