"""A program of an application that does what long-lived workers do: it takes, gives back, cancels, comes again.

It uses pika as most programs do, one blocking connection and a channel for each task. A task that a broker makes fail
costs itself.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import pika
import pika.exceptions
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

_Task = Callable[["_Worker"], None]
#: Seconds for which a task waits for messages.
_PATIENCE = 1.5


def with_worker(url: str, name: str, count: int) -> None:
    """Carry out all tasks, one after the other; raises the first error that none of them expects."""
    parameters = pika.URLParameters(url)
    parameters.socket_timeout = parameters.blocked_connection_timeout = 5.0
    errors = []
    for number, task in enumerate(_TASKS):
        try:
            with pika.BlockingConnection(parameters) as connection:
                task(_Worker(connection, f"{name}-{number}", count))
        except pika.exceptions.AMQPError as error:
            errors.append(error)
    if errors:
        raise errors[0]


class _Worker:
    def __init__(self, connection: BlockingConnection, queue: str, count: int) -> None:
        self.connection, self.queue, self.count = connection, queue, count
        self.tags: list[int] = []
        declaring = connection.channel()
        declaring.queue_declare(queue, durable=True)
        declaring.close()

    def publish(self, *bodies: bytes, queue: str = "") -> None:
        channel = self.connection.channel()
        channel.confirm_delivery()
        for number, body in enumerate(bodies):
            headers = {"n": number, "large": 2**40, "list": [1, "two"], "table": {"yes": True}}
            properties = pika.BasicProperties(
                message_id=f"{self.queue}-{number}", headers=headers, delivery_mode=1, content_type="text/plain"
            )
            channel.basic_publish("", queue or self.queue, body, properties)
        channel.close()

    def numbered(self, count: int = 0) -> list[bytes]:
        return [f"{self.queue} {number}".encode() for number in range(count or self.count)]

    def consumer(self, prefetch: int = 0, tag: str = "worker", no_ack: bool = False) -> BlockingChannel:
        channel = self.connection.channel()
        if prefetch:
            channel.basic_qos(prefetch_count=prefetch)
        channel.basic_consume(self.queue, self._take, auto_ack=no_ack, consumer_tag=tag)
        return channel

    def _take(self, channel: BlockingChannel, method: object, properties: object, body: bytes) -> None:
        self.tags.append(int(getattr(method, "delivery_tag", 0)))

    def wait(self, count: int) -> list[int]:
        """Tags of deliveries that came since the last call, of so many at least if they come."""
        deadline = time.monotonic() + _PATIENCE
        while len(self.tags) < count and (left := deadline - time.monotonic()) > 0:
            self.connection.process_data_events(time_limit=left)
        self.connection.process_data_events(time_limit=0)
        tags, self.tags = self.tags, []
        return tags

    def drain(self) -> int:
        """Get and acknowledge what is left; how many that was."""
        channel = self.connection.channel()
        found = 0
        while (got := channel.basic_get(self.queue))[0] is not None and found < 1000:
            found += 1
            channel.basic_ack(got[0].delivery_tag)
        channel.close()
        return found


def _give_back(worker: _Worker) -> None:
    worker.publish(*worker.numbered(12), b"", b"x" * 200_000)
    first = worker.consumer(5)
    tags = worker.wait(5)
    first.basic_ack(tags[2], multiple=True)
    first.basic_nack(tags[4], multiple=True, requeue=True)
    tags = worker.wait(5)
    first.basic_reject(tags[0], requeue=True)
    first.basic_reject(tags[1], requeue=False)
    first.basic_cancel("worker")
    first.basic_ack(tags[2])
    first.close()  # what it holds goes back
    second = worker.consumer()
    worker.wait(8)
    second.basic_cancel("worker")
    second.basic_ack(0, multiple=True)
    second.basic_qos(prefetch_count=1)
    second.close()
    worker.drain()


def _without_acknowledgements(worker: _Worker) -> None:
    worker.publish(*worker.numbered(6))
    channel = worker.consumer(1, no_ack=True)
    worker.wait(6)
    channel.close()
    worker.drain()
    worker.publish(*worker.numbered(2))
    channel = worker.connection.channel()
    channel.basic_get(worker.queue, auto_ack=True)
    channel.close()
    worker.drain()


def _two_consumers(worker: _Worker) -> None:
    worker.publish(*worker.numbered(12))
    channel = worker.consumer(2, "one")
    channel.basic_consume(worker.queue, worker._take, consumer_tag="two")
    worker.wait(4)
    channel.basic_cancel("one")
    channel.basic_qos(prefetch_count=3)
    tags = worker.wait(1)
    channel.basic_ack(4, multiple=True)
    tags = worker.wait(2)
    if tags:
        channel.basic_ack(tags[-1], multiple=True)
    worker.wait(2)
    channel.close()
    worker.drain()


def _transactions(worker: _Worker) -> None:
    channel = worker.connection.channel()
    channel.tx_select()
    committed, given_up, unfinished, again = worker.numbered(4)
    channel.basic_publish("", worker.queue, committed)
    channel.tx_commit()
    channel.basic_publish("", worker.queue, given_up)
    channel.tx_rollback()
    channel.basic_publish("", worker.queue, unfinished)
    channel.close()
    worker.drain()
    worker.publish(again, *worker.numbered(3))
    channel = worker.connection.channel()
    channel.tx_select()
    for end in (channel.tx_commit, channel.tx_rollback):
        got = channel.basic_get(worker.queue)[0]
        if got is not None:
            channel.basic_ack(got.delivery_tag)
        end()
    channel.close()
    worker.drain()


def _deleted_queue(worker: _Worker) -> None:
    worker.publish(*worker.numbered(4))
    channel = worker.consumer(2)
    tags = worker.wait(2)
    deleting = worker.connection.channel()
    deleting.queue_delete(worker.queue)
    worker.wait(0)
    for tag in tags:
        channel.basic_ack(tag)
    deleting.queue_declare(worker.queue, durable=True)
    channel.basic_qos(prefetch_count=1)
    channel.basic_consume(worker.queue, worker._take, consumer_tag="worker")
    channel.basic_cancel("worker")
    channel.close()


def _full_queue(worker: _Worker) -> None:
    channel = worker.connection.channel()
    full = f"{worker.queue}-full"
    channel.queue_declare(full, arguments={"x-max-length": 2, "x-overflow": "reject-publish"})
    channel.confirm_delivery()
    for body in worker.numbered(4):
        with contextlib.suppress(pika.exceptions.NackError):
            channel.basic_publish("", full, body)
    channel.queue_delete(full)


def _nobody_wants_it(worker: _Worker) -> None:
    channel = worker.connection.channel()
    channel.basic_publish("", f"{worker.queue}-nosuch", b"fire and forget")
    channel.basic_qos(prefetch_count=1)
    channel.confirm_delivery()
    channel.basic_publish("", f"{worker.queue}-nosuch", b"nobody")
    properties = pika.BasicProperties(message_id="7", headers={"n": 7})
    with contextlib.suppress(pika.exceptions.UnroutableError):
        channel.basic_publish("", f"{worker.queue}-nosuch", b"returned", properties, mandatory=True)


def _mistakes(worker: _Worker) -> None:
    """Each ends its channel."""
    for mistake in (_settles_again, _mixes_modes, _wrong_expiration, _no_exchange, _commits_nothing):
        channel = worker.connection.channel()
        with contextlib.suppress(pika.exceptions.ChannelClosedByBroker):
            mistake(worker, channel)
            channel.basic_qos(prefetch_count=1)
            channel.close()


def _settles_again(worker: _Worker, channel: BlockingChannel) -> None:
    worker.publish(*worker.numbered(1))
    got = channel.basic_get(worker.queue)[0]
    if got is not None:
        channel.basic_ack(got.delivery_tag)
        channel.basic_ack(got.delivery_tag)


def _mixes_modes(worker: _Worker, channel: BlockingChannel) -> None:
    channel.confirm_delivery()
    channel.tx_select()


def _wrong_expiration(worker: _Worker, channel: BlockingChannel) -> None:
    channel.basic_publish("", worker.queue, b"soon", pika.BasicProperties(expiration="soon"))


def _no_exchange(worker: _Worker, channel: BlockingChannel) -> None:
    channel.confirm_delivery()
    channel.basic_publish(f"{worker.queue}-nosuch", "q", b"m")


def _commits_nothing(worker: _Worker, channel: BlockingChannel) -> None:
    channel.tx_commit()


_TASKS: tuple[_Task, ...] = (
    _give_back, _without_acknowledgements, _two_consumers, _transactions, _deleted_queue, _full_queue, _nobody_wants_it,
    _mistakes,
)  # fmt: skip
