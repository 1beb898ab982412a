"""pika's `SelectConnection`: each with the loop of its own in a thread, and a function for each answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

import pika  # type: ignore[import-untyped]
from pika import exceptions, spec
from pika.channel import Channel  # type: ignore[import-untyped]

from amqpspec.model.protocol.methods import SYNCHRONOUS_METHODS, Content, Table, TraceEvent
from amqpspec.targets.address import Address
from amqpspec.targets.drivers.carrier import LibraryCarrier
from amqpspec.targets.drivers.library import LibraryRefuses, Shows
from amqpspec.targets.drivers.pika_words import arguments_of, content_of, parameters, plainly

_ENDING = 5.0
#: A function that is called when the answer has come, or None, where none is waited for.
Answered = Any


class PikaSelectClient:
    """See `LibraryClient`."""

    makes_channel: type[PikaSelectChannel]

    def __init__(self, address: Address, shows: Shows) -> None:
        self._address, self._shows = address, shows
        self._opened: Future[None] = Future()
        self._connection: pika.SelectConnection | None = None
        self._channels: dict[int, PikaSelectChannel] = {}
        #: calls that wait for the end of the connection
        self._closing: list[Future[None]] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pika select", daemon=True)

    def open(self) -> Future[None]:
        self._thread.start()
        return self._opened

    def call(self, event: TraceEvent) -> Future[None]:
        done: Future[None] = Future()
        if self._connection is None or self._is_over.is_set():
            done.set_exception(LibraryRefuses("the connection is over"))
        else:
            self._connection.ioloop.add_callback_threadsafe(partial(self._do, event, done))
        return done

    def close(self) -> None:
        if self._connection is not None and not self._is_over.is_set():
            self._connection.ioloop.add_callback_threadsafe(self._connection.ioloop.stop)
        self._thread.join(_ENDING)

    def _run(self) -> None:
        connection = self._connection = pika.SelectConnection(
            parameters(self._address), self._has_opened, self._has_not_opened, self._has_closed
        )
        try:
            connection.ioloop.start()
        finally:
            self._is_over.set()
            connection.ioloop.close()

    def _has_opened(self, connection: pika.SelectConnection) -> None:
        self._opened.set_result(None)

    def _has_not_opened(self, connection: pika.SelectConnection, error: Exception | str) -> None:
        self._end(error if isinstance(error, Exception) else LibraryRefuses(error))
        self._opened.set_exception(LibraryRefuses(str(error)))

    def _has_closed(self, connection: pika.SelectConnection, reason: Exception) -> None:
        if isinstance(reason, exceptions.ConnectionClosedByBroker):
            self._shows(0, "connection.close", {"reply_code": reason.reply_code, "reply_text": reason.reply_text})
        self._end(reason)

    def _end(self, reason: Exception) -> None:
        self._is_over.set()
        for channel in self._channels.values():
            channel.end(reason)
        for done in self._closing:
            done.set_result(None)
        if self._connection is not None:
            self._connection.ioloop.stop()

    def _do(self, event: TraceEvent, done: Future[None]) -> None:
        try:
            self._send(event, done)
        except Exception as error:  # noqa: BLE001 - what pika says in place of sending
            if not done.done():
                done.set_exception(error)

    def _send(self, event: TraceEvent, done: Future[None]) -> None:
        if self._connection is None or self._is_over.is_set():
            raise LibraryRefuses("the connection is over")
        if event.name == "connection.close":
            self._closing.append(done)
            self._connection.close(**event.arguments)
        elif event.name == "connection.update-secret":
            self._connection.update_secret(**event.arguments, callback=lambda _: done.set_result(None))
        elif event.name == "channel.open":
            channel = type(self).makes_channel(event.channel, self._shows, self._comes_back_written)
            channel.open(self._connection, done)
            self._channels[event.channel] = channel
        elif event.channel not in self._channels:
            raise LibraryRefuses("the channel was not opened")
        else:
            self._channels[event.channel].send(event, done)

    def _comes_back_written(self, done: Future[None]) -> None:
        """Of a function that has no answer: when pika has written what it has put into its buffer."""
        connection = self._connection
        if connection is None or self._is_over.is_set() or not connection._get_write_buffer_size():
            done.set_result(None)
        else:
            connection.ioloop.call_later(0.001, partial(self._comes_back_written, done))


class PikaSelectChannel:
    """One channel, and what pika calls back on it."""

    def __init__(self, number: int, shows: Shows, comes_back_written: Callable[[Future[None]], None]) -> None:
        self._number, self._shows, self._comes_back_written = number, shows, comes_back_written
        self._channel: Any = None
        #: functions that have not come back
        self._under_way: list[Future[None]] = []
        #: to be called at the end of the channel, and with the next answer to basic.get
        self._closing: list[Answered] = []
        self._getting: list[Answered] = []
        self._is_confirming = False

    def open(self, connection: pika.SelectConnection, done: Future[None]) -> None:
        channel = self._channel = connection.channel(self._number, on_open_callback=self._comes_back(done))
        channel.add_on_close_callback(self._has_closed)
        channel.add_on_return_callback(self._returned)
        channel.add_on_cancel_callback(self._cancelled)
        channel.add_callback(self._is_empty, [spec.Basic.GetEmpty], one_shot=False)

    def send(self, event: TraceEvent, done: Future[None]) -> None:
        is_answered = event.name in SYNCHRONOUS_METHODS and not event.arguments.get("nowait")
        answered = self._comes_back(done) if is_answered else None
        if event.name == "basic.publish":
            self._publish(event.arguments, event.content or Content({}, b""))
        elif event.name in _CALLS:
            _CALLS[event.name](self, event.arguments, answered)
        elif event.name in SYNCHRONOUS_METHODS:
            plainly(self._channel, event.name, event.arguments, callback=answered)
        else:
            plainly(self._channel, event.name, event.arguments)
        if answered is None:
            self._comes_back_written(done)

    def end(self, reason: Exception) -> None:
        for answered in self._closing:
            answered()
        self._closing.clear()
        for done in [each for each in self._under_way if not each.done()]:
            done.set_exception(reason)
        self._under_way.clear()

    def _comes_back(self, done: Future[None]) -> Callable[..., None]:
        """Called by pika when the answer has come."""
        self._under_way.append(done)

        def answered(*answer: Any) -> None:
            if done in self._under_way:
                self._under_way.remove(done)
                done.set_result(None)

        return answered

    def _publish(self, said: Table, content: Content) -> None:
        self._channel.basic_publish(
            said.get("exchange", ""), said.get("routing_key", ""), content.body,
            pika.BasicProperties(**content.properties), said.get("mandatory", False),
        )  # fmt: skip

    def _select(self, said: Table, answered: Answered) -> None:
        if self._is_confirming:
            raise LibraryRefuses("confirms were asked for before")
        self._channel.confirm_delivery(self._confirmed, answered)
        self._is_confirming = True

    def _get(self, said: Table, answered: Answered) -> None:
        self._channel.basic_get(said.get("queue", ""), self._got, said.get("no_ack", False))
        self._getting.append(answered)

    def _consume(self, said: Table, answered: Answered) -> None:
        self._channel.basic_consume(
            said.get("queue", ""), self._delivered, said.get("no_ack", False), said.get("exclusive", False),
            said.get("consumer_tag") or None, said.get("arguments"), answered,
        )  # fmt: skip

    def _cancel(self, said: Table, answered: Answered) -> None:
        tag = said["consumer_tag"]
        if tag not in self._channel.consumer_tags:
            raise LibraryRefuses(f"there is no consumer {tag}")
        self._channel.basic_cancel(tag, answered)

    def _close(self, said: Table, answered: Answered) -> None:
        self._channel.close(**said)
        self._closing.append(answered)

    def _has_closed(self, channel: Channel, reason: Exception) -> None:
        if isinstance(reason, exceptions.ChannelClosedByBroker):
            told: Table = {"reply_code": reason.reply_code, "reply_text": reason.reply_text}
            self._shows(self._number, "channel.close", told)
        self.end(reason)

    def _got(self, channel: Channel, method: Any, properties: Any, body: bytes) -> None:
        self._shows(self._number, "basic.get-ok", arguments_of(method), content_of(properties, body))
        self._getting.pop(0)()

    def _is_empty(self, frame: Any) -> None:
        self._shows(self._number, "basic.get-empty", {})
        self._getting.pop(0)()

    def _delivered(self, channel: Channel, method: Any, properties: Any, body: bytes) -> None:
        self._shows(self._number, "basic.deliver", arguments_of(method), content_of(properties, body))

    def _returned(self, channel: Channel, method: Any, properties: Any, body: bytes) -> None:
        self._shows(self._number, "basic.return", arguments_of(method), content_of(properties, body))

    def _confirmed(self, frame: Any) -> None:
        name = "basic.ack" if isinstance(frame.method, spec.Basic.Ack) else "basic.nack"
        self._shows(self._number, name, arguments_of(frame.method))

    def _cancelled(self, frame: Any) -> None:
        self._shows(self._number, "basic.cancel", {"consumer_tag": frame.method.consumer_tag})


PikaSelectClient.makes_channel = PikaSelectChannel

_CALLS: dict[str, Callable[[PikaSelectChannel, Table, Answered], None]] = {
    "basic.get": PikaSelectChannel._get,
    "basic.consume": PikaSelectChannel._consume,
    "basic.cancel": PikaSelectChannel._cancel,
    "confirm.select": PikaSelectChannel._select,
    "channel.close": PikaSelectChannel._close,
}


class PikaSelectCarrier(LibraryCarrier):
    """Carries commands through pika with callbacks."""

    makes_client = PikaSelectClient
    shown_each = LibraryCarrier.shown_each | {"basic.ack", "basic.nack"}
