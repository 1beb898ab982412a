"""How soon each planted defect is blamed on the requirement that it breaks, by the search alone and by scenarios."""

from __future__ import annotations

import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from amqpspec.targets.faults.all_faults import FAULTS
from benchmarks.tables import ResultTable, spread
from benchmarks.whole import traffic_of
from tests.end_to_end.fault_searches import SEED, SEQUENCES, THEMES, area, search_for
from tests.end_to_end.runs import failed_requirements, run_suite


@dataclass(frozen=True, slots=True)
class Found:
    """Until the requirement is blamed; None: it was not. `commands` are those of the search."""

    sequences: int | None
    commands: int | None
    scenario_commands: int | None
    #: processor time of the whole search
    seconds: float


def run(names: Sequence[str] = tuple(FAULTS)) -> ResultTable:
    """One row for each area, and one for all."""
    # a search hardly uses more than one core
    with multiprocessing.get_context("spawn").Pool(2, maxtasksperchild=8) as pool:
        measured = dict(zip(names, pool.imap(_measure, names), strict=True))
    areas = dict.fromkeys(map(area, names))
    rows = [_row(each, {name: found for name, found in measured.items() if area(name) == each}) for each in areas]
    return ResultTable(
        "Detection: how soon a planted defect is blamed rightly",
        (
            "area", "defects", "blamed by the search", "sequences", "commands", "mean seconds", "longest",
            "blamed by scenarios", "commands of scenarios",
        ),
        (*rows, _row("all", measured)),
        (
            f"Each defect of the embedded broker is searched for with seed {SEED}, by at most {SEQUENCES} sequences of "
            "the themes that are about its area, where there are such; scenarios are left out. *Sequences* and "
            "*commands*: until the requirement that the defect breaks is blamed, median (least to greatest). *Mean "
            "seconds*: processor time of the search for one defect, the embedded broker's included. *Commands of "
            "scenarios*: the same by the scenarios of that requirement alone, in their order.",
        ),
    )  # fmt: skip


def _row(label: str, measured: Mapping[str, Found]) -> tuple[str, ...]:
    sequences = {name: found.sequences for name, found in measured.items() if found.sequences is not None}
    longest = sorted(sequences, key=lambda name: sequences[name])[-3:]
    commands = [found.commands for found in measured.values() if found.commands is not None]
    by_scenarios = [found.scenario_commands for found in measured.values() if found.scenario_commands is not None]
    return (
        label,
        str(len(measured)),
        str(len(sequences)),
        _spread(list(sequences.values())),
        _spread(commands),
        f"{statistics.mean(found.seconds for found in measured.values()):.1f}",
        ", ".join(f"{name} {sequences[name]}" for name in reversed(longest)),
        str(len(by_scenarios)),
        _spread(by_scenarios),
    )


def _spread(values: Sequence[int]) -> str:
    return spread(values) if values else ""


def _measure(name: str) -> Found:
    requirement = FAULTS[name].requirement
    sequences = commands = by_scenarios = None
    began = time.process_time()
    with tempfile.TemporaryDirectory() as directory:
        if area(name) in THEMES:
            result = search_for(name, Path(directory))
            if requirement in failed_requirements(result):
                sequences, commands = result.sequences, traffic_of(Path(directory) / "trace.jsonl").commands
        seconds = time.process_time() - began
        result = run_suite(
            f"embedded:{name}", Path(directory), only=[requirement], deadline=0.3, shrinking_time=0.0,
            enough=lambda failure: failure.requirement == requirement, fast_forward=True,
        )  # fmt: skip
        if requirement in failed_requirements(result):
            by_scenarios = traffic_of(Path(directory) / "trace.jsonl").commands
    return Found(sequences, commands, by_scenarios, seconds)
