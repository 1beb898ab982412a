"""Three clients behind one face, so that a test says once what each of them must live with.

Each is used as its users use it, with confirms. What is raised differs: `lost`, `refused`, `late`.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, ClassVar, Protocol, TypeVar

import aio_pika
import aiormq.exceptions
import amqp.exceptions
import kombu
import pika
import pika.adapters.utils.connection_workflow
import pika.exceptions

Result = TypeVar("Result")
#: Seconds for what comes at once.
SOON = 10.0
#: Body, and whether it is said to be delivered again.
Got = tuple[bytes, bool]


class Cancelled(Exception):
    """The broker has ended the consumer."""


class Client(Protocol):
    #: what it raises where the connection is lost, a publish is refused, the broker does not answer in time
    lost: ClassVar[tuple[type[BaseException], ...]]
    refused: ClassVar[type[BaseException]]
    late: ClassVar[tuple[type[BaseException], ...]]

    def __init__(self, url: str, timeout: float = SOON) -> None: ...

    def declare(self, queue: str) -> None: ...

    def publish(self, queue: str, *bodies: bytes) -> None:
        """All of them at once; back when all are confirmed."""

    def consume(self, queue: str) -> None: ...

    def next(self) -> Got:
        """Of what is consumed; raises `Cancelled`."""

    def ack(self) -> None:
        """What was got last."""

    def close(self) -> None: ...


class Pika:
    """`BlockingConnection`. It waits for one confirm after the other, so several at once need a `SelectConnection`."""

    lost = (pika.exceptions.StreamLostError, pika.exceptions.ConnectionClosed, pika.exceptions.ChannelWrongStateError)
    refused = pika.exceptions.NackError
    late = (pika.adapters.utils.connection_workflow.AMQPConnectorException,)

    def __init__(self, url: str, timeout: float = SOON) -> None:
        self._parameters = pika.URLParameters(url)
        self._parameters.socket_timeout = self._parameters.stack_timeout = timeout
        self._connection = pika.BlockingConnection(self._parameters)
        self._channel = self._connection.channel()
        self._channel.confirm_delivery()
        self._tag = 0

    def declare(self, queue: str) -> None:
        self._channel.queue_declare(queue, durable=True)

    def publish(self, queue: str, *bodies: bytes) -> None:
        if len(bodies) > 1:
            _publish_in_flight(self._parameters, queue, bodies)
        else:
            self._channel.basic_publish("", queue, bodies[0])

    def consume(self, queue: str) -> None:
        self._deliveries = self._channel.consume(queue)

    def next(self) -> Got:
        for method, _, body in self._deliveries:
            self._tag = method.delivery_tag
            return body, method.redelivered
        raise Cancelled

    def ack(self) -> None:
        self._channel.basic_ack(self._tag)

    def close(self) -> None:
        if self._connection.is_open:
            with suppress(pika.exceptions.AMQPError):
                self._connection.close()


def _publish_in_flight(parameters: pika.URLParameters, queue: str, bodies: tuple[bytes, ...]) -> None:
    open_ones = set(range(1, len(bodies) + 1))

    def confirmed(frame: Any) -> None:
        tag = frame.method.delivery_tag
        open_ones.difference_update(range(1, tag + 1) if frame.method.multiple else (tag,))
        if not open_ones:
            connection.close()

    def publish(channel: Any) -> None:
        channel.confirm_delivery(confirmed)
        for body in bodies:
            channel.basic_publish("", queue, body)

    connection = pika.SelectConnection(
        parameters, on_open_callback=lambda opened: opened.channel(on_open_callback=publish),
        on_close_callback=lambda closed, _: closed.ioloop.stop(),
    )  # fmt: skip
    connection.ioloop.start()


class AioPika:
    """`aio_pika.connect`, in a loop that runs while something is asked of it."""

    lost = (aiormq.exceptions.AMQPError, aio_pika.exceptions.AMQPError, ConnectionError, RuntimeError)
    refused = aio_pika.exceptions.DeliveryError
    late = (asyncio.TimeoutError,)

    def __init__(self, url: str, timeout: float = SOON) -> None:
        self._runner = asyncio.Runner()
        try:
            self._connection = self._run(lambda: aio_pika.connect(url, timeout=timeout))
        except BaseException:
            self._runner.close()
            raise
        self._channel = self._run(self._connection.channel)

    def _run(self, work: Callable[[], Awaitable[Result]]) -> Result:
        async def run() -> Result:
            async with asyncio.timeout(SOON):
                return await work()

        return self._runner.run(run())

    def declare(self, queue: str) -> None:
        self._run(lambda: self._channel.declare_queue(queue, durable=True))

    def publish(self, queue: str, *bodies: bytes) -> None:
        async def publish() -> None:
            exchange = self._channel.default_exchange
            await asyncio.gather(*(exchange.publish(aio_pika.Message(body), queue) for body in bodies))

        self._run(publish)

    def consume(self, queue: str) -> None:
        """The iterator of a queue ends when the connection does, and hears nothing of a cancel."""
        got = self._got = asyncio.Queue[Any]()

        async def tell() -> None:
            await self._channel.get_queue(queue)  # deliveries are handled aside, so the cancel may overtake them
            got.put_nowait(Cancelled())

        def cancelled(_: Any) -> None:
            self._telling = asyncio.ensure_future(tell())

        async def consume() -> None:
            self._channel.close_callbacks.add(lambda _, error: got.put_nowait(error or ConnectionError("closed")))
            underlay: Any = await self._channel.get_underlay_channel()
            underlay.on_consumer_cancel_callbacks.add(cancelled)
            await (await self._channel.get_queue(queue)).consume(got.put)

        self._run(consume)

    def next(self) -> Got:
        got = self._run(self._got.get)
        if isinstance(got, BaseException):
            raise got
        self._message = got
        return got.body, got.redelivered

    def ack(self) -> None:
        self._run(self._message.ack)

    def close(self) -> None:
        with suppress(Exception):
            self._run(self._connection.close)
        self._runner.close()


class Kombu:
    """kombu, by py-amqp."""

    lost = (amqp.exceptions.RecoverableConnectionError, OSError)
    refused = amqp.exceptions.MessageNacked
    late = (socket.timeout,)

    def __init__(self, url: str, timeout: float = SOON) -> None:
        self._connection = kombu.Connection(url, connect_timeout=timeout, transport_options={"confirm_publish": True})
        self._channel = self._connection.channel()
        self._got: list[kombu.Message] = []

    def declare(self, queue: str) -> None:
        kombu.Queue(queue, channel=self._channel).declare()

    def publish(self, queue: str, *bodies: bytes) -> None:
        """It waits for one confirm after the other, so several at once need the channel of py-amqp."""
        channel: Any = self._channel
        if len(bodies) == 1:
            channel.basic_publish(amqp.Message(bodies[0]), routing_key=queue)
            return
        confirmed: list[int] = []
        channel = self._connection.channel()
        channel.confirm_select()
        channel.events["basic_ack"].add(lambda tag, multiple: confirmed.extend(range(tag) if multiple else (tag,)))
        for body in bodies:
            channel._basic_publish(amqp.Message(body), routing_key=queue)
        while len(set(confirmed)) < len(bodies):
            self._connection.drain_events(timeout=SOON)

    def consume(self, queue: str) -> None:
        consumer = kombu.Consumer(self._channel, [kombu.Queue(queue)], on_message=self._got.append, accept=None)
        consumer.consume()

    def next(self) -> Got:
        while not self._got:
            try:
                self._connection.drain_events(timeout=SOON)
            except amqp.exceptions.ConsumerCancelled:
                raise Cancelled from None
        self._message = self._got.pop(0)
        body = self._message.body
        return body if isinstance(body, bytes) else body.encode(), self._message.delivery_info["redelivered"]

    def ack(self) -> None:
        self._message.ack()

    def close(self) -> None:
        with suppress(Exception):
            self._connection.close()


CLIENTS: tuple[Callable[..., Client], ...] = (Pika, AioPika, Kombu)
