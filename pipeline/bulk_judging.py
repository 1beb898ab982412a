"""Judging all of a store that was not judged yet: in this process, or spread over the tasks of a Spark job.

A task judges one large part, or several small ones; large ones begin first, so that none is left over at the end. A
part holds whole sequences, so nothing is shuffled, and a worker reads and writes files of the store by itself: what
comes back from a task are a few numbers for each of its parts.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from amqpspec.conformance.verdicts.judge import judge as judge_of_suite
from amqpspec.pipeline.judging.judged_parts import judged_parts
from amqpspec.pipeline.judging.outdated import Outdated
from amqpspec.pipeline.judging.part_judging import Judge, PartJudged, judge_part
from amqpspec.pipeline.spark_session import spark_session
from amqpspec.pipeline.spark_tasks import Progress, run_tasks
from amqpspec.pipeline.store.adding import PART_ROWS
from amqpspec.pipeline.store.files import SHARED, StoreError
from amqpspec.pipeline.store.parts import Part
from amqpspec.pipeline.store.store import Store
from amqpspec.reports.text import plural

#: Rows that are worth a task, and tasks that each processor gets at least if there are as many rows.
LEAST_ROWS = 2_000
TASKS_FOR_EACH = 4
#: Lines that a summary keeps of each kind.
_MOST_NAMED = 20


@dataclass(slots=True)
class Summary:
    """What a job did, in numbers. `problems`: what could not be judged, one line each, the first few."""

    parts: int = 0
    sequences: int = 0
    frames: int = 0
    failed: int = 0
    inconclusive: int = 0
    #: sequences that only repeat or shorten others: they are judged, and no other number but that of frames counts them
    repeats: int = 0
    #: parts that were judged before
    before: int = 0
    unreadable: int = 0
    broken_sequences: int = 0
    problems: list[str] = field(default_factory=list)
    #: sequences that came to an error of this suite: how many, and the first few as (name, line)
    erring_sequences: int = 0
    errors: list[tuple[str, str]] = field(default_factory=list)
    #: identifiers of the parts in which something failed
    failing: list[str] = field(default_factory=list)
    #: rows of the parts that were to be judged, and how long Spark took to start, in seconds
    rows: int = 0
    spark_took: float = 0.0

    def add(self, judged: PartJudged) -> None:
        """Raises `StoreError` if the store cannot be written."""
        if judged.unreadable is not None:
            if judged.fatal:
                raise StoreError(judged.unreadable)
            self.unreadable += 1
            self.note(judged.unreadable)
            return
        self.parts += 1
        self.sequences += judged.sequences
        self.frames += judged.frames
        self.failed += judged.failed
        if judged.failed:
            self.failing.append(judged.part)
        self.inconclusive += judged.inconclusive
        self.repeats += judged.repeats
        self.broken_sequences += judged.broken_sequences
        self.erring_sequences += judged.erring_sequences
        self.errors = [*self.errors, *judged.errors][:_MOST_NAMED]
        for line in judged.broken:
            self.note(line)

    def note(self, line: str) -> None:
        """Tell a line, if there is room for it."""
        if len(self.problems) < _MOST_NAMED:
            self.problems.append(line)


def judge_store(
    store: Store,
    master: str | None = None,
    *,
    again: bool = False,
    outdated: Outdated | None = None,
    judge: Judge = judge_of_suite,
    progress: Progress | None = None,
) -> Summary:
    """Judge the parts of a store that were not judged yet, and `outdated` ones, or with `again` all of them.

    `master`: of Spark; None: in this process. Raises `StoreError` and `PipelineError`; what was judged by then is kept.
    """
    contents = store.contents()
    if not contents.parts and not contents.broken:
        raise StoreError(f"{store}: the store holds no recording, so there is nothing to judge")
    found = judged_parts(store, contents.parts)
    wanted = [*found.unjudged, *(outdated or Outdated()).chosen(store, found.judged)]
    if again:
        wanted = list(contents.parts)
    summary = Summary(before=len(contents.parts) - len(wanted))
    summary.rows = sum(part.rows for part in wanted)
    for line in contents.broken:
        summary.add(PartJudged("", unreadable=line))
    for line in found.broken:
        summary.note(f"{line}; it is judged again")
    done: list[PartJudged] = []
    if master is None:
        for number, part in enumerate(wanted, start=1):
            done.append(judge_part(store, part, judge))
            summary.add(done[-1])
            if progress is not None:
                progress(number, len(wanted))
    elif wanted:
        done = _with_spark(store, wanted, master, judge, progress, summary)
        for judged in done:
            summary.add(judged)
    _require_judgements(store, wanted, done)
    return summary


def _require_judgements(store: Store, wanted: Sequence[Part], done: Sequence[PartJudged]) -> None:
    """Raises `StoreError` unless there is a new judgement here for each part that was asked for, could be read and
    still counts: a worker may have written it where nobody else sees it.
    """
    excused = {each.part for each in done if each.unreadable is not None}
    now = {part.id: part.judged for part in store.contents().parts} if wanted else {}
    lacking = [part for part in wanted if part.id not in excused and now.get(part.id) in ("", part.judged)]
    if lacking:
        count = f"{len(lacking):,} of {plural(len(wanted), 'part')} have no new judgement"
        where = store.named(lacking[0].trace)
        raise StoreError(f"{where}: was judged by a worker, and {count}; {SHARED}")


def shares(parts: Sequence[Part], processors: int) -> list[list[Part]]:
    """Parts that are judged in one task each: the largest first, small ones together.

    There are several tasks for each processor, where there is enough for that, so that all are busy to the end.
    """
    whole = sum(part.rows for part in parts)
    rows = min(PART_ROWS, max(LEAST_ROWS, whole // (processors * TASKS_FOR_EACH)))
    found: list[list[Part]] = []
    room = 0
    for part in sorted(parts, key=lambda part: (-part.rows, part.id)):
        if part.rows > room or not found:
            found.append([])
            room = rows
        found[-1].append(part)
        room -= part.rows
    return found


def _with_spark(
    store: Store, parts: Sequence[Part], master: str, judge: Judge, progress: Progress | None, summary: Summary
) -> list[PartJudged]:
    def judge_share(share: Sequence[Part]) -> list[PartJudged]:
        return [judge_part(store, part, judge) for part in share]

    began = time.monotonic()
    with spark_session(master) as spark:
        summary.spark_took = time.monotonic() - began
        work = shares(parts, spark.sparkContext.defaultParallelism)
        return run_tasks(spark, work, judge_share, progress)
