"""Imports go in one direction: read from the code itself, late imports and those under TYPE_CHECKING included.

Nothing is run. A test that fails prints each offending import with its file and line.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.quick

ROOT = Path(__file__).resolve().parents[1]

#: Each may import those before it. What stands at the end has no folder of its own: the files of `amqpspec` itself.
LAYERS = ("model", "targets", "testing", "conformance", "reports", "pipeline", "command_line", "")

#: The chapters of 0-9-1, which know nothing of RabbitMQ's extensions.
CHAPTERS = ("exchange", "queue", "basic", "tx", "connection", "channel")

#: Within a folder the same; "" are the files that lie in the folder itself.
ORDERS = {
    "model": ("", "protocol", "promises", "broker", "rules", "outputs", "judging", "open_world", "defects"),
    "targets": ("", "codec", "client", "drivers", "embedded", "faults", "brokers"),
    "model.rules": ("common", *CHAPTERS, "extensions", "operator", ""),
    "conformance": (
        "deviations", "traces", "recording", "language", "verdicts", "coverage", "session", "scenarios", "search",
        "failures", "profile", "soak", "explore", "upgrade", "",
    ),
}


@dataclass(frozen=True, slots=True, order=True)
class Import:
    """One import; names are those of modules without `amqpspec.` in front."""

    importer: str
    imported: str
    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: imports {self.imported or 'amqpspec'}"


@cache
def modules() -> Mapping[str, Path]:
    """All modules of the project and their files."""
    files: dict[str, Path] = {}
    for layer in LAYERS:
        inside = ROOT / ("amqpspec" if layer in ("testing", "command_line", "") else "")
        paths = inside.glob("*.py") if not layer else (inside / layer).rglob("*.py")
        for path in paths:
            parts = path.relative_to(inside).with_suffix("").parts
            files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return files


def imported_names(text: str) -> Iterator[tuple[str, str | None, int]]:
    """Of every import in the text, wherever it stands: the module, the name that is taken from it, the line."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from ((module, alias.name, node.lineno) for alias in node.names)


@cache
def imports() -> Sequence[Import]:
    """All imports of the project's own modules."""
    found = set()
    for importer, path in modules().items():
        for module, name, line in imported_names(path.read_text(encoding="utf-8")):
            if module.partition(".")[0] == "amqpspec":
                imported = module.partition(".")[2]
                inner = ".".join(filter(None, (imported, name)))
                imported = inner if name and inner in modules() else imported
                found.add(Import(importer, imported, str(path.relative_to(ROOT)), line))
    return sorted(found)


def folder(module: str, depth: int | None = None) -> str:
    """The folder that a module lies in; with a depth, no more than so many names of it."""
    parts = module.split(".")
    if modules()[module].name != "__init__.py":
        parts = parts[:-1]
    return ".".join(parts[:depth])


def listed(title: str, offending: Iterable[object]) -> str:
    return "\n".join([title, *(f"  {each}" for each in offending)])


def circles(graph: Mapping[str, Collection[str]]) -> list[frozenset[str]]:
    """What reaches itself by way of others, as sets of those that reach each other (Tarjan)."""
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    found = []

    def visit(node: str) -> None:
        numbers[node] = lowest[node] = len(numbers)
        path.append(node)
        for other in graph.get(node, ()):
            if other not in numbers:
                visit(other)
                lowest[node] = min(lowest[node], lowest[other])
            elif other in path:
                lowest[node] = min(lowest[node], numbers[other])
        if lowest[node] == numbers[node]:
            together = frozenset(path[path.index(node) :])
            del path[path.index(node) :]
            if len(together) > 1:
                found.append(together)

    for node in graph:
        if node not in numbers:
            visit(node)
    return found


def graph_of(edges: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    graph: dict[str, set[str]] = {}
    for one, other in edges:
        if one != other:
            graph.setdefault(one, set()).add(other)
    return graph


def upwards(order: Sequence[str], edges: Iterable[tuple[str, str, Import]]) -> list[Import]:
    """The imports from a place in the order to a later one."""
    return [each for one, other, each in edges if order.index(one) < order.index(other)]


# ------------------------------------------------------------------------------------------- what is read


def test_every_import_is_seen() -> None:
    text = """
import amqpspec.one
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from amqpspec.two import Two
def late():
    from amqpspec import three
"""
    assert [(module, name) for module, name, _ in imported_names(text)] == [
        ("amqpspec.one", None),
        ("typing", "TYPE_CHECKING"),
        ("amqpspec.two", "Two"),
        ("amqpspec", "three"),
    ]
    assert {each.partition(".")[0] for each in modules()} == {*LAYERS, "__main__", "pytest_plugin"}
    assert len(imports()) > 1000


def test_a_circle_is_found() -> None:
    graph = graph_of([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("e", "e")])
    assert circles(graph) == [frozenset("abc")]


def test_imports_say_the_whole_name_of_a_module_that_there_is() -> None:
    relative = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in modules().values()
        for module, _, line in imported_names(path.read_text(encoding="utf-8"))
        if module.startswith(".") or module.partition(".")[0] in LAYERS[:-1]
    ]
    assert not relative, listed("imports that are not by the full name:", relative)
    unknown = [each for each in imports() if each.imported not in modules()]
    assert not unknown, listed("imports of what is not there:", unknown)


def test_modules_are_imported_by_name_on_top_only() -> None:
    """`import_module` hides an import from these tests."""
    hidden = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for module, path in modules().items()
        if module.partition(".")[0] not in ("", "command_line")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name | ast.Attribute)
        and (node.id if isinstance(node, ast.Name) else node.attr) in ("import_module", "__import__")
    ]
    assert not hidden, listed("imports that cannot be read:", hidden)


# --------------------------------------------------------------------------------------------- directions


def _layer(module: str) -> str:
    first = module.partition(".")[0]
    return first if first in LAYERS else ""


def test_layers() -> None:
    wrong = upwards(LAYERS, ((_layer(each.importer), _layer(each.imported), each) for each in imports()))
    assert not wrong, listed("imports of a higher layer:", wrong)


@pytest.mark.parametrize("outer", ORDERS)
def test_within_a_folder(outer: str) -> None:
    def place(module: str) -> str | None:
        within = f"{folder(module)}."
        return within.removeprefix(f"{outer}.").partition(".")[0] if within.startswith(f"{outer}.") else None

    places = ((place(each.importer), place(each.imported), each) for each in imports())
    inside = ((one, other, each) for one, other, each in places if one is not None and other is not None)
    wrong = upwards(ORDERS[outer], inside)
    assert not wrong, listed(f"imports upwards within {outer}:", wrong)


def test_the_model_imports_nothing_foreign() -> None:
    foreign = [
        f"{path.relative_to(ROOT)}:{line}: imports {module}"
        for name, path in modules().items()
        if _layer(name) == "model"
        for module, _, line in imported_names(path.read_text(encoding="utf-8"))
        if (top := module.partition(".")[0]) != "amqpspec" and top not in sys.stdlib_module_names
    ]
    assert not foreign, listed("the model needs nothing but Python:", foreign)


# ------------------------------------------------------------------------------------------------ circles


def test_no_circles_between_files() -> None:
    found = circles(graph_of((each.importer, each.imported) for each in imports()))
    inside = [each for each in imports() for circle in found if {each.importer, each.imported} <= circle]
    assert not found, listed("files that import each other:", inside)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_no_circles_between_folders(depth: int) -> None:
    edges = [(folder(each.importer, depth), folder(each.imported, depth), each) for each in imports()]
    found = circles(graph_of((one, other) for one, other, _ in edges))
    inside = [each for one, other, each in edges for circle in found if one != other and {one, other} <= circle]
    assert not found, listed("folders that import each other:", inside)
