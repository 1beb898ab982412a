"""Adding many traces to a store, one after the other or as tasks of a Spark job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from amqpspec.conformance.recording.capture import CaptureOptions
from amqpspec.conformance.traces.extras import MissingExtra
from amqpspec.pipeline.spark_session import spark_session
from amqpspec.pipeline.spark_tasks import run_tasks
from amqpspec.pipeline.store.adding import Added, add_trace, runs_by_content
from amqpspec.pipeline.store.files import StoreError
from amqpspec.pipeline.store.store import Store, create_store


@dataclass(slots=True)
class Imported:
    """What became of the traces, in numbers; `problems`: one line each."""

    traces: int = 0
    known: int = 0
    sequences: int = 0
    frames: int = 0
    problems: list[str] = field(default_factory=list)
    #: what is worth knowing, one line each
    notes: list[str] = field(default_factory=list)

    def add(self, added: Added) -> None:
        self.traces += 1
        self.known += added.known
        self.sequences += sum(part.sequences for part in added.parts)
        self.frames += sum(part.frames for part in added.parts)
        self.problems += added.problems
        self.notes += added.notes


def import_traces(
    folder: Path | str,
    traces: Sequence[Path],
    master: str | None = None,
    *,
    day: str | None = None,
    run: str | None = None,
    target: str | None = None,
    capture: CaptureOptions | None = None,
) -> Imported:
    """Add traces to the store in `folder`, which is made if there is none; what cannot be read costs itself.

    `master`: of Spark, each trace is a task then. The others as for `add_trace`; a `run` that is given to several
    traces gets their numbers. Raises `StoreError` and `PipelineError`.
    """
    store = create_store(folder)
    runs = [run if run is None or len(traces) == 1 else f"{run}-{number}" for number in range(1, len(traces) + 1)]
    imported = Imported()
    for added in _added(store, list(zip(traces, runs, strict=True)), master, day, target, capture):
        if isinstance(added, str):
            raise StoreError(added)
        imported.add(added)
    return imported


def _added(
    store: Store,
    work: Sequence[tuple[Path, str | None]],
    master: str | None,
    day: str | None,
    target: str | None,
    capture: CaptureOptions | None,
) -> Iterable[Added | str]:
    """What became of each; a text where the store could not be written."""
    others = runs_by_content(store)

    def add(each: tuple[Path, str | None]) -> list[Added | str]:
        path, run = each
        try:
            store.require_seen()
            return [add_trace(store, path, day=day, run=run, target=target, capture=capture, others=others)]
        except (StoreError, MissingExtra) as error:
            return [str(error)]

    if master is None:
        for each in work:
            yield from add(each)
        return
    with spark_session(master) as spark:
        found = run_tasks(spark, [(path.absolute(), run) for path, run in work], add)
    done = [each for each in found if isinstance(each, Added)]
    store.require_arrived((part for each in done for part in each.parts), (each.commit for each in done if each.commit))
    yield from found
