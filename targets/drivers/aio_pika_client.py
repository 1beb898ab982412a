"""aio-pika's `Connection`, which is not a robust one: each has an event loop in a thread of its own.

Methods go through the channel of aiormq that lies under each channel of aio-pika, as aio-pika has no function for some,
and keeps a state of its own for others. So `aio-pika` here is the two together.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import Future
from typing import Any

import aio_pika
import aiormq
from aiormq import spec

from amqpspec.model.protocol.methods import Content, Table, TraceEvent
from amqpspec.targets.address import Address
from amqpspec.targets.drivers.carrier import LibraryCarrier
from amqpspec.targets.drivers.library import LibraryRefuses, Shows

_ENDING = 5.0
#: A task that is cancelled may begin others, to clean up.
_MOST_ENDINGS = 5
# what they would print is in the trace
for _name in ("aio_pika", "aiormq"):
    logging.getLogger(_name).addHandler(logging.NullHandler())
_PROPERTIES = (
    "content_type", "content_encoding", "headers", "delivery_mode", "priority", "correlation_id", "reply_to",
    "expiration", "message_id", "timestamp", "message_type", "user_id", "app_id", "cluster_id",
)  # fmt: skip


class AioPikaClient:
    """See `LibraryClient`."""

    def __init__(self, address: Address, shows: Shows) -> None:
        self._address, self._shows = address, shows
        self._loop = asyncio.new_event_loop()
        self._connection: aio_pika.abc.AbstractConnection | None = None
        self._channels: dict[int, AioPikaChannel] = {}
        #: one call after the other, as in a program of one task
        self._turn = asyncio.Lock()
        self._thread = threading.Thread(target=self._run, name="aio-pika", daemon=True)

    def open(self) -> Future[None]:
        self._thread.start()
        return asyncio.run_coroutine_threadsafe(self._connect(), self._loop)

    def call(self, event: TraceEvent) -> Future[None]:
        if self._loop.is_closed() or not self._thread.is_alive():
            refused: Future[None] = Future()
            refused.set_exception(LibraryRefuses("the connection is over"))
            return refused
        return asyncio.run_coroutine_threadsafe(self._in_turn(event), self._loop)

    def close(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_ENDING)

    def _run(self) -> None:
        self._loop.set_exception_handler(lambda loop, context: None)
        try:
            self._loop.run_forever()
            for _ in range(_MOST_ENDINGS):
                tasks = asyncio.all_tasks(self._loop)
                if not tasks:
                    break
                for task in tasks:
                    task.cancel()
                self._loop.run_until_complete(asyncio.wait(tasks, timeout=1))
        finally:
            self._loop.close()

    async def _connect(self) -> None:
        self._connection = await aio_pika.connect(**self._place())

    def _place(self) -> dict[str, Any]:
        """As functions of aio-pika that connect have it."""
        address = self._address
        return {
            "host": address.host, "port": address.port, "login": address.user, "password": address.password,
            "virtualhost": address.vhost, "heartbeat": address.heartbeat,
        }  # fmt: skip

    async def _in_turn(self, event: TraceEvent) -> None:
        async with self._turn:
            if event.name != "basic.publish":
                await self._send(event)
                return
            # a program has a task for each, or its confirms come one by one
            published = asyncio.ensure_future(self._send(event))
        await published

    async def _send(self, event: TraceEvent) -> None:
        if self._connection is None:
            raise LibraryRefuses("the connection is not open")
        if event.name == "connection.close":
            await self._connection.close()
        elif event.name == "connection.update-secret":
            await self._connection.update_secret(**event.arguments)
        elif event.name == "channel.open":
            await self._open_channel(self._connection, event.channel)
        elif event.channel not in self._channels:
            raise LibraryRefuses("the channel was not opened")
        else:
            await self._channels[event.channel].send(event)

    async def _open_channel(self, connection: aio_pika.abc.AbstractConnection, number: int) -> None:
        opened = connection.channel(number, publisher_confirms=False, on_return_raises=False)
        await opened.initialize()
        below = await opened.get_underlay_channel()
        self._channels[number] = AioPikaChannel(number, opened, below, self._shows)


class AioPikaChannel:
    """One channel, and what is called back on it."""

    def __init__(self, number: int, channel: Any, below: Any, shows: Shows) -> None:
        self._number, self._channel, self._below, self._shows = number, channel, below, shows
        self._hook()

    def _hook(self) -> None:
        """Have it call back."""
        self._below.on_return_callbacks.add(self._returned)
        self._below.on_consumer_cancel_callbacks.add(self._cancelled)

    async def send(self, event: TraceEvent) -> None:
        said: dict[str, Any] = dict(event.arguments)
        if event.name == "basic.publish":
            await self._publish(said, event.content or Content({}, b""))
        elif event.name in _CALLS:
            await getattr(self, _CALLS[event.name])(said)
        else:
            function, names = _PLAIN[event.name]
            await getattr(self._below, function)(**{names.get(name, name): value for name, value in said.items()})

    async def _publish(self, said: dict[str, Any], content: Content) -> None:
        named = {"message_type" if name == "type" else name: value for name, value in content.properties.items()}
        number = self._below.delivery_tag + 1
        try:
            answer = await self._below.basic_publish(content.body, properties=spec.Basic.Properties(**named), **said)
        except aiormq.exceptions.DeliveryError:
            self._shows(self._number, "basic.nack", {"delivery_tag": number})
        else:
            if isinstance(answer, spec.Basic.Ack):
                self._shows(self._number, "basic.ack", {"delivery_tag": number})

    async def _select(self, said: dict[str, Any]) -> None:
        """As when a channel is opened with `publisher_confirms`."""
        if self._below.delivery_tag:
            raise LibraryRefuses("messages were published before confirms were asked for")
        await self._below.confirm_delivery(**said)
        self._below.publisher_confirms = True

    async def _recover_async(self, said: dict[str, Any]) -> None:
        await self._below.basic_recover(nowait=True, **said)

    async def _get(self, said: dict[str, Any]) -> None:
        message = await self._below.basic_get(said.get("queue", ""), said.get("no_ack", False))
        if isinstance(message.delivery, spec.Basic.GetEmpty):
            self._shows(self._number, "basic.get-empty", {})
        else:
            content = content_of(message.header.properties, message.body)
            self._shows(self._number, "basic.get-ok", _arguments(message.delivery), content)

    async def _consume(self, said: dict[str, Any]) -> None:
        await self._below.basic_consume(
            said.get("queue", ""), self._delivered, no_ack=said.get("no_ack", False),
            exclusive=said.get("exclusive", False), arguments=said.get("arguments"),
            consumer_tag=said.get("consumer_tag") or None,
        )  # fmt: skip

    async def _close(self, said: dict[str, Any]) -> None:
        if self._below.is_closed:
            raise LibraryRefuses("the channel is closed")
        await self._channel.close()

    async def _delivered(self, message: aiormq.abc.DeliveredMessage) -> None:
        content = content_of(message.header.properties, message.body)
        self._shows(self._number, "basic.deliver", _arguments(message.delivery), content)

    def _returned(self, message: aiormq.abc.DeliveredMessage) -> None:
        content = content_of(message.header.properties, message.body)
        self._shows(self._number, "basic.return", _arguments(message.delivery), content)

    def _cancelled(self, frame: Any) -> None:
        self._shows(self._number, "basic.cancel", {"consumer_tag": frame.consumer_tag})


#: The function of a channel for a method.
_CALLS = {
    "basic.get": "_get",
    "basic.consume": "_consume",
    "basic.recover-async": "_recover_async",
    "confirm.select": "_select",
    "channel.close": "_close",
}

#: The function that sends a method with arguments of the same names, but for those that are named otherwise.
_PLAIN: dict[str, tuple[str, dict[str, str]]] = {
    **{
        f"{kind}.{verb}": (f"{kind}_{verb}", {})
        for kind, verbs in (
            ("queue", ("declare", "bind", "unbind", "purge", "delete")),
            ("exchange", ("delete", "bind", "unbind")),
            ("basic", ("ack", "nack", "reject", "recover", "qos", "cancel")),
            ("tx", ("select", "commit", "rollback")),
        )
        for verb in verbs
    },
    "exchange.declare": ("exchange_declare", {"type": "exchange_type"}),
    "channel.flow": ("flow", {}),
}


def _arguments(frame: Any) -> Table:
    return {name: value for name, value in dict(frame).items() if value is not None}


def content_of(properties: Any, body: bytes) -> Content:
    """`properties`: as aiormq has them."""
    named = {name: getattr(properties, name, None) for name in _PROPERTIES}
    kept = {"type" if name == "message_type" else name: value for name, value in named.items() if value is not None}
    return Content(kept, body)


class AioPikaCarrier(LibraryCarrier):
    """Carries commands through aio-pika."""

    makes_client = AioPikaClient
