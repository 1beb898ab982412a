"""A judge for tests of what is around the judge, and traces for it. Importable, so that Spark can use it."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from amqpspec.conformance.traces.trace import TraceRow, TraceWriter, row_event
from amqpspec.conformance.verdicts.acceptance import Acceptance
from amqpspec.conformance.verdicts.judgement import SequenceJudgement, write_end
from amqpspec.model.promises.verdict import Failure, Shape, Verdict
from amqpspec.model.protocol.methods import Content, Method
from amqpspec.pipeline import live
from amqpspec.targets.address import Address


class MortalAddress(Address):
    """Who looks at it the `looks`-th time is killed, once, if it is another process than the one that made it."""

    mark: Path
    made_by: int
    looks: int

    def __getattribute__(self, name: str) -> Any:
        of_mine = object.__getattribute__
        added = of_mine(self, "__dict__")  # a copy with another virtual host has none
        if name == "host" and added and os.getpid() != added["made_by"]:
            added["looks"] -= 1
            if added["looks"] == 0 and not added["mark"].exists():
                added["mark"].touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return of_mine(self, name)

    def __reduce__(self) -> Any:
        plain = [object.__getattribute__(self, field.name) for field in fields(self)]
        return mortal, (Address(*plain), self.looks, self.mark, self.made_by)


def mortal(address: Address, looks: int, mark: Path, made_by: int | None = None) -> MortalAddress:
    made = object.__new__(MortalAddress)
    for name, value in {"mark": mark, "made_by": made_by or os.getpid(), "looks": looks}.items():
        object.__setattr__(made, name, value)
    for field in fields(address):
        object.__setattr__(made, field.name, getattr(address, field.name))
    return made


DEFECT = "quorum-consumer-count"


def judge(rows: Iterable[TraceRow]) -> SequenceJudgement:
    """Each delivery must have the tag after the last one; a body "lost" cannot be decided.

    A body "gone wrong" is a failure that a known defect explains, "kept" is where it would have shown and did not.
    """
    rows = list(rows)
    start = rows[0]
    failures = []
    exercised: Counter[str] = Counter()
    expected = 1
    reason = None
    refuted: tuple[str, ...] = ()
    frames = 0
    for row in rows:
        if row["kind"] != "frame":
            continue
        frames += 1
        event = row_event(row)
        if event.name != "basic.deliver":
            continue
        tag = event.arguments["delivery_tag"]
        if tag != expected:
            failures.append(
                Failure("ACK-009", Shape.WRONG_ARGUMENT, "tag", "a.1 basic.ack", f"{tag}", (f"{expected}",), ())
            )
        expected = tag + 1
        exercised["ACK-009"] += 1
        if event.content is not None and event.content.body == b"gone wrong":
            failures.append(
                Failure("QUEUE-026", Shape.WRONG_ARGUMENT, "count", "a.1 queue.declare q", "1", ("0",), (), DEFECT)
            )
        if event.content is not None and event.content.body == b"kept":
            refuted = (DEFECT,)
        if event.content is not None and event.content.body == b"lost":
            reason = f"lost in {start['sequence']}"
        if event.content is not None and event.content.body == b"crash":
            raise ZeroDivisionError("the judge itself is at fault")
    verdict = Verdict.FAIL if failures else Verdict.INCONCLUSIVE if reason else Verdict.PASS
    return SequenceJudgement(
        start["sequence"],
        start["target"],
        start["dialect"],
        start["requirement"],
        verdict,
        tuple(failures),
        dict(exercised),
        reason,
        frames,
        refuted,
    )


def write_trace(path: Path, target: str, sequences: dict[str, list[tuple[int, bytes]]], interleaved: int = 3) -> Path:
    """Writes sequences of deliveries (tag, body), some of them at the same time, and one that has no end
    row."""
    with TraceWriter(path) as trace:
        names = list(sequences)
        for at in range(0, len(names), interleaved):
            together = names[at : at + interleaved]
            for name in together:
                trace.start(
                    name,
                    target=target,
                    product="Broker",
                    version="1",
                    dialect="rabbitmq-4.3",
                    mode="burst",
                    requirement="ACK-009" if "scenario" in name else None,
                )
            for step in range(max(len(sequences[name]) for name in together)):
                for name in together:
                    for tag, body in sequences[name][step : step + 1]:
                        arguments = {"delivery_tag": tag, "consumer_tag": "t"}
                        content = Content({"headers": {"n": step, "raw": b"\xff"}}, body)
                        trace.event(name, Method("a", 1, "basic.deliver", arguments, False, content, step / 10))
            for name in together:
                if "stopped" not in name:
                    trace.mark(name, "quiescent", 9.0)
                    write_end(trace, judge([{**trace_start(name, target)}]))
    return path


def trace_start(name: str, target: str) -> TraceRow:
    return TraceRow(
        kind="start", sequence=name, target=target, product="", version="", dialect="d", mode="", requirement=None
    )


def judge_share_and_die(
    out: Path, acceptance: Acceptance, task: int, number: int, paths: Sequence[str]
) -> list[live.Line]:
    """In the place of `live._judge_share`: each worker is killed once, half of them when all is written."""
    mark = out.parent / f"killed-{number}-{task}"
    is_late = task % 2 == 0
    told = live._judge_share(out, acceptance, task, number, paths) if is_late or mark.exists() else []
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return told


#: `live._judge_share` itself: a worker that imports this has the unpatched one.
_judge_share = live._judge_share


def judge_share_elsewhere(
    out: Path, acceptance: Acceptance, task: int, number: int, paths: Sequence[str]
) -> list[live.Line]:
    """In the place of `live._judge_share`: a worker whose folder of that path is one of its own."""
    own = out.parent / "of the worker"
    own.mkdir(exist_ok=True)
    return _judge_share(own, acceptance, task, number, paths)
