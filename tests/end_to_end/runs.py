"""Running the whole suite inside a test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from amqpspec.conformance.run import Runner
from amqpspec.conformance.run_options import RunOptions
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.traces.trace import TraceWriter
from amqpspec.conformance.verdicts.judgement import RunResult, TargetDescription
from amqpspec.model.promises.capabilities import advertised
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialects import dialect_of
from amqpspec.model.promises.verdict import Failure
from amqpspec.targets.address import Address
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.brokers.resolve import (
    RunningBroker,
    again_by,
    faults_of,
    introduction,
    operator_of,
    running_broker,
)
from amqpspec.targets.clock import COMMON, FastForwardClock
from amqpspec.targets.embedded.hooks import Fault


def run_suite(
    target: str | Address | RunningBroker,
    directory: Path,
    *,
    only: Sequence[str] = (),
    sequences: int = 0,
    seed: int = 0,
    deadline: float = 5.0,
    time_budget: float | None = None,
    shrinking_time: float | None = 120.0,
    search_only: bool = False,
    enough: Callable[[Failure], bool] | None = None,
    dialect: Dialect | None = None,
    judged_by: str | None = None,
    themes: tuple[str, ...] = (),
    fast_forward: bool = False,
    jobs: int = 1,
    fault: Fault | None = None,
) -> RunResult:
    """`amqpspec run`, as far as the result; the trace is in `directory`. A broker is operated, an address is not.

    `dialect`: what the embedded broker shall speak, if not the one that it usually does. `judged_by`: the name of a
    dialect, if it is not to be what the broker says of itself. `fast_forward`: where the
    embedded broker and the suite only wait, they skip the time. `fault`: what the embedded broker does otherwise.
    """
    clock = FastForwardClock() if fast_forward else COMMON
    with ExitStack() as stack:
        operator = faults = own_broker = None
        if isinstance(target, Address):
            address = target
        else:
            if fault is not None:
                embedded = EmbeddedBroker(dialect, fault=fault, clock=clock)
                broker: RunningBroker = stack.enter_context(embedded)
                faults = embedded.faults()
            elif isinstance(target, str):
                broker = stack.enter_context(running_broker(target, dialect, clock))
                faults, own_broker = faults_of(broker), again_by(target, dialect.name if dialect is not None else "")
            else:
                broker = target
            address, operator = broker.address, operator_of(broker)
        properties, limits = introduction(address)
        label = target if isinstance(target, str) else str(address)
        description = TargetDescription(
            label, str(properties["product"]), str(properties.get("version")), judged_by or dialect_of(properties).name
        )
        trace = stack.enter_context(TraceWriter(directory / "trace.jsonl"))
        options = RunOptions(
            only, seed, sequences, 30, time_budget, shrinking_time, search_only, enough, themes, jobs=jobs
        )
        under_test = TargetUnderTest(
            address,
            description,
            deadline,
            operator,
            advertised(properties),
            clock,
            channel_max=limits.channel_max,
            frame_max=limits.frame_max,
            faults=faults,
            own_broker=own_broker,
        )
        return Runner(under_test, trace, options).run()


def failed_requirements(result: RunResult) -> set[str]:
    return {found.failure.requirement for found in result.failures}
