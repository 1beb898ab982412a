"""The network that can fail: what passes, what waits, what comes late, and how either side's end is passed on."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from amqpspec.targets.address import Address
from amqpspec.targets.client.network import MOST_UNDER_WAY, Network
from amqpspec.targets.errors import TargetUnreachable
from tests.patience import patience


@pytest.fixture
def network() -> Iterator[Network]:
    with Network() as running:
        yield running


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(patience(10))
        yield listener


def ends(network: Network, server: socket.socket, name: str = "a") -> tuple[socket.socket, socket.socket]:
    """The client's and the broker's."""
    way = network.way_to(name, Address("127.0.0.1", server.getsockname()[1]))
    client = socket.create_connection(way)
    broker, _ = server.accept()
    for each in (client, broker):
        each.settimeout(patience(10))
    return client, broker


def comes_within(sock: socket.socket, seconds: float) -> bytes:
    sock.settimeout(seconds)
    try:
        return sock.recv(100)
    except TimeoutError:
        return b""
    finally:
        sock.settimeout(patience(10))


def test_octets_pass_in_both_directions(network: Network, server: socket.socket) -> None:
    client, broker = ends(network, server)
    with client, broker:
        assert network.port_of("a") == broker.getpeername()[1] != client.getsockname()[1]
        client.sendall(b"one")
        broker.sendall(b"two")
        assert (broker.recv(100), client.recv(100)) == (b"one", b"two")


def test_what_is_cut_waits_and_comes_in_order(network: Network, server: socket.socket) -> None:
    client, broker = ends(network, server)
    with client, broker:
        network.cut("a")
        client.sendall(b"one")
        broker.sendall(b"two")
        assert comes_within(broker, 0.1) == comes_within(client, 0.1) == b""
        client.sendall(b"three")
        network.heal("a")
        assert client.recv(100) == b"two"
        received = b""
        while len(received) < 8:
            received += broker.recv(100)
        assert received == b"onethree"


def test_others_go_on(network: Network, server: socket.socket) -> None:
    client, broker = ends(network, server)
    other, at_broker = ends(network, server, "b")
    with client, broker, other, at_broker:
        network.cut("a")
        other.sendall(b"one")
        assert at_broker.recv(100) == b"one"


def test_what_is_slow_comes_late_until_it_is_healed(network: Network, server: socket.socket) -> None:
    client, broker = ends(network, server)
    with client, broker:
        network.slow("a", 0.2)
        began = time.monotonic()
        client.sendall(b"one")
        assert broker.recv(100) == b"one" and time.monotonic() - began >= 0.2
        network.slow("a", 1000)
        client.sendall(b"two")
        assert comes_within(broker, 0.1) == b""
        network.heal("a")
        assert broker.recv(100) == b"two"


def test_much_passes_and_no_more_than_some_waits(network: Network, server: socket.socket) -> None:
    client, broker = ends(network, server)
    with client, broker:
        network.slow("a", 1000)
        client.settimeout(0.5)
        sent = 0
        with suppress(TimeoutError):
            while sent < 64 * MOST_UNDER_WAY:
                sent += client.send(bytes(100_000))
        assert sent < 64 * MOST_UNDER_WAY
        network.heal("a")
        received = 0
        while received < sent:
            received += len(broker.recv(1_000_000))


@pytest.mark.parametrize("is_client", [True, False])
def test_an_end_is_passed_on(network: Network, server: socket.socket, is_client: bool) -> None:
    client, broker = ends(network, server)
    one, other = (client, broker) if is_client else (broker, client)
    with client, broker:
        one.sendall(b"last")
        one.shutdown(socket.SHUT_WR)
        assert (other.recv(100), other.recv(100)) == (b"last", b"")
        other.sendall(b"answer")
        assert one.recv(100) == b"answer"


def test_a_reset_is_passed_on_when_it_is_healed(network: Network, server: socket.socket) -> None:
    client, broker = ends(network, server)
    with broker:
        network.cut("a")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
        assert comes_within(broker, 0.1) == b""
        network.heal("a")
        with pytest.raises(ConnectionResetError):
            broker.recv(100)


def test_a_name_is_used_again(network: Network, server: socket.socket) -> None:
    first, first_at_broker = ends(network, server)
    with first, first_at_broker:
        client, broker = ends(network, server)
        with client, broker, pytest.raises(ConnectionResetError):
            first_at_broker.recv(100)


def test_nobody_is_there(network: Network) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(TargetUnreachable, match=f"127.0.0.1 port {port}"):
        network.way_to("a", Address("127.0.0.1", port))


def test_it_settles_when_all_has_passed(network: Network, server: socket.socket) -> None:
    client, broker = ends(network, server)
    with client, broker:
        network.settle()
        network.slow("a", 0.1)
        client.sendall(b"one")
        assert comes_within(broker, 0.001) == b""
        network.settle()
        assert comes_within(broker, 0.001) == b"one"
        network.cut("a")
        client.sendall(b"two")
        network.settle()


def test_its_end_ends_all(server: socket.socket) -> None:
    with Network() as network:
        client, broker = ends(network, server)
    with client, broker:
        for each in (client, broker):
            with pytest.raises(ConnectionResetError):
                each.recv(100)
