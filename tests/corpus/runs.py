"""The runs from which the corpus is chosen: which broker, which scenarios, which searches, which seeds.

A run leaves its whole trace in a directory of its own. Making them all takes half an hour and needs Docker; what is
kept of them is decided by `tests.corpus.selection`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from amqpspec.model.promises.dialects import dialect_named
from amqpspec.targets.faults.all_faults import FAULTS
from tests.end_to_end.runs import run_suite

RABBITMQ = ("3.10", "4.0", "4.3")
BROKER_J = "docker:amqpspec/broker-j:9.2"
GARAGEMQ = "docker:amqpspec/garagemq"
#: Themes of the search that every dialect has.
THEMES = ("publishing", "consumers", "traffic", "topology", "protocol")


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the suite. `recording` names the recording of the corpus that sequences of it go to.

    With `sequences` it is a search of the theme (all if there is none), else it carries out the scenarios, or those
    of which the requirement begins with `only`.
    """

    name: str
    recording: str
    target: str
    seed: int
    sequences: int = 0
    theme: str = ""
    only: str = ""
    dialect: str = ""


def _runs_on_rabbitmq(version: str) -> list[Run]:
    name, target = f"rabbitmq-{version}", f"docker:amqpspec/rabbitmq:{version}"
    searches = [
        Run(f"{name}-search-{theme}", f"{name}-search-{theme}", target, 11 + number, 40, theme)
        for number, theme in enumerate(THEMES)
    ]
    if version == "4.3":
        searches.append(Run(f"{name}-search-timeouts", f"{name}-search-timeouts", target, 16, 24, "timeouts"))
    return [Run(f"{name}-scenarios", f"{name}-scenarios", target, 1), *searches]


def _runs_on_faults() -> list[Run]:
    return [
        Run(
            f"embedded-fault-{name}", "embedded-faults", f"embedded:{name}", 1,
            only=fault.requirement, dialect=fault.dialect,
        )
        for name, fault in FAULTS.items()
    ]  # fmt: skip


def all_runs() -> list[Run]:
    """Every run, in the order in which they are made."""
    return [
        *(run for version in RABBITMQ for run in _runs_on_rabbitmq(version)),
        Run("garagemq-scenarios", "garagemq-scenarios", GARAGEMQ, 1, dialect="rabbitmq-4.3"),
        *(
            Run(
                f"garagemq-search-{theme}", "garagemq-search", GARAGEMQ, 21 + number, 40, theme,
                dialect="rabbitmq-4.3",
            )
            for number, theme in enumerate(THEMES)
        ),
        Run("broker-j-scenarios", "broker-j-scenarios", BROKER_J, 1, dialect="amqp-0-9-1"),
        Run("broker-j-search", "broker-j-search", BROKER_J, 41, 60, dialect="amqp-0-9-1"),
        Run("embedded-search", "embedded-search", "embedded", 31, 60),
        Run("embedded-search-3", "embedded-search", "embedded", 32, 40, dialect="rabbitmq-3"),
        Run("embedded-search-timeouts", "embedded-search", "embedded", 33, 20, "timeouts"),
        *_runs_on_faults(),
    ]


def make(directory: Path, names: Collection[str] = ()) -> None:
    """Make the runs of these names (none: all) that the directory does not hold yet."""
    for run in all_runs():
        if (names and run.name not in names) or (directory / run.name / "complete").exists():
            continue
        began = time.monotonic()
        # Faults are only looked for where their requirement is tested, and need no patience.
        faulty = run.only != ""
        result = run_suite(
            run.target, directory / run.name, only=(run.only,) if run.only else (), sequences=run.sequences,
            seed=run.seed, deadline=0.3 if faulty else 5.0, shrinking_time=0.0, search_only=run.sequences > 0,
            themes=(run.theme,) if run.theme else (), dialect=dialect_named(run.dialect) if run.dialect else None,
            judged_by=run.dialect or None, fast_forward=run.target.startswith("embedded"),
        )  # fmt: skip
        lost = f", {result.lost}" if result.lost else ""
        took = time.monotonic() - began
        print(f"{run.name}: {result.sequences} sequences, {result.frames} frames, {took:.0f} s{lost}", file=sys.stderr)
        (directory / run.name / "complete").touch()
