"""The life of an embedded broker: it is stopped, killed or paused, and serves again with what is left of it."""

from __future__ import annotations

import contextlib
import socket
from typing import Protocol

from amqpspec.model.protocol.methods import OPERATOR, Fault
from amqpspec.targets.address import Address
from amqpspec.targets.embedded.connection import ClientConnection
from amqpspec.targets.embedded.hosts_responder import HostsResponder
from amqpspec.targets.embedded.loop import SHUTDOWN, Loop
from amqpspec.targets.embedded.restart import restart

#: The mishap that a pause is.
_PAUSE = "no-answer"


class Served(Protocol):
    """An embedded broker (`targets.brokers.embedded_broker`)."""

    @property
    def address(self) -> Address: ...
    @property
    def loop(self) -> Loop: ...
    @property
    def responder(self) -> HostsResponder: ...
    def begin(self) -> None: ...
    def end(self) -> None: ...
    def keep_port(self) -> None: ...


class EmbeddedNode:
    """A `Node` (`targets.brokers.single_node`). It keeps its port."""

    def __init__(self, broker: Served) -> None:
        self.is_down = False
        self._is_paused = False
        self._broker = broker
        #: connections that the broker has ended: the client's end is closed with ours, so ours waits for the very end
        self.parted: list[ClientConnection] = []
        #: keeps the port while nobody listens there
        self._place: socket.socket | None = None

    @property
    def address(self) -> Address:
        return self._broker.address

    def stop(self) -> None:
        """As when RabbitMQ is stopped: connections end with 320, and the port refuses until `start_again`."""

        def end(loop: Loop) -> None:
            loop.hear_half_contents()
            loop.close_in_order(loop.clients_named(None), SHUTDOWN)
            self.parted += loop.part_from_all()
            restart(loop.responder, is_killed=False)

        loop = self._broker.loop
        loop.orders.do(lambda: end(loop))
        self._end_serving()

    def kill(self) -> None:
        """As when it is killed: connections break off."""

        def end(loop: Loop) -> None:
            loop.hear_half_contents()
            loop.break_off_all()
            restart(loop.responder, is_killed=True)

        loop = self._broker.loop
        loop.orders.do(lambda: end(loop))
        if self._is_paused:
            loop.mishaps.end(_PAUSE)
            self._is_paused = False
        self._end_serving()

    def pause(self) -> None:
        """Nothing is read and nothing is sent."""
        loop = self._broker.loop
        loop.orders.do(lambda: loop.mishaps.begin(_PAUSE, 0))
        self._is_paused = True

    def resume(self) -> None:
        loop = self._broker.loop

        def go_on() -> None:
            loop.responder.take(Fault(OPERATOR, 0, "broker.resume", {}, sent=True))
            loop.heal(_PAUSE)

        loop.orders.do(go_on)
        self._is_paused = False

    def start_again(self) -> None:
        self._give_up_place()
        self._broker.begin()
        self.is_down = False

    def give_up(self) -> None:
        """It is not started any more."""
        self._give_up_place()
        for client in self.parted:
            client.close()
        self.parted.clear()

    def _end_serving(self) -> None:
        self.is_down = True
        self._broker.end()
        self._broker.keep_port()
        self._place = _kept(self._broker.address)

    def _give_up_place(self) -> None:
        if self._place is not None:
            self._place.close()
            self._place = None


def _kept(address: Address) -> socket.socket | None:
    """A socket that has the port, so that nobody else is given it, and does not listen there."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    place = socket.socket(family, socket.SOCK_STREAM)
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    with contextlib.suppress(OSError):
        place.bind((address.host, address.port))
        return place
    place.close()
    return None
