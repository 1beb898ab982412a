"""Running the whole suite inside a test."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from conformance.judgement import RunResult, TargetDescription
from conformance.run import Runner, RunOptions
from conformance.session import TargetUnderTest
from conformance.trace import TraceWriter
from model.dialects import dialect_of
from targets.address import Address
from targets.resolve import running, server_properties


def run_suite(
    target: str | Address,
    directory: Path,
    *,
    only: Sequence[str] = (),
    sequences: int = 0,
    seed: int = 0,
    deadline: float = 5.0,
    time_budget: float | None = None,
    shrinking_time: float = 120.0,
) -> RunResult:
    """`amqpspec run`, as far as the result; the trace is in `directory`."""
    with ExitStack() as stack:
        address = stack.enter_context(running(target)) if isinstance(target, str) else target
        properties = server_properties(address)
        description = TargetDescription(
            str(target), str(properties["product"]), str(properties["version"]), dialect_of(properties).name
        )
        trace = stack.enter_context(TraceWriter(directory / "trace.jsonl"))
        options = RunOptions(only, seed, sequences, 30, time_budget, shrinking_time)
        return Runner(TargetUnderTest(address, description, deadline), trace, options).run()


def failed_requirements(result: RunResult) -> set[str]:
    return {found.failure.requirement for found in result.failures}
