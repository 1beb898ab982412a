"""What `live` has judged, as a part of a store: `live/run=RUN/judgements/*.parquet`, in a store that is a folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from amqpspec.pipeline.store.files import StoreError
from amqpspec.pipeline.store.local_files import LocalFiles
from amqpspec.pipeline.store.parts import folder_name
from amqpspec.pipeline.store.store import Store

LIVE = "live"
_RUN = "run"


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A file of judgements; its rows say the target. `day`: when it was written."""

    path: Path
    day: date
    run: str


def live_folder(store: Store, run: str) -> Path:
    """Where `live` keeps what it judges as that run. Raises `StoreError` where the store is no folder."""
    if not isinstance(store.files, LocalFiles):
        raise StoreError(f"{store}: live needs a store in a folder, as Spark keeps its checkpoint there")
    folder = store.files.root / LIVE / f"run={folder_name(run)}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _RUN).write_text(run, encoding="utf-8")
    return folder


def live_files(store: Store) -> Iterator[LiveFile]:
    """All files of judgements of all runs, which are whole when they have their names."""
    if not isinstance(store.files, LocalFiles):
        return
    for folder in sorted((store.files.root / LIVE).glob("run=*")):
        run = (folder / _RUN).read_text(encoding="utf-8")
        for file in sorted((folder / "judgements").glob("[0-9]*.parquet")):
            yield LiveFile(file, datetime.fromtimestamp(file.stat().st_mtime, UTC).date(), run)
