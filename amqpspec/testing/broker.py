"""The broker for tests: the embedded one, with all that a test wants to do to it and to know of it.

What it looks at and changes belongs to the broker's thread, so everything is done there (`Orders.do`).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import quote

from amqpspec.model.broker.queues import Queue
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.dialects import DEFAULT_DIALECT, as_dialect
from amqpspec.model.protocol.methods import OPERATOR, Content, OperatorAction
from amqpspec.targets.address import Address
from amqpspec.targets.brokers.embedded_broker import EmbeddedBroker as Served
from amqpspec.targets.brokers.embedded_broker import EmbeddedBrokerFailure
from amqpspec.targets.clock import SteppedClock
from amqpspec.targets.embedded.handshake import rabbitmq_properties
from amqpspec.targets.embedded.loop import Loop
from amqpspec.targets.embedded.mishaps import MISHAPS
from amqpspec.targets.embedded.served_broker import ServedBroker
from amqpspec.testing.views import (
    ConnectionInfo,
    MessageInfo,
    Published,
    QueueInfo,
    connection_infos,
    described,
    message_infos,
    publications,
    queue_infos,
)

if TYPE_CHECKING:
    import ssl

    from amqpspec.testing.tls import Certificate

Result = TypeVar("Result")
_DEFAULT_VHOST = "/"
_CLOSED_BY_TEST = "closed by the test"
#: Seconds.
_BETWEEN_LOOKS = 0.002
#: The most that `advance` brings about in one go.
_MOST_STEPS = 100_000

#: What `EmbeddedBroker.fault` knows: name to sentence, in which NUMBER stands for the number.
FAULTS: Mapping[str, str] = MappingProxyType(
    {each.name: f"{each.what} NUMBER is {each.default:g} if not given." if each.default else each.what
     for each in MISHAPS.values()}
)  # fmt: skip


class EmbeddedBroker:
    """A broker in this process, as a context manager; `with EmbeddedBroker() as broker:` serves until the block ends.

    `dialect`: `rabbitmq-4.3` (if not given), `rabbitmq-4.0`, `rabbitmq-3` or `amqp-0-9-1`; raises ValueError for
    another one. It says that it is a RabbitMQ of that version, so that clients take the ways that they take there.
    `port` 0 takes any that is free, and keeps it over restarts. `tls`: True makes a certificate (`cafile`, and the
    package cryptography is needed); or give an `ssl.SSLContext`. `keep_published`: how many of the latest messages
    `published` knows.

    Its end raises `EmbeddedBrokerFailure` if it broke down, unless something else is raised.

    Whatever it is asked or told, it has processed all that clients had sent it before.

    Wherever a `vhost` can be given, the broker's own is meant if it is not.
    """

    def __init__(
        self,
        dialect: Dialect | str | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        user: str = "guest",
        password: str = "guest",
        vhost: str = _DEFAULT_VHOST,
        tls: bool | ssl.SSLContext = False,
        keep_published: int = 10_000,
    ) -> None:
        self.dialect = as_dialect(DEFAULT_DIALECT if dialect is None else dialect)
        self._clock, self._clients_clock = SteppedClock(), SteppedClock()
        self._certificate: Certificate | None = None
        context = None if tls is False else self._context(tls)
        self._served = Served(
            self.dialect, host, port, None, user, password, vhost, context, self._clock,
            clients_clock=self._clients_clock, properties=rabbitmq_properties(self.dialect),
        )  # fmt: skip
        self._keep = keep_published
        self._note_publications()
        self._passwords = {user: password}
        self._is_running = False

    def _context(self, tls: bool | ssl.SSLContext) -> ssl.SSLContext:
        import ssl  # this and the next load much that a broker without TLS does not need

        from amqpspec.testing.tls import Certificate

        if tls is True:
            self._certificate = Certificate()
            return self._certificate.context
        if not isinstance(tls, ssl.SSLContext):
            raise TypeError(f"tls: True, False or an ssl.SSLContext is wanted, not {type(tls).__name__}")
        return tls

    # ------------------------------------------------------------------------------------------ its life

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_running:
            self._is_running = False
            self._served.end()
        self._served.node.give_up()
        if self._certificate is not None:
            self._certificate.remove()
        if error is None and self.failures:
            raise EmbeddedBrokerFailure("; ".join(self.failures))

    def start(self) -> None:
        """Serve, with what survived the last `stop`. Does nothing if it serves."""
        if not self._is_running:
            self._served.node.start_again()
            self._served.keep_port()
            self._is_running = True

    def stop(self, kill: bool = False) -> None:
        """As when RabbitMQ is stopped: connections end with 320, and the port refuses until `start`.

        With `kill`, as when it is killed: connections break off. What survives is what survives at RabbitMQ: durable
        queues with their persistent messages (quorum queues and streams with all), durable exchanges and bindings;
        users, permissions and virtual hosts. Faults go on, and so does `block`; nothing else does.
        """

        if self._is_running:
            self._is_running = False
            if kill:
                self._served.node.kill()
            else:
                self._served.node.stop()

    def restart(self, kill: bool = False) -> None:
        """`stop` and `start`, on the same port."""
        self.stop(kill)
        self.start()

    def reset(self) -> None:
        """As when it was made: nothing is there, nobody is connected, nothing goes wrong. The clock is not put back."""

        def begin_anew(loop: Loop) -> None:
            loop.heal("")
            loop.close_in_order(loop.clients_named(None), _CLOSED_BY_TEST)
            self._served.node.parted += loop.part_from_all()
            loop.responder.begin_anew()
            self._note_publications()

        self._in_broker(begin_anew)

    @property
    def failures(self) -> tuple[str, ...]:
        """Defects of the broker itself that were met."""
        return self._served.failures

    # --------------------------------------------------------------------------------------- where it is

    @property
    def url(self) -> str:
        """With user and password: what a client connects to. Raises `RuntimeError` before it serves."""
        return self.url_for()

    def url_for(self, user: str | None = None, vhost: str | None = None) -> str:
        """The URL of another user, or to another virtual host. Raises `KeyError` for a user that nobody added."""
        address = self._served.address
        user = address.user if user is None else user
        vhost = address.vhost if vhost is None else vhost
        host = f"[{address.host}]" if ":" in address.host else address.host
        login = f"{quote(user, safe='')}:{quote(self._passwords[user], safe='')}"
        return f"{'amqps' if address.tls else 'amqp'}://{login}@{host}:{address.port}/{quote(vhost, safe='')}"

    @property
    def address(self) -> Address:
        """Host, port and so on, each for itself."""
        return self._served.address

    @property
    def cafile(self) -> Path:
        """With tls=True: the PEM file by which a client knows the broker's certificate."""
        if self._certificate is None:
            raise RuntimeError("only a broker with tls=True makes a certificate")
        return self._certificate.path

    # --------------------------------------------------------------------------------------- what is in it

    def queues(self, vhost: str | None = None) -> dict[str, QueueInfo]:
        """The queues of the virtual host by name, as they are now. Raises `KeyError` if there is no such host."""
        return self._in_broker(lambda loop: queue_infos(self._host(loop, vhost)))

    def messages(self, queue: str, vhost: str | None = None) -> list[MessageInfo]:
        """The messages of the queue, those that somebody holds first. Raises `KeyError` if there is no such queue."""

        def look(loop: Loop) -> list[MessageInfo]:
            broker = self._host(loop, vhost)
            return message_infos(broker, _queue(broker, queue), loop.title_of)

        return self._in_broker(look)

    def published(
        self, exchange: str, vhost: str | None = None, *, routing_key: str | None = None
    ) -> list[Published]:
        """What was published to the exchange, in its order, also what went to no queue; "" is the default exchange.
        With a `routing_key`, what was published with just that.

        What a transaction has published counts from its commit on. A refused publish does not count. Raises `KeyError`
        for an exchange that is not there, and that nothing was published to.
        """

        def look(loop: Loop) -> list[Published]:
            broker = self._host(loop, vhost)
            found = publications(broker, exchange)
            if not found and exchange and exchange not in broker.exchanges:
                raise KeyError(f"no exchange {exchange!r}; there are: {', '.join(filter(None, broker.exchanges))}")
            return [each for each in found if routing_key in (None, each.routing_key)]

        return self._in_broker(look)

    def connections(self) -> list[ConnectionInfo]:
        """Who is connected now, to any virtual host."""
        user = self._served.address.user
        return self._in_broker(lambda loop: connection_infos(loop.responder.brokers().values(), user, loop.title_of))

    def describe(self) -> str:
        """What is in the queues of all virtual hosts, for people."""
        return self._in_broker(lambda loop: described(loop.responder.brokers(), loop.title_of))

    def wait_until(self, condition: Callable[[], object], seconds: float = 10.0) -> None:
        """Come back when the condition holds, which is asked again and again. Raises `TimeoutError` after so many
        seconds, which says what is in the queues.
        """
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError(f"the condition does not hold after {seconds:g} s; {self.describe()}")
            time.sleep(_BETWEEN_LOOKS)

    def wait_until_empty(self, queue: str, seconds: float = 10.0, vhost: str | None = None) -> None:
        """Come back when all messages of the queue have been taken and acknowledged. Raises `TimeoutError`, as
        `wait_until`; `KeyError` if there is no such queue.
        """
        self.wait_until(lambda: not self.messages(queue, vhost), seconds)

    # --------------------------------------------------------------------------------- messages of the test

    def publish(
        self, exchange: str, routing_key: str, body: bytes | str, *, vhost: str | None = None, **properties: Any
    ) -> None:
        """Publish without a connection, also while publishers are blocked; the exchange "" leads to the queue that the
        routing key names. Properties are those of AMQP: `delivery_mode=2, headers={"n": 1}`. Raises ValueError for what
        the broker refuses, and if the message reaches no queue.
        """
        if not isinstance(body, bytes | str):
            raise TypeError(f"body: bytes or str is wanted, not {type(body).__name__}")
        content = Content(properties, body.encode() if isinstance(body, str) else body)

        def publish(loop: Loop) -> None:
            self._host(loop, vhost)
            host = self._served.address.vhost if vhost is None else vhost
            loop.responder.publish(host, exchange, routing_key, content)
            loop.say_all()

        self._in_broker(publish)

    # --------------------------------------------------------------------------------------- its operator

    def add_user(
        self,
        name: str,
        password: str,
        *,
        configure: str = ".*",
        write: str = ".*",
        read: str = ".*",
        vhost: str | None = None,
    ) -> None:
        """Make a user with these permissions on the virtual host (patterns of names, as rabbitmqctl takes them)."""
        self._in_broker(lambda loop: self._host(loop, vhost))
        self._operate("operator.add-user", user=name, password=password)
        self._passwords[name] = password
        self.set_permissions(name, configure=configure, write=write, read=read, vhost=vhost)

    def set_permissions(
        self, user: str, *, configure: str = "", write: str = "", read: str = "", vhost: str | None = None
    ) -> None:
        """In place of those that the user had on the virtual host. "" permits nothing. Raises `KeyError` for a user
        that nobody added, such as the broker's own, who may do everything.
        """
        if user not in self._in_broker(lambda loop: self._host(loop, vhost).users):
            raise KeyError(f"nobody added the user {user!r}")
        host = self._served.address.vhost if vhost is None else vhost
        patterns = {"configure": configure, "write": write, "read": read}
        self._operate("operator.set-permissions", user=user, virtual_host=host, **patterns)

    def delete_user(self, name: str) -> None:
        """Connections of the user end with 320."""
        self._operate("operator.delete-user", user=name)

    def add_virtual_host(self, name: str) -> None:
        """It has queues, exchanges and bindings of its own. The broker's own user has access to it."""
        self._operate("operator.add-vhost", virtual_host=name)

    def delete_virtual_host(self, name: str) -> None:
        """Its queues go, and connections to it end with 320."""
        self._operate("operator.delete-vhost", virtual_host=name)

    def block(self) -> None:
        """A resource alarm, as of a broker that is low on memory: who publishes gets connection.blocked, and is not
        read any more until `unblock`.
        """
        self._operate("operator.set-alarm")

    def unblock(self) -> None:
        self._operate("operator.clear-alarm")

    def close_connections(self, name: str | None = None, *, abruptly: bool = False) -> int:
        """End those whose `connection_name` is this, or all, with connection.close 320; or `abruptly`, as by a broken
        network. Gives how many these were.
        """

        def end(loop: Loop) -> int:
            names = loop.clients_named(name)
            if abruptly:
                for each in names:
                    loop.lose(each)
            else:
                loop.close_in_order(names, _CLOSED_BY_TEST)
            return len(names)

        return self._in_broker(end)

    def cancel_consumers(self, queue: str | None = None, vhost: str | None = None) -> int:
        """Cancel those of the queue, or all of the virtual host: a client is told by basic.cancel, as when a queue
        goes. Gives how many. Raises `KeyError` if there is no such queue.

        At RabbitMQ it is the end of the queue, or of its leader, that does this. Here the queue stays.
        """

        def cancel(loop: Loop) -> int:
            broker = self._host(loop, vhost)
            if queue is not None:
                _queue(broker, queue)
            consumers = [
                consumer
                for each in list(broker.queues.values())
                for consumer in list(each.present_consumers)
                if queue in (None, each.name) and not each.reply_address
            ]
            for consumer in consumers:
                loop.cancel(consumer)
            loop.say_all()
            return len(consumers)

        return self._in_broker(cancel)

    def advance(
        self,
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        milliseconds: float = 0,
        heartbeats: bool = False,
    ) -> None:
        """Put the broker's clock forward: times to live, expiring queues and consumer timeouts come about at once, one
        after the other. Heartbeats of clients go by their own clock; with `heartbeats` all clients have been silent for
        so long, and the broker gives up those whose heartbeat it has missed.

        What a client does about it comes after all of it.
        """
        whole = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds)
        if whole <= timedelta(0):
            raise ValueError("the clock goes forward: say how far, such as minutes=31")

        def advance(loop: Loop) -> None:
            target = self._clock.ahead + whole.total_seconds()
            for _ in range(_MOST_STEPS):
                loop.say_all()
                wait = loop.responder.wait()
                if self._clock.ahead + max(wait, 0.0) > target:
                    break
                self._clock.ahead += max(wait, 0.0)
                loop.responder.tick_now()
            self._clock.ahead = max(target, self._clock.ahead)
            loop.responder.tick_now()
            loop.say_all()
            if heartbeats:
                self._clients_clock.ahead += whole.total_seconds()
                loop.tick_clients()

        self._in_broker(advance)

    # ------------------------------------------------------------------------------------ what goes wrong

    def fault(self, name: str, number: float | None = None) -> None:
        """Something goes wrong from now on, beside what goes wrong already (`FAULTS`), until `heal` or `reset`; also
        over a restart. To block and to cancel at once there are `block` and `cancel_consumers`. Raises ValueError for
        another name, or a number that is none.
        """
        if name not in MISHAPS:
            raise ValueError(f"unknown fault {name!r}: choose from {', '.join(MISHAPS)}")
        value = MISHAPS[name].number(number)
        self._in_broker(lambda loop: loop.mishaps.begin(name, value))

    def heal(self, name: str = "") -> None:
        """That fault is over, or all: what was held back is sent. Raises ValueError for another name."""
        if name and name not in MISHAPS:
            raise ValueError(f"unknown fault {name!r}: choose from {', '.join(MISHAPS)}")
        self._in_broker(lambda loop: loop.heal(name))

    # ---------------------------------------------------------------------------------------------- inside

    def _in_broker(self, work: Callable[[Loop], Result]) -> Result:
        """Done in the thread that serves. Raises `RuntimeError` where none does."""
        if not self._is_running:
            raise RuntimeError("the broker does not serve: it was not started, or stopped")
        loop = self._served.loop
        return loop.orders.do(lambda: work(loop))

    def _host(self, loop: Loop, vhost: str | None) -> ServedBroker:
        """Raises `KeyError`."""
        brokers = loop.responder.brokers()
        name = self._served.address.vhost if vhost is None else vhost
        if name not in brokers:
            raise KeyError(f"no virtual host {name!r}; there are: {', '.join(brokers)}")
        return brokers[name]

    def _operate(self, name: str, **arguments: str) -> None:
        self._in_broker(lambda _: None)
        self._served.give(OperatorAction(OPERATOR, 0, name, dict(arguments), sent=True))

    def _note_publications(self) -> None:
        self._served.responder.own.broker.publications = deque(maxlen=self._keep)


def _queue(broker: ServedBroker, name: str) -> Queue:
    """Raises `KeyError`."""
    if name not in broker.queues:
        raise KeyError(f"no queue {name!r}; there are: {', '.join(broker.queues) or 'none'}")
    return broker.queues[name]
