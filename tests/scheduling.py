"""Who runs which test, where several processes do: what is slow begins first, and what belongs together stays so.

The tests of a real broker are a group: one worker runs them one after the other, on one container, so that none
meets what another has set there. So is a file whose tests are prepared all at once (`xdist_group`). Of other files,
those in `SINGLY` are dealt out test by test, the rest file by file.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.tiers import folder_of, is_quick

#: Folders whose tests take seconds each.
SINGLY = ("benchmarks", "end_to_end", "packaging")
_SUFFIX = re.compile(r"@group-[\w-]+$")


def group(name: str) -> pytest.MarkDecorator:
    """One worker runs all tests of this name."""
    return pytest.mark.xdist_group(f"group-{name}")


def _rank(item: pytest.Item) -> tuple[int, str]:
    """Least first: groups, then the slow folders, then what else is not quick."""
    names = sorted(str(mark.args[0]) for mark in item.iter_markers("xdist_group"))
    if names:
        return (0, names[0])
    return (1 if folder_of(item).startswith(SINGLY) else 3 if is_quick(item) else 2, "")


def arrange(items: list[pytest.Item]) -> None:
    """Puts the tests of each broker in a group, and all tests in the order in which they shall begin."""
    for item in items:
        for mark in list(item.iter_markers("broker")):
            item.add_marker(group(mark.args[0].replace("_", "-")))
    items.sort(key=_rank)


class Scheduling:
    """The part of the tests' plugin that is about workers."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        if config.getoption("dist") != "loadgroup":
            return None
        from xdist.scheduler import LoadGroupScheduling

        class Scheduler(LoadGroupScheduling):
            def _split_scope(self, nodeid: str) -> str:
                suffix = _SUFFIX.search(nodeid)
                if suffix is not None:
                    return suffix[0]
                file = nodeid.partition("::")[0]
                return nodeid if file.removeprefix("tests/").startswith(SINGLY) else file

        return Scheduler(config, log)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The name of a group is no part of a test's name: what is shown can be given to pytest again."""
        if not hasattr(report, "node"):
            return  # within a worker, xdist needs it
        report.nodeid = _SUFFIX.sub("", report.nodeid)
