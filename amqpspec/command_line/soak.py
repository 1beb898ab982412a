"""`amqpspec soak`: publishers and consumers under load while faults come, and what becomes of every message."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from amqpspec.command_line.exit_codes import CONFORMS, DEVIATES, INCONCLUSIVE, TARGET_LOST
from amqpspec.command_line.logins import complain
from amqpspec.command_line.options import random_seed
from amqpspec.command_line.output_files import require_place_of_trace, require_writable, write
from amqpspec.command_line.run_directory import held, make_directory, not_left_empty
from amqpspec.command_line.targets import StartedTarget
from amqpspec.conformance.interruption import times_interrupted, undisturbed
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.soak.options import SoakOptions
from amqpspec.conformance.soak.result import SoakResult
from amqpspec.conformance.soak.schedule import offered
from amqpspec.conformance.soak.soak import soak
from amqpspec.conformance.soak.soak_trace import NAME
from amqpspec.conformance.verdicts.gate import Gate
from amqpspec.conformance.version import tool_version
from amqpspec.reports.soak_report import soak_html, terminal_lines
from amqpspec.reports.text import visible

#: Seconds between two lines where there is no terminal.
_PAUSE = 30.0
#: Seconds without anything until nothing is expected any more: the nodes of a cluster find out late who is gone.
_PATIENCE, _PATIENCE_OF_CLUSTERS, _PATIENCE_OF_EMBEDDED = 20.0, 100.0, 10.0


def execute(options: argparse.Namespace, console: Console) -> int:
    with not_left_empty(options.out):
        return _execute(options, console)


def _execute(options: argparse.Namespace, console: Console) -> int:
    seed = random_seed() if options.seed is None else options.seed
    html, report = options.html or options.out / "soak.html", options.json or options.out / "soak.json"
    make_directory(options.out)
    with held(options.out):
        require_place_of_trace(options.out / NAME)
        for path in (html, report):
            require_writable(path)
        with StartedTarget(options, apart=True, keeps_data=True) as started:
            asked = _asked(options, started.target, seed)
            if not options.quiet:
                _say_what(asked, started.target, console)
            with undisturbed(), _progress(console, options.quiet) as tell:
                # a signal ends the soak in order, and is raised at the end of this block
                found = soak(started.target, asked, tell, times_interrupted)
                result = replace(found, tool_version=tool_version())
                _write(result, html, report)
                _tell(result, options, console)
    return _exit_code(result, options.gate)


def _asked(options: argparse.Namespace, target: TargetUnderTest, seed: int) -> SoakOptions:
    can: tuple[str, ...] = tuple(target.faults.offered) if target.faults is not None else ()
    kinds, missing = offered(options.faults, can)
    patience = patience_of(options.target) if options.patience is None else options.patience
    seconds = options.seconds if options.seconds is not None else options.minutes * 60.0
    return SoakOptions(seed, seconds, tuple(kinds), options.out, tuple(missing), options.rate, patience)


def patience_of(target: str) -> float:
    """If nothing else is said."""
    name = target.partition(":")[0]
    return {"cluster": _PATIENCE_OF_CLUSTERS, "embedded": _PATIENCE_OF_EMBEDDED}.get(name, _PATIENCE)


def _say_what(asked: SoakOptions, target: TargetUnderTest, console: Console) -> None:
    faults = ", ".join(asked.faults) or "none"
    line = f"soak of {target.description.label} for {asked.seconds:g} s, faults: {faults}, seed {asked.seed}"
    console.print(Text(visible(line)), soft_wrap=True)
    if asked.not_offered:
        why = "has nobody who could do it" if target.faults is None else "does not offer it"
        missing = ", ".join(asked.not_offered)
        console.print(Text(f"left out: {missing}: this target {why}", style="yellow"), soft_wrap=True)


@contextmanager
def _progress(console: Console, quiet: bool) -> Iterator[Callable[[str], None]]:
    if quiet:
        yield lambda line: None
        return
    if console.is_terminal:
        with console.status("") as status:
            yield lambda line: status.update(Text(line))
        return
    said = time.monotonic()

    def tell(line: str) -> None:
        nonlocal said
        if time.monotonic() - said >= _PAUSE:
            said = time.monotonic()
            console.print(Text(line), soft_wrap=True)

    yield tell


def _write(result: SoakResult, html: Path, report: Path) -> None:
    write(report, json.dumps(result.to_json(), indent=1) + "\n")
    write(html, soak_html(result))


def _tell(result: SoakResult, options: argparse.Namespace, console: Console) -> None:
    if result.lost:
        complain(visible(result.lost))
    lines = list(terminal_lines(result))
    for line, style in lines[-1:] if options.quiet else lines:
        console.print(Text(visible(line), style=style), soft_wrap=True)


def _exit_code(result: SoakResult, gate: Gate) -> int:
    wrong = result.wrong if gate is Gate.PROMISE else result.not_known
    if wrong:
        return DEVIATES
    if result.lost:
        return TARGET_LOST
    return INCONCLUSIVE if result.is_undecided else CONFORMS
