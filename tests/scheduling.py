"""Who runs which test, where several processes do: what is slow begins first, and what belongs together stays so.

The tests of a real broker are a group: one worker runs them one after the other, on one container, so that none meets
what another has set there. So are those that use the session of Spark, as each worker would start its own. So is a file
whose tests are prepared all at once (marker `together`). Of other files, those in `SINGLY` are dealt out test by test,
the rest file by file.

The workers collect the tests, and the process that deals them out knows their names only: so a worker writes the groups
to a directory that all of them share. There a worker notes as well which containers it has started, for the process
that outlives it.
"""

from __future__ import annotations

import json
import shutil
import signal
import tempfile
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.errors import DockerException

from tests.tiers import folder_of, is_quick

#: Folders whose tests take seconds each.
SINGLY = ("benchmarks", "conformance/soak", "end_to_end", "packaging")

#: Groups that take longest: they begin first, in this order. Spark's has work all the time, a broker's mostly waits.
LONGEST = ("spark", "rabbitmq_4_3", "garagemq")

_GROUPS = "groups.json"
_CONTAINERS = "containers"
_shared_key = pytest.StashKey[Path]()


def arrange(items: list[pytest.Item]) -> None:
    """Puts the tests of each broker in a group, as those of Spark, and all tests in the order in which they shall
    begin.
    """
    for item in items:
        shared = [mark.args[0] for mark in item.iter_markers("broker")]
        shared += {"spark"}.intersection(getattr(item, "fixturenames", ()))
        for name in shared:
            item.add_marker(pytest.mark.together(name))
    items.sort(key=_rank)


def _group(item: pytest.Item) -> str | None:
    mark = item.get_closest_marker("together")
    return None if mark is None else str(mark.args[0])


def _rank(item: pytest.Item) -> tuple[int, int, str]:
    """Least first: groups, then the slow folders, then what else is not quick."""
    group = _group(item)
    if group is not None:
        return (0, LONGEST.index(group) if group in LONGEST else len(LONGEST), group)
    return (1 if folder_of(item).startswith(SINGLY) else 3 if is_quick(item) else 2, 0, "")


def note_of_container(config: pytest.Config, name: str) -> Path:
    """The file to be there for as long as the container is."""
    directory = config.stash[_shared_key] / _CONTAINERS
    directory.mkdir(exist_ok=True)
    return directory / name


class Scheduling:
    """The part of the tests' plugin that is about workers."""

    def pytest_configure(self, config: pytest.Config) -> None:
        # whoever ends a process in good order wants its brokers gone as well
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        # a shell has what it starts in the background ignore this one, and so would all that tests start and interrupt
        signal.signal(signal.SIGINT, signal.default_int_handler)
        shared = getattr(config, "workerinput", {}).get("shared")
        config.stash[_shared_key] = Path(shared or tempfile.mkdtemp(prefix="amqpspec-tests-"))

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Nothing is left behind, also where a worker was ended before it could remove what it had started."""
        if hasattr(config, "workerinput"):
            return
        shared = config.stash[_shared_key]
        for note in (shared / _CONTAINERS).glob("*"):
            _remove_container(note.name)
        shutil.rmtree(shared, ignore_errors=True)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["shared"] = str(node.config.stash[_shared_key])

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        worker = getattr(session.config, "workerinput", None)
        if worker is None:
            return
        groups = {item.nodeid: group for item in session.items if (group := _group(item)) is not None}
        # each worker writes the same
        unfinished = session.config.stash[_shared_key] / f"{worker['workerid']}.json"
        unfinished.write_text(json.dumps(groups), encoding="utf-8")
        unfinished.replace(unfinished.with_name(_GROUPS))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        if config.getoption("dist") != "loadgroup":
            return None
        from xdist.scheduler import LoadScopeScheduling

        class Scheduler(LoadScopeScheduling):
            groups: dict[str, str] | None = None

            def _split_scope(self, nodeid: str) -> str:
                if self.groups is None:
                    self.groups = json.loads((config.stash[_shared_key] / _GROUPS).read_text(encoding="utf-8"))
                file = nodeid.partition("::")[0]
                alone = nodeid if file.removeprefix("tests/").startswith(SINGLY) else file
                return self.groups.get(nodeid, alone)

        return Scheduler(config, log)


def _remove_container(name: str) -> None:
    try:
        client = docker.from_env()
    except DockerException:
        return  # its engine is gone
    try:
        client.containers.get(name).remove(force=True, v=True)
    except (DockerException, OSError):
        pass  # so is the container
    finally:
        client.close()
