"""Prints the sentences of the registry into the rules: `python -m tests.model.rules.sentences`.

The docstring of each file of `model/rules/` ends with the requirements that its code names, in the order in which it
names them, each with its sentence and its source. A test holds them to the registry.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from amqpspec.model.promises.registry import requirements
from amqpspec.model.rules import table

RULES = Path(table.__file__).resolve().parent
#: What the list begins with.
HEADING = "Requirements:"
WIDTH = 120


def files() -> Iterator[Path]:
    return (path for path in sorted(RULES.rglob("*.py")) if named_in(path))


def named_in(path: Path) -> list[str]:
    """Identifiers of requirements in the file's code, in the order of their first mention."""
    found = re.findall(r'"([A-Z]+-\d{3})"', path.read_text(encoding="utf-8"))
    return [each for each in dict.fromkeys(found) if each in requirements()]


def sentences(path: Path) -> str:
    """The list that belongs at the end of the file's docstring."""
    entries = []
    for name in named_in(path):
        entry = requirements()[name]
        text = f"* {name}: {' '.join(entry.statement.split())} [{' '.join(entry.source.split())}]"
        entries.append(
            textwrap.fill(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        )
    return "\n".join([HEADING, "", *entries]).replace("\\", "\\\\")


def with_sentences(path: Path) -> str:
    """The file's text as it should be."""
    text = path.read_text(encoding="utf-8")
    first = ast.parse(text).body[0]
    if not isinstance(first, ast.Expr) or not isinstance(first.value, ast.Constant):
        raise SystemExit(f"{path}: the file has no docstring")
    lines = text.splitlines(keepends=True)
    docstring = "".join(lines[: first.end_lineno])
    own = docstring.strip().strip('"').partition(f"\n{HEADING}\n")[0].strip()
    return f'"""{own}\n\n{sentences(path)}\n"""\n' + "".join(lines[first.end_lineno :])


def main() -> int:
    for path in files():
        text = with_sentences(path)
        if text != path.read_text(encoding="utf-8"):
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(RULES.parent.parent))
    return 0


if __name__ == "__main__":
    sys.exit(main())
