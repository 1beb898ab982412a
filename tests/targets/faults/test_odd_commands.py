"""A faulty variant goes wrong as it says and does not break down, whatever a client sends."""

from __future__ import annotations

import pytest

from amqpspec.conformance.language.command_parsing import parse_command
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.protocol.methods import OPERATOR, Content, Method, event_of
from amqpspec.model.protocol.methods import Fault as OperatorFault
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker
from amqpspec.targets.client.wire import WireClient
from amqpspec.targets.faults.all_faults import FAULTS
from amqpspec.targets.faults.restarts import RESTARTS
from tests.patience import patience

#: Each group on a channel of its own, which an error closes: names that no queue has, the queue that was declared last,
#: direct reply-to, names that the broker makes, queues that give away at once what they get, tags and transactions of
#: nothing, what a transaction is to settle.
GROUPS = """
queue.declare q
basic.publish q mandatory body=m1
queue.purge ""
basic.consume ""
basic.get ""
basic.nack 0 multiple requeue
basic.ack 0 multiple
basic.recover requeue
queue.delete ""

queue.declare amq.rabbitmq.reply-to passive
basic.consume amq.rabbitmq.reply-to no-ack consumer-tag=r
basic.publish amq.rabbitmq.reply-to body=m2 reply_to=amq.rabbitmq.reply-to
queue.declare amq.rabbitmq.reply-to
queue.delete amq.rabbitmq.reply-to
basic.get amq.rabbitmq.reply-to no-ack

queue.declare ""
queue.declare "" passive
basic.consume "" exclusive
basic.consume "" consumer-tag=t
queue.bind "" amq.topic routing-key=a.b
basic.publish a.b exchange=amq.topic body=m3 priority=9 expiration=0
basic.cancel nobody
basic.cancel t

queue.declare missing passive

queue.delete missing

basic.get missing

basic.consume missing

basic.cancel missing

basic.publish q exchange=missing body=m4

basic.ack 7

basic.reject 0

queue.bind missing missing routing-key=a

queue.unbind missing amq.direct routing-key=a

exchange.declare e headers
exchange.bind e amq.headers
exchange.bind amq.fanout e routing-key=k
queue.declare h x-max-length=0 x-overflow=reject-publish x-dead-letter-exchange=e x-message-ttl=0
queue.bind h e
confirm.select
basic.publish "" exchange=e mandatory body=m5
basic.publish h body=m6 headers={"CC": ["q", "nobody"], "BCC": ["h"]}
basic.get h
exchange.delete e
exchange.delete e

exchange.delete amq.direct

queue.declare l
queue.declare v x-message-ttl=0 x-dead-letter-exchange="" x-dead-letter-routing-key=l
queue.declare w x-max-length=0 x-dead-letter-exchange="" x-dead-letter-routing-key=v
basic.publish v body=m14
basic.publish w body=m15 expiration=0
basic.get l
basic.reject 1 requeue=false

tx.select
tx.rollback
basic.publish nowhere mandatory body=m7
tx.commit
tx.commit

queue.declare x
tx.select
basic.publish x body=m11
tx.commit
basic.get x
basic.ack 1
basic.recover requeue
queue.purge x
queue.delete x

queue.declare y
basic.consume y consumer-tag=t
basic.publish y body=m12
tx.select
basic.ack 1
basic.recover requeue
basic.cancel t
queue.purge y

queue.declare z
basic.consume z consumer-tag=t
basic.publish z body=m13
tx.select
basic.ack 1
basic.cancel t
queue.delete z
tx.commit

queue.declare s durable x-queue-type=stream
basic.qos 1
basic.consume s x-stream-offset=first
basic.publish s body=m8
basic.ack 9 multiple

queue.declare u durable x-queue-type=quorum x-delivery-limit=0 x-consumer-timeout=1
basic.consume u x-consumer-timeout=1
basic.publish u body=m9
basic.publish u body=m10 priority=200
basic.nack 1 multiple requeue
basic.recover requeue

queue.delete h
queue.delete u
queue.delete s
queue.delete q
channel.flow active=false
"""

#: What is done before a restart, and behind it.
BEFORE_A_RESTART = """
queue.declare q durable
queue.declare u durable x-queue-type=quorum
queue.declare s durable x-queue-type=stream
basic.publish q body=m1 delivery-mode=2
basic.publish u body=m2
basic.publish s body=m3
basic.publish s body=m4
queue.declare last
"""
BEHIND_A_RESTART = """
confirm.select
basic.publish q body=m5 delivery-mode=2
basic.publish u body=m6
basic.publish s body=m7
basic.qos prefetch-count=10
basic.consume q consumer-tag=tq
basic.consume u consumer-tag=tu
basic.consume s consumer-tag=ts x-stream-offset=first
basic.ack 0 multiple
queue.declare last
"""


def odd_commands() -> list[Method]:
    return in_groups(GROUPS)


def in_groups(text: str, connection: str = "a") -> list[Method]:
    sent = []
    for number, group in enumerate(text.strip().split("\n\n"), 1):
        sent.append(event_of(connection, number, "channel.open", {}, True))
        for line in group.splitlines():
            command = parse_command(f"a.{number} {line}")
            content = command.content or Content({}, b"")
            is_publish = command.method == "basic.publish"
            event = event_of(
                connection, number, command.method, command.arguments, True, content if is_publish else None
            )
            assert isinstance(event, Method)
            sent.append(event)
    return sent


@pytest.mark.parametrize("fault", [None, *FAULTS])
def test_no_fault_breaks_the_broker_down(fault: str | None) -> None:
    """Leaving the block of the broker raises what broke it down."""
    dialect = dialect_named(FAULTS[fault].dialect if fault else "rabbitmq-4.3")
    with EmbeddedBroker(dialect, fault=fault) as broker, WireClient(broker.address) as client:
        client.open("a")
        for event in odd_commands():
            client.send(event)
        # a faulty one may leave it unanswered that the last command is refused
        most = 0.05 if fault else patience(10)
        while (answer := client.receive(most)) is not None and answer.name != "connection.close":
            pass
        assert answer is not None or fault


@pytest.mark.parametrize("fault", RESTARTS.faults)
def test_no_fault_of_restarts_breaks_the_broker_down(fault: str) -> None:
    with EmbeddedBroker(fault=fault) as broker, WireClient(broker.address) as client:
        for connection, text in (("a", BEFORE_A_RESTART), ("b", BEHIND_A_RESTART)):
            client.open(connection)
            for event in in_groups(text, connection):
                client.send(event)
            while (answer := client.receive(patience(10))) is not None:
                assert answer.name != "connection.close"
                if answer.name == "queue.declare-ok" and answer.arguments["queue"] == "last":
                    break
            assert answer is not None
            if connection == "a":
                client.abort("a")
                broker.faults().inject(OperatorFault(OPERATOR, 0, "broker.restart", {}, sent=True))
