"""Carries commands through a library that connects again by itself, and then makes anew what it had made before.

Its client outlives its connections. Until the sequence opens the connection again nobody takes its attempts, so that
what it does by itself comes when the sequence waits for it; and all of that goes through the new tap, as ever.
"""

from __future__ import annotations

import socket
from concurrent.futures import Future
from typing import Any, Protocol, cast

from amqpspec.model.protocol.methods import TraceEvent
from amqpspec.targets.address import Address
from amqpspec.targets.drivers.carrier import CONNECT_TIME, SEND_TIME, LibraryCarrier
from amqpspec.targets.drivers.connection import ANSWERS, Connection
from amqpspec.targets.drivers.library import LibraryClient
from amqpspec.targets.drivers.tap import Tap


class LastingClient(LibraryClient, Protocol):
    """One connection of the application, however often it is connected. `open` may be called again: it is done when
    all was made anew.
    """

    @property
    def comes_back(self) -> bool:
        """Does it connect again? Not where the application has closed it, or it was never connected."""
        ...

    def made_anew(self, channel: int) -> Future[None]:
        """Done when a channel that the broker has closed was made anew, or given up."""
        ...

    def consumers_made_anew(self) -> Future[None] | None:
        """Start those anew that the broker has cancelled; None: there are none."""
        ...


class RobustCarrier(LibraryCarrier):
    """See `Carrier`."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        #: by connection: where its client connects, always
        self._listeners: dict[str, socket.socket] = {}
        #: those that are to come back
        self._lost: dict[str, LastingClient] = {}

    def send(self, event: TraceEvent, more: bool = False) -> None:
        connection = self._connections.get(event.connection)
        if connection is not None and not connection.is_end_told and event.name not in ANSWERS:
            due = _client(connection).consumers_made_anew()
            if due is not None:
                self._await(due, SEND_TIME)
                self._take_all(connection)
        super().send(event, more)

    def close(self) -> None:
        super().close()
        for client in self._lost.values():
            client.close()
        for listener in self._listeners.values():
            listener.close()

    def _await_answer(self, connection: Connection, event: TraceEvent) -> None:
        super()._await_answer(connection, event)
        if event.channel and not connection.tap.is_over:
            self._await(_client(connection).made_anew(event.channel), SEND_TIME)
            self._take_all(connection)

    def _take_all(self, connection: Connection) -> None:
        connection.tap.look()
        self._hand_out()

    def _listener(self, name: str) -> socket.socket:
        if name not in self._lost:
            known = self._listeners.pop(name, None)
            if known is not None:
                known.close()
            self._listeners[name] = super()._listener(name)
        return self._listeners[name].dup()

    def _client(self, name: str, place: Address) -> LibraryClient:
        return self._lost.pop(name, None) or super()._client(name, place)

    def _await_opening(self, tap: Tap, opened: Future[None]) -> None:
        """Where it cannot make all anew it ends the connection, and tries again and again."""
        opened.add_done_callback(lambda _: self._wake())
        with self._news:
            self._news.wait_for(lambda: opened.done() or tap.is_over, CONNECT_TIME)

    def _let_go(self, connection: Connection) -> None:
        client = _client(connection)
        if client.comes_back:
            self._lost[connection.tap.name] = client
        else:
            client.close()


def _client(connection: Connection) -> LastingClient:
    return cast(LastingClient, connection.client)
