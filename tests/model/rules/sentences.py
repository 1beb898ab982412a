"""Prints the sentences of the registry into the rules: `python -m tests.model.rules.sentences`.

The docstring of each file of `model/broker/`, `model/rules/` and `model/outputs/` ends with the requirements that it
names, each with its title, its sentence, what is otherwise in a dialect, and its source. A test holds them to the
registry.
"""

from __future__ import annotations

import ast
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from amqpspec.model.promises.registry import AS_STATED, IDENTIFIER, Requirement, requirements
from amqpspec.model.rules import table

MODEL = Path(table.__file__).resolve().parents[1]
FOLDERS = (MODEL / "rules", MODEL / "outputs", MODEL / "broker")
#: What the list begins with.
HEADING = "Requirements:"
WIDTH = 120


def files() -> Iterator[Path]:
    return (path for folder in FOLDERS for path in sorted(folder.rglob("*.py")) if named_in(path))


def named_in(path: Path) -> list[Requirement]:
    """The requirements that the file names before and after the list, in the order of the registry."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    end = _end_of_docstring(path, text)
    named = set(IDENTIFIER.findall(_head("".join(lines[:end])) + "".join(lines[end:])))
    return [entry for entry in requirements().values() if entry.id in named]


def _end_of_docstring(path: Path, text: str) -> int:
    """The number of its last line."""
    first = ast.parse(text).body[0]
    if not isinstance(first, ast.Expr) or not isinstance(first.value, ast.Constant) or first.end_lineno is None:
        raise SystemExit(f"{path}: the file has no docstring")
    return first.end_lineno


def sentences(path: Path) -> str:
    """The list that belongs at the end of the file's docstring."""
    entries = []
    for entry in named_in(path):
        others = (f"In {name}: {text.removesuffix('.')}." for name, text in entry.dialects.items() if text != AS_STATED)
        statement = " ".join(entry.statement.split()).removesuffix(".")
        said = " ".join([f"{entry.title}.", f"{statement}.", *others])
        text = f"* {entry.id}: {said} [{' '.join(entry.source.split())}]"
        entries.append(
            textwrap.fill(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        )
    return "\n".join([HEADING, "", *entries]).replace("\\", "\\\\")


def with_sentences(path: Path) -> str:
    """The file's text as it should be."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    end = _end_of_docstring(path, text)
    docstring = "".join(lines[:end])
    return f'"""{_head(docstring)}\n\n{sentences(path)}\n"""\n' + "".join(lines[end:])


def _head(docstring: str) -> str:
    """What stands before the list."""
    return docstring.strip().strip('"').partition(f"\n{HEADING}\n")[0].strip()


def main() -> int:
    for path in files():
        text = with_sentences(path)
        if text != path.read_text(encoding="utf-8"):
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(MODEL.parent))
    return 0


if __name__ == "__main__":
    sys.exit(main())
