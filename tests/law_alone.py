"""A plugin of pytest: the tests run as if there were no folder `model/defects`.

`pytest -p tests.law_alone tests/model tests/targets/embedded`: the law, the judge and the embedded broker have to be
whole without any known defect. `acceptor_for`, which tests of the judge begin with, makes a bare `Acceptor` then. Tests
that are about known defects are marked `known_defects`, and left out.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from amqpspec.model.judging.acceptor import Acceptor
from amqpspec.model.promises.choices import Dialect

_DEFECTS = "amqpspec.model.defects"
#: An import of more than `acceptor_for`; or of the search, whose sessions have a judge that follows known defects.
_NAMES_DEFECTS = re.compile(
    r"^from amqpspec\.(model\.defects(?!\.known_defects import acceptor_for$)|conformance\.search\.machine)",
    re.MULTILINE,
)


class NoDefects(MetaPathFinder):
    """Finds nothing of the folder, and keeps others from finding it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == _DEFECTS or fullname.startswith(f"{_DEFECTS}."):
            raise ModuleNotFoundError(f"No module named {fullname!r}: the law stands alone", name=fullname)
        return None


def acceptor_for(dialect: Dialect, *arguments: Any, product: str = "", **others: Any) -> Acceptor:
    """The bare acceptor: it is the same for every product."""
    return Acceptor(dialect, *arguments, **others)


def pytest_configure(config: pytest.Config) -> None:
    loaded = [name for name in sys.modules if name.startswith(_DEFECTS)]
    assert not loaded, f"something has imported known defects before: {loaded}"
    sys.meta_path.insert(0, NoDefects())
    sys.modules[_DEFECTS] = ModuleType(_DEFECTS)
    known_defects = sys.modules[f"{_DEFECTS}.known_defects"] = ModuleType(f"{_DEFECTS}.known_defects")
    known_defects.acceptor_for = acceptor_for  # type: ignore[attr-defined]


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Files that name known defects themselves are about these."""
    if collection_path.suffix != ".py":
        return None
    return True if _NAMES_DEFECTS.search(collection_path.read_text(encoding="utf-8")) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if item.get_closest_marker("known_defects")]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)
