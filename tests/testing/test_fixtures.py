"""The fixtures of the plugin of pytest, in tests as those of an application."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
PLUGIN = ("-p", "amqpspec.pytest_plugin", "-p", "no:cacheprovider")

TESTS = """
    import pika

    def put(url, body):
        connection = pika.BlockingConnection(pika.URLParameters(url))
        channel = connection.channel()
        channel.queue_declare("q")
        channel.basic_publish("", "q", body)
        connection.close()

    def test_one(amqp_broker, amqp_url):
        assert amqp_broker.queues() == {} and amqp_url == amqp_broker.url
        put(amqp_url, b"one")
        assert [each.body for each in amqp_broker.messages("q")] == [b"one"]

    def test_a_fresh_one(amqp_broker):
        assert amqp_broker.queues() == {}

    class TestSession:
        def test_one(self, amqp_broker_session):
            put(amqp_broker_session.url, b"one")

        def test_the_same_until_it_is_reset(self, amqp_broker_session):
            assert list(amqp_broker_session.queues()) == ["q"]
            amqp_broker_session.reset()
            assert amqp_broker_session.queues() == {}
"""


@pytest.fixture(autouse=True)
def _finds_the_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.mark.parametrize("spread", [(), ("-n", "2", "--dist", "loadscope")])
def test_fresh_and_shared(pytester: pytest.Pytester, spread: tuple[str, ...]) -> None:
    pytester.makepyfile(TESTS)
    result = pytester.runpytest_subprocess(*PLUGIN, *spread)
    result.assert_outcomes(passed=4)


def test_a_failure_says_what_was_in_the_queues(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        TESTS
        + """
    def test_wrong(amqp_broker):
        put(amqp_broker.url, b"stuck")
        assert amqp_broker.messages("q") == []

    def test_wrong_while_it_is_down(amqp_broker):
        amqp_broker.stop()
        assert False
"""
    )
    result = pytester.runpytest_subprocess(*PLUGIN, "-k", "wrong")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*queues of amqp_broker*", "q (classic): 1 ready, 0 unacknowledged", "    stuck"])
    result.stdout.fnmatch_lines(["*queues of amqp_broker*", "*the broker does not serve*"])


OF_AN_APPLICATION = """
    import pytest
    from amqpspec.testing import EmbeddedBroker

    @pytest.fixture
    def amqp_broker():
        with EmbeddedBroker("rabbitmq-4.0") as broker:
            yield broker

    @pytest.fixture(scope="module")
    def shared():
        with EmbeddedBroker() as broker:
            yield broker

    @pytest.fixture
    def orders(amqp_broker, shared):
        put(amqp_broker.url, b"by a fixture")
        put(shared.url, b"in the shared one")
        raise ValueError("no orders")

    def test_of_a_fixture_that_breaks(orders):
        pass

    @pytest.fixture
    def by_another_name(shared):
        return shared

    def test_of_one_with_two_names(by_another_name):
        assert False

    def test_of_neither():
        assert False
"""


@pytest.mark.parametrize("spread", [(), ("-n", "1")])
def test_so_do_brokers_that_an_application_makes(pytester: pytest.Pytester, spread: tuple[str, ...]) -> None:
    pytester.makepyfile(TESTS + OF_AN_APPLICATION)
    result = pytester.runpytest_subprocess(*PLUGIN, "-k", "test_of", *spread)
    result.assert_outcomes(errors=1, failed=2)
    told = result.stdout.str()
    names = ("amqp_broker", "shared", "by_another_name")
    assert [told.count(f"queues of {name}") for name in names] == [1, 1, 1]
    result.stdout.fnmatch_lines(["*queues of shared*", "*'in the shared one'"])
    result.stdout.fnmatch_lines(["*queues of amqp_broker*", "*'by a fixture'"])


ASYNCIO = """
    import aio_pika, pytest, pytest_asyncio

    @pytest_asyncio.fixture
    async def channel(amqp_url):
        async with await aio_pika.connect_robust(amqp_url) as connection:
            yield await connection.channel()

    @pytest.mark.asyncio
    async def test_a_message(amqp_broker, channel):
        await channel.declare_queue("q")
        await channel.default_exchange.publish(aio_pika.Message(b"m"), "q")
        assert [each.body for each in amqp_broker.messages("q")] == [b"m"]

    @pytest.mark.asyncio
    async def test_wrong(channel):
        await channel.declare_queue("q")
        await channel.default_exchange.publish(aio_pika.Message(b"stuck"), "q")
        assert False
"""


@pytest.mark.parametrize("spread", [(), ("-n", "2")])
def test_with_pytest_asyncio(pytester: pytest.Pytester, spread: tuple[str, ...]) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
    pytester.makepyfile(ASYNCIO)
    result = pytester.runpytest_subprocess(*PLUGIN, *spread)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*queues of amqp_broker*", "q (classic): 1 ready, 0 unacknowledged", "    stuck"])
