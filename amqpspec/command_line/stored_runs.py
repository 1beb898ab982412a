"""Runs that are there already: by their reports, or by their traces where a run was ended before it wrote one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from amqpspec.command_line.usage import UsageError
from amqpspec.conformance.traces.trace import read_trace, trace_file
from amqpspec.conformance.verdicts.judge import judge_all
from amqpspec.conformance.verdicts.judgement import RunResult, TargetDescription
from amqpspec.conformance.verdicts.run_tally import RunTally
from amqpspec.conformance.version import tool_version
from amqpspec.model.promises.registry import requirements
from amqpspec.reports.json_report import report_object
from amqpspec.reports.stored_run import REPORT, StoredRun, StoredRunError, read_run, run_of


def stored_runs(paths: Sequence[Path]) -> list[StoredRun]:
    """The runs of directories or reports. Raises `UsageError`, and `TraceError` for a trace that cannot be read."""
    return [_stored_run(path) for path in paths]


def _stored_run(path: Path) -> StoredRun:
    if not path.exists():
        raise UsageError(f"{path}: there is no such directory or report")
    if path.is_dir() and not (path / REPORT).exists():
        if not any((path / name).exists() for name in ("trace.jsonl", "trace.parquet")):
            raise UsageError(f"{path}: holds neither {REPORT} nor a trace: it is no directory of a run")
        return run_of(report_object(judged_again(path)), path)
    try:
        return read_run(path)
    except StoredRunError as error:
        raise UsageError(str(error)) from None


def judged_again(path: Path) -> RunResult:
    """The result of a recorded run, without what only the run itself knows. Raises `TraceError`, `UsageError`."""
    file = trace_file(path)
    start = next((row for row in read_trace(file) if row["kind"] == "start"), None)
    if start is None:
        raise UsageError(f"{file}: has no sequence")
    target = TargetDescription(start["target"], start["product"], start["version"], start["dialect"])
    tally = RunTally()
    for judgement in judge_all(read_trace(file)):
        tally.add(judgement)
    return RunResult(
        tool="amqpspec",
        tool_version=tool_version(),
        target=target,
        seed=start.get("seed"),
        mode=start["mode"],
        requirements=tally.requirements(requirements().values(), target.dialect),
        failures=tuple(tally.found.values()),
        sequences=tally.sequences,
        frames=tally.frames,
        undecided=tuple(tally.undecided),
        undecided_of=tally.undecided_of,
        defects=tally.defects(target.dialect, target.judged_version),
        lost="the run wrote no report: this is what its trace says",
    )
