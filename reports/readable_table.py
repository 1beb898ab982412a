"""Tables for terminals of any width: nothing in them is cut off."""

from __future__ import annotations

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Column, Table
from rich.text import Text

#: Columns of a terminal below which a cell of words is hard to read; longer words are broken.
_LEAST = 10


class ReadableTable(Table):
    """A table of columns without lines. What is in a column with `no_wrap`, as numbers should be, stays in one piece:
    where the terminal is too narrow for that, each row is shown as lines, one for each cell.
    """

    def __init__(self, *headers: Column | str) -> None:
        super().__init__(*headers, box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        gaps = 2 * (len(self.columns) - 1)
        if gaps + sum(map(_needed, self.columns)) <= options.max_width:
            yield from super().__rich_console__(console, options)
            return
        for cells in zip(*(column.cells for column in self.columns), strict=True):
            for number, (column, cell) in enumerate(zip(self.columns, cells, strict=True)):
                header = str(column.header) if self.show_header else ""
                if str(cell):
                    yield Text.assemble("  " if number else "", f"{header}: " if header else "", _text(cell))


def number_column(header: str) -> Column:
    return Column(header, justify="right", no_wrap=True)


def name_column(header: str) -> Column:
    """Of words that have to be whole, such as identifiers."""
    return Column(header, no_wrap=True)


def text_column(header: str) -> Column:
    return Column(header, overflow="fold")


def _needed(column: Column) -> int:
    """Columns of the terminal, so that all of it can be read."""
    texts = [str(column.header), *map(str, column.cells)]
    if column.no_wrap:
        return max(cell_len(line) for text in texts for line in text.splitlines() or [""])
    return min(max((cell_len(word) for text in texts for word in text.split()), default=0), _LEAST)


def _text(cell: object) -> Text:
    return cell if isinstance(cell, Text) else Text(str(cell))
