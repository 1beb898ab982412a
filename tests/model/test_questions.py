"""What is asked changes nothing: neither properties, nor functions whose names are questions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.test_directions import ROOT

QUESTIONS = ("is_", "has_", "can_")
#: Methods that change what they are called on.
CHANGING = {
    "append", "add", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "popleft", "remove",
    "setdefault", "update",
}  # fmt: skip
#: These only remember what they have worked out before.
CACHES = {"_is_copied"}


def is_question(function: ast.FunctionDef) -> bool:
    if any(ast.unparse(each) == "property" for each in function.decorator_list):
        return True
    return function.name.lstrip("_").startswith(QUESTIONS) and function.name not in CACHES


def changes(function: ast.FunctionDef) -> Iterator[str]:
    """What in it changes something that it did not make itself."""
    own = {each.id for each in ast.walk(function) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    for each in ast.walk(function):
        changed: ast.expr | None = None
        if isinstance(each, ast.Attribute | ast.Subscript) and not isinstance(each.ctx, ast.Load):
            changed = each.value
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in CHANGING:
            changed = each.func.value
        if changed is not None and not (isinstance(changed, ast.Name) and changed.id in own):
            yield ast.unparse(each)


def test_what_is_asked_changes_nothing() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name}: {change}"
        for path in sorted((ROOT / "model").rglob("*.py"))
        for function in ast.walk(ast.parse(Path(path).read_text(encoding="utf-8")))
        if isinstance(function, ast.FunctionDef) and is_question(function)
        for change in changes(function)
    ]
    assert found == []
