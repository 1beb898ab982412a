"""How many sequences the search alone needs until it blames each planted defect on the requirement that it breaks."""

from __future__ import annotations

import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from amqpspec.targets.faults.all_faults import FAULTS
from benchmarks.tables import ResultTable, spread
from tests.end_to_end.fault_searches import SEED, SEQUENCES, THEMES, area, search_for
from tests.end_to_end.runs import failed_requirements

#: The defects that the search has a theme for.
SEARCHED = tuple(name for name in FAULTS if area(name) in THEMES)


def run(names: Sequence[str] = SEARCHED) -> ResultTable:
    """One row for each area, and one for all."""
    # a search hardly uses more than one core
    with multiprocessing.get_context("spawn").Pool(2, maxtasksperchild=8) as pool:
        measured = dict(zip(names, pool.imap(_measure, names), strict=True))
    areas = [each for each in THEMES if each in map(area, names)]
    rows = [_row(each, {name: found for name, found in measured.items() if area(name) == each}) for each in areas]
    return ResultTable(
        "Detection: how soon the search alone blames a planted defect rightly",
        ("area", "defects", "blamed", "sequences", "mean seconds", "longest"),
        (*rows, _row("all", measured)),
        (
            f"Each defect of the embedded broker is searched for with seed {SEED}, by at most {SEQUENCES} sequences of "
            "the themes that are about its area; scenarios are left out. *Sequences*: until the requirement that the "
            "defect breaks is blamed, median (least to greatest). *Mean seconds*: processor time of the search for one "
            "defect, the embedded broker's included.",
        ),
    )


def _row(label: str, measured: dict[str, tuple[int | None, float]]) -> tuple[str, ...]:
    sequences = {name: count for name, (count, _) in measured.items() if count is not None}
    longest = sorted(sequences, key=lambda name: sequences[name])[-3:]
    return (
        label,
        str(len(measured)),
        str(len(sequences)),
        spread(list(sequences.values())) if sequences else "",
        f"{statistics.mean(seconds for _, seconds in measured.values()):.1f}",
        ", ".join(f"{name} {sequences[name]}" for name in reversed(longest)),
    )


def _measure(name: str) -> tuple[int | None, float]:
    """Sequences, None if the requirement was not blamed; seconds of processor time of the whole search."""
    began = time.process_time()
    with tempfile.TemporaryDirectory() as directory:
        result = search_for(name, Path(directory))
    blamed = FAULTS[name].requirement in failed_requirements(result)
    return result.sequences if blamed else None, time.process_time() - began
