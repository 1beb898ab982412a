"""Deleting what a sequence made, whatever happened to it; and saying what could not be deleted."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable

from amqpspec.model.protocol.methods import Method, TraceEvent
from amqpspec.targets.address import Address
from amqpspec.targets.client.carrier import Carrier
from amqpspec.targets.client.wire import WireClient
from amqpspec.targets.errors import TargetError

#: A kind ("queue" or "exchange") and a name.
Made = tuple[str, str]

#: Seconds for cleaning up after one sequence.
TIME_LIMIT = 10.0
#: Names that are deleted side by side, each on a channel of its own; every broker allows so many.
AT_ONCE = 100
_CONNECTION = "cleanup"
#: Seconds for a broker to answer connection.close.
PARTING_TIME = 1.0
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


def clean_up(address: Address, made: Iterable[Made]) -> list[Made]:
    """Delete these on a connection of its own, and give those that the broker has not deleted.

    It goes over the wire whatever carries the commands: it is no part of what is tested. A broker may close the
    connection for a name that it will not delete: the others are deleted on another one then, each by itself. What is
    left where the broker is gone, nobody knows: nothing is given.
    """
    names = [each for each in dict.fromkeys(made) if each[1]]
    deadline = time.monotonic() + TIME_LIMIT
    left: list[Made] = []
    at_once = AT_ONCE
    while names:
        some, names = names[:at_once], names[at_once:]
        try:
            with WireClient(address) as client:
                client.open(_CONNECTION)
                refused, unanswered = _delete(client, some, deadline)
        except TargetError:
            return []
        left += refused
        if not unanswered:
            continue
        if len(some) == 1 or time.monotonic() > deadline:
            left += unanswered
        else:
            names, at_once = unanswered + names, 1
    return left


def _delete(client: WireClient, names: list[Made], deadline: float) -> tuple[list[Made], list[Made]]:
    """What was refused, and what was not answered."""
    # a channel for each, as an error closes it
    waiting = dict(enumerate(names, 1))
    for channel, (kind, name) in waiting.items():
        client.send(Method(_CONNECTION, channel, "channel.open", {}, sent=True))
        client.send(Method(_CONNECTION, channel, f"{kind}.delete", {kind: name}, sent=True))
    refused: list[Made] = []
    while waiting and client.is_open(_CONNECTION):
        event = client.receive_before(deadline)
        if event is None or event.name == "socket.closed":
            break
        if event.name == "connection.close":
            client.send(Method(_CONNECTION, 0, "connection.close-ok", {}, sent=True))
            if len(names) == 1 and _is_not_there(event):
                waiting.clear()
            return refused, list(waiting.values())
        if event.name in ("queue.delete-ok", "exchange.delete-ok", "channel.close"):
            answered = waiting.pop(event.channel, None)
            if answered is not None and event.name == "channel.close" and not _is_not_there(event):
                refused.append(answered)
    client.send(Method(_CONNECTION, 0, "connection.close", {"reply_code": 200, "reply_text": "done"}, sent=True))
    client.receive_before(deadline)
    return refused, list(waiting.values())


def _is_not_there(close: TraceEvent) -> bool:
    return bool(close.arguments.get("reply_code") == NOT_FOUND)
