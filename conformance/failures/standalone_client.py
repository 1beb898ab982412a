"""The client part of a reproducer. Not imported: `conformance.failures.reproducer` pastes it, imports and all, into
programs.

Programs need nothing but pika 1.x, of which they take the codec alone: pika's calls refuse what a broker must be tried
with. Their readers do not know this suite, so this file stays small.
"""

import secrets
import select
import socket
import struct
import sys
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from itertools import groupby
from typing import Any

import pika  # type: ignore[import-untyped]
from pika import frame, spec

SERVER = pika.URLParameters(sys.argv[1] if len(sys.argv) > 1 else "amqp://guest:guest@localhost:5672/%2F")
P = f"reproducer-{secrets.token_hex(4)}-"  # begins the name of each queue and exchange; left out in the output
QUIET, DEADLINE = 0.2, 5.0  # seconds without a frame after which the broker counts as quiet; for a reply
CAPABLE = dict.fromkeys(("authentication_failure_close", "basic.nack", "connection.blocked", "consumer_cancel_notify",
                         "exchange_exchange_bindings", "per_consumer_qos", "publisher_confirms"), True)  # fmt: skip
CONNECTIONS: dict[str, "Connection"] = {}
MADE: dict[tuple[str, str], tuple["Connection", Any]] = {}  # kind and name: where it was declared, with which arguments
READY: dict[str, int] = {}  # messages by queue, as its last declare-ok says
HELD: list[tuple["Connection", bytes]] = []  # what was sent, and is to leave together with what follows
PRINTED: list[str] = []  # what was sent and what came
REPLY_ADDRESSES = [f"{P}$reply-to"]  # of direct replies, as messages carry them; the first is none
HEADERS: list[Any] = [None]  # of the messages that came; the first are none


def tell(text: str) -> None:
    PRINTED.append(text.replace(P, ""))
    print(PRINTED[-1], flush=True)


def give_up(error: object) -> None:
    PRINTED.append(f"(no connection: {error})")
    print(f"no connection to {SERVER.host} port {SERVER.port}: {error}", file=sys.stderr)
    sys.exit(3)


def in_words(fields: Any) -> str:
    return "".join(f" {name}={value!r}" for name, value in vars(fields).items() if value not in ("", b"", None, {}))


class Connection:
    """Sends methods as they are given, prints what comes, answers nothing but the broker's closes."""

    def __init__(self, name: str, capabilities: Any, virtual_host: str, header: str = "414d515000000901") -> None:
        self.name, self.capabilities, self.virtual_host = name, capabilities, virtual_host
        self.state, self.octets, self.frame_max = "opening", b"", 131072
        self.login = (SERVER.credentials.username, SERVER.credentials.password)
        self.limits: dict[str, int] = {}  # what connection.tune-ok says, where it is not the broker's offer
        self.channel_max = 0  # as it was agreed upon; 0: none
        self.used: set[int] = set()  # channels that were ever opened
        self.open: dict[int, int] = {}  # channels that are open: their prefetch counts
        self.limited: set[int] = set()  # channels that were given a limit of their own
        self.content: dict[int, Any] = {}  # by channel: method, header and body as far as they have come
        self.hidden: Any = defaultdict(deque)  # (channel, reply): for each request, whether its reply goes unmentioned
        self.socket: Any = socket.create_connection((SERVER.host, SERVER.port), DEADLINE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # what is written leaves at once
        if SERVER.ssl_options:
            self.socket = SERVER.ssl_options.context.wrap_socket(self.socket, server_hostname=SERVER.host)
        self.socket.sendall(bytes.fromhex(header))
        self.beat, self.latest = 0.0, time.monotonic()  # seconds between heartbeats (0: none), and the latest of them

    def keep_alive(self) -> None:
        if self.beat and time.monotonic() - self.latest > self.beat:
            self.latest = time.monotonic()
            self.write(frame.Heartbeat().marshal())

    def write(self, octets: bytes) -> None:
        try:
            self.socket.sendall(octets)
        except OSError as error:
            self.say(0, f"({len(octets)} octets could not be sent: {error})")

    def say(self, channel: int, text: str) -> None:
        tell(f"{self.name}.{channel} < {text}")

    def end(self, reason: object) -> None:
        self.state = "gone"
        self.socket.close()
        self.say(0, f"(end of the TCP connection: {reason})")

    def send(self, channel: int, kind: Any, hide: bool = True, **arguments: Any) -> None:
        properties, body = arguments.pop("properties", None), arguments.pop("body", b"")
        method = kind.__new__(kind).decode(bytes(64))  # zeros: each argument that is not given is 0, "", False or {}
        vars(method).update(arguments)
        octets = frame.Method(channel, method).marshal()
        if properties is not None:
            octets += frame.Header(channel, len(body), spec.BasicProperties(**properties)).marshal()
            size = self.frame_max - 8
            octets += b"".join(frame.Body(channel, body[i : i + size]).marshal() for i in range(0, len(body), size))
        if kind is spec.Channel.Open:
            self.used.add(channel)
            self.limited.discard(channel)
            for reply in ("Basic.QosOk", "Channel.FlowOk", "Tx.CommitOk"):
                self.hidden[channel, reply].clear()
        elif kind is spec.Channel.Close or (kind is spec.Basic.Publish and properties is None):
            self.open.pop(channel, None)  # or nothing but the content may follow
        elif kind is spec.Connection.Close:
            self.state = "closing"
        elif kind is spec.Basic.Qos and channel in self.open:
            if method.global_qos:
                self.limited.add(channel)
            else:
                self.open[channel] = method.prefetch_count
        self.hidden[channel, method.NAME + "Ok"].append(hide)
        HELD.append((self, octets))

    def owes(self, channel: int, *replies: str) -> bool:
        return self.state == "open" and channel in self.open and any(self.hidden[channel, each] for each in replies)

    def read(self) -> None:
        try:
            octets = self.socket.recv(65536)
            while SERVER.ssl_options and self.socket.pending():
                octets += self.socket.recv(65536)
            if not octets:
                raise ConnectionError("by the broker")
        except OSError as error:
            return self.end(error)
        self.octets += octets
        try:
            used, item = frame.decode_frame(self.octets)
            while used:
                self.latest_octets, self.octets = self.octets[:used], self.octets[used:]
                self.take(item)
                used, item = frame.decode_frame(self.octets)
        except (pika.exceptions.AMQPError, struct.error, LookupError, ValueError, TypeError) as error:
            self.end(f"by us, as this is no frame: {self.octets[:64].hex()} {error!r}")

    def take(self, item: Any) -> None:
        if isinstance(item, frame.Method):
            self.content[item.channel_number] = (item.method, None, b"")
            if not isinstance(item.method, spec.Connection.Start):  # pika writes its tables in another way
                more = self.latest_octets[11 + len(b"".join(item.method.encode())) : -1]  # pika passes over it
                if more:
                    self.say(item.channel_number, f"({item.method.NAME} goes on after its arguments: {more.hex()})")
            if not spec.has_content(item.method.INDEX):
                self.received(item.channel_number, item.method, "")
        elif isinstance(item, (frame.Header, frame.Body)):
            method, header, body = self.content[item.channel_number]
            header, body = (item, body) if isinstance(item, frame.Header) else (header, body + item.fragment)
            self.content[item.channel_number] = (method, header, body)
            if len(body) >= header.body_size:
                shown = repr(body) if len(body) <= 80 else f"{body[:60]!r}... ({len(body)} octets)"
                self.received(item.channel_number, method, f" body={shown}{in_words(header.properties)}")
                if isinstance(method, (spec.Basic.Deliver, spec.Basic.GetOk)):
                    HEADERS.append(header.properties.headers)
                if str(header.properties.reply_to).startswith("amq.rabbitmq.reply-to."):
                    REPLY_ADDRESSES.append(header.properties.reply_to)

    def received(self, channel: int, method: Any, content: str) -> None:
        kind, requests, opening = type(method), self.hidden[channel, method.NAME], self.state == "opening"
        if not (requests.popleft() if requests else opening and kind is not spec.Connection.Close):
            self.say(channel, method.NAME + in_words(method) + content)
        if kind is spec.Connection.Start and opening:
            login = "\0" + "\0".join(self.login)
            ours = {"product": "reproducer", "connection_name": P + self.name, "capabilities": self.capabilities}
            theirs = method.server_properties
            print(f"{self.name} to {theirs.get('product')} {theirs.get('version')}")
            self.send(0, spec.Connection.StartOk, client_properties=ours, mechanism="PLAIN", response=login, locale="C")
        elif kind is spec.Connection.Tune and opening:
            limits = {"channel_max": method.channel_max, "frame_max": min(method.frame_max or 131072, 131072)}
            self.send(0, spec.Connection.TuneOk, **limits | self.limits)
            self.frame_max = self.limits.get("frame_max", limits["frame_max"])
            self.channel_max = self.limits.get("channel_max", limits["channel_max"])
            self.beat = self.limits.get("heartbeat", 0) / 2
            self.send(0, spec.Connection.Open, virtual_host=self.virtual_host)
        elif kind is spec.Connection.OpenOk and opening:
            self.state = "open"
        elif kind is spec.Connection.CloseOk:
            self.state = "closed"
        elif kind is spec.Connection.Close:
            self.state = "closed"
            self.send(0, spec.Connection.CloseOk)
        elif kind is spec.Channel.OpenOk:
            self.open[channel] = 0
        elif kind is spec.Channel.Close:
            self.open.pop(channel, None)
            self.send(channel, spec.Channel.CloseOk)
        elif kind is spec.Queue.DeclareOk:
            READY[method.queue] = method.message_count
            if method.queue.startswith("amq.gen"):
                MADE.setdefault(("queue", method.queue), (self, {}))


def let_go() -> None:
    """Write what is held: in the order in which it was sent, and at once what follows each other on one connection."""
    for connection, together in groupby(HELD, lambda each: each[0]):
        connection.write(b"".join(each for _, each in together))
    HELD.clear()


def wait(done: Callable[[], bool], seconds: float) -> None:
    """Receive on all connections until done(), or until nothing has come for so many seconds (of at most 30)."""
    let_go()
    latest, end = time.monotonic() + 30, time.monotonic() + seconds
    while not done() and (rest := min(end, latest) - time.monotonic()) > 0:
        living = {each.socket: each for each in CONNECTIONS.values() if each.state != "gone"}
        for each in living.values():
            each.keep_alive()
        rest = min([rest, *(each.beat / 2 for each in living.values() if each.beat)])
        for ready in select.select(list(living), [], [], rest)[0]:
            living[ready].read()
            let_go()
            end = time.monotonic() + seconds


def settle(quiet: float = QUIET) -> None:
    """Wait for the broker: a round trip on each open channel, then some silence.

    That is basic.qos with the present value; where the channel has a limit of its own, which that may lift, it is
    channel.flow. Nothing may be sent there before a tx.commit has been answered.
    """
    let_go()
    channels = [(each, channel) for each in CONNECTIONS.values() if each.state == "open" for channel in each.open]
    wait(lambda: not any(each.owes(channel, "Tx.CommitOk") for each, channel in channels), DEADLINE)
    for connection, channel in channels:
        if channel in connection.limited:
            connection.send(channel, spec.Channel.Flow, active=True)
        elif channel in connection.open:
            connection.send(channel, spec.Basic.Qos, prefetch_count=connection.open[channel])
    wait(lambda: not any(each.owes(channel, "Basic.QosOk", "Channel.FlowOk") for each, channel in channels), DEADLINE)
    wait(lambda: False, quiet)


def connect(
    name: str,
    capabilities: Any = CAPABLE,
    virtual_host: str = SERVER.virtual_host,
    user: str = "",
    password: str = "",
    again: bool = False,
    **limits: int,
) -> Connection:
    if name not in CONNECTIONS or (again and CONNECTIONS[name].state in ("gone", "closed")):
        try:
            CONNECTIONS[name] = Connection(name, capabilities, virtual_host)
            CONNECTIONS[name].login = (user, password) if user else CONNECTIONS[name].login
            CONNECTIONS[name].limits = limits
        except OSError as error:
            give_up(error)
        wait(lambda: CONNECTIONS[name].state != "opening", DEADLINE)
    return CONNECTIONS[name]


def open_channel(connection: Connection, channel: int) -> None:
    connection.send(channel, spec.Channel.Open)
    wait(lambda: channel in connection.open or connection.state != "open", DEADLINE)


def place(text: str, kind: Any = None) -> tuple[Connection, int]:
    """Where the text goes to: a.1 is channel 1 of connection a, opened before its first use unless there is a "!"."""
    tell(f"> {text}")
    where = text.split()[0]
    name, _, number = where.rstrip("!").partition(".")
    connection, channel = connect(name), int(number or 0)
    if connection.state == "gone":
        print("  (not sent)")
    elif channel and not where.endswith("!") and kind is not spec.Channel.Open and channel not in connection.used:
        open_channel(connection, channel)
    return connection, channel


def do(text: str, kind: Any, quiet: float = QUIET, **arguments: Any) -> None:
    """Send one method; what ends in "&" is held for the next. A publish without properties is its method alone."""
    connection, channel = place(text, kind)
    if connection.state == "gone":
        return
    what = {spec.Queue.Declare: "queue", spec.Exchange.Declare: "exchange"}.get(kind, "")
    if arguments.get(what, "").startswith(P) and not arguments.get("passive"):
        MADE.setdefault((what, arguments[what]), (connection, arguments.get("arguments", {})))
    connection.send(channel, kind, hide=False, **arguments)
    if not text.endswith(" &"):
        settle(quiet)


def raw(text: str, octets: str, quiet: float = QUIET) -> None:
    """Send one frame as it is. The state of its channel is unknown then: nothing else is sent there."""
    connection, channel = place(text)
    if connection.state != "gone":
        connection.open.pop(channel, None)
        HELD.append((connection, bytes.fromhex(octets)))
    if not text.endswith(" &"):
        settle(quiet)


def silence(name: str) -> None:
    """Send no more heartbeats, and wait for what becomes of it."""
    tell(f"> {name} socket.silence")
    interval, connect(name).beat = connect(name).beat * 2, 0.0
    wait(lambda: CONNECTIONS[name].state == "gone", 4 * interval or 12)


def abort(name: str) -> None:
    """End the TCP connection at once, without the closing handshake."""
    tell(f"> {name} socket.abort")
    let_go()
    if connect(name).state != "gone":
        connect(name).socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        CONNECTIONS[name].end("by us")


def look() -> None:
    """Show how many messages are ready in each queue, and which."""
    for number, ((what, name), (owner, arguments)) in enumerate(list(MADE.items())):
        if what == "queue":
            tell(f"> what is left in {name}")
            living = [each for each in (owner, *CONNECTIONS.values()) if each.state == "open"]
            connection = living[0] if living else connect(f"z{number}")
            channel = max(min(connection.channel_max or 2047, 2047) - number, 1)  # as high as the broker allows
            open_channel(connection, channel)
            READY.pop(name, None)
            connection.send(channel, spec.Queue.Declare, hide=False, queue=name, passive=True)
            settle()
            if arguments.get("x-queue-type") != "stream" and "x-single-active-consumer" not in arguments:
                for _ in range(min(READY.get(name, 0), 20)):
                    connection.send(channel, spec.Basic.Get, hide=False, queue=name)
                settle()


def clean_up() -> None:
    """Close the connections, then delete what was made."""
    for connection in CONNECTIONS.values():
        connection.say = lambda channel, text: None  # type: ignore[method-assign]
        if connection.state == "open":
            connection.send(0, spec.Connection.Close, reply_code=200)
    wait(lambda: not any(connection.state == "closing" for connection in CONNECTIONS.values()), DEADLINE)
    for what, name in MADE:
        deleting = threading.Thread(target=delete, args=(what, name), daemon=True)
        deleting.start()
        deleting.join(2 * DEADLINE)
        if deleting.is_alive():
            print(f"{name} may still be there: no answer")


def delete(what: str, name: str) -> None:
    """On a connection of its own, as a broker may close that for an error."""
    try:
        with pika.BlockingConnection(SERVER) as cleaner:
            channel = cleaner.channel()
            channel.queue_delete(name) if what == "queue" else channel.exchange_delete(name)
    except (pika.exceptions.AMQPError, OSError) as error:
        if "404" not in str(error):  # or it is gone already
            print(f"{name} may still be there: {error!r}")
