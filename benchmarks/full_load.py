"""How many frames a broker produces at full load, without anybody who records or judges them.

Publishers send octets that were made before; consumers count what comes, and look at nothing else. So it is the broker
that sets the rate. A method with its content counts as one frame, as in a trace.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from amqpspec.model.protocol.methods import Content
from amqpspec.targets.address import Address
from amqpspec.targets.brokers.resolve import running
from amqpspec.targets.codec.methods_codec import encode_content, encode_method
from benchmarks.errors import Invalid

#: Queues, each with a publisher and a consumer on connections of their own.
QUEUES = 2
BODY = b"full load"
#: Publishes that are sent in one piece.
BATCH = 500
#: Seconds before the measurement, and of it.
WARM_UP, SECONDS = 3.0, 15.0
#: Octets that are read at a time at most.
READ = 1 << 18
#: Octets that may be under way to the broker, so that it is soon at the end.
SENT_AHEAD = 1 << 18
#: Class and method of `basic.deliver` and of the broker's `basic.ack`.
_DELIVER, _CONFIRM = (60, 60), (60, 80)


@dataclass(slots=True)
class _Connection:
    """A connection with one open channel."""

    stream: socket.socket
    _kept: bytes = b""

    @classmethod
    def opened(cls, address: Address) -> _Connection:
        made = cls(socket.create_connection((address.host, address.port), 10.0))
        made.stream.sendall(b"AMQP\x00\x00\x09\x01")
        made.wait_for((10, 10))
        login = f"\0{address.user}\0{address.password}".encode()
        answer = {"client_properties": {}, "mechanism": "PLAIN", "response": login, "locale": "en_US"}
        made.send("connection.start-ok", answer, 0)
        made.wait_for((10, 30))
        made.send("connection.tune-ok", {"channel_max": 10, "frame_max": 131_072, "heartbeat": 0}, 0)
        made.send("connection.open", {"virtual_host": address.vhost}, 0)
        made.wait_for((10, 41))
        made.send("channel.open", {})
        made.wait_for((20, 11))
        return made

    def send(self, method: str, arguments: Mapping[str, Any], channel: int = 1) -> None:
        self.stream.sendall(encode_method(channel, method, arguments))

    def wait_for(self, method: tuple[int, int]) -> None:
        """Read until the method has come. Raises `Invalid` where the connection ends before."""
        while not self.count(method):
            pass

    def count(self, method: tuple[int, int]) -> int:
        """Read once: how many of that method came. Their bodies hold no frame's beginning."""
        octets = self.stream.recv(READ)
        if not octets:
            raise Invalid("the broker closed a connection under full load")
        class_id, method_id = method
        looked_for = class_id.to_bytes(2) + method_id.to_bytes(2)
        seen = self._kept + octets
        self._kept = seen[1 - len(looked_for) :]
        return seen.count(looked_for)


@dataclass(slots=True)
class FullLoad:
    """What came and went in `seconds`, as frames of a trace."""

    seconds: float = 0.0
    published: int = 0
    delivered: int = 0
    acknowledgements: int = 0
    confirms: int = 0
    ended: threading.Event = field(default_factory=threading.Event)
    counting: threading.Lock = field(default_factory=threading.Lock)

    @property
    def frames(self) -> int:
        """All of them."""
        return self.published + self.delivered + self.acknowledgements + self.confirms


def full_load(target: str, settled: bool, warm_up: float = WARM_UP, seconds: float = SECONDS) -> FullLoad:
    """What the target takes and delivers in that many seconds, or until something was delivered if that takes longer.

    `settled`: with confirms and acknowledgements, else with none.
    Raises `Invalid` and `amqpspec.targets.errors.TargetError`.
    """
    with running(target) as address, ExitStack() as stack:
        load = FullLoad()
        threads = []
        for number in range(QUEUES):
            publisher, consumer = _Connection.opened(address), _Connection.opened(address)
            publisher.stream.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SENT_AHEAD)
            for each in (publisher, consumer):
                stack.enter_context(closing(each.stream))
            queue = f"full-load-{number}"
            _prepare(publisher, consumer, queue, settled)
            threads += [
                threading.Thread(target=_publish, args=(publisher, queue, load)),
                threading.Thread(target=_consume, args=(consumer, settled, load)),
            ]
            if settled:
                threads.append(threading.Thread(target=_confirmed, args=(publisher, load)))
        for thread in threads:
            thread.daemon = True
            thread.start()
        load.ended.wait(warm_up)
        before, began = _counts(load), time.perf_counter()
        while time.perf_counter() - began < seconds or _counts(load)[1] == before[1]:
            if load.ended.wait(seconds):
                raise Invalid("a connection ended under full load")
        after, took = _counts(load), time.perf_counter() - began
        load.ended.set()
        return FullLoad(took, *(now - then for now, then in zip(after, before, strict=True)))


def _counts(load: FullLoad) -> tuple[int, ...]:
    return load.published, load.delivered, load.acknowledgements, load.confirms


def _prepare(publisher: _Connection, consumer: _Connection, queue: str, settled: bool) -> None:
    declaration = {"queue": queue, "exclusive": False, "auto_delete": True}
    publisher.send("queue.declare", declaration)
    publisher.wait_for((50, 11))
    if settled:
        publisher.send("confirm.select", {})
        publisher.wait_for((85, 11))
        consumer.send("basic.qos", {"prefetch_count": 1000})
        consumer.wait_for((60, 11))
    consumer.send("basic.consume", {"queue": queue, "no_ack": not settled})
    consumer.wait_for((60, 21))


def _publish(publisher: _Connection, queue: str, load: FullLoad) -> None:
    publish = encode_method(1, "basic.publish", {"routing_key": queue}) + encode_content(1, Content({}, BODY))
    with _ending(load):
        while not load.ended.is_set():
            publisher.stream.sendall(publish * BATCH)
            with load.counting:
                load.published += BATCH


def _consume(consumer: _Connection, settled: bool, load: FullLoad) -> None:
    in_all = 0
    with _ending(load):
        while not load.ended.is_set():
            deliveries = consumer.count(_DELIVER)
            in_all += deliveries
            with load.counting:
                load.delivered += deliveries
                load.acknowledgements += settled and deliveries > 0
            if settled and deliveries:
                consumer.send("basic.ack", {"delivery_tag": in_all, "multiple": True})


def _confirmed(publisher: _Connection, load: FullLoad) -> None:
    with _ending(load):
        while not load.ended.is_set():
            confirms = publisher.count(_CONFIRM)
            with load.counting:
                load.confirms += confirms


@contextmanager
def _ending(load: FullLoad) -> Iterator[None]:
    """A connection that ends, ends the measurement."""
    try:
        yield
    except (OSError, Invalid):
        load.ended.set()
