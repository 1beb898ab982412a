"""Real brokers for the tests: started when first needed, all together, removed at the end.

A broker that this machine cannot run is never passed over in silence: its tests are skipped with the reason
"MISSING BROKER", and the end of the run lists it. With AMQPSPEC_REQUIRE_BROKERS=1 such tests fail instead.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import settings

from amqpspec.targets.brokers.docker_broker import DockerBroker
from amqpspec.targets.brokers.readiness import BrokerUnavailable

# how long an example takes says more of the machine than of the code
settings.register_profile("amqpspec", deadline=None)
settings.load_profile("amqpspec")

RABBITMQ_IMAGES = {
    "rabbitmq_3_10": "amqpspec/rabbitmq:3.10",
    "rabbitmq_4_0": "amqpspec/rabbitmq:4.0",
    "rabbitmq_4_3": "amqpspec/rabbitmq:4.3",
}
BROKER_IMAGES = {**RABBITMQ_IMAGES, "garagemq": "amqpspec/garagemq"}
"""Fixture name -> image."""

_REQUIRE_VARIABLE = "AMQPSPEC_REQUIRE_BROKERS"
_needed_key = pytest.StashKey[list[str]]()
_missing_key = pytest.StashKey[dict[str, str]]()


class BrokerPool:
    """The running brokers of a session. `get` of any starts every broker that the collected tests need."""

    def __init__(self, needed: list[str], missing: dict[str, str]) -> None:
        self._needed = needed
        self._missing = missing
        self._workers = ThreadPoolExecutor(max_workers=len(BROKER_IMAGES), thread_name_prefix="broker")
        self._starting: dict[str, Future[DockerBroker]] = {}

    def get(self, name: str) -> DockerBroker:
        """The started broker; skips or fails the asking test where there is none."""
        for each in dict.fromkeys([name, *self._needed]):
            if each not in self._starting:
                self._starting[each] = self._workers.submit(DockerBroker(BROKER_IMAGES[each]).__enter__)
        try:
            return self._starting[name].result()
        except BrokerUnavailable as error:
            self._missing[name] = str(error)
            reason = f"MISSING BROKER: {name}: {error}"
        if os.environ.get(_REQUIRE_VARIABLE) == "1":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)

    def close(self) -> None:
        """Removes every broker, those as well that were still starting when the session was cut short."""
        self._workers.shutdown(wait=True, cancel_futures=True)
        for future in self._starting.values():
            if not future.cancelled() and future.exception() is None:
                future.result().__exit__(None, None, None)


def _brokers_of(item: pytest.Item) -> list[str]:
    callspec = getattr(item, "callspec", None)
    parameters = [value for value in callspec.params.values() if isinstance(value, str)] if callspec else []
    return [name for name in BROKER_IMAGES if name in (*getattr(item, "fixturenames", ()), *parameters)]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks each test with the brokers that it needs, so that `-m broker` and `-m "not broker"` select."""
    for item in items:
        for name in _brokers_of(item):
            item.add_marker(pytest.mark.broker(name))


def pytest_collection_finish(session: pytest.Session) -> None:
    needed = dict.fromkeys(mark.args[0] for item in session.items for mark in item.iter_markers("broker"))
    session.config.stash[_needed_key] = [name for name in needed if name in BROKER_IMAGES]


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


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_OfWorkers())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    missing = config.stash.get(_missing_key, {})
    if missing:
        terminalreporter.section("MISSING BROKERS", sep="=", red=True, bold=True)
        for name, reason in missing.items():
            terminalreporter.line(f"{name}: {reason}", red=True)
        terminalreporter.line("The tests that need them have NOT been run.", red=True, bold=True)


@pytest.fixture(scope="session")
def broker_pool(pytestconfig: pytest.Config) -> Iterator[BrokerPool]:
    missing = pytestconfig.stash.setdefault(_missing_key, {})
    with contextlib.closing(BrokerPool(pytestconfig.stash.get(_needed_key, []), missing)) as pool:
        yield pool


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
def garagemq(broker_pool: BrokerPool) -> DockerBroker:
    return broker_pool.get("garagemq")


@pytest.fixture(scope="session", params=list(RABBITMQ_IMAGES))
def rabbitmq(request: pytest.FixtureRequest, broker_pool: BrokerPool) -> DockerBroker:
    """Each RabbitMQ in turn."""
    return broker_pool.get(request.param)


@pytest.fixture(scope="session", params=list(BROKER_IMAGES))
def real_broker(request: pytest.FixtureRequest, broker_pool: BrokerPool) -> DockerBroker:
    """Each real broker in turn: the RabbitMQs, and GarageMQ with its gaps."""
    return broker_pool.get(request.param)
