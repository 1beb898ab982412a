"""Compaction: small parts of one day, target and run become larger ones, and what is over is removed.

Parts that were judged are put together with others that were judged, with what they were judged to be, and parts that
were not with others that were not: compaction makes nothing to be judged again. It may go on while others add and
judge.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from amqpspec.conformance.traces.trace_parquet import GROUP_ROWS, SCHEMA
from amqpspec.pipeline.judging.judged_parts import judged_parts, write_judgements
from amqpspec.pipeline.judging.judgement_rows import JUDGEMENTS
from amqpspec.pipeline.store.adding import PART_ROWS
from amqpspec.pipeline.store.files import UNFINISHED
from amqpspec.pipeline.store.manifest import write_checkpoint
from amqpspec.pipeline.store.parts import JUDGEMENTS as JUDGED
from amqpspec.pipeline.store.parts import TRACES, Part
from amqpspec.pipeline.store.store import Contents, Store

#: Seconds for which what others took the place of is kept, for those who have begun to read it.
GRACE = 3600.0
#: Seconds after which an unfinished file is taken for left over.
LEFT_OVER = 24 * 3600.0
#: Commits that are worth a new checkpoint of the manifest.
CHECKPOINT_COMMITS = 100


@dataclass(slots=True)
class Compacted:
    """What a compaction did. `problems`: parts that could not be read, and stay as they are; one line each."""

    before: int
    after: int
    removed: int
    problems: list[str]


def compact(store: Store, grace: float = GRACE) -> Compacted:
    """Put small parts together, and remove what is over. Raises `StoreError` when the store cannot be written."""
    contents = store.contents()
    groups: defaultdict[tuple[str, bool], list[Part]] = defaultdict(list)
    small = judged_parts(store, (part for part in contents.parts if part.rows < PART_ROWS // 2))
    for is_judged, parts in ((True, small.judged), (False, small.unjudged)):
        for part in parts:
            groups[part.folder, is_judged].append(part)
    problems = [*contents.broken, *small.broken]
    for (_, judged), parts in sorted(groups.items()):
        for together in _packed(parts):
            try:
                _merge(store, together, judged, contents.flaws)
            except (OSError, pa.ArrowException) as error:
                names = ", ".join(store.named(part.trace) for part in together)
                problems.append(f"{names}: cannot be put together: {' '.join(str(error).split())}")
    write_checkpoint(store.files, CHECKPOINT_COMMITS)
    removed = remove_files(store, grace)
    return Compacted(len(contents.parts), len(store.contents().parts), removed, problems)


def _packed(parts: Iterable[Part]) -> list[list[Part]]:
    """Parts that become one, two at least."""
    packed: list[list[Part]] = [[]]
    rows = 0
    for part in parts:
        if rows + part.rows > PART_ROWS:
            packed.append([])
            rows = 0
        packed[-1].append(part)
        rows += part.rows
    return [together for together in packed if len(together) > 1]


def _merge(store: Store, parts: Sequence[Part], judged: bool, flaws: Mapping[str, str]) -> None:
    """The judgements of the new part are written before its commit, so a part that counts always has them."""
    one = parts[0]
    id = uuid4().hex
    made = Part(
        id, one.day, one.target, one.run, sum(part.rows for part in parts), sum(part.frames for part in parts),
        sum(part.sequences for part in parts), 0,
    )  # fmt: skip
    offset = 0
    rows: list[pa.Table] = []
    results: list[pa.Table] = []
    for part in parts:
        read = in_schema(_read(store, part.trace), SCHEMA)
        if read.num_rows != part.rows:
            raise pa.ArrowInvalid(f"{read.num_rows} rows, where the manifest says {part.rows}")
        numbers = pa.array(range(offset + 1, offset + part.rows + 1), pa.int64())
        rows.append(read.set_column(0, SCHEMA.field("row"), numbers))
        if judged:
            found = in_schema(_read(store, part.judgements), JUDGEMENTS)
            at = JUDGEMENTS.get_field_index("first_row")
            results.append(found.set_column(at, JUDGEMENTS.field(at), pc.add(found.column(at), offset)))
        offset += part.rows
    with store.files.writing(made.trace) as unfinished:
        pq.write_table(pa.concat_tables(rows), unfinished, compression="zstd", row_group_size=GROUP_ROWS)
        octets = unfinished.stat().st_size
    made = replace(made, octets=octets)
    if judged:
        made = write_judgements(store, made, pa.concat_tables(results))

    def unless_removed(contents: Contents) -> Sequence[Part] | None:
        """Others may have removed one of them, or have judged it again, meanwhile."""
        now = {part.id: part.judged for part in contents.parts}
        return parts if all(now.get(part.id) == part.judged for part in parts) else None

    problems = list(dict.fromkeys(flaws[part.id] for part in parts if part.id in flaws))
    if not store.remove(
        unless_removed, [made], judgements={made.id: made.judged} if judged else {}, problems=problems
    ):
        for path in (made.trace, made.judgements):
            store.files.remove(path)


def _read(store: Store, path: str) -> pa.Table:
    with store.files.reading(path) as file, pq.ParquetFile(file) as columns:
        return columns.read()


def in_schema(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table of an earlier version with the columns of this one: those that it lacks are null."""
    columns = [
        table.column(field.name).cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def remove_files(store: Store, grace: float, unnamed: float | None = None) -> int:
    """Remove the files of what has not counted for `grace` seconds, and unfinished ones that are left over. `unnamed`:
    those too that no commit names and nobody has changed for so many seconds. Raises `StoreError`.
    """
    now = time.time()
    contents = store.contents()
    over = [path for when, part in contents.replaced if now - when >= grace for path in (part.trace, part.judgements)]
    over += [path for when, path in contents.superseded if now - when >= grace]
    files = {each.path: each.changed for folder in (TRACES, JUDGED) for each in store.files.listed(folder)}
    over = [path for path in over if path in files]
    left = [(path, changed) for path, changed in files.items() if _is_unfinished(path)]
    left += [(each.path, each.changed) for each in store.files.listed(".temporary")]
    over += [path for path, changed in left if now - changed > LEFT_OVER]
    if unnamed is not None:
        over += [path for path in store.foreign(contents) if now - files.get(path, now) >= unnamed]
    return sum(store.files.remove(path) for path in over)


def _is_unfinished(path: str) -> bool:
    return path.rpartition("/")[2].startswith(UNFINISHED)
