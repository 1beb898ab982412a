"""The libraries that can carry commands, and what the carrier asks of a client of one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Protocol

from amqpspec.model.protocol.methods import TraceEvent
from amqpspec.targets.address import Address

#: By the name of the driver: the distribution that it needs.
DISTRIBUTIONS = {"pika": "pika", "pika-select": "pika", "aio-pika": "aio-pika", "aio-pika-robust": "aio-pika"}
#: Those that make anew by themselves what they have made, after a connection or a channel was lost.
_ROBUST = frozenset({"aio-pika-robust"})


@dataclass(frozen=True, slots=True)
class Library:
    """`driver` is its name on the command line."""

    driver: str
    version: str

    def __str__(self) -> str:
        return f"{self.driver} {self.version}"


def is_robust(library: str) -> bool:
    """Is it one that makes anew what was lost? `library`: as a trace names it."""
    return library.partition(" ")[0] in _ROBUST


def library_named(driver: str) -> Library | None:
    """None: it is not installed."""
    try:
        return Library(driver, version(DISTRIBUTIONS[driver]))
    except PackageNotFoundError:
        return None


class LibraryRefuses(Exception):
    """The library does not send what it was asked for, and says so; one line."""


#: Tells what the application is shown: channel, method, arguments, content. Called from any thread.
Shows = Callable[..., None]


class LibraryClient(Protocol):
    """One connection of the library, to the address of a tap."""

    def open(self) -> Future[None]:
        """Connect and shake hands; done when the library says that it is open, or why not."""
        ...

    def call(self, event: TraceEvent) -> Future[None]:
        """Have the library send the method; done when the library's own function comes back. `LibraryRefuses` is
        raised where nothing was sent, and whatever the library raises where the broker has refused it.
        """
        ...

    def close(self) -> None:
        """Give up: the tap has ended the connection. Comes back when nothing of the client runs any more."""
        ...


#: Makes a client; `Address` is the tap's.
MakesClient = Callable[[Address, Shows], LibraryClient]
