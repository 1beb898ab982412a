"""A client and a broker at given times, for what times out (area TIMEOUT)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Self

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.model.defects.known_defects import acceptor_for
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.verdict import Verdict
from amqpspec.model.promises.versions import RABBITMQ
from amqpspec.model.protocol.methods import ClockWait, Content, Table, event_of
from tests.handshakes import CAPABLE, opening

QUORUM = "durable x-queue-type=quorum"


def text_of_close(milliseconds: int) -> str:
    return (
        f"PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. Timeout value used: {milliseconds} ms."
        " This timeout value can be configured, see consumers doc guide to learn more"
    )


class Timed:
    """Has the queue q, from 0.1 on. Replies come a hundredth of a second after what they answer; then all is at rest.

    `first`: what the operator does before the channel is opened. `server_capabilities`: what the broker announces
    beside the usual.
    """

    def __init__(
        self,
        queue: str = QUORUM,
        *first: str,
        dialect: str = "rabbitmq-4.3",
        capabilities: Mapping[str, Any] = CAPABLE,
        server_capabilities: Collection[str] = (),
        product: str = RABBITMQ,
    ) -> None:
        self.acceptor = acceptor_for(dialect_named(dialect), product=product)
        for connection in ("a", "b"):
            for method in opening(connection, self.acceptor.dialect, capabilities, server_capabilities):
                (self.acceptor.sent if method.sent else self.acceptor.received)(method)
        for line in first:
            self.send(0.0, line)
        self.ask(0.1, "a.1 channel.open", "channel.open-ok")
        self.ask(0.1, "b.1 channel.open", "channel.open-ok")
        arguments = {"queue": "q", "message_count": 0, "consumer_count": 0}
        self.ask(0.1, f"a.1 queue.declare q {queue}", "queue.declare-ok", **arguments)

    # ----------------------------------------------------------------------------------------- frame by frame

    def send(self, time: float, line: str) -> Self:
        command = parse_command(line)
        key = (command.connection, command.channel)
        arguments = dict(command.arguments)
        self.acceptor.sent(event_of(*key, command.method, arguments, sent=True, time=time, content=command.content))
        return self

    def see(self, time: float, method: str, content: Content | None = None, on: str = "a", **arguments: Any) -> Self:
        self.acceptor.received(event_of(on, 1, method, arguments, sent=False, time=time, content=content))
        return self

    def rest(self) -> Self:
        self.acceptor.quiescent()
        return self

    def ask(self, time: float, line: str, method: str, **arguments: Any) -> Self:
        return self.send(time, line).see(time + 0.01, method, on=line[0], **arguments).rest()

    # ------------------------------------------------------------------------------------------ what is usual

    def publish(self, time: float, body: str = "m1") -> Self:
        """A message; the passive declare shows that it has come, where nobody gets it."""
        return self.send(time, f"a.1 basic.publish q body={body}")

    def consume(self, time: float, options: str = "", tag: str = "c", on: str = "a") -> Self:
        line = f"{on}.1 basic.consume q tag={tag} {options}"
        return self.send(time, line).see(time + 0.01, "basic.consume-ok", on=on, consumer_tag=tag)

    def deliver(
        self, time: float, number: int = 1, body: str = "m1", tag: str = "c", on: str = "a", acquired: int = 0
    ) -> Self:
        """`acquired`: how often it has been delivered before."""
        properties: Table = {"headers": {"x-acquired-count": acquired}} if acquired else {}
        return self.deliver_with(time, number, properties, body, tag, on)

    def deliver_with(
        self, time: float, number: int, properties: Table, body: str = "m1", tag: str = "c", on: str = "a"
    ) -> Self:
        about: Table = {"consumer_tag": tag, "delivery_tag": number, "redelivered": bool(properties)}
        content = Content(properties, body.encode())
        return self.see(time, "basic.deliver", content, on, exchange="", routing_key="q", **about)

    def hold(self, options: str = "", queue_is_ready: float = 1.0) -> Self:
        """The consumer c has got m1, at that time."""
        began = queue_is_ready
        return self.publish(began - 0.2).count(began - 0.1, 1).consume(began, options).deliver(began + 0.02).rest()

    def redeliver(self, time: float, number: int, body: str = "m1", tag: str = "c", on: str = "a") -> Self:
        """For the second time."""
        return self.deliver(time, number, body, tag, on, acquired=1)

    def told(self, time: float, tag: str = "c", on: str = "a") -> Self:
        """The broker has cancelled the consumer."""
        return self.see(time, "basic.cancel", on=on, consumer_tag=tag, nowait=True)

    def cancelled(self, time: float, tag: str = "c") -> Self:
        """The same, and that is all."""
        return self.told(time, tag).rest()

    def closing(self, milliseconds: int) -> Table:
        return {"reply_code": 406, "reply_text": text_of_close(milliseconds), "class_id": 0, "method_id": 0}

    def closed(self, time: float, milliseconds: int) -> Self:
        self.see(time, "channel.close", **self.closing(milliseconds))
        return self.send(time, "a.1 channel.close-ok").rest()

    def count(self, time: float, messages: int, consumers: int = 0) -> Self:
        arguments = {"queue": "q", "message_count": messages, "consumer_count": consumers}
        return self.ask(time, "b.1 queue.declare q passive", "queue.declare-ok", **arguments)

    def wait(self, until: float) -> Self:
        """Nothing comes until then."""
        self.acceptor.sent(ClockWait("broker", 0, "clock.wait", {}, sent=True, time=until))
        return self

    def in_vain(self, until: float) -> Self:
        """Nothing comes until then, nor long after that."""
        self.wait(until)
        if self.acceptor.owes():
            self.acceptor.overdue()
        return self.rest()

    @property
    def blamed(self) -> str:
        if not self.acceptor.failures:
            assert self.acceptor.verdict is Verdict.PASS, self.acceptor.reason
            return ""
        return self.acceptor.failures[0].requirement

    @property
    def defect(self) -> str:
        """By which known defect the first failure is explained."""
        return self.acceptor.failures[0].defect if self.acceptor.failures else ""
