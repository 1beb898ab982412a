"""`amqpspec serve`: its file, and its end."""

from __future__ import annotations

import re
import signal
import socket
from pathlib import Path
from typing import Any

import pika
import pytest
from pika.exceptions import ConnectionClosedByBroker, ProbableAccessDeniedError

from amqpspec.targets.embedded.loop import FAREWELL_PATIENCE
from tests.command_line.test_command_line import Amqpspec, Process, amqpspec, written  # noqa: F401  (fixture)

CONFIG = """
port = 0
dialect = "rabbitmq-4.0"
virtual-hosts = ["/", "shop"]

[users.app]
password = "secret"
[users.app.permissions.shop]
configure = "^app"
write = ".*"
read = ".*"
"""


class Served:
    """`amqpspec serve ARGUMENTS` in a process of its own, which serves already."""

    def __init__(self, directory: Path, *arguments: Any) -> None:
        self.process = Process(directory, "serve", *arguments)
        self.process.wait_for(lambda: "Ctrl-C" in self.process.out.read_text())
        found = re.search(r"127\.0\.0\.1:(\d+)/", "".join(self.process.out.read_text().split()))
        assert found
        self.port = int(found[1])

    def connected(self, vhost: str = "/", user: str = "guest", password: str = "guest") -> pika.BlockingConnection:
        login = pika.PlainCredentials(user, password)
        return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", self.port, vhost, login))


def test_what_the_file_says(tmp_path: Path) -> None:
    served = Served(tmp_path, "--config", written(tmp_path, "broker.toml", CONFIG))
    try:
        assert "RabbitMQ 4.0" in served.process.out.read_text()
        with served.connected("shop", "app", "secret") as connection:
            connection.channel().queue_declare("app-orders")
            channel = connection.channel()
            with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="403"):
                channel.queue_declare("orders")
        with pytest.raises(ProbableAccessDeniedError, match="530"):
            served.connected("/", "app", "secret")
    finally:
        assert served.process.interrupt().code == 0


def test_the_command_line_comes_first(tmp_path: Path) -> None:
    file = written(tmp_path, "broker.toml", 'port = 1\nhost = "nowhere.invalid"\ndialect = "rabbitmq-4.0"')
    served = Served(tmp_path, "--config", file, "--port", 0, "--host", "127.0.0.1", "--dialect", "rabbitmq-3")
    assert "RabbitMQ 3" in served.process.out.read_text()
    assert served.process.interrupt().code == 0


def test_a_file_that_is_wrong(tmp_path: Path, amqpspec: Amqpspec) -> None:  # noqa: F811
    file = written(tmp_path, "broker.toml", "[users.app]\npasswort = 1")
    amqpspec("serve", "--config", file).check_error(2, "broker.toml: users.app.passwort is none of password")
    amqpspec("serve", "--config", "none.toml").check_error(2, "none.toml: No such file or directory")


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_connections_in_order(tmp_path: Path, by: signal.Signals) -> None:
    served = Served(tmp_path, "--port", 0)
    connections = [served.connected(), served.connected()]
    served.process.process.send_signal(by)
    for connection in connections:
        with pytest.raises(ConnectionClosedByBroker) as closed:
            connection.process_data_events(time_limit=30)
        assert (closed.value.reply_code, closed.value.reply_text) == (
            320,
            "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'",
        )
    outcome = served.process.finish()
    assert (outcome.code, outcome.err) == (0, "")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", served.port))


def test_who_does_not_answer_does_not_keep_it(tmp_path: Path) -> None:
    file = written(tmp_path, "broker.toml", "port = 0\n[mishaps]\nno-answer = true")
    served = Served(tmp_path, "--config", file)
    with socket.create_connection(("127.0.0.1", served.port)):
        served.process.process.send_signal(signal.SIGTERM)
        assert served.process.finish(4 * FAREWELL_PATIENCE).code == 0


def test_the_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    served = Served(tmp_path, "--port", 0)
    connection = served.connected()  # reads nothing, so answers nothing
    served.process.process.send_signal(signal.SIGTERM)
    while True:  # until the first one has come
        try:
            socket.create_connection(("127.0.0.1", served.port)).close()
        except ConnectionRefusedError:
            break
    outcome = served.process.interrupt(signal.SIGTERM)
    assert (outcome.code, outcome.err) == (143, "amqpspec: terminated\n")
    with pytest.raises(ConnectionClosedByBroker, match="shutdown"):
        connection.process_data_events(time_limit=30)
