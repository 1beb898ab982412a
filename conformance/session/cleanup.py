"""Deleting what a sequence made, whatever happened to it."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable

from amqpspec.model.protocol.methods import Method
from amqpspec.targets.address import Address
from amqpspec.targets.client.carrier import Carrier
from amqpspec.targets.client.wire import WireClient
from amqpspec.targets.errors import TargetError

#: Seconds for cleaning up after one sequence.
TIME_LIMIT = 10.0
_CONNECTION = "cleanup"
#: Seconds for a broker to answer connection.close.
PARTING_TIME = 1.0


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


def clean_up(address: Address, made: Iterable[tuple[str, str]]) -> None:
    """Delete these (kind, name) pairs, kind being "queue" or "exchange", on a connection of its own.

    It goes over the wire whatever carries the commands: it is no part of what is tested.

    Best effort: a broker that is gone or refuses keeps what it has.
    """
    names = [(kind, name) for kind, name in made if name and not name.startswith("amq.")]
    if not names:
        return
    with WireClient(address) as client:
        try:
            client.open(_CONNECTION)
        except TargetError:
            return
        _delete(client, names)


def _delete(client: WireClient, names: list[tuple[str, str]]) -> None:
    # a channel for each, as an error closes it; the connection is closed in any case
    for channel, (kind, name) in enumerate(names, 1):
        client.send(Method(_CONNECTION, channel, "channel.open", {}, sent=True))
        client.send(Method(_CONNECTION, channel, f"{kind}.delete", {kind: name}, sent=True))
    deadline = time.monotonic() + TIME_LIMIT
    answered = 0
    while answered < len(names) and client.is_open(_CONNECTION):
        event = client.receive_before(deadline)
        if event is None or event.name in ("socket.closed", "connection.close"):
            break
        if event.name in ("queue.delete-ok", "exchange.delete-ok", "channel.close"):
            answered += 1
    client.send(Method(_CONNECTION, 0, "connection.close", {"reply_code": 200, "reply_text": "done"}, sent=True))
    client.receive_before(deadline)
