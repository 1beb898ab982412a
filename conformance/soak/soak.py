"""A whole soak: clients, faults, trace, judgement."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from contextlib import ExitStack

from amqpspec.conformance.language.names import new_prefix
from amqpspec.conformance.session.target_under_test import TargetUnderTest
from amqpspec.conformance.soak.judge_process import JudgeProcess, Progress
from amqpspec.conformance.soak.judging import SoakJudgement, judged
from amqpspec.conformance.soak.mill import Interrupted, Mill
from amqpspec.conformance.soak.options import SoakOptions
from amqpspec.conformance.soak.plan import plan_of
from amqpspec.conformance.soak.result import SoakResult
from amqpspec.conformance.soak.soak_trace import SoakTrace
from amqpspec.conformance.traces.trace import read_trace
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.targets.errors import TargetError

#: Seconds by which the judging may be behind before that is said.
_BEHIND = 5.0


def soak(
    target: TargetUnderTest,
    options: SoakOptions,
    tell: Callable[[str], None] = lambda line: None,
    asks_to_end: Callable[[], int] = lambda: 0,
) -> SoakResult:
    """Carry it out. `tell` is told how far it is. `asks_to_end`: how often the user asked for the end.

    A broker that is lost, and an end before its time, are in the result. Raises `TraceError` where the trace cannot be
    written.
    """
    plan = plan_of(options.seed, dialect_named(target.description.dialect), f"{new_prefix()}soak")
    trace = SoakTrace(options.out, target.description, plan, target.address.vhost)
    lost = ended_early = ""
    with ExitStack() as stack:
        stack.callback(trace.close)
        trace.rows.flush()
        judge: JudgeProcess | None = None
        if not multiprocessing.current_process().daemon and options.judges_meanwhile:
            judge = stack.enter_context(JudgeProcess(trace.rows.path, options.patience / 2))

        def told(line: str) -> None:
            if judge is None:
                tell(line)
                return
            progress = judge.look()
            behind = trace.time - progress.seconds
            late = f", judging is {behind:.0f} s behind" if behind > _BEHIND else ""
            tell(f"{line}, {progress.wrong:,} wrong{late}")

        mill = Mill(target, plan, options, trace, told, asks_to_end)
        try:
            mill.run()
        except TargetError as error:
            lost = str(error)
        except Interrupted:
            ended_early = "interrupted"
        trace.close()
        ended_early = ended_early or ("interrupted" if asks_to_end() else "")
        behind = 0.0
        judgement: SoakJudgement
        if judge is None:
            judgement = judged(read_trace(trace.rows.path), options.patience / 2)
        else:
            behind = max(trace.time - judge.look().seconds, 0.0)

            def judging(progress: Progress) -> None:
                tell(f"judging what is left: {progress.seconds:.0f} of {trace.time:.0f} s, {progress.wrong:,} wrong")

            judgement = judge.finish(judging, lambda: asks_to_end() > 1)
    begun = mill.phases.get("running", 0.0)
    ended = mill.phases.get("emptying the queues", trace.time)
    return SoakResult(
        target=target.description,
        seed=options.seed,
        seconds=max(ended - begun, 0.0),
        faults=tuple(map(str, options.faults)),
        not_offered=tuple(map(str, options.not_offered)),
        judgement=judgement,
        problems=(*mill.problems, *mill.disturber.problems),
        ended_early=ended_early,
        lost=lost,
        trace=trace.rows.path.name,
        octets=trace.rows.octets,
        behind=behind,
        phases=mill.phases,
    ).with_known()
