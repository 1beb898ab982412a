"""The Docker target: is ready, configures, restarts, cleans up, and says in one line what it lacks."""

from __future__ import annotations

import contextlib
import socket
import time
from types import SimpleNamespace

import docker
import pika
import pytest
from docker.errors import ImageNotFound
from docker.models.containers import ContainerCollection

from amqpspec.targets.address import Address
from amqpspec.targets.brokers.docker_broker import CommandFailed, DockerBroker
from amqpspec.targets.brokers.docker_engine import provide_image
from amqpspec.targets.brokers.readiness import BrokerUnavailable, answers_amqp
from tests.patience import patience

RABBITMQ = "amqpspec/rabbitmq:4.3"


def connect(address: Address) -> pika.BlockingConnection:
    return pika.BlockingConnection(
        pika.ConnectionParameters(
            address.host,
            address.port,
            address.vhost,
            pika.PlainCredentials(address.user, address.password),
            socket_timeout=10,
        )
    )


def one_line(error: BaseException) -> str:
    text = str(error)
    assert text and "\n" not in text and "Traceback" not in text
    return text


def container_exists(name: str) -> bool:
    client = docker.from_env()
    try:
        return bool(client.containers.list(all=True, filters={"name": name}))
    finally:
        client.close()


def test_is_ready_inside_the_block_and_gone_after_it(garagemq: DockerBroker) -> None:
    # The fixture is here to report a missing broker; the one under test is a second one, of those that start at once.
    with DockerBroker(garagemq.image) as broker:
        address, name = broker.address, broker.container_name
        assert name.startswith("amqpspec-")
        assert address != garagemq.address
        connect(address).close()
        assert container_exists(name)
    assert not container_exists(name)
    assert not answers_amqp(address, timeout=1)
    with pytest.raises(BrokerUnavailable, match="not running"):
        _ = broker.address


def test_container_carries_the_label_and_listens_on_loopback_only(rabbitmq_4_3: DockerBroker) -> None:
    client = docker.from_env()
    try:
        container = client.containers.get(rabbitmq_4_3.container_name)
        assert container.labels["amqpspec"] == "1"
        assert {binding["HostIp"] for binding in container.ports["5672/tcp"]} == {"127.0.0.1"}
    finally:
        client.close()


def test_container_is_removed_when_the_block_fails(garagemq: DockerBroker) -> None:
    name = ""
    with pytest.raises(KeyboardInterrupt), DockerBroker(garagemq.image) as broker:
        name = broker.container_name
        raise KeyboardInterrupt
    assert name and not container_exists(name)


def test_configuration_reaches_the_broker(rabbitmq: DockerBroker) -> None:
    settings = {"consumer_timeout": "61234", "channel_tick_interval": "1234"}
    term = "[element(2, application:get_env(rabbit, K)) || K <- [consumer_timeout, channel_tick_interval]]."
    assert rabbitmq.execute("rabbitmqctl", "eval", term).split() != ["[61234,1234]"]
    with DockerBroker(rabbitmq.image, configuration=settings) as configured:
        assert configured.execute("rabbitmqctl", "eval", term).split() == ["[61234,1234]"]
        connect(configured.address).close()


def test_data_are_in_memory(rabbitmq: DockerBroker) -> None:
    """A disk that is busy for seconds would be a broker that is silent as long."""
    directory = rabbitmq.execute("rabbitmqctl", "eval", "io:format([rabbit_mnesia:dir()]).").strip().removesuffix("ok")
    assert rabbitmq.execute("stat", "--file-system", "--format=%T", directory.strip()).strip() == "tmpfs"
    with pytest.raises(ValueError, match="does not keep its data"):
        rabbitmq.restart()


def test_restart_keeps_what_is_durable(rabbitmq_4_3: DockerBroker) -> None:
    with DockerBroker(RABBITMQ, keeps_data=True) as broker:
        connection = connect(broker.address)
        connection.channel().queue_declare("kept", durable=True)
        connection.close()
        broker.restart()
        connection = connect(broker.address)
        connection.channel().queue_declare("kept", passive=True)
        connection.close()
        name = broker.container_name
        broker.restart(kill=True)
        assert "kept" in broker.execute("rabbitmqctl", "list_queues", "name")
    assert not container_exists(name)


def test_every_broker_can_be_logged_in_to(real_broker: DockerBroker) -> None:
    connection = connect(real_broker.address)
    assert connection.channel().is_open
    connection.close()


def test_failing_command_says_which_and_why(rabbitmq_4_3: DockerBroker) -> None:
    with pytest.raises(CommandFailed) as caught:
        rabbitmq_4_3.execute("rabbitmqctl", "no_such_command")
    text = one_line(caught.value)
    assert "rabbitmqctl no_such_command" in text and "not found" in text


def test_broker_that_ends_early_is_quoted_and_removed(rabbitmq_4_3: DockerBroker) -> None:
    broker = DockerBroker(RABBITMQ, configuration={"no_such_setting": "1"})
    with pytest.raises(BrokerUnavailable) as caught, broker:
        pass
    text = one_line(caught.value)
    assert RABBITMQ in text and "no_such_setting" in text
    assert not container_exists(broker.container_name)


def test_broker_that_is_not_ready_in_time_is_removed(rabbitmq_4_3: DockerBroker) -> None:
    broker = DockerBroker(RABBITMQ, start_timeout=0.5)
    started = time.monotonic()
    with pytest.raises(BrokerUnavailable) as caught, broker:
        pass
    assert "0.5 s" in one_line(caught.value)
    assert time.monotonic() - started < patience(15)
    assert not container_exists(broker.container_name)


def test_configuration_of_another_product_is_refused(garagemq: DockerBroker) -> None:
    with (
        pytest.raises(BrokerUnavailable) as caught,
        DockerBroker(garagemq.image, configuration={"consumer_timeout": "1000"}),
    ):
        pass
    assert garagemq.image in one_line(caught.value)


def test_local_image_that_was_not_built_names_the_command(rabbitmq_4_3: DockerBroker) -> None:
    with pytest.raises(BrokerUnavailable) as caught, DockerBroker("amqpspec/no-such-broker:1"):
        pass
    text = one_line(caught.value)
    assert "amqpspec/no-such-broker:1" in text and "python -m amqpspec.targets.brokers.images" in text


class NoImages:
    """A Docker engine that has none."""

    def get(self, name: str) -> None:
        raise ImageNotFound(name)


@pytest.mark.parametrize(
    ("image", "said"),
    [
        (RABBITMQ, "build it with `python -m amqpspec.targets.brokers.images amqpspec/rabbitmq:4.3`"),
        ("amqpspec/garagemq", "build it with `python -m amqpspec.targets.brokers.images amqpspec/garagemq:latest`"),
        ("amqpspec/rabbitmq:9.9", "and none of that name"),
    ],
)
def test_an_image_of_ours_is_built_by_a_command_that_exists(image: str, said: str) -> None:
    engine = SimpleNamespace(images=NoImages())
    with pytest.raises(BrokerUnavailable) as caught:
        provide_image(engine, image)
    text = one_line(caught.value)
    assert f"no image {image} on this machine" in text and said in text
    assert ("amqpspec/rabbitmq:4.3" in text) is (image != "amqpspec/garagemq")


def test_image_that_cannot_be_pulled_is_named(rabbitmq_4_3: DockerBroker) -> None:
    # Nothing serves port 1 of the loopback, so this registry refuses at once.
    with pytest.raises(BrokerUnavailable) as caught, DockerBroker("localhost:1/no-such-broker:1"):
        pass
    text = one_line(caught.value)
    assert "localhost:1/no-such-broker:1" in text and "cannot be pulled" in text


@pytest.mark.parametrize("engine", ["tcp://127.0.0.1:1", "unix:///no/such/socket", "nonsense"])
def test_engine_out_of_reach_is_one_line(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", engine)
    with pytest.raises(BrokerUnavailable) as caught, DockerBroker(RABBITMQ):
        pass
    assert "DOCKER_HOST" in one_line(caught.value)


def test_silent_peer_is_not_ready_and_costs_only_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        started = time.monotonic()
        assert not answers_amqp(Address("127.0.0.1", silent.getsockname()[1]), timeout=0.3)
        assert 0.25 < time.monotonic() - started < patience(5)


def test_a_container_that_was_made_when_a_signal_came_is_removed(
    garagemq: DockerBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine has made it, and nobody was told its number."""
    create = ContainerCollection.create

    def interrupted(*arguments: object, **named: object) -> None:
        create(*arguments, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(ContainerCollection, "create", interrupted)
    broker = DockerBroker(garagemq.image)
    with pytest.raises(KeyboardInterrupt), broker:
        pass
    with contextlib.closing(docker.from_env()) as client:
        assert client.containers.list(all=True, filters={"name": broker.container_name}) == []
