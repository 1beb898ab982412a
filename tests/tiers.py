"""The quick tier: which tests `python -m tests` runs, what it leaves out, and how that is told.

A test is of the quick tier by its folder, or by the marker `quick`; the marker `full` takes it out, and so does a real
broker. What is left out is deselected: it counts neither as passed nor as skipped.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

_TESTS = Path(__file__).resolve().parent

QUICK_FOLDERS = (
    "conformance/language", "conformance/session", "corpus", "model", "reports", "targets/codec",
)  # fmt: skip

#: Where a count of tests that were left out is kept: folder -> number.
_left_out_key = pytest.StashKey[Counter[str]]()
_TOLD = "left out"


def add_option(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="the quick tier only, as `python -m tests` runs it")


def folder_of(item: pytest.Item) -> str:
    """Below `tests`, with "/" between the parts."""
    return item.path.parent.relative_to(_TESTS).as_posix()


def is_quick(item: pytest.Item) -> bool:
    if any(item.get_closest_marker(name) is not None for name in ("broker", "full")):
        return False
    if item.get_closest_marker("quick") is not None:
        return True
    folder = folder_of(item)
    return any(folder == quick or folder.startswith(f"{quick}/") for quick in QUICK_FOLDERS)


class _LeftOut:
    """In place of a test that only the workers know."""


class Tiers:
    """The part of the tests' plugin that is about tiers."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Deselects what is not quick, of that which `-k` and `-m` have left."""
        if not config.getoption("quick"):
            return
        others = [item for item in items if not is_quick(item)]
        config.stash[_left_out_key] = Counter(folder_of(item) for item in others)
        if others:
            items[:] = [item for item in items if is_quick(item)]
            config.hook.pytest_deselected(items=others)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A worker tells the process that reports."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_TOLD] = dict(session.config.stash.get(_left_out_key, Counter()))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Each worker has collected the same; pytest counts as deselected only what its own process deselects."""
        told = getattr(node, "workeroutput", {}).get(_TOLD)
        if told and _left_out_key not in node.config.stash:
            node.config.stash[_left_out_key] = Counter(told)
            node.config.hook.pytest_deselected(items=[_LeftOut()] * sum(told.values()))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        left_out = config.stash.get(_left_out_key, Counter())
        if not left_out:
            return
        terminalreporter.section("LEFT OUT", sep="=", bold=True)
        areas: Counter[str] = Counter()
        for folder, count in left_out.items():
            areas["tests" if folder == "." else "/".join(folder.split("/")[:2])] += count
        listed = ", ".join(f"{area} {count:,}" for area, count in sorted(areas.items()))
        terminalreporter.line(f"{sum(areas.values()):,} tests have NOT been run: {listed}.")
        terminalreporter.line(
            "`python -m tests --all` runs them too: about 35 minutes on two processors; it needs Docker and Java 17."
        )
