"""Who reads a stream to its end at the end of a soak."""

from __future__ import annotations

import random

import pytest

from amqpspec.conformance.soak.client import Client, State
from amqpspec.conformance.soak.drainer import Drainer
from amqpspec.conformance.soak.outstanding import Outstanding
from amqpspec.conformance.soak.plan import plan_of
from amqpspec.model.promises.dialects import dialect_named
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Content, TraceEvent, event_of
from amqpspec.targets.address import Address

PATIENCE = 20.0


class OneClient:
    """A mill whose clock is turned by hand. `published`: message-ids."""

    def __init__(self) -> None:
        self.chosen = random.Random(1)
        self.patience = PATIENCE
        self.time = 100.0
        self.published: list[Content] = []

    def now(self) -> float:
        return self.time

    def connect(self, client: Client) -> Address | None:
        return Address("127.0.0.1", 1)

    def send(self, event: TraceEvent, more: bool = False) -> None:
        content = getattr(event, "content", None)
        if event.name == "basic.publish" and content is not None:
            self.published.append(content)

    def abort(self, client: Client) -> None:
        raise AssertionError("it has waited for too long")

    def leave(self, client: Client) -> None: ...


@pytest.fixture
def reader() -> Drainer:
    """One that has begun to read a stream."""
    plan = plan_of(1, dialect_named("rabbitmq-4.3"), "soak")
    (stream,) = (queue for queue in plan.queues if queue.type is QueueType.STREAM)
    mill = OneClient()
    found = Drainer("d3", stream, mill, Outstanding(()), PATIENCE)
    found.turn(mill.time)
    found.received(event_of("d3", 0, "connection.open-ok", {}, False, None))
    found.received(event_of("d3", found.channel, "basic.consume-ok", {"consumer_tag": "t"}, False, None))
    return found


def wait(reader: Drainer, seconds: float) -> None:
    for _ in range(int(seconds * 10)):
        reader.mill.time += 0.1  # type: ignore[attr-defined]
        reader.turn(reader.mill.now())


def published(reader: Drainer) -> list[Content]:
    found: list[Content] = reader.mill.published  # type: ignore[attr-defined]
    return found


@pytest.mark.quick
def test_a_last_message_that_is_lost_is_published_again(reader: Drainer) -> None:
    """A stream that was started a moment ago may get nothing (docs/findings.md, DURABLE-004)."""
    assert len(published(reader)) == 1
    wait(reader, 2.5)
    assert len(published(reader)) == 3
    arguments = {"consumer_tag": "t", "delivery_tag": 1, "redelivered": False}
    reader.received(event_of("d3", reader.channel, "basic.deliver", arguments, False, published(reader)[-1]))
    assert reader.is_empty and reader.is_done


@pytest.mark.quick
def test_a_stream_that_gives_nothing_is_not_known_to_be_read(reader: Drainer) -> None:
    wait(reader, PATIENCE + 1.0)
    assert reader.is_done and not reader.is_empty and reader.state is State.CLOSING
