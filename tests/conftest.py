"""Real brokers for the tests: each is started when it is first needed, and removed at the end.

A broker that this machine cannot run is never passed over in silence: its tests are skipped with the reason
"MISSING BROKER", and the end of the run lists it. With AMQPSPEC_REQUIRE_BROKERS=1 such tests fail instead.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import settings

from amqpspec.pipeline.spark_session import spark_session
from amqpspec.targets.brokers.cluster_broker import ClusterBroker
from amqpspec.targets.brokers.docker_broker import DockerBroker
from amqpspec.targets.brokers.readiness import BrokerUnavailable
from tests.scheduling import Scheduling, arrange, note_of_container
from tests.tiers import Tiers, add_option

os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).parent / "spark"))

# how long an example takes says more of the machine than of the code
settings.register_profile("amqpspec", deadline=None)
settings.load_profile("amqpspec")

RABBITMQ_IMAGES = {
    "rabbitmq_3_10": "amqpspec/rabbitmq:3.10",
    "rabbitmq_4_0": "amqpspec/rabbitmq:4.0",
    "rabbitmq_4_3": "amqpspec/rabbitmq:4.3",
}
BROKER_IMAGES = {**RABBITMQ_IMAGES, "garagemq": "amqpspec/garagemq", "broker_j": "amqpspec/broker-j:9.2"}
"""Fixture name -> image."""

RABBITMQ_PROGRAM = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
"""What Debian's package starts as its own user; anybody may start it as well."""

_REQUIRE_VARIABLE = "AMQPSPEC_REQUIRE_BROKERS"
_missing_key = pytest.StashKey[dict[str, str]]()


class BrokerPool:
    """The running brokers of a process, each started when it is first asked for.

    One worker only runs the tests of a broker (tests/scheduling.py), so each is started once.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._missing = config.stash.setdefault(_missing_key, {})
        self._running: dict[str, DockerBroker] = {}
        self._clusters: dict[str, ClusterBroker] = {}
        self._at_the_end = contextlib.ExitStack()

    def get(self, name: str) -> DockerBroker:
        """The started broker; skips or fails the asking test where there is none."""
        if name not in self._running and name not in self._missing:
            try:
                self._running[name] = self._at_the_end.enter_context(self._started(BROKER_IMAGES[name]))
            except BrokerUnavailable as error:
                self._missing[name] = str(error)
        if name in self._running:
            return self._running[name]
        self.report_missing(name)

    def cluster(self, name: str, image: str) -> ClusterBroker:
        """The same of three nodes."""
        if name not in self._clusters and name not in self._missing:
            try:
                self._clusters[name] = self._at_the_end.enter_context(ClusterBroker(image))
            except BrokerUnavailable as error:
                self._missing[name] = str(error)
        if name in self._clusters:
            return self._clusters[name]
        self.report_missing(name)

    def report_missing(self, name: str, why: str = "") -> NoReturn:
        """Skips or fails the asking test."""
        if why:
            self._missing[name] = why
        reason = f"MISSING BROKER: {name}: {self._missing[name]}"
        if os.environ.get(_REQUIRE_VARIABLE) == "1":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)

    @contextlib.contextmanager
    def _started(self, image: str) -> Iterator[DockerBroker]:
        broker = DockerBroker(image)
        note = note_of_container(self._config, broker.container_name)
        note.touch()
        try:
            with broker:
                yield broker
        finally:
            note.unlink(missing_ok=True)

    def close(self) -> None:
        """Removes every broker."""
        self._at_the_end.close()


def _brokers_of(item: pytest.Item) -> list[str]:
    callspec = getattr(item, "callspec", None)
    parameters = [value for value in callspec.params.values() if isinstance(value, str)] if callspec else []
    wanted = (*getattr(item, "fixturenames", ()), *parameters)
    return [name for name in (*BROKER_IMAGES, "rabbitmq_program", "cluster_4_3") if name in wanted]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks each test with the brokers that it needs, so that `-m broker` and `-m "not broker"` select."""
    for item in items:
        for name in _brokers_of(item):
            item.add_marker(pytest.mark.broker(name))
    arrange(items)


def pytest_collection_finish() -> None:
    """The thousands of tests that were collected stay to the end: none is looked at again for being garbage."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker tells the process that reports."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["missing brokers"] = session.config.stash.get(_missing_key, {})


class _OfWorkers:
    """Only where the tests run in several processes."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        told = getattr(node, "workeroutput", {}).get("missing brokers", {})
        node.config.stash.setdefault(_missing_key, {}).update(told)


def pytest_addoption(parser: pytest.Parser) -> None:
    add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    for part in (_OfWorkers(), Tiers(), Scheduling()):
        config.pluginmanager.register(part)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    missing = config.stash.get(_missing_key, {})
    if missing:
        terminalreporter.section("MISSING BROKERS", sep="=", red=True, bold=True)
        for name, reason in missing.items():
            terminalreporter.line(f"{name}: {reason}", red=True)
        terminalreporter.line("The tests that need them have NOT been run.", red=True, bold=True)


@pytest.fixture(autouse=True)
def _no_logins_of_other_tests() -> None:
    """The command line hides each login that this process was once called with."""
    logins = sys.modules.get("amqpspec.command_line.logins")
    if logins is not None:
        logins._logins.clear()


@pytest.fixture(scope="session")
def broker_pool(pytestconfig: pytest.Config) -> Iterator[BrokerPool]:
    with contextlib.closing(BrokerPool(pytestconfig)) as pool:
        yield pool


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One session for all who use it, on one worker: it takes seconds to start, and its virtual machine to warm up."""
    with spark_session("local[2]") as session:
        yield session


@pytest.fixture(scope="session")
def rabbitmq_3_10(broker_pool: BrokerPool) -> DockerBroker:
    return broker_pool.get("rabbitmq_3_10")


@pytest.fixture(scope="session")
def rabbitmq_4_0(broker_pool: BrokerPool) -> DockerBroker:
    return broker_pool.get("rabbitmq_4_0")


@pytest.fixture(scope="session")
def rabbitmq_4_3(broker_pool: BrokerPool) -> DockerBroker:
    """RabbitMQ 4.3 or later: the image follows Debian's testing suite."""
    return broker_pool.get("rabbitmq_4_3")


@pytest.fixture(scope="session")
def cluster_4_3(broker_pool: BrokerPool) -> ClusterBroker:
    """Three nodes of it."""
    return broker_pool.cluster("cluster_4_3", RABBITMQ_IMAGES["rabbitmq_4_3"])


@pytest.fixture(scope="session")
def rabbitmq_program(broker_pool: BrokerPool) -> Path:
    """Debian's RabbitMQ on this machine, not started."""
    if not RABBITMQ_PROGRAM.is_file():
        broker_pool.report_missing("rabbitmq_program", "the package rabbitmq-server is not installed")
    return RABBITMQ_PROGRAM


@pytest.fixture(scope="session")
def garagemq(broker_pool: BrokerPool) -> DockerBroker:
    return broker_pool.get("garagemq")


@pytest.fixture(scope="session")
def broker_j(broker_pool: BrokerPool) -> DockerBroker:
    return broker_pool.get("broker_j")


@pytest.fixture(scope="session", params=list(RABBITMQ_IMAGES))
def rabbitmq(request: pytest.FixtureRequest, broker_pool: BrokerPool) -> DockerBroker:
    """Each RabbitMQ in turn."""
    return broker_pool.get(request.param)


@pytest.fixture(scope="session", params=list(BROKER_IMAGES))
def real_broker(request: pytest.FixtureRequest, broker_pool: BrokerPool) -> DockerBroker:
    """Each real broker in turn: the RabbitMQs, GarageMQ with its gaps, and Qpid Broker-J."""
    return broker_pool.get(request.param)
