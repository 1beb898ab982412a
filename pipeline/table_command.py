"""Making one table of a store, and showing or writing it."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
from rich.console import Console
from rich.text import Text

from amqpspec.pipeline.judging.judged_parts import table_source
from amqpspec.pipeline.judging.kept_conservation import read_kept, rows_of_kept
from amqpspec.pipeline.store.files import StoreError, whole_file
from amqpspec.pipeline.store.store import Store, open_store
from amqpspec.pipeline.table_engine import arrow_of, table_engine
from amqpspec.pipeline.tables import counted, difference, regressed
from amqpspec.pipeline.views import DIFFERENCE, TABLES, judgements_of
from amqpspec.reports.readable_table import ReadableTable, number_column, text_column
from amqpspec.reports.text import visible

REGRESSED = "regressed"
CONSERVATION = "conservation"
_FORMS = (".parquet", ".csv", ".json")


def make_table(options: argparse.Namespace, console: Console) -> list[str]:
    """Make the table that the options of `amqpspec pipeline table` ask for; gives what could not be read, one line
    each. Raises `StoreError`, `PipelineError`.
    """
    name, out = options.name, options.out
    if name not in TABLES and name not in (DIFFERENCE, CONSERVATION):
        raise StoreError(f"there is no table {name!r}, but {', '.join([*TABLES, DIFFERENCE, CONSERVATION])}")
    if name == DIFFERENCE and not (options.before and options.after):
        raise StoreError("the table of a difference needs --before RUN and --after RUN")
    if name == REGRESSED:
        for day in filter(None, (options.before, options.after)):
            if not is_day(day):
                raise StoreError(f"{day}: no day such as 2026-11-27; regressed compares days, difference compares runs")
    if out is not None and out.suffix not in _FORMS:
        raise StoreError(f"{out}: its name must end in {', '.join(_FORMS)}")
    store = open_store(options.store)
    if name == CONSERVATION:
        found = _conservation(store)
        if out is None:
            _show(found, options.rows, console)
        else:
            write(found, out)
        return []
    if name == DIFFERENCE:
        _require_runs({part.run for part in store.contents().parts}, "the store has no run", options)
    source = table_source(store)
    if name == DIFFERENCE:
        _require_runs({part.run for part in source.judged}, "nothing is judged of the run", options)
    with table_engine(options.spark) as engine:
        judgements = judgements_of(engine, store, source.judged)
        if not arrow_of(counted(judgements).limit(1)).num_rows:
            source.problems.append(f"{store}: no sequence that counts: none could be read, or all repeat others")
        table = _made(name, judgements, options)
        if out is None:
            _show(table, options.rows, console)
        else:
            write(table, out)
    if source.note is not None:
        print(f"amqpspec: {source.note}", file=sys.stderr)
    return source.problems


def _conservation(store: Store) -> pa.Table:
    """What `conservation` has kept; it is no table of judgements. Raises `StoreError`."""
    rows = [row for kept in read_kept(store) for row in rows_of_kept(kept)]
    if not rows:
        raise StoreError(f"{store}: conservation of no run was looked at (amqpspec pipeline conservation)")
    return pa.Table.from_pylist(rows)


def _made(name: str, judgements: Any, options: argparse.Namespace) -> Any:
    if name == DIFFERENCE:
        return difference(judgements, options.before, options.after)
    if name == REGRESSED:
        return regressed(judgements, options.before, options.after)
    return TABLES[name](judgements)


def write(table: Any, out: Path) -> None:
    """Write a table as one file. What a table holds grows with requirements and brokers, not with recordings."""
    found = table if isinstance(table, pa.Table) else arrow_of(table)
    with whole_file(out.absolute()) as unfinished:
        if out.suffix == ".parquet":
            pq.write_table(found, unfinished, compression="zstd")
        elif out.suffix == ".csv":
            _write_csv(found, unfinished)
        else:
            lines = (json.dumps(row, default=str) + "\n" for row in found.to_pylist())
            unfinished.write_text("".join(lines), encoding="utf-8")


def _write_csv(table: pa.Table, path: Path) -> None:
    """CSV has no lists: their members are put in one text."""
    columns = {
        field.name: [", ".join(map(str, each or ())) for each in table.column(field.name).to_pylist()]
        if pa.types.is_list(field.type)
        else table.column(field.name)
        for field in table.schema
    }
    csv.write_csv(pa.table(columns), path)


def is_day(text: str) -> bool:
    """Is it a day as the folders of a store have it?"""
    with suppress(ValueError):
        return date.fromisoformat(text).isoformat() == text
    return False


def _require_runs(known: set[str], problem: str, options: argparse.Namespace) -> None:
    for run in (options.before, options.after):
        if run not in known:
            raise StoreError(f"{problem} {run!r}, but {', '.join(sorted(known)) or 'none'}")


def _show(table: Any, most: int, console: Console) -> None:
    found = table.slice(0, most + 1) if isinstance(table, pa.Table) else arrow_of(table.limit(most + 1))
    rows = [list(row.values()) for row in found.to_pylist()]
    if console.is_terminal:
        _show_view(found.schema, rows[:most], console)
    else:
        # whatever reads this may want columns, and has no width
        print(*found.column_names, sep="\t")
        for row in rows[:most]:
            print(*(visible(_text(value)) for value in row), sep="\t")
    if len(rows) > most:
        print(f"amqpspec: there are more than {most:,} rows; --rows N or --out FILE gives more", file=sys.stderr)


def _show_view(schema: pa.Schema, rows: list[Any], console: Console) -> None:
    def column(field: pa.Field) -> Any:
        is_number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        return (number_column if is_number else text_column)(field.name.replace("_", " "))

    view = ReadableTable(*map(column, schema))
    for row in rows:
        view.add_row(*(Text(visible(_shown(value))) for value in row))
    console.print(view)


def _shown(value: object) -> str:
    """For people: numbers in groups of digits, and of few."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return _text(value)


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
