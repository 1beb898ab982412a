"""Work that is spread over the tasks of a Spark job, each of which gives back a few numbers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from amqpspec.pipeline.spark_session import failing_in_a_line

#: Is told how many of how many tasks are done.
Progress = Callable[[int, int], None]
_Given = TypeVar("_Given")
_Found = TypeVar("_Found")


def run_tasks(
    spark: Any, work: Sequence[_Given], carry_out: Callable[[_Given], list[_Found]], progress: Progress | None = None
) -> list[_Found]:
    """Do each piece of work in a task of its own, begun in the given order. Raises `PipelineError`."""
    context = spark.sparkContext
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(context, len(work), progress, done), daemon=True)
    if progress is not None:
        watcher.start()
    try:
        with failing_in_a_line("the Spark job failed"):
            job = context.parallelize(work, len(work)).flatMap(carry_out)
            found: list[_Found] = beside(context, job.collect)
    finally:
        done.set()
        if progress is not None:
            watcher.join()
    if progress is not None:
        progress(len(work), len(work))
    return found


class _Call(threading.Thread, Generic[_Found]):
    def __init__(self, call: Callable[[], _Found]) -> None:
        super().__init__(daemon=True)
        self._call = call
        self.found: _Found
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.found = self._call()
        except BaseException as error:  # noqa: BLE001 - whatever it is, who waits gets it
            self.error = error


def beside(context: Any, call: Callable[[], _Found]) -> _Found:
    """What a call of Spark gives, which is made in a thread of its own: the thread that signals come to is in no call
    of Java when they do. A signal cancels its jobs. Raises what the call raises.
    """
    made = _Call(call)
    made.start()
    try:
        made.join()
    except BaseException:
        context.cancelAllJobs()
        raise
    if made.error is not None:
        raise made.error
    return made.found


def _watch(context: Any, tasks: int, progress: Progress, done: threading.Event) -> None:
    """Tells how far the job is, twice a second."""
    tracker = context.statusTracker()
    told = -1
    while not done.wait(0.5):
        stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
        completed = sum(stage.numCompletedTasks for stage in stages if stage is not None)
        if completed > told:
            told = completed
            progress(completed, tasks)
