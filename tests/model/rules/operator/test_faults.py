"""What a restart leaves of the lawful state."""

from __future__ import annotations

import pytest

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.queues import Binding, Exchange, Message, Queue
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import OPERATOR, Content, Fault
from amqpspec.model.rules.extensions.queue_expiry import begin, expiries
from amqpspec.model.rules.inputs import process

PERSISTENT, TRANSIENT = 2, 1


def broker_with(*queues: Queue, dialect: str = "rabbitmq-4.3") -> Broker:
    broker = Broker(dialect_named(dialect))
    broker.queues = {queue.name: queue for queue in queues}
    return broker


def put(broker: Broker, queue: Queue, body: str, mode: int = PERSISTENT, stored_by: str = "") -> Message:
    message = Message(Content({"delivery_mode": mode}, body.encode()), "", queue.name, 0, stored_by=stored_by)
    broker.enqueue(queue, message)
    broker.prove(queue, message)
    return message


def restart(broker: Broker, by: str = "broker.stop") -> Broker:
    for name in (by, "broker.restart"):
        process(broker, Fault(OPERATOR, 0, name, {}, sent=True))
    return broker


def left(queue: Queue) -> list[str]:
    return [("?" if message.may_be_absent else "") + message.content.body.decode() for message in queue.messages]


@pytest.mark.parametrize(
    ("kind", "by", "expected"),
    [
        (QueueType.CLASSIC, "broker.stop", ["m1", "m3"]),
        (QueueType.CLASSIC, "broker.kill", ["m1", "?m3"]),
        (QueueType.QUORUM, "broker.stop", ["m1", "m2", "m3"]),
        (QueueType.QUORUM, "broker.kill", ["m1", "m2", "m3"]),
    ],
)
def test_messages(kind: QueueType, by: str, expected: list[str]) -> None:
    queue = Queue("q", kind, durable=True)
    broker = broker_with(queue)
    put(broker, queue, "m1", stored_by="DURABLE-004")
    put(broker, queue, "m2", TRANSIENT, stored_by="DURABLE-004")
    put(broker, queue, "m3")
    restart(broker, by)
    assert left(queue) == expected
    assert broker.has_doubts is any(body.startswith("?") for body in expected)


def test_what_is_on_its_way_to_a_queue_may_be_lost_by_a_stop() -> None:
    queue = Queue("q", durable=True)
    broker = broker_with(queue)
    broker.enqueue(queue, Message(Content({"delivery_mode": PERSISTENT}, b"m1"), "", "q", 0))
    restart(broker)
    assert left(queue) == ["?m1"]


def test_the_text_promises_nothing_of_transient_messages() -> None:
    queue = Queue("q", durable=True)
    broker = broker_with(queue, dialect="amqp-0-9-1")
    put(broker, queue, "m1", TRANSIENT)
    restart(broker)
    assert left(queue) == ["?m1"]


def test_queues_exchanges_and_bindings() -> None:
    broker = broker_with(
        Queue("d", durable=True), Queue("t"), Queue("x", durable=True, owner="a"),
        Queue("n", durable=True, auto_delete=True),
    )
    to_d, to_t, to_y = Binding("d", "k"), Binding("t", "k"), Binding("y", "k", to_exchange=True)
    broker.exchanges["f"] = Exchange("f", "fanout", bindings=(to_d, to_t, to_y))
    broker.exchanges["y"] = Exchange("y", "fanout", durable=False, bindings=(to_d,))
    restart(broker)
    assert sorted(broker.queues) == ["d", "n"]
    assert broker.exchanges["f"].bindings == (to_d,) and "y" not in broker.exchanges
    ended = broker.bookkeeping.ended_queues
    assert ended == {"t": "DURABLE-001", "x": "DURABLE-006"}
    assert broker.bookkeeping.ended_exchanges == {"y": "DURABLE-001"}


def test_what_the_operator_set_up_while_it_ran() -> None:
    broker = broker_with()
    broker.settings["consumer_timeout"], broker.alarm = 5, True
    restart(broker)
    assert not broker.settings and not broker.alarm and not broker.down_by


def test_a_kill_counts_after_a_stop_and_not_the_other_way_round() -> None:
    broker = broker_with()
    for name, by in (("broker.stop", "broker.stop"), ("broker.kill", "broker.kill"), ("broker.stop", "broker.kill")):
        process(broker, Fault(OPERATOR, 0, name, {}, sent=True))
        assert broker.down_by == by


@pytest.mark.parametrize("name", ["network.cut", "network.slow", "network.heal"])
def test_what_changes_nothing(name: str) -> None:
    queue = Queue("q", durable=True)
    broker = broker_with(queue)
    put(broker, queue, "m1")
    process(broker, Fault(OPERATOR, 0, name, {"connection": "a"}, sent=True))
    assert left(queue) == ["m1"] and not broker.down_by and not broker.failed


def test_no_queue_is_known_to_expire_while_the_broker_is_down() -> None:
    """A stop and a start may take longer than its time, which begins anew with the broker (DURABLE-018)."""
    queue = Queue("q", QueueType.CLASSIC, durable=True, arguments={"x-expires": 20_000})
    broker = broker_with(queue)
    begin(broker, queue)
    process(broker, Fault(OPERATOR, 0, "broker.stop", {}, sent=True))
    expiries(broker, 30.0, is_certain=True)
    broker.now = 30.0
    process(broker, Fault(OPERATOR, 0, "broker.restart", {}, sent=True))
    expiries(broker, 45.0, is_certain=True)
    assert "q" in broker.queues
    expiries(broker, 60.0, is_certain=True)
    assert "q" not in broker.queues
