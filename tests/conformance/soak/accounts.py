"""Traces of soaks that are written by hand, for the ledger."""

from __future__ import annotations

from typing import Any

from amqpspec.conformance.soak.findings import Finding, What
from amqpspec.conformance.soak.ledger import Ledger
from amqpspec.conformance.soak.message import Identity, content
from amqpspec.conformance.traces.trace_row import event_row
from amqpspec.model.protocol.methods import OPERATOR, TraceEvent, event_of


class Account:
    """A ledger, and words for what happens. `now` is the time, which passes by 0.001 s with each row. A connection is
    its own sequence. There are three queues: classic, quorum and stream.
    """

    def __init__(self, patience: float = 5.0) -> None:
        self.ledger = Ledger(patience)
        self.now = 0.0
        self.line = 0
        self.sent("setup", "exchange.declare", exchange="x", type="direct")
        for queue in ("classic", "quorum", "stream"):
            arguments = {} if queue == "classic" else {"x-queue-type": queue}
            self.sent("setup", "queue.declare", queue=queue, arguments=arguments)
            self.sent("setup", "queue.bind", queue=queue, exchange="x", routing_key=queue)

    def row(self, event: TraceEvent) -> None:
        self.now += 0.001
        self.line += 1
        event.time = self.now
        self.ledger.row(event_row(event.connection, event), self.line)

    def sent(self, connection: str, name: str, content: Any = None, channel: int = 1, **arguments: Any) -> None:
        self.row(event_of(connection, 0 if name.startswith(("connection.", "socket.")) else channel, name, arguments,
                          True, content))  # fmt: skip

    def received(self, connection: str, name: str, content: Any = None, channel: int = 1, **arguments: Any) -> None:
        self.row(event_of(connection, 0 if name.startswith(("connection.", "socket.")) else channel, name, arguments,
                          False, content))  # fmt: skip

    # ------------------------------------------------------------------------------------------ words

    def fault(self, name: str, **arguments: Any) -> None:
        self.sent(OPERATOR, name, **arguments)

    def publisher(self, name: str) -> None:
        self.sent(name, "channel.open")
        self.sent(name, "confirm.select")

    def publish(self, name: str, *numbers: int, queue: str = "classic", mode: int = 2) -> None:
        for number in numbers:
            said = content(Identity(name, number), "x", queue, mode)
            self.sent(name, "basic.publish", said, exchange="x", routing_key=queue, mandatory=True)

    def confirm(self, name: str, tag: int, method: str = "basic.ack", multiple: bool = False) -> None:
        self.received(name, method, delivery_tag=tag, multiple=multiple)

    def consumer(self, name: str, queue: str = "classic", limit: int = 0) -> None:
        self.sent(name, "channel.open")
        if limit:
            self.sent(name, "basic.qos", prefetch_count=limit)
        self.sent(name, "basic.consume", queue=queue, consumer_tag="t")

    def deliver(
        self, name: str, tag: int, of: str, number: int, queue: str = "classic", redelivered: bool = False,
        mode: int = 2, **headers: Any,
    ) -> None:  # fmt: skip
        said = content(Identity(of, number), "x", queue, mode)
        if headers:
            named = {key.replace("_", "-"): value for key, value in headers.items()}
            said = type(said)({**said.properties, "headers": named}, said.body)
        self.received(
            name, "basic.deliver", said, consumer_tag="t", delivery_tag=tag, redelivered=redelivered, exchange="x",
            routing_key=queue,
        )  # fmt: skip

    def ack(self, name: str, tag: int, multiple: bool = False) -> None:
        self.sent(name, "basic.ack", delivery_tag=tag, multiple=multiple)

    def back(self, name: str, tag: int) -> None:
        self.sent(name, "basic.nack", delivery_tag=tag, requeue=True)

    def empty(self, queue: str = "classic") -> None:
        self.sent("drain", "basic.get", queue=queue)
        self.received("drain", "basic.get-empty")

    def close_channel(self, name: str) -> None:
        self.sent(name, "channel.close")
        self.received(name, "channel.close-ok")

    # ------------------------------------------------------------------------------------------ what is found

    def wrong(self) -> list[What]:
        """The kinds of what is wrong, at the end."""
        self.ledger.end()
        return self.wrong_by_now()

    def wrong_by_now(self) -> list[What]:
        return sorted(self.ledger.findings.wrong, key=lambda what: what.name)

    def told(self) -> list[Finding]:
        return self.ledger.findings.told
