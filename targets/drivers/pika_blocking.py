"""pika's `BlockingConnection`: each in a thread of its own, as it may be used by one only."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import pika  # type: ignore[import-untyped]
from pika import exceptions
from pika.adapters.blocking_connection import BlockingChannel  # type: ignore[import-untyped]

from amqpspec.model.protocol.methods import Content, Table, TraceEvent
from amqpspec.targets.address import Address
from amqpspec.targets.drivers.carrier import LibraryCarrier
from amqpspec.targets.drivers.library import LibraryRefuses, Shows
from amqpspec.targets.drivers.pika_words import arguments_of, content_of, parameters, plainly

#: What pika raises where it has been told by the broker, or has lost the connection.
_TOLD = (exceptions.ChannelClosedByBroker, exceptions.ConnectionClosedByBroker, exceptions.StreamLostError)
_ENDING = 5.0


class PikaClient:
    """See `LibraryClient`."""

    makes_channel: Callable[[int, BlockingChannel, Shows], PikaChannel]

    def __init__(self, address: Address, shows: Shows) -> None:
        self._address, self._shows = address, shows
        self._calls: deque[tuple[TraceEvent, Future[None]]] = deque()
        self._opened: Future[None] = Future()
        self._connection: pika.BlockingConnection | None = None
        self._channels: dict[int, PikaChannel] = {}
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name="pika", daemon=True)

    def open(self) -> Future[None]:
        self._thread.start()
        return self._opened

    def call(self, event: TraceEvent) -> Future[None]:
        done: Future[None] = Future()
        self._calls.append((event, done))
        if self._is_over:
            self._refuse_the_rest()
        elif self._connection is not None:
            with suppress(exceptions.AMQPError):
                self._connection.add_callback_threadsafe(lambda: None)
        return done

    def close(self) -> None:
        self._is_over = True
        if self._connection is not None:
            with suppress(exceptions.AMQPError):
                self._connection.add_callback_threadsafe(lambda: None)
        self._thread.join(_ENDING)

    def _run(self) -> None:
        try:
            self._connection = pika.BlockingConnection(parameters(self._address))
        except Exception as error:  # noqa: BLE001 - whatever pika raises, it is not open
            self._is_over = True
            self._opened.set_exception(error)
            self._refuse_the_rest()
            return
        self._opened.set_result(None)
        try:
            while self._connection.is_open and not self._is_over:
                while self._calls:
                    self._do(*self._calls.popleft())
                if self._connection.is_open:
                    self._connection.process_data_events(time_limit=None)
        except exceptions.ConnectionClosedByBroker as error:
            self._shows(0, "connection.close", {"reply_code": error.reply_code, "reply_text": error.reply_text})
        except Exception:  # noqa: BLE001 - whatever pika raises, it is over
            pass
        self._is_over = True
        self._refuse_the_rest()

    def _refuse_the_rest(self) -> None:
        while self._calls:
            _, done = self._calls.popleft()
            done.set_exception(LibraryRefuses("the connection is over"))

    def _do(self, event: TraceEvent, done: Future[None]) -> None:
        try:
            self._send(event)
        except _TOLD as error:
            if isinstance(error, exceptions.ChannelClosedByBroker):
                told: Table = {"reply_code": error.reply_code, "reply_text": error.reply_text}
                self._shows(event.channel, "channel.close", told)
            done.set_exception(error)
        except Exception as error:  # noqa: BLE001 - what pika says in place of sending
            done.set_exception(error)
        else:
            done.set_result(None)

    def _send(self, event: TraceEvent) -> None:
        assert self._connection is not None
        if event.name == "connection.close":
            self._connection.close(**event.arguments)
        elif event.name == "connection.update-secret":
            self._connection.update_secret(**event.arguments)
        elif event.name == "channel.open":
            opened = self._connection.channel(event.channel)
            self._channels[event.channel] = type(self).makes_channel(event.channel, opened, self._shows)
        elif event.channel not in self._channels:
            raise LibraryRefuses("the channel was not opened")
        else:
            self._channels[event.channel].send(event)


class PikaChannel:
    """One channel, and what pika calls back on it."""

    def __init__(self, number: int, channel: BlockingChannel, shows: Shows) -> None:
        self._number, self._channel, self._shows = number, channel, shows
        #: how many were published since confirms were asked for; None: they were not
        self._published: int | None = None
        channel.add_on_return_callback(self._returned)
        channel.add_on_cancel_callback(self._cancelled)

    def send(self, event: TraceEvent) -> None:
        if event.name == "basic.publish":
            self._publish(event.arguments, event.content or Content({}, b""))
        elif event.name in _CALLS:
            _CALLS[event.name](self, event.arguments)
        else:
            plainly(self._channel, event.name, event.arguments)

    def _publish(self, said: Table, content: Content) -> None:
        properties = pika.BasicProperties(**content.properties)
        outcome = "basic.ack"
        try:
            self._channel.basic_publish(
                said.get("exchange", ""), said.get("routing_key", ""), content.body, properties,
                said.get("mandatory", False),
            )  # fmt: skip
        except exceptions.NackError:
            outcome = "basic.nack"
        except exceptions.UnroutableError:
            pass  # it is confirmed
        if self._published is not None:
            self._published += 1  # what pika refuses does not count
            self._shows(self._number, outcome, {"delivery_tag": self._published})

    def _select(self, said: Table) -> None:
        if self._published is not None:
            raise LibraryRefuses("confirms were asked for before")
        self._channel.confirm_delivery()
        self._published = 0

    def _get(self, said: Table) -> None:
        method, properties, body = self._channel.basic_get(said.get("queue", ""), said.get("no_ack", False))
        if method is None:
            self._shows(self._number, "basic.get-empty", {})
        else:
            self._shows(self._number, "basic.get-ok", arguments_of(method), content_of(properties, body))

    def _consume(self, said: Table) -> None:
        self._channel.basic_consume(
            said.get("queue", ""), self._delivered, said.get("no_ack", False), said.get("exclusive", False),
            said.get("consumer_tag") or None, said.get("arguments"),
        )  # fmt: skip

    def _cancel(self, said: Table) -> None:
        tag = said["consumer_tag"]
        if tag not in self._channel.consumer_tags:
            raise LibraryRefuses(f"there is no consumer {tag}")
        for method, properties, body in self._channel.basic_cancel(tag):
            self._delivered(self._channel, method, properties, body)

    def _delivered(self, channel: BlockingChannel, method: Any, properties: Any, body: bytes) -> None:
        self._shows(self._number, "basic.deliver", arguments_of(method), content_of(properties, body))

    def _returned(self, channel: BlockingChannel, method: Any, properties: Any, body: bytes) -> None:
        self._shows(self._number, "basic.return", arguments_of(method), content_of(properties, body))

    def _cancelled(self, frame: Any) -> None:
        self._shows(self._number, "basic.cancel", {"consumer_tag": frame.method.consumer_tag})


PikaClient.makes_channel = PikaChannel

_CALLS: dict[str, Callable[[PikaChannel, Table], None]] = {
    "basic.get": PikaChannel._get,
    "basic.consume": PikaChannel._consume,
    "basic.cancel": PikaChannel._cancel,
    "confirm.select": PikaChannel._select,
}


class PikaCarrier(LibraryCarrier):
    """Carries commands through pika."""

    makes_client = PikaClient
