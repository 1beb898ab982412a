"""The loop of the embedded broker: one selector, all its connections, and the model behind them."""

from __future__ import annotations

import errno
import logging
import selectors
import socket
import ssl
import time
from collections.abc import Callable
from functools import partial

from amqpspec.model.broker.queues import Consumer
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.protocol.methods import (
    OPERATOR,
    HeaderEvent,
    Method,
    OperatorAction,
    SocketEvent,
    Table,
    TraceEvent,
)
from amqpspec.targets.clock import Clock
from amqpspec.targets.codec.methods_codec import PROTOCOL_HEADER, Decoded, EncodingError, ProtocolHeader
from amqpspec.targets.codec.server_decoder import OutOfRoom
from amqpspec.targets.embedded.connection import ClientConnection, Phase
from amqpspec.targets.embedded.handshake import Access, Doorkeeper, closing
from amqpspec.targets.embedded.hosts_responder import HostsResponder
from amqpspec.targets.embedded.mishaps import Mishaps
from amqpspec.targets.embedded.orders import Orders
from amqpspec.targets.embedded.responder import ModelDefect
from amqpspec.targets.suite_error import WORDS, line_of

logger = logging.getLogger(__name__)
# who wants to read tracebacks says where; what broke down is in `failures` in any case
logger.addHandler(logging.NullHandler())
#: Items of one connection, and frames of the model, before others have their turn.
_TURN = 200
_NEVER = float("inf")
#: Seconds in which clients who send without end keep the operator waiting.
_LONGEST_BEFORE_ORDERS = 0.5
#: Why connections end when a broker is stopped, as RabbitMQ says it.
SHUTDOWN = "broker forced connection closure with reason 'shutdown'"
#: Seconds for the clients to answer that.
FAREWELL_PATIENCE = 5.0
#: Seconds: a selector waits for 24 days at most, and a time to live may be longer.
_LONGEST_WAIT = 3600.0


class Loop:
    """Serves what connects to `listener` until `stop`. `failures`: defects of the broker itself that were met."""

    def __init__(
        self,
        listener: socket.socket,
        tls: ssl.SSLContext | None,
        responder: HostsResponder,
        dialect: Dialect,
        access: Access,
        clock: Clock,
        mishaps: Mishaps,
        properties: Table | None = None,
    ) -> None:
        self.failures: list[str] = []
        self._listener = listener
        self._tls = tls
        self._responder = responder
        self._dialect = dialect
        self._access = access
        self._properties = properties
        #: the clients' clock; that of the responder may be put forward alone
        self._clock = clock
        self.mishaps = mishaps
        self._clients: dict[str, ClientConnection] = {}
        #: of those who are not let in yet
        self._doorkeepers: dict[str, Doorkeeper] = {}
        #: have an inbox to go on with, or are lost and to be forgotten
        self._waiting: dict[str, ClientConnection] = {}
        #: were written to, or changed otherwise, in this turn
        self._changed: dict[str, ClientConnection] = {}
        #: the model permits more than its turn had room for
        self._unfinished = False
        self.orders = Orders()
        self._serial = 0
        #: the client whose input was processed last
        self._latest = ""
        self._next_tick = _NEVER
        self._stopping = False
        #: everybody is told that it ends (`end_in_order`), and has until then to answer
        self._is_leaving = False
        self._leaves_by = _NEVER
        #: when somebody rang, while there was something else to do first
        self._rung_at = _NEVER
        self._selector = selectors.DefaultSelector()
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ)
        self._selector.register(self.orders.alarm, selectors.EVENT_READ)
        self._selector_of_orders = selectors.DefaultSelector()
        self._selector_of_orders.register(self.orders.alarm, selectors.EVENT_READ)

    def run(self) -> None:
        """Serve until `stop`; then, or on an error, close everything."""
        try:
            while not self._stopping:
                self._turn()
            if self._is_leaving:
                self._leave()
        except Exception as error:
            logger.exception("the embedded broker broke down")
            self.failures.append(f"the embedded broker broke down: {_described(error)}")
        finally:
            self.close()

    def stop(self) -> None:
        """Ask `run` to return; from any thread."""
        self._stopping = True
        self.orders.ring()

    def end_in_order(self) -> None:
        """Ask `run` to close all connections with 320 and to return when the clients have answered; from any thread."""
        self._is_leaving = True
        self.stop()

    def _leave(self) -> None:
        self._selector.unregister(self._listener)
        self.mishaps.end()
        self.close_in_order(self.clients_named(None), SHUTDOWN)
        self._listener.close()  # who is refused from now on knows that all others were told
        self._leaves_by = self._clock.now() + FAREWELL_PATIENCE
        while self._clients and self._clock.now() < self._leaves_by:
            self._turn()

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
        self._clients.clear()
        self._selector.close()
        self._selector_of_orders.close()
        self._listener.close()
        self.orders.close()

    # ------------------------------------------------------------------------------------------ one turn

    def _turn(self) -> None:
        if self.mishaps.is_mute:
            self._selector_of_orders.select()
            self._obey()
            return
        serving, self._waiting = self._waiting, {}
        is_rung = False
        for key, events in self._selector.select(self._patience(bool(serving))):
            client = key.data
            if client is None:
                if key.fileobj is self._listener:
                    self._accept()
                else:
                    is_rung = True
                continue
            if events & selectors.EVENT_WRITE:
                client.flush()
            if events & selectors.EVENT_READ and not client.inbox:
                self._guarded(client, client.read)
            serving[client.name] = client
        for client in serving.values():
            self._serve(client)
        self._pump()
        self._tick(self._clock.now())
        if is_rung:
            # what clients have sent before comes first, unless they send without end
            now = time.monotonic()
            self._rung_at = min(self._rung_at, now)
            if not serving or now - self._rung_at > _LONGEST_BEFORE_ORDERS:
                self._rung_at = _NEVER
                self._obey()
        while self._changed:
            self._settle(self._changed.popitem()[1])

    def _patience(self, busy: bool) -> float | None:
        if busy or self._unfinished:
            return 0.0
        wait = self._responder.wait()
        if self.mishaps.are_on:
            wait = min(wait, self.mishaps.wait())
        if self._next_tick < _NEVER:
            wait = min(wait, self._next_tick - self._clock.now())
        if self._leaves_by < _NEVER:
            wait = min(wait, self._leaves_by - self._clock.now())
        return None if wait == _NEVER else min(max(wait, 0.0), _LONGEST_WAIT)

    def _serve(self, client: ClientConnection) -> None:
        """Handle what is in the inbox, for a turn, and while the client reads what it gets for it."""
        for _ in range(_TURN):
            if client.congested or not client.inbox:
                break
            self._guarded(client, partial(self._handle, client, client.inbox.popleft()))
        self._changed[client.name] = client

    def _settle(self, client: ClientConnection) -> None:
        """Write, and note what to wait for."""
        if client.name not in self._clients:
            return
        was_congested = client.congested
        client.flush()
        if was_congested and not client.congested:
            self._unfinished = True  # deliveries have waited for this
        if client.inbox and not client.congested:
            self._waiting[client.name] = client
        elif client.lost:
            self._forget(client)
            return
        events = client.wanted_events()
        if events != client.events:
            client.events = events
            self._selector.modify(client.stream, events, client)
        self._next_tick = min(self._next_tick, client.due())

    def _tick(self, now: float) -> None:
        if self._responder.wait() <= 0:
            try:
                self._responder.tick_now()
            except Exception as error:  # noqa: BLE001 - whatever it is, others are served
                self._break_down_somebody(error)
            self._pump()
        if now >= self._next_tick:
            self._tick_clients(now)

    def _tick_clients(self, now: float) -> None:
        self._next_tick = _NEVER
        for client in self._clients.values():
            client.tick(now)
        self._changed.update(self._clients)

    # --------------------------------------------------------------------------------- clients come and go

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    # nobody else can come in until somebody leaves
                    self._selector.unregister(self._listener)
                return
            self._serial += 1
            name = f"client-{self._serial}"
            try:
                sock.setblocking(False)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self._tls is not None:
                    sock = self._tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
            except OSError:
                sock.close()
                continue
            client = self._clients[name] = ClientConnection(name, sock, self._clock)
            self._doorkeepers[name] = Doorkeeper(self._dialect, self._access, self._properties)
            self._selector.register(client.stream, client.events, client)
            self._next_tick = min(self._next_tick, client.due())
            self._take(client, SocketEvent(name, 0, "socket.open", {}, sent=True))

    def _forget(self, client: ClientConnection) -> None:
        del self._clients[client.name]
        self._doorkeepers.pop(client.name, None)
        self._selector.unregister(client.stream)
        client.close()
        self._end(client.name)
        self._pump()
        if not self._is_leaving and self._listener not in self._selector.get_map():
            self._selector.register(self._listener, selectors.EVENT_READ)

    def _obey(self) -> None:
        """Do what the operator wants."""
        for event in self.orders.taken(self._client_from):
            try:
                if isinstance(event, TraceEvent):
                    self._responder.take(event)
                else:
                    event()
            except Exception as error:  # noqa: BLE001 - as above
                self._break_down_somebody(error)
            self._pump()

    # ----------------------------------------------------- what is asked for in the broker's thread (`orders.do`)

    @property
    def responder(self) -> HostsResponder:
        return self._responder

    def clients_named(self, name: str | None) -> list[str]:
        """Those who call their connection so; None: all."""
        open_ones = [client for client in self._clients.values() if client.phase is Phase.OPEN]
        return [client.name for client in open_ones if name in (None, client.title)]

    def title_of(self, name: str) -> str:
        """What the client calls its connection."""
        return self._clients[name].title if name in self._clients else ""

    def lose(self, name: str) -> None:
        """The TCP connection is broken off."""
        client = self._clients.get(name)
        if client is not None:
            client.break_off()
            self._forget(client)

    def hear_half_contents(self) -> None:
        """The model is told what has come of contents that will never be whole."""
        for client in list(self._clients.values()):
            if client.phase is Phase.OPEN:
                for event in client.half_contents():
                    self._take(client, event)

    def break_off_all(self) -> None:
        """All TCP connections are broken off, and the model is not told: its time is over."""
        for client in self._clients.values():
            client.break_off()
            self._selector.unregister(client.stream)
            client.close()
        self._forget_all()

    def part_from_all(self) -> list[ClientConnection]:
        """Write what there is to say, and read nothing more of anybody. Whoever is given these closes them, when the
        clients have had the time to read it.
        """
        parted = list(self._clients.values())
        for client in parted:
            client.hang_up()
            self._selector.unregister(client.stream)
        self._forget_all()
        return parted

    def _forget_all(self) -> None:
        self._clients.clear()
        self._doorkeepers.clear()
        self.mishaps.forget_connections()

    def close_in_order(self, names: list[str], reason: str) -> None:
        for name in names:
            self._operate("operator.close-connection", name=name, reason=reason)
        self.say_all()

    def heal(self, name: str) -> None:
        """That mishap is over; "": all."""
        had_blocked = self.mishaps.have_blocked
        self.mishaps.end(name)
        if had_blocked and not self.mishaps.have_blocked:
            self._operate("operator.clear-alarm")
        self.say_all()

    def cancel(self, consumer: Consumer) -> None:
        """As when its queue goes."""
        self._responder.broker_of(consumer.channel[0]).cancel(consumer)
        self._responder.has_changed()

    def _operate(self, action: str, **arguments: str) -> None:
        self._responder.take(OperatorAction(OPERATOR, 0, action, dict(arguments), sent=True))

    def tick_clients(self) -> None:
        """Their clock was put forward: who was silent for too long is lost."""
        self._tick_clients(self._clock.now())
        for client in [each for each in self._clients.values() if each.lost]:
            self._forget(client)

    def say_all(self) -> None:
        """Send all that the model permits."""
        self._responder.has_changed()
        self._pump()
        while self._unfinished and not self.mishaps.is_mute:
            self._pump()
        while self._changed:  # written now: the loop may wait before its next turn ends
            self._settle(self._changed.popitem()[1])

    def _client_from(self, port: int) -> str | None:
        return next((name for name, client in self._clients.items() if client.stream.peer_port == port), None)

    # ------------------------------------------------------------------------------------ what clients say

    def _handle(self, client: ClientConnection, item: Decoded | OutOfRoom) -> None:
        doorkeeper = self._doorkeepers.get(client.name)
        if doorkeeper is not None and doorkeeper.awaits_header:
            self._take(client, doorkeeper.header(client.name, item if isinstance(item, ProtocolHeader) else b""))
            if self._responder.is_foreign(client.name):
                client.send_octets(PROTOCOL_HEADER)
                client.hang_up()
        elif isinstance(item, OutOfRoom):
            self._refuse(client, 506, "contents that are not complete exceed the memory for them")
        elif client.phase is Phase.CLOSING:
            self._while_closing(client, item)
        elif isinstance(item, TraceEvent):
            self._take(client, item if doorkeeper is None else doorkeeper.shown(item))
        elif isinstance(item, ProtocolHeader):
            self._take(client, HeaderEvent(client.name, 0, "protocol.header", {"octets": item.octets.hex()}, sent=True))

    def _while_closing(self, client: ClientConnection, item: Decoded) -> None:
        """The server closes: nothing counts but the client's close-ok, or its own close that crossed ours."""
        if not isinstance(item, Method) or item.channel != 0:
            return
        if item.name == "connection.close":
            self._emit(Method(client.name, 0, "connection.close-ok", {}, sent=False))
        elif item.name == "connection.close-ok":
            client.hang_up()

    def _refuse(self, client: ClientConnection, code: int, explanation: str) -> None:
        """Close because of something that the model knows nothing of."""
        self._end(client.name)
        self._emit(closing(client.name, code, explanation))
        client.hang_up()

    # --------------------------------------------------------------------------------------- what we say

    def _take(self, client: ClientConnection, event: TraceEvent) -> None:
        self._latest = client.name
        if not self.mishaps.are_on or not self._goes_wrong(client, event):
            self._process(client, event)
            self._pump()

    def _goes_wrong(self, client: ClientConnection, event: TraceEvent) -> bool:
        """Has something else become of it than is right?"""
        mishaps = self.mishaps
        if mishaps.seconds_for_a_frame:
            self._selector_of_orders.select(mishaps.seconds_for_a_frame)
        if mishaps.blocks(event):
            self._operate("operator.set-alarm")
        if mishaps.loses_before(event):
            self.lose(client.name)
        elif mishaps.refuses(event) and self._responder.broker_of(client.name).open_channel(event) is not None:
            self._refuse_publish(client, event)
        elif mishaps.loses_after(event):
            self._process(client, event)
            self.lose(client.name)
        else:
            return False
        return True

    def _process(self, client: ClientConnection, event: TraceEvent) -> None:
        try:
            self._responder.take(event)
        except Exception as error:
            logger.exception("the model broke down over %s", event.name)
            self._break_down(client.name, f"the model broke down over {event.name}: {_described(error)}")

    def _refuse_publish(self, client: ClientConnection, event: TraceEvent) -> None:
        """It reaches no queue; the client hears of it if it asked for confirms."""
        channel = self._responder.broker_of(client.name).channel(event.connection, event.channel)
        if channel.confirming:
            channel.published += 1
            arguments = {"delivery_tag": channel.published, "multiple": False, "requeue": False}
            self._emit(Method(client.name, event.channel, "basic.nack", arguments, sent=False))

    def _cancel_behind(self, delivery: TraceEvent) -> None:
        channel = self._responder.broker_of(delivery.connection).channel(delivery.connection, delivery.channel)
        consumer = channel.consumers.get(delivery.arguments["consumer_tag"])
        if consumer is not None:
            self.cancel(consumer)

    def _pump(self) -> None:
        """Send what the model permits, until it is quiet."""
        mishaps = self.mishaps
        if mishaps.is_mute:
            self._unfinished = True
            return
        held = mishaps.holds if mishaps.are_on else _nothing
        for _ in range(_TURN):
            try:
                frames = self._responder.next_outputs(self._is_congested, self._is_busy, held)
            except ModelDefect as error:
                self._break_down(error.connection, str(error))
                continue
            except Exception as error:  # noqa: BLE001 - as above
                self._break_down_somebody(error)
                continue
            if frames is None:
                self._unfinished = False
                return
            for event in frames:
                self._emit(event)
        self._unfinished = True

    def _is_congested(self, name: str) -> bool:
        client = self._clients.get(name)
        return client is not None and client.congested

    def _is_busy(self, name: str) -> bool:
        return name in self._clients and bool(self._clients[name].inbox)

    def _emit(self, event: TraceEvent) -> None:
        client = self._clients.get(event.connection)
        if client is None or client.phase is Phase.HANGING_UP:
            return
        if event.name == "socket.closed":
            client.hang_up()
            self._changed[client.name] = client
            return
        doorkeeper = self._doorkeepers.get(client.name)
        if doorkeeper is not None and event.name == "connection.start":
            event = doorkeeper.introduced(event)
        if self.mishaps.are_on and self.mishaps.loses_in(event):
            client.send_half(event)
            self._forget(client)
            return
        try:
            client.send(event)
        except EncodingError as error:
            self._break_down(client.name, f"the model sends what cannot be encoded, {event.name}: {error}")
            return
        self._changed[client.name] = client
        if self.mishaps.are_on and self.mishaps.cancels_behind(event):
            self._cancel_behind(event)
        if doorkeeper is not None and event.name == "connection.open-ok":
            del self._doorkeepers[client.name]
            client.title = doorkeeper.connection_name
            client.adopt(doorkeeper.tune)
        elif event.name == "connection.close":
            client.await_close_ok()
        elif event.name == "connection.close-ok":
            client.hang_up()

    def _break_down(self, name: str, reason: str) -> None:
        """A defect of ours ends the connection that met it, as RabbitMQ does it, and is told at the end."""
        self.failures.append(reason)
        self._end(name)
        self._emit(closing(name, 541, "internal error"))

    def _break_down_somebody(self, error: Exception) -> None:
        """The same where nothing says whose input the model broke down over: at first it is taken to be the latest."""
        logger.error("the model broke down", exc_info=error)
        served = [each.name for each in self._clients.values() if each.phase in (Phase.OPEN, Phase.HANDSHAKE)]
        reason = f"the model broke down: {_described(error)}"
        if served:
            self._break_down(self._latest if self._latest in served else served[0], reason)
        else:
            self.failures.append(f"{reason}; it begins anew, without queues and messages")
            self._responder.begin_anew()

    def _end(self, name: str) -> None:
        """The model has the connection end."""
        try:
            self._responder.end(name)
        except Exception as error:
            logger.exception("the model broke down over the end of %s", name)
            self.failures.append(f"the model broke down over the end of a connection: {_described(error)}")

    def _guarded(self, client: ClientConnection, step: Callable[[], None]) -> None:
        """What is raised over a client ends its connection, and no other."""
        try:
            step()
        except Exception as error:
            logger.exception("the embedded broker broke down over %s", client.name)
            self._break_down(client.name, f"the embedded broker broke down: {_described(error)}")


def _nothing(event: TraceEvent) -> bool:
    return False


def _described(error: Exception) -> str:
    return line_of(error).removeprefix(WORDS)
