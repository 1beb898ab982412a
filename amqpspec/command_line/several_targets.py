"""`amqpspec run TARGET TARGET…`, also by several drivers: a run on each with one seed, and a page of all."""

from __future__ import annotations

import argparse
import copy
import re
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.text import Text

from amqpspec.command_line import report
from amqpspec.command_line.exit_codes import CONFORMS, DEVIATES, INCONCLUSIVE, TARGET_LOST, USAGE
from amqpspec.command_line.logins import complain
from amqpspec.command_line.options import seed_of_run
from amqpspec.command_line.usage import UsageError
from amqpspec.reports.text import visible
from amqpspec.targets.address import login_in
from amqpspec.targets.errors import TargetError

#: The worst first: the exit code is that of the worst run.
_WORST_FIRST = (USAGE, TARGET_LOST, DEVIATES, INCONCLUSIVE, CONFORMS)
#: Options that name one file, which would be each run's.
_FILES = ("html", "json", "junit", "markdown", "badge", "parquet", "write_deviations")


def run_each(options: argparse.Namespace, console: Console, run: Callable[[argparse.Namespace, Console], int]) -> int:
    """The exit code of the worst run. A target that cannot be had costs its own run, and so does one that is wrong,
    but for the first. Raises `UsageError`.
    """
    for name in _FILES:
        if getattr(options, name) is not None:
            raise UsageError(f"--{name.replace('_', '-')} names one file, and there are several targets or drivers")
    if options.management is not None and options.more:
        raise UsageError("--management is of one broker, and there are several targets (FILE.toml has one)")
    if options.update_deviations:
        raise UsageError("--update-deviations is for one target and one driver")
    options.seed = seed_of_run(options)
    codes: list[int] = []
    places: list[Path] = []
    targets, drivers = [options.target, *options.more], options.driver.split(",")
    by_place = {
        name if len(drivers) == 1 else f"{name}-{driver}": (target, driver)
        for target, name in zip(targets, _names(targets), strict=True)
        for driver in drivers
    }
    for name, (target, driver) in by_place.items():
        chosen = copy.copy(options)
        chosen.target, chosen.driver, chosen.more, chosen.out = target, driver, [], options.out / name
        if not options.quiet:
            console.print(Text(visible(f"== {name}"), style="bold"), soft_wrap=True)
        try:
            codes.append(run(chosen, console))
            places.append(chosen.out)
        except TargetError as error:
            complain(str(error))
            codes.append(TARGET_LOST)
        except UsageError as error:
            if not codes:
                raise
            complain(str(error))
            codes.append(USAGE)
    if places:
        page = argparse.Namespace(directories=places, out=options.out, quiet=options.quiet)
        report.execute(page, console)
    return next(code for code in _WORST_FIRST if code in codes)


def _names(targets: list[str]) -> list[str]:
    """For each a name of a directory, without credentials: the last of what tells it from others."""
    names: list[str] = []
    for target in targets:
        is_address = "://" in target or login_in(target)
        place = target.rpartition("@")[2] if is_address else re.sub(r"^(docker|process):", "", target)
        base = re.sub(r"[^A-Za-z0-9._-]+", "-", place.removesuffix("/")).strip("-.") or "target"
        name, number = base, 2
        while name in names:
            name, number = f"{base}-{number}", number + 1
        names.append(name)
    return names
