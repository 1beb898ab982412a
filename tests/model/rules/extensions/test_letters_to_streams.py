"""Dead letters of expired messages that a stream ought to take, and one of RabbitMQ 3.10 does not (DLX-005)."""

from __future__ import annotations

import pytest

from amqpspec.model.defects.known_defects import acceptor_for
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.protocol.methods import Content, Method, event_of
from tests.handshakes import opening
from tests.model.rules.extensions.test_time_to_live import Timed

TO_STREAM = 'x-dead-letter-exchange="" x-dead-letter-routing-key=s'


class Lettered(Timed):
    """q's dead letters go to the stream s, which a.1 reads in the end."""

    def __init__(self, *publishes: str) -> None:
        self.acceptor = acceptor_for(dialect_named("rabbitmq-3"))
        for method in opening("a", self.acceptor.dialect):
            (self.acceptor.sent if method.sent else self.acceptor.received)(method)
        self.ask(0.1, "a.1 channel.open", "channel.open-ok")
        for name, arguments in (("s", "x-queue-type=stream"), ("q", TO_STREAM)):
            line = f"a.1 queue.declare {name} durable {arguments}"
            self.ask(0.2, line, "queue.declare-ok", queue=name, message_count=0, consumer_count=0)
        for number, properties in enumerate(publishes, start=1):
            self.send(1.0, f"a.1 basic.publish q body=m{number} {properties}")
        self.count(1.01, len(publishes))

    def come(self, time: float, method: str, body: bytes, headers: dict[str, int], **arguments: object) -> None:
        content = Content({"headers": headers}, body) if headers else Content({}, body)
        table = {"exchange": "", "redelivered": False, **arguments}
        self.acceptor.received(event_of("a", 1, method, table, sent=False, time=time, content=content))

    def read(self, time: float) -> None:
        self.ask(time, "a.1 basic.qos 9", "basic.qos-ok")
        self.send(time + 0.1, "a.1 basic.consume s tag=t x-stream-offset=first")
        self.acceptor.received(Method("a", 1, "basic.consume-ok", {"consumer_tag": "t"}, sent=False, time=time + 0.11))

    @property
    def known(self) -> list[str]:
        return [failure.defect for failure in self.acceptor.failures]


@pytest.mark.known_defects
def test_one_that_expires_behind_a_message_that_is_taken_is_known_to_be_lost() -> None:
    talk = Lettered("", "expiration=0")
    talk.send(3.0, "a.1 basic.get q")
    talk.come(3.01, "basic.get-ok", b"m1", {}, delivery_tag=1, routing_key="q", message_count=0)
    talk.acceptor.quiescent()
    talk.count(3.1, 0)
    talk.read(4.0)
    talk.acceptor.overdue()
    assert talk.known == ["stream-takes-no-dead-letters"]
