"""Deleting what a sequence made, whatever happened to it, and saying what could not be deleted; and putting back what
the broker should not have let it delete.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from amqpspec.conformance.session.patience import Patience
from amqpspec.model.broker.broker_state import PREDECLARED_EXCHANGES
from amqpspec.model.protocol.methods import Method, Table, TraceEvent
from amqpspec.targets.address import Address
from amqpspec.targets.client.carrier import Carrier
from amqpspec.targets.client.wire import WireClient
from amqpspec.targets.errors import TargetError

#: A kind ("queue" or "exchange") and a name.
Made = tuple[str, str]

#: Seconds for cleaning up after one sequence: at the most, and at the least.
TIME_LIMIT, SHORT_TIME_LIMIT = 5.0, 1.0
#: Seconds for what is left at the end of a run: RabbitMQ gives a stream 30 (rabbit_stream_coordinator: CMD_TIMEOUT).
LAST_TIME_LIMIT = 35.0
#: Names that are deleted side by side, each on a channel of its own; every broker allows so many.
AT_ONCE = 100
_CONNECTION = "cleanup"
#: Seconds for a broker to answer connection.close.
PARTING_TIME = 1.0
#: A reason for a queue or exchange to be left.
NO_ANSWER = "no answer"
#: The reply code of what is not there.
NOT_FOUND = 404


def part(carrier: Carrier, closed: Collection[str] = ()) -> None:
    """Close every connection as a well-behaved client does, so that nothing of it is left when queues are deleted.

    `closed`: those that the broker has closed already. It may not read them any more.
    """
    deadline = time.monotonic() + PARTING_TIME
    waiting = set(carrier.open_names()).difference(closed)
    for name in waiting:
        carrier.send(Method(name, 0, "connection.close", {"reply_code": 200, "reply_text": "done"}, sent=True))
    while waiting:
        event = carrier.receive_before(deadline)
        if event is None:
            break
        if event.channel == 0 and event.name in ("connection.close-ok", "connection.close", "socket.closed"):
            waiting.discard(event.connection)
    carrier.close()


class Cleaner:
    """Deletes what sequences made, on connections that it keeps for the next ones; several threads may use it.

    It goes over the wire whatever carries the commands: it is no part of what is tested.
    """

    def __init__(self) -> None:
        self._idle: deque[_Connection] = deque()
        #: why a name was not deleted, as the broker says it
        self.reasons: dict[Made, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Part from the broker as a well-behaved client does."""
        while self._idle:
            self._idle.pop().part()

    def clean_up(
        self, address: Address, made: Iterable[Made], patience: Patience | None = None, time_limit: float = TIME_LIMIT
    ) -> list[Made]:
        """Delete these, and give those that the broker has not deleted, in as much time as there is patience for, or
        in `time_limit` seconds.

        A broker may close the connection for a name that it will not delete: the others are deleted on another one
        then, each by itself. What is left where the broker is gone, nobody knows: nothing is given. A kind
        whose deletion it has never answered is not deleted any more.
        """
        # queues first: RabbitMQ 3.10 never deletes a stream whose exchange goes at the same moment (docs/findings.md)
        named = sorted((each for each in dict.fromkeys(made) if each[1]), key=lambda each: each[0] != "queue")
        names = [each for each in named if patience is None or patience.deletes(each[0])]
        if patience is not None:
            time_limit = patience.generous(SHORT_TIME_LIMIT, TIME_LIMIT)
        deadline = time.monotonic() + time_limit
        left = [each for each in named if each not in names]
        at_once = AT_ONCE
        while names:
            if time.monotonic() > deadline:
                left += names
                break
            some = [each for each in names if each[0] == names[0][0]][:at_once]
            names = names[len(some) :]
            try:
                with self._connection(address, time_limit) as connection:
                    refused, unanswered = connection.delete(some, deadline)
                    self.reasons |= connection.reasons
            except TargetError:
                left = []
                break
            left += refused
            if patience is not None and not (unanswered and connection.was_kept):
                for each in some:
                    patience.deleted(each[0], each not in unanswered)
            if not unanswered:
                continue
            if connection.was_kept:
                names = unanswered + names  # it may have been over before: that says nothing of the names
            elif len(some) == 1 or time.monotonic() > deadline:
                left += unanswered
            else:
                names, at_once = unanswered + names, 1
        if patience is not None and time.monotonic() > deadline:
            patience.waited_in_vain()
        return left

    @contextmanager
    def _connection(self, address: Address, time_limit: float) -> Iterator[_Connection]:
        """One that is idle or new, which is kept unless something went wrong on it. Raises `TargetError`."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = _Connection(address, time_limit)
        if connection.address != address:  # the broker was started again, elsewhere
            connection.close()
            connection = _Connection(address, time_limit)
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        if connection.is_whole:
            connection.was_kept = True
            self._idle.append(connection)
        else:
            connection.part()


def clean_up(address: Address, made: Iterable[Made], patience: Patience | None = None) -> list[Made]:
    """As `Cleaner.clean_up`, with a connection for this once."""
    with Cleaner() as cleaner:
        return cleaner.clean_up(address, made, patience)


def put_back(address: Address, exchanges: Iterable[str]) -> None:
    """Declare these exchanges of the broker's own where they are not there any more, as well as it lets us."""
    deadline = time.monotonic() + TIME_LIMIT
    for exchange in exchanges:
        for passive in (True, False):
            try:
                connection = _Connection(address)
            except TargetError:
                return
            try:
                is_there = connection.declare(exchange, PREDECLARED_EXCHANGES[exchange], passive, deadline)
            finally:
                connection.part()
            if is_there:
                break


class _Connection:
    """`was_kept`: it has deleted something before. `is_whole`: all that it was sent was answered, and it is open, with
    all of its channels.
    """

    def __init__(self, address: Address, time_limit: float = TIME_LIMIT) -> None:
        """`time_limit`: seconds for opening it. Raises `TargetError`."""
        self.address = address
        self.was_kept = False
        self.is_whole = False
        self._client = WireClient(address)
        #: as those of `Cleaner`, of what was to be deleted last
        self.reasons: dict[Made, str] = {}
        #: channels that are open, and how many were opened
        self._open: set[int] = set()
        self._opened = 0
        try:
            self._client.open(_CONNECTION, timeout=time_limit)
        except BaseException:
            self._client.close()
            raise

    def part(self) -> None:
        part(self._client)

    def close(self) -> None:
        self._client.close()

    def _send(self, channel: int, method: str, arguments: Table) -> None:
        self._client.send(Method(_CONNECTION, channel, method, arguments, sent=True))

    def declare(self, exchange: str, type: str, passive: bool, deadline: float) -> bool:
        """Has the broker agreed?"""
        self._send(1, "channel.open", {})
        self._send(1, "exchange.declare", {"exchange": exchange, "type": type, "durable": True, "passive": passive})
        while self._client.is_open(_CONNECTION):
            event = self._client.receive_before(deadline)
            if event is None or event.name in ("socket.closed", "channel.close", "connection.close"):
                return False
            if event.name == "exchange.declare-ok":
                return True
        return False

    def delete(self, names: list[Made], deadline: float) -> tuple[list[Made], list[Made]]:
        """What was refused, and what was not answered."""
        self.is_whole = False
        # a channel for each, as an error closes it
        waiting = dict(enumerate(names, 1))
        self.reasons = dict.fromkeys(names, NO_ANSWER)
        for channel, (kind, name) in waiting.items():
            if channel not in self._open:
                self._open.add(channel)
                self._opened += 1
                self._send(channel, "channel.open", {})
            self._send(channel, f"{kind}.delete", {kind: name})
        refused: list[Made] = []
        while waiting and self._client.is_open(_CONNECTION):
            event = self._client.receive_before(deadline)
            if event is None or event.name == "socket.closed":
                return refused, list(waiting.values())
            if event.name == "connection.close":
                self._send(0, "connection.close-ok", {})
                self.reasons |= dict.fromkeys(waiting.values(), str(event.arguments.get("reply_text", "")))
                if len(names) == 1 and _is_not_there(event):
                    waiting.clear()
                return refused, list(waiting.values())
            if event.name == "channel.close":
                self._send(event.channel, "channel.close-ok", {})
                self._open.discard(event.channel)
            if event.name in ("queue.delete-ok", "exchange.delete-ok", "channel.close"):
                answered = waiting.pop(event.channel, None)
                if answered is not None and event.name == "channel.close" and not _is_not_there(event):
                    self.reasons[answered] = str(event.arguments.get("reply_text", ""))
                    refused.append(answered)
        # some brokers never open a channel again that they have closed
        all_open = len(self._open) == self._opened
        self.is_whole = not waiting and all_open and self._client.is_open(_CONNECTION)
        return refused, list(waiting.values())


def _is_not_there(close: TraceEvent) -> bool:
    return bool(close.arguments.get("reply_code") == NOT_FOUND)
