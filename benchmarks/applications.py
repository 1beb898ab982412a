"""Programs as people write them, with the clients that they use: traffic that this suite has not arranged.

Each is a function of an address and a name that its queues begin with. It publishes `count` messages with confirms and
takes them from its queues: acknowledged singly and together, given back, refused. It asks for what does not exist, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable

import aio_pika
import kombu
import pika
import pika.exceptions
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage

from benchmarks.worker_application import with_worker

Application = Callable[[str, str, int], None]


def with_pika(url: str, name: str, count: int) -> None:
    """Blocking, one confirm at a time."""
    parameters = pika.URLParameters(url)
    parameters.socket_timeout = parameters.blocked_connection_timeout = 5.0
    with pika.BlockingConnection(parameters) as connection:
        publishing, consuming = connection.channel(), connection.channel()
        publishing.exchange_declare(name, "topic")
        publishing.queue_declare(name, durable=True, arguments={"x-queue-type": "quorum"})
        publishing.queue_bind(name, name, "orders.*")
        publishing.confirm_delivery()
        for number in range(count):
            properties = pika.BasicProperties(message_id=str(number), headers={"n": number}, delivery_mode=2)
            publishing.basic_publish(name, "orders.new", f"order {number}".encode(), properties, mandatory=True)
        with contextlib.suppress(pika.exceptions.UnroutableError):
            publishing.basic_publish(name, "nowhere", b"lost", mandatory=True)
        consuming.basic_qos(prefetch_count=10)
        done = 0
        for method, _, body in consuming.consume(name, inactivity_timeout=2.0):
            if method is None:
                break
            if number_of(body) % 7 == 0 and not method.redelivered:
                consuming.basic_nack(method.delivery_tag)
                continue
            done += 1
            if number_of(body) % 11 == 0:
                consuming.basic_reject(method.delivery_tag, requeue=False)
            elif done % 5 == 0 or done == count:
                consuming.basic_ack(method.delivery_tag, multiple=True)
            if done >= count:
                break
        consuming.cancel()
        publishing.basic_get(name, auto_ack=True)
        _errors_of_pika(connection, name)
        _transaction_of_pika(connection, name)
        publishing.queue_delete(name)
        publishing.exchange_delete(name)


def _errors_of_pika(connection: pika.BlockingConnection, name: str) -> None:
    channel = connection.channel()
    with contextlib.suppress(pika.exceptions.ChannelClosedByBroker):
        channel.queue_declare(f"{name}-nosuch", passive=True)
    channel = connection.channel()
    with contextlib.suppress(pika.exceptions.ChannelClosedByBroker):
        channel.basic_ack(99)
        channel.basic_qos(prefetch_count=1)
        channel.close()


def _transaction_of_pika(connection: pika.BlockingConnection, name: str) -> None:
    channel = connection.channel()
    channel.tx_select()
    channel.queue_declare(f"{name}-tx", exclusive=True)
    channel.basic_publish("", f"{name}-tx", b"kept")
    channel.tx_commit()
    channel.basic_publish("", f"{name}-tx", b"given up")
    channel.tx_rollback()
    while (got := channel.basic_get(f"{name}-tx"))[0] is not None:
        channel.basic_ack(got[0].delivery_tag)
        channel.tx_commit()
    channel.close()


def with_aio_pika(url: str, name: str, count: int) -> None:
    """Many confirms under way at a time, several consumers on one connection."""
    asyncio.run(asyncio.wait_for(_with_aio_pika(url, name, count), 20.0))


async def _with_aio_pika(url: str, name: str, count: int) -> None:
    connection = await aio_pika.connect(url, timeout=5.0)
    async with connection:
        publishing = await connection.channel()
        queue = await publishing.declare_queue(name, durable=True)
        other = await publishing.declare_queue(f"{name}-other", auto_delete=True)
        fanout = await publishing.declare_exchange(f"{name}-all", aio_pika.ExchangeType.FANOUT, auto_delete=True)
        await queue.bind(fanout)
        await other.bind(fanout)
        consumers = [
            asyncio.create_task(_consume(await connection.channel(), each, count, prefetch))
            for each, prefetch in ((name, 20), (other.name, 3))
        ]
        for begin in range(0, count, 50):
            messages = [aio_pika.Message(f"order {n}".encode()) for n in range(begin, min(begin + 50, count))]
            await asyncio.gather(*(fanout.publish(each, "", timeout=5.0) for each in messages))
        with contextlib.suppress(aio_pika.exceptions.DeliveryError):
            await publishing.default_exchange.publish(aio_pika.Message(b"lost"), f"{name}-nosuch", mandatory=True)
        await asyncio.gather(*consumers)
        await queue.purge()
        tag = await queue.consume(_nothing, no_ack=True)
        await queue.cancel(tag)
        await queue.delete(if_unused=False)


async def _nothing(message: AbstractIncomingMessage) -> None:
    pass


async def _consume(channel: AbstractChannel, name: str, count: int, prefetch: int) -> None:
    await channel.set_qos(prefetch_count=prefetch)
    queue = await channel.get_queue(name)
    done = 0
    async with queue.iterator(timeout=3.0) as messages:
        async for message in messages:
            if number_of(message.body) % 9 == 0 and not message.redelivered:
                await message.reject(requeue=True)
                continue
            await message.ack()
            done += 1
            if done >= count:
                break


def with_kombu(url: str, name: str, count: int) -> None:
    """py-amqp below, as Celery uses it."""
    options = {"confirm_publish": True, "read_timeout": 5, "write_timeout": 5}
    with kombu.Connection(url, transport_options=options, connect_timeout=5) as connection:
        exchange = kombu.Exchange(name, "direct", durable=False, auto_delete=True)
        queue = kombu.Queue(name, exchange, "work", durable=False, exclusive=False, auto_delete=True)
        done: list[object] = []

        def take(body: object, message: kombu.Message) -> None:
            if not message.delivery_info["redelivered"] and int(str(body).split()[1]) % 13 == 0:
                message.requeue()
            else:
                done.append(body)
                message.ack()

        with connection.channel() as channel:
            producer = kombu.Producer(channel, exchange, serializer="json")
            with kombu.Consumer(connection.channel(), [queue], callbacks=[take], prefetch_count=4):
                for number in range(count):
                    producer.publish(f"order {number}", routing_key="work", declare=[queue], retry=False)
                deadline = time.monotonic() + 5.0
                while len(done) < count and time.monotonic() < deadline:
                    connection.drain_events(timeout=2)


def number_of(body: bytes) -> int:
    """Of a message of these programs; 0 where it has none."""
    _, _, number = body.partition(b" ")
    return int(number) if number.isdigit() else 0


APPLICATIONS: dict[str, Application] = {
    "pika": with_pika,
    "aio-pika": with_aio_pika,
    "kombu": with_kombu,
    "worker": with_worker,
}


def run_all(url: str, name: str, count: int, seconds: float) -> dict[str, str]:
    """Run them side by side, for so many seconds at the most; gives what became of each that did not do its work."""
    ended: dict[str, str] = {}

    def run(label: str, application: Application) -> None:
        try:
            application(url, f"{name}-{label}", count)
        except Exception as error:  # noqa: BLE001 - what a broker does to a program is what is looked at
            ended[label] = f"{type(error).__name__}: {error}"
        else:
            ended[label] = ""

    threads = [threading.Thread(target=run, args=each, daemon=True) for each in APPLICATIONS.items()]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0.0))
    return {label: said for label in APPLICATIONS if (said := ended.get(label, "it was still running"))}
