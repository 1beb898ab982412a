"""The plugin of pytest: `pytest --amqp-target URL` collects the scenarios as tests; and fixtures for the tests of an
application: `amqp_broker`, `amqp_broker_session`, `amqp_url` (`amqpspec.testing`).

pytest loads this file wherever amqpspec is installed, so it imports nothing of the suite before the option is given, or
a fixture is asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from amqpspec.command_line.pytest_scenarios import Scenarios
    from amqpspec.testing import EmbeddedBroker

#: As `command_line.exit_codes` and `command_line.pytest_scenarios` have it.
INCONCLUSIVE = 4
_UNDECIDED = "amqpspec undecided"
_scenarios_key: pytest.StashKey[Scenarios] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("amqpspec", "conformance of an AMQP broker")
    group.addoption(
        "--amqp-target", metavar="TARGET",
        help="test this broker: amqp://user:password@host:port/, or another target of `amqpspec run`",
    )  # fmt: skip
    group.addoption(
        "--amqp-only", action="append", default=[], metavar="ID-PREFIX", help="such as ACK or QOS-003; repeatable"
    )
    group.addoption(
        "--amqp-gate", choices=("promise", "known"), default="promise",
        help="known: what is a known defect of the target's version is expected to fail",
    )  # fmt: skip
    group.addoption(
        "--amqp-management", metavar="URL", help="the HTTP API of the broker's management, as --management of a run"
    )  # fmt: skip
    group.addoption("--amqp-scenarios", metavar="DIR", help="command files of your own, beside those of the suite")
    group.addoption("--amqp-dialect", metavar="NAME", help="default: from what the broker says of itself")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Before `-k` and its like choose among them."""
    if not config.getoption("--amqp-target"):
        return
    from amqpspec.command_line.pytest_scenarios import Scenarios

    scenarios = Scenarios(config)
    config.stash[_scenarios_key] = scenarios
    items += scenarios.items(session)


class _ExitCode:
    """Where all that failed is undecided, no broker is to blame: 4, as for a run."""

    def __init__(self) -> None:
        #: for each report of a failure: is it that nothing was decided?
        self._undecided: list[bool] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._undecided.append(any(name == _UNDECIDED for name, _ in report.user_properties))

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if exitstatus == pytest.ExitCode.TESTS_FAILED and self._undecided and all(self._undecided):
            session.exitstatus = INCONCLUSIVE


def pytest_configure(config: pytest.Config) -> None:
    """What cannot be is told in a line, before the processes of pytest-xdist begin."""
    if config.getoption("--amqp-target", None) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_ExitCode())
        from amqpspec.command_line.pytest_scenarios import check_options

        check_options(config)


def pytest_unconfigure(config: pytest.Config) -> None:
    scenarios = config.stash.get(_scenarios_key, None)
    if scenarios is not None:
        scenarios.close()


# ------------------------------------------------------------------------------- for the tests of an application

#: By name of the fixture, of the node that it belongs to.
_brokers_key: pytest.StashKey[dict[str, EmbeddedBroker]] = pytest.StashKey()


@pytest.fixture
def amqp_broker() -> Iterator[EmbeddedBroker]:
    """A RabbitMQ for this test (`amqpspec.testing.EmbeddedBroker`)."""
    from amqpspec.testing import EmbeddedBroker

    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture(scope="session")
def amqp_broker_session() -> Iterator[EmbeddedBroker]:
    """One for all tests; of pytest-xdist, for those of one process. What tests leave in it stays until `reset`."""
    from amqpspec.testing import EmbeddedBroker

    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
def amqp_url(amqp_broker: EmbeddedBroker) -> str:
    """The address of `amqp_broker`, with user and password."""
    return amqp_broker.url


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Note which fixtures are brokers, those of the application too."""
    made = yield
    testing = sys.modules.get("amqpspec.testing")
    if testing is not None and isinstance(made, testing.EmbeddedBroker):
        request.node.stash.setdefault(_brokers_key, {})[fixturedef.argname] = made
    return made


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure says what was in the queues."""
    report = yield
    if report.failed and report.when in ("setup", "call"):
        known = [(node, *each) for node in item.listchain() for each in node.stash.get(_brokers_key, {}).items()]
        names = {
            broker: name for node, name, broker in known if node is item or name in getattr(item, "fixturenames", ())
        }
        report.sections += [(f"queues of {name}", _described(broker)) for broker, name in names.items()]
    return report


def _described(broker: EmbeddedBroker) -> str:
    try:
        return broker.describe()
    except Exception as error:  # noqa: BLE001 - whatever it is, the failure is told
        return str(error)
