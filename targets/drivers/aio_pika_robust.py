"""aio-pika's `RobustConnection`: after a loss it connects again, and makes anew what was made through it.

What it makes anew are channels with their limits and confirm mode, and the exchanges, queues, bindings and consumers
that were made with functions of its own. So these are used where they have words for what is asked for; all else goes
the way of `aio_pika_client`. When it does so by itself is held to moments at which a sequence can be judged:

* it connects again when the sequence opens the connection again: until then nobody answers it;
* a channel that the broker has closed is made anew at once, and the sequence goes on when that is done;
* a consumer that the broker has cancelled is started anew before the next method is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import aio_pika
import aiormq

from amqpspec.model.protocol.methods import TraceEvent
from amqpspec.targets.address import Address
from amqpspec.targets.drivers.aio_pika_client import AioPikaChannel, AioPikaClient, content_of
from amqpspec.targets.drivers.library import LibraryRefuses, Shows
from amqpspec.targets.drivers.robust_carrier import RobustCarrier

#: Seconds between two attempts to connect, 5 if nobody says it.
_PAUSE = 0.02


class _Channel(aio_pika.RobustChannel):
    """`returned` and `cancelled` are called back on each channel of aiormq that comes to lie under it."""

    returned: Callable[..., Any]
    cancelled: Callable[..., Any]

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        #: those under it whose end it has dealt with, and how many it is dealing with
        self._dealt_with: list[Any] = []
        self._dealing = 0
        self._moves = asyncio.Event()
        self._known: Any = None

    async def _on_open(self) -> None:
        below = self._below()
        below.on_return_callbacks.add(self.returned)
        below.on_consumer_cancel_callbacks.add(self.cancelled)
        await super()._on_open()

    async def _on_close(self, closing: asyncio.Future[Any]) -> BaseException | None:
        self._dealing += 1
        try:
            return await super()._on_close(closing)
        finally:
            self._dealing -= 1
            self._dealt_with.append(closing)
            self._moves.set()

    async def _restore_consumers(self) -> bool:
        await super()._restore_consumers()
        self._moves.set()
        return False  # it would try again, at a moment of its own

    def _below(self) -> Any:
        return self._channel.channel if self._channel is not None else None

    def note(self) -> None:
        """It is open now."""
        self._known = self._below()

    async def made_anew(self) -> None:
        """Come back when the end of the one that was known was dealt with."""
        while not self._is_dealt_with():
            self._moves.clear()
            await self._moves.wait()
        self.note()

    def _is_dealt_with(self) -> bool:
        below = self._below()
        is_other = below is None or below is not self._known
        return not self._dealing and (is_other or below.closing in self._dealt_with)


class _Connection(aio_pika.RobustConnection):
    CHANNEL_CLASS = _Channel
    #: a consumer is to be started anew
    is_due = False

    def _request_recovery(self) -> None:
        self.is_due = True

    def recover(self) -> None:
        self.is_due = False
        super()._request_recovery()

    def give_up(self) -> None:
        """Nothing is made anew any more."""
        self._close_called = True


class AioPikaRobustChannel(AioPikaChannel):
    """One channel, and what was made through it."""

    def __init__(self, number: int, channel: Any, shows: Shows) -> None:
        super().__init__(number, channel, None, shows)
        self._queues: dict[str, Any] = {}
        self._exchanges: dict[str, Any] = {}
        #: by its tag: the queue of a consumer
        self._consuming: dict[str, Any] = {}

    def _hook(self) -> None:
        self._channel.returned, self._channel.cancelled = self._returned, self._cancelled

    async def send(self, event: TraceEvent) -> None:
        if await _is_closed(self._channel):
            raise LibraryRefuses("the channel is closed")
        self._below = await self._channel.get_underlay_channel()
        said = {name: value for name, value in event.arguments.items() if value or name == "requeue"}
        with_words = _WITH_WORDS.get(event.name)
        if with_words is None or not await getattr(self, with_words)(said):
            await super().send(event)

    async def _close(self, said: dict[str, Any]) -> None:
        await self._channel.close()

    async def _select(self, said: dict[str, Any]) -> None:
        await super()._select(said)
        self._channel.publisher_confirms = True  # also of the one that is made anew

    # ---- each says whether it has words for that

    async def _declare_queue(self, said: dict[str, Any]) -> bool:
        if not said.get("queue") or said.get("passive") or said.get("nowait"):
            return False
        name = said.pop("queue")
        self._queues[name] = await self._channel.declare_queue(name, **said)
        return True

    async def _declare_exchange(self, said: dict[str, Any]) -> bool:
        if not said.get("exchange") or not said.get("type") or said.get("passive") or said.get("nowait"):
            return False
        name = said.pop("exchange")
        self._exchanges[name] = await self._channel.declare_exchange(name, **said)
        return True

    async def _bind_queue(self, said: dict[str, Any]) -> bool:
        queue = self._queues.get(said.get("queue", ""))
        if queue is None or not said.get("exchange") or said.get("nowait"):
            return False
        await queue.bind(said["exchange"], said.get("routing_key", ""), arguments=said.get("arguments"))
        return True

    async def _unbind_queue(self, said: dict[str, Any]) -> bool:
        queue = self._queues.get(said.get("queue", ""))
        if queue is None or not said.get("exchange"):
            return False
        await queue.unbind(said["exchange"], said.get("routing_key", ""), said.get("arguments"))
        return True

    async def _delete_queue(self, said: dict[str, Any]) -> bool:
        if not said.get("queue"):
            return False
        self._queues.pop(said["queue"], None)
        await self._channel.queue_delete(said.pop("queue"), **said)
        return True

    async def _delete_exchange(self, said: dict[str, Any]) -> bool:
        if not said.get("exchange"):
            return False
        self._exchanges.pop(said["exchange"], None)
        await self._channel.exchange_delete(said.pop("exchange"), **said)
        return True

    async def _bind_exchange(self, said: dict[str, Any]) -> bool:
        exchange = self._exchanges.get(said.get("destination", ""))
        if exchange is None or not said.get("source") or said.get("nowait"):
            return False
        await exchange.bind(said["source"], said.get("routing_key", ""), arguments=said.get("arguments"))
        return True

    async def _unbind_exchange(self, said: dict[str, Any]) -> bool:
        exchange = self._exchanges.get(said.get("destination", ""))
        if exchange is None or not said.get("source") or said.get("nowait"):
            return False
        await exchange.unbind(said["source"], said.get("routing_key", ""), said.get("arguments"))
        return True

    async def _set_qos(self, said: dict[str, Any]) -> bool:
        await self._channel.set_qos(**said)
        return True

    async def _start(self, said: dict[str, Any]) -> bool:
        queue = self._queues.get(said.get("queue", ""))
        if queue is None:
            return False
        tag = await queue.consume(
            self._received, said.get("no_ack", False), said.get("exclusive", False), said.get("arguments"),
            said.get("consumer_tag"),
        )  # fmt: skip
        self._consuming[tag] = queue
        return True

    async def _stop(self, said: dict[str, Any]) -> bool:
        queue = self._consuming.pop(said["consumer_tag"], None)
        if queue is None:
            return False
        await queue.cancel(said["consumer_tag"], nowait=said.get("nowait", False))
        return True

    async def _received(self, message: Any) -> None:
        names = ("consumer_tag", "delivery_tag", "redelivered", "exchange", "routing_key")
        arguments = {name: getattr(message, name) for name in names}
        self._shows(self._number, "basic.deliver", arguments, content_of(message.properties, message.body))


#: The function that has words for the method.
_WITH_WORDS = {
    "queue.declare": "_declare_queue",
    "queue.bind": "_bind_queue",
    "queue.unbind": "_unbind_queue",
    "queue.delete": "_delete_queue",
    "exchange.declare": "_declare_exchange",
    "exchange.delete": "_delete_exchange",
    "exchange.bind": "_bind_exchange",
    "exchange.unbind": "_unbind_exchange",
    "basic.qos": "_set_qos",
    "basic.consume": "_start",
    "basic.cancel": "_stop",
}


class AioPikaRobustClient(AioPikaClient):
    """See `LastingClient` (`robust_carrier`)."""

    makes_robust_channel = AioPikaRobustChannel

    def __init__(self, address: Address, shows: Shows) -> None:
        super().__init__(address, shows)
        #: who waits for it to be connected again
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def comes_back(self) -> bool:
        return self._connection is not None and not self._connection.close_called and self._thread.is_alive()

    def open(self) -> Future[None]:
        if self._thread.is_alive():
            return asyncio.run_coroutine_threadsafe(self._is_back(), self._loop)
        return super().open()

    def made_anew(self, channel: int) -> Future[None]:
        return asyncio.run_coroutine_threadsafe(self._made_anew(channel), self._loop)

    def consumers_made_anew(self) -> Future[None] | None:
        connection = self._connection
        if isinstance(connection, _Connection) and connection.is_due and not connection.is_closed:
            return asyncio.run_coroutine_threadsafe(self._recover(connection), self._loop)
        return None

    def close(self) -> None:
        if isinstance(self._connection, _Connection):
            self._connection.give_up()
        super().close()

    async def _connect(self) -> None:
        made = await aio_pika.connect_robust(
            **self._place(), reconnect_interval=_PAUSE, connection_class=_Connection
        )
        made.reconnect_callbacks.add(self._came_back)
        self._connection = made

    async def _is_back(self) -> None:
        waits = self._loop.create_future()
        self._waiting.append(waits)
        await waits

    def _came_back(self, *_: Any) -> None:
        for each in self._channels.values():
            each._channel.note()
        for waits in self._waiting:
            if not waits.done():
                waits.set_result(None)
        self._waiting.clear()

    async def _made_anew(self, number: int) -> None:
        if number in self._channels:
            await self._channels[number]._channel.made_anew()

    async def _recover(self, connection: _Connection) -> None:
        channels = [each._channel for each in self._channels.values()]
        for each in channels:
            each._moves.clear()
        connection.recover()
        for each in channels:
            await each._moves.wait()

    async def _open_channel(self, connection: aio_pika.abc.AbstractConnection, number: int) -> None:
        known = self._channels.pop(number, None)
        if known is not None:
            if not await _is_closed(known._channel):
                self._channels[number] = known
                raise LibraryRefuses("the library has opened the channel again by itself")
            with suppress(*aio_pika.exceptions.CONNECTION_EXCEPTIONS):
                await known._channel.close()  # or there would be two to be made anew
        opened: Any = connection.channel(number, publisher_confirms=False, on_return_raises=False)
        channel = self.makes_robust_channel(number, opened, self._shows)
        await opened.initialize()
        opened.note()
        self._channels[number] = channel


async def _is_closed(channel: aio_pika.abc.AbstractChannel) -> bool:
    try:
        return (await channel.get_underlay_channel()).is_closed
    except aiormq.exceptions.ChannelInvalidStateError:
        return True


class AioPikaRobustCarrier(RobustCarrier):
    """Carries commands through aio-pika's robust connection."""

    makes_client = AioPikaRobustClient
