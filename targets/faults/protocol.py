"""Faults of connections, channels, frames and capabilities (areas CONN, CHAN, CAP and PERMISSION)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from amqpspec.model.broker.state import ChannelState, Expected
from amqpspec.model.protocol.methods import EMPTY_CONTENT, MASK, METHOD_IDS, Frame
from amqpspec.model.rules.connection.closing import break_connection
from amqpspec.targets.embedded.hooks import Chapter, Proceed, altered
from amqpspec.targets.embedded.served_broker import ServedBroker

PROTOCOL = Chapter()
on_input, on_output = PROTOCOL.on_input, PROTOCOL.on_output

# ------------------------------------------------------------------------------------------- handshake


@on_input("any-login-accepted", "CONN-005", "A wrong password is as good as the right one.", "connection.start-ok")
def _(broker: ServedBroker, frame: Frame, proceed: Proceed) -> None:
    proceed(altered(frame, response=MASK))


@on_input("any-virtual-host-opened", "CONN-008", "A virtual host that is not there is opened.", "connection.open")
def _(broker: ServedBroker, frame: Frame, proceed: Proceed) -> None:
    proceed(altered(frame, virtual_host="/"))


@on_input("tune-ok-not-checked", "CONN-011", "A frame-max beyond what was offered is accepted.", "connection.tune-ok")
def _(broker: ServedBroker, frame: Frame, proceed: Proceed) -> None:
    limit = min(frame.arguments.get("frame_max", 0) or 131_072, 131_072)
    proceed(altered(frame, frame_max=limit))


@on_output("capability-missing", "CAP-001", "connection.start does not announce basic.nack.", "connection.start")
def _(broker: ServedBroker, frame: Frame) -> Iterable[Frame]:
    properties = frame.arguments["server_properties"]
    kept = {name: value for name, value in properties["capabilities"].items() if name != "basic.nack"}
    yield altered(frame, server_properties={**properties, "capabilities": kept})


@on_input(
    "capability-not-kept", "CAP-001", "exchange_exchange_bindings is announced and not implemented.", "exchange.bind"
)
def _(broker: ServedBroker, frame: Frame, proceed: Proceed) -> None:
    _refuse(broker, frame, 540, "NOT_IMPLEMENTED - exchange.bind")


@on_output("version-not-told", "CONN-025", "The server properties say nothing about the version.", "connection.start")
def _(broker: ServedBroker, frame: Frame) -> Iterable[Frame]:
    properties = {name: value for name, value in frame.arguments["server_properties"].items() if name != "version"}
    yield altered(frame, server_properties=properties)


def _refuse(broker: ServedBroker, frame: Frame, code: int, text: str) -> None:
    """The broker closes the connection because of the frame."""
    class_id, method_id = METHOD_IDS.get(frame.method, (0, 0))
    arguments = {"reply_code": code, "reply_text": text, "class_id": class_id, "method_id": method_id}
    close = Expected("connection.close", arguments, ("CHAN-007",), counted=False)
    break_connection(broker, broker.channel(frame.connection, frame.channel), close)


# ---------------------------------------------------------------------------------------------- channels

_ANY_METHOD = ("basic.get", "basic.qos", "queue.declare", "basic.publish", "basic.consume")


@on_input("closed-channel-used", "CHAN-001", "A method on a channel that is not open opens it.", *_ANY_METHOD)
def _(broker: ServedBroker, frame: Frame, proceed: Proceed) -> None:
    channel = broker.channel(frame.connection, frame.channel)
    if frame.channel and channel.state is ChannelState.CLOSED:
        channel.state = ChannelState.OPEN
    proceed(frame)


@on_output(
    "closed-channel-wrong-code", "CHAN-001", "A method on a channel that is not open brings 503.", "connection.close"
)
def _(broker: ServedBroker, frame: Frame) -> Iterable[Frame]:
    yield altered(frame, reply_code=503) if frame.arguments["reply_code"] == 504 else frame


@on_input("second-open-accepted", "CHAN-002", "An open channel can be opened again.", "channel.open")
def _(broker: ServedBroker, frame: Frame, proceed: Proceed) -> None:
    channel = broker.channel(frame.connection, frame.channel)
    if channel.state is ChannelState.OPEN:
        broker.owe(channel, "channel.open-ok", {}, "CHAN-003")
    else:
        proceed(frame)


@on_input(
    "error-does-not-close", "CHAN-005", "After channel.close the broker goes on as if nothing were.", *_ANY_METHOD
)
def _(broker: ServedBroker, frame: Frame, proceed: Proceed) -> None:
    channel = broker.channel(frame.connection, frame.channel)
    closing = channel.state is ChannelState.CLOSING
    if closing:
        channel.state = ChannelState.OPEN
    proceed(frame)
    if closing and channel.state is ChannelState.OPEN:
        channel.state = ChannelState.CLOSING


@on_input(
    "flow-off-accepted", "CHAN-010", "channel.flow with active=false is answered as if it were done.", "channel.flow"
)
def _(broker: ServedBroker, frame: Frame, proceed: Proceed) -> None:
    proceed(frame if frame.arguments.get("active") else altered(frame, active=True))


@on_input(
    "channel-max-not-enforced", "CONN-013", "More channels can be opened than were agreed on.", "connection.tune-ok"
)
def _(broker: ServedBroker, frame: Frame, proceed: Proceed) -> None:
    proceed(frame)
    connection = broker.connections.get(frame.connection)
    if connection is not None and connection.channel_max:
        connection.channel_max = 65_535


# ------------------------------------------------------------------------------------------------ frames


@on_input("bad-frame-end-accepted", "CONN-015", "A frame with a wrong last octet is passed over.", "frame.other")
def _(broker: ServedBroker, frame: Frame, proceed: Proceed) -> None:
    if frame.arguments.get("end", 206) == 206:
        proceed(frame)


@on_input("unknown-frame-type-accepted", "CONN-016", "A frame of an unknown type is passed over.", "frame.other")
def _(broker: ServedBroker, frame: Frame, proceed: Proceed) -> None:
    if frame.arguments.get("type", 1) in (1, 2, 3, 8):
        proceed(frame)


@on_input(
    "stray-content-accepted", "CHAN-012", "Content that nothing announced is passed over.", "frame.header", "frame.body"
)
def _(broker: ServedBroker, frame: Frame, proceed: Proceed) -> None:
    if _awaits_content(broker, frame):
        proceed(frame)


@on_input("content-of-any-class", "CHAN-014", "The class of a content header is not looked at.", "frame.header")
def _(broker: ServedBroker, frame: Frame, proceed: Proceed) -> None:
    proceed(altered(frame, class_id=60) if _awaits_content(broker, frame) else frame)


@on_input("long-body-cut", "CHAN-015", "A body that is longer than announced is cut.", "frame.body")
def _(broker: ServedBroker, frame: Frame, proceed: Proceed) -> None:
    missing = _missing_octets(broker, frame)
    content = frame.content or EMPTY_CONTENT
    proceed(frame if missing is None else replace(frame, content=replace(content, body=content.body[:missing])))


def _awaits_content(broker: ServedBroker, frame: Frame) -> bool:
    return broker.channel(frame.connection, frame.channel).assembly is not None


def _missing_octets(broker: ServedBroker, frame: Frame) -> int | None:
    assembly = broker.channel(frame.connection, frame.channel).assembly
    return None if assembly is None else assembly.missing


# ------------------------------------------------------------------------------------------ the end of it


@on_input(
    "exclusive-queue-outlives-connection",
    "QUEUE-020",
    "Exclusive queues stay after connection.close.",
    "connection.close",
)
def _(broker: ServedBroker, frame: Frame, proceed: Proceed) -> None:
    owned = [queue for queue in broker.queues.values() if queue.owner == frame.connection]
    for queue in owned:
        queue.owner = None
    proceed(frame)


# --------------------------------------------------------------------------------------------- permissions


@on_input("permissions-not-checked", "PERMISSION-001", "Every user may do everything.", "operator.set-permissions")
def _(broker: ServedBroker, frame: Frame, proceed: Proceed) -> None:
    proceed(altered(frame, configure=".*", write=".*", read=".*"))


@on_output("refusal-names-nobody", "PERMISSION-001", "A refusal does not say whom it refuses.", "channel.close")
def _(broker: ServedBroker, frame: Frame) -> Iterable[Frame]:
    text = frame.arguments["reply_text"]
    yield altered(frame, reply_text=text.partition(" refused for user")[0])
