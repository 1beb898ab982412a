"""Which parts of a store were judged: those of which a commit says so. A file of judgements that cannot be read to its
end is none: it is told, its part counts as not judged, and is judged again.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from amqpspec.pipeline.judging.judgement_rows import JUDGEMENTS
from amqpspec.pipeline.store.files import StoreError
from amqpspec.pipeline.store.live_files import live_files
from amqpspec.pipeline.store.parts import Part
from amqpspec.pipeline.store.store import Store
from amqpspec.reports.text import plural


@dataclass(slots=True)
class JudgedParts:
    """Parts with and without judgements. `broken`: a line for each file of judgements that cannot be read, the part of
    which is among the `unjudged`.
    """

    judged: list[Part] = field(default_factory=list)
    unjudged: list[Part] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)


def judged_parts(store: Store, parts: Iterable[Part]) -> JudgedParts:
    """Looks at the files of judgements of these parts, each to its end."""
    found = JudgedParts()
    of_all = list(parts)
    with ThreadPoolExecutor(store.files.readers) as readers:
        problems = list(readers.map(lambda part: _problem(store, part) if part.judged else "", of_all))
    for part, problem in zip(of_all, problems, strict=True):
        if problem is None:
            found.judged.append(part)
            continue
        found.unjudged.append(part)
        if problem:
            found.broken.append(f"{store.named(part.judgements)}: {problem}, so its part counts as not judged")
    return found


@dataclass(slots=True)
class TableSource:
    """What a table is made of. `problems`: what could not be read, one line each; `note`: what is not in it as it was
    not judged yet, one line.
    """

    judged: list[Part]
    problems: list[str]
    note: str | None


def table_source(store: Store) -> TableSource:
    """Raises `StoreError` where nothing was judged: a table of nothing would look like one of a good broker."""
    contents = store.contents()
    found = judged_parts(store, contents.parts)
    problems = [*contents.broken, *found.broken]
    if not found.judged and next(live_files(store), None) is None:
        why = problems[0] if problems else f"{store}: nothing in the store is judged"
        raise StoreError(f"{why} (amqpspec pipeline judge), so there is nothing to make a table of")
    waiting = len(found.unjudged) - len(found.broken)
    note = f"{plural(waiting, 'part')} of the store not judged yet (amqpspec pipeline judge), and left out"
    return TableSource(found.judged, problems, note if waiting else None)


def is_judged(store: Store, part: Part) -> bool:
    """Is there what it was judged to be?"""
    return bool(judged_parts(store, [part]).judged)


def write_judgements(store: Store, part: Part, table: pa.Table) -> Part:
    """Write what a part was judged to be, with checksums, under a name of its own: who reads what it was judged to be
    before goes on reading that. Gives the part with it; it counts when a commit says so. Raises `StoreError`.
    """
    judged = replace(part, judged=f"{part.id}-{uuid4().hex[:8]}")
    with store.files.writing(judged.judgements) as unfinished:
        pq.write_table(table, unfinished, compression="zstd", write_page_checksum=True)
    return judged


def _problem(store: Store, part: Part) -> str | None:
    """Why a file is none of judgements, or not whole."""
    try:
        with (
            store.files.reading(part.judgements) as whole,
            pq.ParquetFile(whole, page_checksum_verification=True) as file,
        ):
            wrong = _wrong_column(file.schema_arrow)
            if wrong is not None:
                return f"no judgements: the column {wrong} is missing or of another type"
            if not file.metadata.num_rows:
                return "there is no judgement in it"
            for _ in file.iter_batches():
                pass
    except FileNotFoundError:
        return "is missing"
    except (OSError, pa.ArrowException) as error:
        return f"not a readable Parquet file: {' '.join(str(error).split())}"
    return None


def _wrong_column(schema: pa.Schema) -> str | None:
    """Files of earlier versions lack columns that may be null."""
    for wanted in JUDGEMENTS:
        if wanted.name not in schema.names:
            if not wanted.nullable:
                return str(wanted.name)
        elif not _fits(schema.field(wanted.name).type, wanted.type):
            return str(wanted.name)
    return None


def _fits(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Equal, but for the names that Arrow and Spark give the members of lists, and for what was added to structs."""
    if pa.types.is_list(wanted):
        return pa.types.is_list(found) and _fits(found.value_type, wanted.value_type)
    if pa.types.is_struct(wanted):
        return pa.types.is_struct(found) and all(_fits(each.type, _member(wanted, each)) for each in found)
    return bool(found.equals(wanted))


def _member(struct: pa.DataType, field: pa.Field) -> pa.DataType:
    at = struct.get_field_index(field.name)
    return field.type if at < 0 else struct.field(at).type
