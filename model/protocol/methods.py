"""The alphabet: everything that a client and a broker can be seen to exchange.

One `TraceEvent` is one of these: a `Method` is one AMQP method together with its content, as it was on the wire. `sent`
events are the inputs of the broker, received ones its outputs. The model, the recorder, the judge and the embedded
broker speak in these; only `targets.codec.methods_codec` knows octets.

Argument names are those of the AMQP 0-9-1 method fields with underscores (`delivery_tag`, `no_ack`, `nowait`,
`reply_code`, `class_id`); reserved fields are left out. A field that is not in `arguments` has its zero value. A
received method that goes on after its last argument, as none may, has these octets in `octets_behind` (64 at most).

What is not a method is an event of another type, with names that begin otherwise (`event_of` gives the right one).
Octets are hexadecimal text everywhere. A `SocketEvent` is what becomes of the TCP connection:

* `socket.open`, sent: the client has made the TCP connection; the broker now awaits a protocol header;
* `socket.closed`, received: the broker ended the TCP connection (argument `reason`: a sentence);
* `socket.garbage`, received: octets that are not a frame (arguments `octets`, `reason`);
* `socket.abort`, sent: the client ended the TCP connection without the closing handshake;
* `socket.silence`, sent: from now on the client sends no heartbeats.

A `HeaderEvent` is `protocol.header`, sent or received: the eight octets (argument `octets`) that come before any
frame.

The methods of the handshake (`connection.start` … `connection.open-ok`) are methods like any other. Credentials that
the target was given are `***` in them; what stands there in clear is no secret of anybody's.

A `RawFrame` is a single frame that is not one of the method frame, content header and bodies of one whole method; a
client sends them on purpose, and a server's decoder gives them for what it cannot put together:

* `frame.method` (`class_id`, `method_id`, `payload`: the octets after these two): a method that does not exist, or
  whose arguments cannot be decoded (`fault` says what in them is wrong: "table", "text");
* `frame.header` (`class_id`, 60 if left out, `weight`, `body_size`, `payload`: property flags and list; `0000` if left
  out; where these can be read, `properties` has them);
* `frame.body`: the body is the frame's content;
* `frame.other` (`type`, `size`: octets that the payload is said to have, `payload`, `end`: the last octet): anything
  else. What is left out is right: `type` 1, `size` the payload's, `end` 206.

A sent method that carries content and has `content` None is its method frame alone.

What the operator of the broker does is an input too, an `OperatorAction`: `operator.add-user`,
`operator.set-permissions`, … (`model.rules.operator.operator`). So is the passing of time, a `ClockWait`: `clock.wait`
(argument `milliseconds`): so much time has passed in which nobody did anything. In commands and traces these stand on
the connection `broker`, which is none.

So does a `Fault`: what happens to the broker, or to the network. A node is named by its number, from 1; without `node`
it is each node that there is.

* `broker.stop`, `broker.kill`: it ends in order, or at once, and stays down;
* `broker.pause`, `broker.resume`: it does nothing at all, though it is there, until it is resumed;
* `broker.restart`: it is started again; one that is not down is stopped first;
* `network.cut`: nothing passes any more between the node and the others; with `connection`, between that connection and
  its node. `network.slow` (`milliseconds`): each octet comes so much later. `network.heal` ends both;
* `queue.transfer-leader` (`queue`, `node`): that node leads the queue from now on.

What the broker does by itself is none of these: `model.broker.internal_events`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from amqpspec.model.protocol.wording import arguments_text, value_text

#: Arguments of a method, or a field table: names to values.
Table = dict[str, Any]

#: A channel's identity: connection name and channel number.
ChannelKey = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Content:
    """What follows a method that carries content: basic properties that are set, by name, and the body."""

    properties: Mapping[str, Any] = field(default_factory=dict)
    body: bytes = b""

    def __deepcopy__(self, memo: object) -> Content:
        return self  # never changed, so shared by all copies of a state


EMPTY_CONTENT = Content()


def method_text(method: str, arguments: Mapping[str, Any], content: Content | None = None) -> str:
    """`basic.deliver consumer-tag=t delivery-tag=1 redelivered=false body=m1`."""
    text = method
    if arguments_line := arguments_text(arguments):
        text += f" {arguments_line}"
    if content is not None:
        text += f" body={value_text(content.body)}"
        if properties := arguments_text(content.properties):
            text += f" {properties}"
    return text


@dataclass(slots=True)
class TraceEvent:
    """One thing that is exchanged with a broker, or done to it.

    `connection` is the name of the connection in the command language ("a"), `channel` its number.
    `time` is seconds since the trace began: the moment just before sending, or just after receiving.
    """

    connection: str
    channel: int
    name: str
    arguments: Table
    sent: bool
    content: Content | None = None
    time: float = 0.0

    def __deepcopy__(self, memo: object) -> Self:
        return self  # the model never changes an event

    def __str__(self) -> str:
        """`a.1 < basic.deliver consumer-tag=t delivery-tag=1 redelivered=false body=m1`."""
        arrow = ">" if self.sent else "<"
        return f"{self.connection}.{self.channel} {arrow} {method_text(self.name, self.arguments, self.content)}"


class Method(TraceEvent):
    """One AMQP method with its content."""

    __slots__ = ()


class RawFrame(TraceEvent):
    """A single frame, whatever is in it."""

    __slots__ = ()


class HeaderEvent(TraceEvent):
    """The octets that come before any frame."""

    __slots__ = ()


class SocketEvent(TraceEvent):
    """What becomes of the TCP connection."""

    __slots__ = ()


class OperatorAction(TraceEvent):
    """What the operator of the broker does."""

    __slots__ = ()


class Fault(OperatorAction):
    """What happens to the broker, a node of it, or the network."""

    __slots__ = ()


class ClockWait(TraceEvent):
    """Time passes in which nobody does anything."""

    __slots__ = ()


#: class-id and method-id by method name (AMQP 0-9-1 section 1, and RabbitMQ's extensions).
METHOD_IDS: dict[str, tuple[int, int]] = {
    "connection.start": (10, 10), "connection.start-ok": (10, 11), "connection.secure": (10, 20),
    "connection.secure-ok": (10, 21), "connection.tune": (10, 30), "connection.tune-ok": (10, 31),
    "connection.open": (10, 40), "connection.open-ok": (10, 41), "connection.close": (10, 50),
    "connection.close-ok": (10, 51), "connection.blocked": (10, 60), "connection.unblocked": (10, 61),
    "connection.update-secret": (10, 70), "connection.update-secret-ok": (10, 71),
    "channel.open": (20, 10), "channel.open-ok": (20, 11), "channel.flow": (20, 20), "channel.flow-ok": (20, 21),
    "channel.close": (20, 40), "channel.close-ok": (20, 41),
    "exchange.declare": (40, 10), "exchange.declare-ok": (40, 11), "exchange.delete": (40, 20),
    "exchange.delete-ok": (40, 21), "exchange.bind": (40, 30), "exchange.bind-ok": (40, 31),
    "exchange.unbind": (40, 40), "exchange.unbind-ok": (40, 51),
    "queue.declare": (50, 10), "queue.declare-ok": (50, 11), "queue.bind": (50, 20), "queue.bind-ok": (50, 21),
    "queue.purge": (50, 30), "queue.purge-ok": (50, 31), "queue.delete": (50, 40), "queue.delete-ok": (50, 41),
    "queue.unbind": (50, 50), "queue.unbind-ok": (50, 51),
    "basic.qos": (60, 10), "basic.qos-ok": (60, 11), "basic.consume": (60, 20), "basic.consume-ok": (60, 21),
    "basic.cancel": (60, 30), "basic.cancel-ok": (60, 31), "basic.publish": (60, 40), "basic.return": (60, 50),
    "basic.deliver": (60, 60), "basic.get": (60, 70), "basic.get-ok": (60, 71), "basic.get-empty": (60, 72),
    "basic.ack": (60, 80), "basic.reject": (60, 90), "basic.recover-async": (60, 100),
    "basic.recover": (60, 110), "basic.recover-ok": (60, 111), "basic.nack": (60, 120),
    "tx.select": (90, 10), "tx.select-ok": (90, 11), "tx.commit": (90, 20), "tx.commit-ok": (90, 21),
    "tx.rollback": (90, 30), "tx.rollback-ok": (90, 31),
    "confirm.select": (85, 10), "confirm.select-ok": (85, 11),
}

#: What stands in commands and traces in place of a connection where something is done to the broker as a whole.
OPERATOR = "broker"

#: The input, of nobody, that time passes.
CLOCK_WAIT = "clock.wait"

#: What a credential that the target was given is replaced by before anybody sees it.
MASK = "***"

#: The `reason` of socket.closed when the client hung up because the broker kept none of its heartbeats.
NO_HEARTBEAT = "no heartbeat"

_TYPES: dict[type[TraceEvent], tuple[str, ...]] = {
    SocketEvent: ("socket.open", "socket.abort", "socket.silence", "socket.closed", "socket.garbage"),
    HeaderEvent: ("protocol.header",),
    RawFrame: ("frame.method", "frame.header", "frame.body", "frame.other"),
    OperatorAction: (
        "operator.add-user", "operator.delete-user", "operator.set-permissions", "operator.close-connection",
        "operator.set-alarm", "operator.clear-alarm", "operator.add-vhost", "operator.delete-vhost",
        "operator.configure", "operator.reset-configuration", "operator.set-policy", "operator.clear-policy",
    ),
    Fault: (
        "broker.stop", "broker.kill", "broker.pause", "broker.resume", "broker.restart",
        "network.cut", "network.slow", "network.heal", "queue.transfer-leader",
    ),
    ClockWait: (CLOCK_WAIT,),
}  # fmt: skip
#: The type of event by name; what is not here is a method of AMQP.
OTHER_EVENTS = {name: kind for kind, names in _TYPES.items() for name in names}
#: Of these, what can be an input.
OTHER_INPUTS = OTHER_EVENTS.keys() - {"socket.closed", "socket.garbage"}

#: Those that are no client's, but the operator's, or about time.
OPERATOR_METHODS = frozenset((*_TYPES[OperatorAction], *_TYPES[Fault], *_TYPES[ClockWait]))

#: What happens to the broker or the network.
FAULTS = frozenset(_TYPES[Fault])

#: Those of a client that the server answers (unless they say `nowait`).
SYNCHRONOUS_METHODS = frozenset(name.removesuffix("-ok") for name in METHOD_IDS if name.endswith("-ok")) - {
    "connection.start", "connection.secure", "connection.tune",
}  # fmt: skip

#: The argument of a received method that has octets after its last one.
OCTETS_BEHIND = "octets_behind"

#: Methods that carry content.
CONTENT_METHODS = frozenset({"basic.publish", "basic.return", "basic.deliver", "basic.get-ok"})


def event_of(
    connection: str,
    channel: int,
    name: str,
    arguments: Table,
    sent: bool,
    content: Content | None = None,
    time: float = 0.0,
) -> TraceEvent:
    """The event of that name."""
    return OTHER_EVENTS.get(name, Method)(connection, channel, name, arguments, sent, content, time)
