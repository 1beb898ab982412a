"""Whoever reads a property of the model changes nothing: read from the code itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

MODEL = Path(__file__).resolve().parents[2] / "model"


def changes(text: str) -> Iterator[str]:
    """Where a property assigns to something that is not its own, or takes it away."""
    for function in ast.walk(ast.parse(text)):
        if isinstance(function, ast.FunctionDef) and any(map(_makes_property, function.decorator_list)):
            for node in ast.walk(function):
                changed = isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load)
                if changed or isinstance(node, ast.Global | ast.Nonlocal):
                    yield f"{function.name}: {ast.unparse(node)}"


def _makes_property(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Name) and decorator.id in ("property", "cached_property")


def test_a_change_is_seen() -> None:
    text = """
class Counter:
    @property
    def next(self):
        number = self.number + 1
        self.number = number
        return number
"""
    assert list(changes(text)) == ["next: self.number"]


def test_no_property_changes_state() -> None:
    found = [
        f"{path.relative_to(MODEL)}: {change}"
        for path in sorted(MODEL.rglob("*.py"))
        for change in changes(path.read_text(encoding="utf-8"))
    ]
    assert found == []
