"""A tap: what a library connects to in place of the broker. It passes octets on, and tells each frame of them.

A frame is told before it is passed on. So none is told before one that it may have come from, on whatever connection.
"""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from amqpspec.model.protocol.methods import HeaderEvent, RawFrame, SocketEvent, TraceEvent
from amqpspec.targets.client.stream import Stream
from amqpspec.targets.codec.decoder import Decoder
from amqpspec.targets.codec.framing import FrameSyntaxError, Heartbeat, ProtocolHeader
from amqpspec.targets.codec.server_decoder import OutOfRoom, ServerDecoder

_READ_SIZE = 65_536


class Tap:
    """One connection, from a library, which connects to `listener`, to the broker.

    `told` is called from a thread of the tap's, with the time by `clock`: just before a frame was passed on to the
    broker, or just after it came from there; `wrote`, when the broker has it.
    """

    def __init__(
        self,
        name: str,
        broker: Stream,
        listener: socket.socket,
        told: Callable[[TraceEvent], None],
        wrote: Callable[[], None],
        clock: Callable[[], float],
        patience: float,
    ) -> None:
        self.name = name
        self._broker, self._tells, self._wrote, self._now, self._patience = broker, told, wrote, clock, patience
        self._moment = 0.0
        #: what was told, or is to be, is being passed on to the broker
        self.is_writing = False
        #: the begin of what is not complete: a broker may answer a publish whose content it does not have yet
        self._held = bytearray()
        self._listener = listener
        #: where the library connects
        self.port = int(listener.getsockname()[1])
        self._listener.settimeout(patience)
        self._sent, self._received = ServerDecoder(name), Decoder(name)
        self._wake, self._woken = socket.socketpair()
        self._looked = threading.Condition()
        self._looks_asked = self._looks_done = 0
        #: both sides have said that it is over
        self._is_closing = False
        #: the broker's side is over, and that was told
        self.is_over = False
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, name=f"tap {name}", daemon=True)
        self._thread.start()

    @property
    def local_port(self) -> int:
        return self._broker.local_port

    def look(self) -> None:
        """Come back when all was told that the library had written before."""
        with self._looked:
            self._looks_asked += 1
            wanted = self._looks_asked
            with suppress(OSError):
                self._wake.send(b"\0")
            self._looked.wait_for(lambda: self._looks_done >= wanted or self.is_over, self._patience)

    def stop(self, reset: bool = False) -> None:
        """End both sides; nothing more is told."""
        self._is_stopped = True
        with suppress(OSError):
            self._wake.send(b"\0")
        self._listener.close()
        self._thread.join(self._patience)
        self._wake.close()
        self._woken.close()
        (self._broker.reset if reset else self._broker.close)()

    def _run(self) -> None:
        try:
            client, _ = self._listener.accept()
        except OSError:
            return
        finally:
            self._listener.close()
        with client, selectors.DefaultSelector() as selector:
            client.settimeout(self._patience)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            selector.register(client, selectors.EVENT_READ, self._from_client)
            selector.register(self._broker, selectors.EVENT_READ, self._from_broker)
            selector.register(self._woken, selectors.EVENT_READ, None)
            while not self.is_over and not self._is_stopped:
                ready = selector.select()
                looks = self._looks_asked
                for key, _ in ready:
                    if key.data is None:
                        self._woken.recv(_READ_SIZE)
                    elif not self.is_over and not key.data(client) and not self.is_over:
                        selector.unregister(key.fileobj)
                if looks > self._looks_done:
                    self._look_again(client, selector)
                    with self._looked:
                        self._looks_done = looks
                        self._looked.notify_all()
        with self._looked:
            self.is_over = True
            self._looked.notify_all()

    def _look_again(self, client: socket.socket, selector: selectors.BaseSelector) -> None:
        """What a library has written is there at once, as both are on this machine."""
        while client in selector.get_map() and _is_readable(client):
            if not self._from_client(client):
                selector.unregister(client)

    def _from_client(self, client: socket.socket) -> bool:
        """Pass on what is there. False: nothing more comes."""
        try:
            octets = client.recv(_READ_SIZE)
        except OSError:
            octets = b""
        if not octets:
            self._moment = self._now()
            self._write(memoryview(bytes(self._held)))
            if self._is_closing:
                self._broker.end_output()
            elif not self.is_over:
                self._broker.reset()
                self._end(SocketEvent(self.name, 0, "socket.abort", {}, sent=True))
            return False
        self._moment = self._now()
        self.is_writing = True
        for item in self._sent.feed(octets):
            if isinstance(item, ProtocolHeader):
                self._told(HeaderEvent(self.name, 0, "protocol.header", {"octets": item.octets.hex()}, sent=True))
            elif isinstance(item, OutOfRoom):
                self._told(RawFrame(self.name, 0, "frame.other", {"type": 0, "payload": ""}, sent=True))
            elif not isinstance(item, Heartbeat):
                self._note_limits(item)
                self._told(item)
        self._held += octets
        if not self._sent.is_within:
            self._write(memoryview(bytes(self._held)))
            self._held.clear()
            self.is_writing = False
            self._wrote()
        return True

    def _write(self, octets: memoryview) -> None:
        deadline = time.monotonic() + self._patience
        try:
            while octets and time.monotonic() < deadline:
                octets = octets[self._broker.write(octets) :]
                if octets:
                    self._broker.wait_writable(deadline)
        except OSError:
            pass  # its end is read

    def _from_broker(self, client: socket.socket) -> bool:
        try:
            octets = self._broker.read()
            self._moment = self._now()
        except OSError as error:
            is_reset = isinstance(error, ConnectionResetError)
            return self._closed("the broker reset the connection" if is_reset else error.strerror or "it is lost")
        if octets is None:
            return True
        if not octets:
            within = " in the middle of a frame" if self._received.mid_frame else ""
            return self._closed(f"the broker ended the stream{within}")
        garbage: FrameSyntaxError | None = None
        try:
            decoded = self._received.feed(octets)
        except FrameSyntaxError as error:
            decoded, garbage = error.before, error
        for item in decoded:
            if isinstance(item, ProtocolHeader):
                self._told(HeaderEvent(self.name, 0, "protocol.header", {"octets": item.octets.hex()}, sent=False))
            elif not isinstance(item, Heartbeat):
                self._is_closing = self._is_closing or item.name == "connection.close-ok"
                self._told(item)
        if garbage is not None:
            arguments = {"octets": garbage.octets.hex(), "reason": str(garbage)}
            self._broker.close()
            self._end(SocketEvent(self.name, 0, "socket.garbage", arguments, sent=False))
        with suppress(OSError):
            client.sendall(octets)
        return garbage is None

    def _note_limits(self, event: TraceEvent) -> None:
        if event.name == "connection.tune-ok":
            self._sent.frame_max = self._received.frame_max = int(event.arguments.get("frame_max", 0))
        self._is_closing = self._is_closing or event.name == "connection.close-ok"

    def _told(self, event: TraceEvent) -> None:
        event.time = self._moment
        self._tells(event)

    def _closed(self, reason: str) -> bool:
        self._broker.close()
        self._end(SocketEvent(self.name, 0, "socket.closed", {"reason": reason}, sent=False))
        return False

    def _end(self, event: TraceEvent) -> None:
        self.is_over = True
        self._told(event)


def _is_readable(sock: socket.socket) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        return bool(selector.select(0))
