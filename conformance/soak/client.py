"""One client of a soak: its connections follow one another, and each is opened without anybody waiting for it."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from enum import Enum
from typing import Any, Protocol

from amqpspec.conformance.session.handshake_steps import step
from amqpspec.model.protocol.methods import Content, TraceEvent, event_of
from amqpspec.targets.address import Address

#: Seconds until one that has lost its connection, or was refused, tries again.
_AGAIN = (0.05, 0.5)


class Mill(Protocol):
    """What drives the clients (`mill.py`)."""

    chosen: random.Random
    #: seconds that a broker may take to answer what it is asked, such as a step of the handshake
    patience: float

    def now(self) -> float: ...
    def connect(self, client: Client) -> Address | None:
        """Connect it, with a name that it is given; None: it cannot be reached now."""
        ...

    def send(self, event: TraceEvent, more: bool = False) -> None: ...
    def abort(self, client: Client) -> None: ...
    def leave(self, client: Client) -> None:
        """Everything was said on its connection."""
        ...


class State(Enum):
    OFFLINE = "offline"
    #: the handshake goes on
    OPENING = "opening"
    OPEN = "open"
    #: the client has asked to close the connection
    CLOSING = "closing"


class Client(ABC):
    """`connection` is the name of its connection, which may tell the node. Subclasses say what it does once it is open.
    """

    def __init__(self, name: str, mill: Mill) -> None:
        self.name = name
        self.connection = name
        self.mill = mill
        self.state = State.OFFLINE
        self.is_done = False
        self.address: Address | None = None
        self._next_try = self._away_until = 0.0
        #: when it began to wait for something that has to come
        self.waits_since: float | None = None
        self._channels_opened = 0

    # ------------------------------------------------------------------------------------------ its life

    def turn(self, now: float) -> None:
        """Do what is due."""
        if self.state is State.OFFLINE:
            if not self.is_done and now >= self._next_try:
                self._begin(now)
        elif self.waits_since is not None and now - self.waits_since > self.mill.patience:
            self.abort()
        elif self.state is State.OPEN:
            self.act(now)

    def _begin(self, now: float) -> None:
        self._next_try = now + self.mill.chosen.uniform(*_AGAIN)
        self.address = self.mill.connect(self)
        if self.address is None:
            return
        self.state = State.OPENING
        self.waits_since = now
        self._say("protocol.header", {})

    def _say(self, name: str, offered: dict[str, Any]) -> None:
        assert self.address is not None
        self.mill.send(step(self.address, self.connection, offered, name, {}))

    def received(self, event: TraceEvent) -> None:
        """A frame came on its connection."""
        name = event.name
        if event.channel:
            if self.state is State.OPEN:
                self.on_channel(event)
            return
        if name == "connection.start":
            self._say("connection.start-ok", {})
        elif name == "connection.tune":
            self._say("connection.tune-ok", event.arguments)
            self._say("connection.open", event.arguments)
        elif name == "connection.open-ok":
            self.state = State.OPEN
            self.waits_since = None
            self.opened()
        elif name == "connection.close":
            self.send(0, "connection.close-ok")
            self.mill.leave(self)
            self._over()
        elif name == "connection.close-ok":
            self.mill.leave(self)
            self._over()
        elif name in ("socket.closed", "socket.garbage"):
            self._over()

    def _over(self) -> None:
        if self.state is not State.OFFLINE:
            self.state = State.OFFLINE
            self.waits_since = None
            self._next_try = max(self._away_until, self.mill.now() + self.mill.chosen.uniform(*_AGAIN))
            self.lost()

    def abort(self) -> None:
        """End the TCP connection at once."""
        if self.state is not State.OFFLINE:
            self.mill.abort(self)
            self._over()

    def close(self) -> None:
        """Close the connection in order."""
        if self.state is State.OPEN:
            self.send(0, "connection.close", reply_code=200, reply_text="", class_id=0, method_id=0)
            self.state = State.CLOSING
            self.waits_since = self.mill.now()
        elif self.state is State.OPENING:
            self.abort()

    def stay_away(self, seconds: float) -> None:
        """Close the connection in order, and open none for so long."""
        self._away_until = self.mill.now() + seconds
        self.close()

    # ------------------------------------------------------------------------------------------ what it does

    @abstractmethod
    def opened(self) -> None:
        """The connection is open."""

    @abstractmethod
    def on_channel(self, event: TraceEvent) -> None:
        """A frame came on a channel."""

    @abstractmethod
    def act(self, now: float) -> None:
        """Do what is due on an open connection."""

    @abstractmethod
    def lost(self) -> None:
        """The connection is over, in whatever way."""

    def mishap(self, choice: int) -> None:
        """Do what a client should not do, such as to crash."""
        self.abort()

    def finish(self) -> None:
        """Come to an end."""
        self.is_done = True
        self.close()

    # ------------------------------------------------------------------------------------------ words

    def send(
        self, channel: int, name: str, content: Content | None = None, more: bool = False, **arguments: Any
    ) -> None:
        self.mill.send(event_of(self.connection, channel, name, arguments, True, content), more)

    def next_channel(self) -> int:
        """The number of a channel that is free: each is used again when a few others were."""
        self._channels_opened += 1
        return self._channels_opened % 8 + 1
