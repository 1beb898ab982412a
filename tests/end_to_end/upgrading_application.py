"""An application in steps, with pika: each does something that RabbitMQ changes, and tells what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import AMQPError

PREFIX = "upgrading"
_QUORUM = {"x-queue-type": "quorum"}


def _declare(channel: BlockingChannel, name: str, arguments: Mapping[str, object], durable: bool = True) -> str:
    channel.queue_declare(f"{PREFIX}-{name}", durable=durable, arguments=dict(arguments))
    return f"{PREFIX}-{name}"


def _publish(channel: BlockingChannel, queue: str, body: str, **properties: object) -> None:
    channel.basic_publish("", queue, body.encode(), pika.BasicProperties(**properties))


def _next(channel: BlockingChannel, queue: str) -> tuple[int, pika.BasicProperties, str] | None:
    """What basic.get gives: what the channel did before, the queue has done before."""
    method, properties, body = channel.basic_get(queue)
    return None if method is None else (method.delivery_tag, properties, body.decode())


def transient_queue(channel: BlockingChannel) -> str:
    _declare(channel, "transient", {}, durable=False)
    return "made"


def global_limit(channel: BlockingChannel) -> str:
    """How many of four messages in two queues one channel with a limit of one gets."""
    taken: list[str] = []
    channel.basic_qos(prefetch_count=1, global_qos=True)
    queues = [_declare(channel, f"limit-{number}", {}) for number in range(2)]
    for queue in queues:
        channel.basic_consume(queue, lambda channel, method, properties, body: taken.append(body.decode()))
    for queue in queues * 2:
        _publish(channel, queue, queue)
    for queue in queues:
        channel.queue_declare(queue, passive=True)  # its deliveries come before the answer
    channel.connection.process_data_events(0)
    return f"{len(taken)} delivered"


def given_back(channel: BlockingChannel) -> str:
    """The headers of a message that was given back."""
    queue = _declare(channel, "back", _QUORUM)
    _publish(channel, queue, "m")
    first = _next(channel, queue)
    assert first is not None
    channel.basic_nack(first[0], requeue=True)
    again = _next(channel, queue)
    assert again is not None
    return str(sorted(again[1].headers or {}))


def poisonous(channel: BlockingChannel) -> str:
    """How often a message comes that is always given back, of at most six times, under a limit of two."""
    queue = _declare(channel, "poison", {**_QUORUM, "x-delivery-limit": 2})
    _publish(channel, queue, "m")
    for times in range(6):
        taken = _next(channel, queue)
        if taken is None:
            return f"{times} times"
        channel.basic_nack(taken[0], requeue=True)
    return "for ever"


def priorities(channel: BlockingChannel) -> str:
    """The order of messages with priorities 1 and 4."""
    queue = _declare(channel, "priority", _QUORUM)
    for priority in (1, 4):
        _publish(channel, queue, str(priority), priority=priority)
    taken = [_next(channel, queue) for _ in range(2)]
    return str([each[2] for each in taken if each is not None])


def old_version(channel: BlockingChannel) -> str:
    _declare(channel, "version", {"x-queue-version": 1})
    return "made"


def locator(channel: BlockingChannel) -> str:
    _declare(channel, "locator", {"x-queue-master-locator": "min-masters"})
    return "made"


def lazy(channel: BlockingChannel) -> str:
    _declare(channel, "lazy", {"x-queue-mode": "lazy"})
    return "made"


def ordinary(channel: BlockingChannel) -> str:
    """What no version changes."""
    channel.basic_qos(prefetch_count=10)
    queue = _declare(channel, "ordinary", {})
    _publish(channel, queue, "m")
    taken = _next(channel, queue)
    assert taken is not None
    channel.basic_ack(taken[0])
    return taken[2]


#: Each step, and the change that it is about; "": none.
STEPS: Mapping[Callable[[BlockingChannel], str], str] = {
    transient_queue: "transient-queues",
    global_limit: "channel-prefetch",
    given_back: "quorum-acquired-count",
    poisonous: "quorum-nack-has-not-failed",
    priorities: "quorum-priorities",
    old_version: "queue-versions",
    locator: "master-locators",
    lazy: "queue-modes",
    ordinary: "",
}


def run(url: str) -> dict[str, str]:
    """What came of each step, each on a connection of its own, by the name of its change."""
    return {change: _outcome(url, step) for step, change in STEPS.items()}


def _outcome(url: str, step: Callable[[BlockingChannel], str]) -> str:
    connection = pika.BlockingConnection(pika.URLParameters(url))
    try:
        channel = connection.channel()
        channel.confirm_delivery()
        return step(channel)
    except AMQPError as error:
        return f"refused: {getattr(error, 'reply_code', error)}"
    finally:
        if connection.is_open:
            connection.close()
