"""Does a broker still answer? Asked when one has let a deadline pass: some brokers hang, and stay so."""

from __future__ import annotations

import secrets
import time

from amqpspec.model.protocol.methods import Method
from amqpspec.targets.address import Address
from amqpspec.targets.client.wire import WireClient
from amqpspec.targets.errors import TargetUnreachable

#: Seconds that a broker in good health may take for all of it.
TIME_LIMIT = 10.0


def check_alive(address: Address) -> None:
    """Connect, declare a queue and delete it. Raises `TargetError` if the broker does not get through it."""
    name = f"amqpspec-{secrets.token_hex(5)}-alive"
    deadline = time.monotonic() + TIME_LIMIT
    with WireClient(address) as client:
        client.open("alive", timeout=TIME_LIMIT)
        for method, arguments, answer in (
            ("channel.open", {}, "channel.open-ok"),
            ("queue.declare", {"queue": name}, "queue.declare-ok"),
            ("queue.delete", {"queue": name}, "queue.delete-ok"),
        ):
            client.send(Method("alive", 1, method, dict(arguments), sent=True))
            event = client.receive_before(deadline)
            while event is not None and event.name not in (
                answer,
                "channel.close",
                "connection.close",
                "socket.closed",
                "socket.garbage",
            ):
                event = client.receive_before(deadline)
            if event is None or event.name in ("socket.closed", "socket.garbage"):
                raise TargetUnreachable(f"{address} does not answer {method} any more")
            if event.name != answer:
                return  # it refuses, but it answers
