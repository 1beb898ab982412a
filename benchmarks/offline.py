"""How fast recorded traces are judged: rate and memory by length, from JSON Lines, Parquet and with Spark."""

from __future__ import annotations

import contextlib
import io
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from amqpspec.command_line import main as amqpspec
from benchmarks.errors import Invalid
from benchmarks.judge_once import judged
from benchmarks.recordings import KINDS, LENGTHS, forget, recording
from benchmarks.tables import ResultTable, spread

HEADER = ("trace", "form", "sequences", "frames", "frames/s", "frames/s of processor time", "memory added, MiB")
SPARK = "local[2]"


def run(repetitions: int, fresh: bool = False, lengths: Sequence[int] = LENGTHS) -> ResultTable:
    """Judge every recording; each measurement in a process of its own. Raises `Invalid`."""
    if fresh:
        forget()
    rows = []
    for kind in KINDS:
        for form in ("jsonl", "parquet"):
            for length in lengths:
                path = recording(kind, length, form, max(lengths))
                rows.append(_row(kind, form, [_judge(path) for _ in range(repetitions)]))
    path = recording("long", min(lengths), "jsonl", max(lengths))
    # in turns, so that a machine that changes its speed favours none
    pairs = [(_judge(path), _judge(path, "--law-alone")) for _ in range(repetitions)]
    rows.append(_row("long, with known defects", "jsonl", [pair[0] for pair in pairs]))
    rows.append(_row("long, the law alone", "jsonl", [pair[1] for pair in pairs]))
    path = recording("many", max(lengths), "parquet", max(lengths))
    rows.append(_spark_row(path, repetitions))
    return ResultTable(
        "Offline: judging recorded lockstep traces on one core",
        HEADER,
        tuple(rows),
        (
            "Reading included (aim: 200,000 frames/s). *long* is one sequence of the workload, *many* are sequences of "
            "the search. Linear: the rate is the same at every length. *Memory added* is the peak above that of the "
            "process before it began; it is flat if it does not grow with the length.",
            "*With known defects* is the judge as it is, *the law alone* one that follows no known defects (aim: a "
            "tenth apart).",
            f"The last line is `amqpspec check --spark '{SPARK}'` with the start of Spark, on all its cores.",
        ),
    )


def _judge(path: Path, *options: str) -> dict[str, Any]:
    measured = judged(path, *options)
    if measured["exit"]:
        raise Invalid(f"{path} does not conform; if the embedded broker has changed since, record anew with --fresh")
    return measured


def _row(kind: str, form: str, measured: list[dict[str, Any]]) -> tuple[str, ...]:
    one = measured[0]
    return (
        kind,
        form,
        f"{one['sequences']:,}",
        f"{one['frames']:,}",
        spread([each["frames"] / each["wall"] for each in measured]),
        spread([each["frames"] / each["processor"] for each in measured]),
        f"{statistics.median(each['peak'] - each['before'] for each in measured):.0f}",
    )


def _spark_row(path: Path, repetitions: int) -> tuple[str, ...]:
    rates = []
    frames = sequences = 0
    for _ in range(repetitions):
        output = io.StringIO()
        began = time.perf_counter()
        with contextlib.redirect_stdout(output):
            code = amqpspec(["check", str(path), "--spark", SPARK, "--quiet"])
        took = time.perf_counter() - began
        words = output.getvalue().replace(",", "").split()
        if code or not words:
            raise Invalid(f"amqpspec check --spark {SPARK} ended in {code}")
        sequences, frames = int(words[-5]), int(words[-3])
        rates.append(frames / took)
    return ("many", f"parquet, {SPARK}", f"{sequences:,}", f"{frames:,}", spread(rates), "", "")
