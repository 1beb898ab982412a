"""Faults of connections, channels, frames and capabilities (areas CONN, CHAN, CAP and PERMISSION)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from amqpspec.model.broker.channels import ChannelState
from amqpspec.model.broker.owed import Expected
from amqpspec.model.protocol.credentials import ANONYMOUS, PLAIN
from amqpspec.model.protocol.methods import EMPTY_CONTENT, MASK, METHOD_IDS, Method, RawFrame
from amqpspec.model.rules.connection.closing import break_connection
from amqpspec.targets.codec.methods import encode_method_payload
from amqpspec.targets.embedded.hooks import Chapter, Proceed, altered
from amqpspec.targets.embedded.served_broker import ServedBroker

PROTOCOL = Chapter()
on_input, on_output = PROTOCOL.on_input, PROTOCOL.on_output

# ------------------------------------------------------------------------------------------- handshake


@on_input("any-login-accepted", "CONN-005", "A wrong password is as good as the right one.", "connection.start-ok")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(altered(method, response=MASK))


@on_input("anonymous-refused", "CONN-031", "ANONYMOUS is offered, and nobody let in by it.", "connection.start-ok")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    is_anonymous = method.arguments.get("mechanism") == ANONYMOUS
    proceed(altered(method, mechanism=PLAIN, response="\0nobody\0") if is_anonymous else method)


@on_input("any-virtual-host-opened", "CONN-008", "A virtual host that is not there is opened.", "connection.open")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(altered(method, virtual_host="/"))


@on_input("tune-ok-not-checked", "CONN-011", "A frame-max beyond what was offered is accepted.", "connection.tune-ok")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    limit = min(method.arguments.get("frame_max", 0) or 131_072, 131_072)
    proceed(altered(method, frame_max=limit))


@on_output("capability-missing", "CAP-001", "connection.start does not announce basic.nack.", "connection.start")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    properties = method.arguments["server_properties"]
    kept = {name: value for name, value in properties["capabilities"].items() if name != "basic.nack"}
    yield altered(method, server_properties={**properties, "capabilities": kept})


@on_input(
    "capability-not-kept", "CAP-001", "exchange_exchange_bindings is announced and not implemented.", "exchange.bind"
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    _refuse(broker, method, 540, "NOT_IMPLEMENTED - exchange.bind")


@on_output("version-not-told", "CONN-025", "The server properties say nothing about the version.", "connection.start")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    properties = {name: value for name, value in method.arguments["server_properties"].items() if name != "version"}
    yield altered(method, server_properties=properties)


def _refuse(broker: ServedBroker, method: Method, code: int, text: str) -> None:
    """The broker closes the connection because of the frame."""
    class_id, method_id = METHOD_IDS.get(method.name, (0, 0))
    arguments = {"reply_code": code, "reply_text": text, "class_id": class_id, "method_id": method_id}
    close = Expected("connection.close", arguments, ("CHAN-007",), counted=False)
    break_connection(broker, broker.channel(method.connection, method.channel), close)


# ---------------------------------------------------------------------------------------------- channels

_ANY_METHOD = ("basic.get", "basic.qos", "queue.declare", "basic.publish", "basic.consume")


@on_input("closed-channel-used", "CHAN-001", "A method on a channel that is not open opens it.", *_ANY_METHOD)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    channel = broker.channel(method.connection, method.channel)
    if method.channel and channel.state is ChannelState.CLOSED:
        channel.state = ChannelState.OPEN
    proceed(method)


@on_output(
    "closed-channel-wrong-code", "CHAN-001", "A method on a channel that is not open brings 503.", "connection.close"
)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield altered(method, reply_code=503) if method.arguments["reply_code"] == 504 else method


@on_input("second-open-accepted", "CHAN-002", "An open channel can be opened again.", "channel.open")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    channel = broker.channel(method.connection, method.channel)
    if channel.state is ChannelState.OPEN:
        broker.owe(channel, "channel.open-ok", {}, "CHAN-003")
    else:
        proceed(method)


@on_input(
    "error-does-not-close", "CHAN-005", "After channel.close the broker goes on as if nothing were.", *_ANY_METHOD
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    channel = broker.channel(method.connection, method.channel)
    closing = channel.state is ChannelState.CLOSING
    if closing:
        channel.state = ChannelState.OPEN
    proceed(method)
    if closing and channel.state is ChannelState.OPEN:
        channel.state = ChannelState.CLOSING


@on_input(
    "flow-off-accepted", "CHAN-010", "channel.flow with active=false is answered as if it were done.", "channel.flow"
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(method if method.arguments.get("active") else altered(method, active=True))


@on_input(
    "channel-max-not-enforced", "CONN-013", "More channels can be opened than were agreed on.", "connection.tune-ok"
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(method)
    connection = broker.connections.get(method.connection)
    if connection is not None and connection.channel_max:
        connection.channel_max = 65_535


# ------------------------------------------------------------------------------------------------ frames


@on_input("bad-frame-end-accepted", "CONN-015", "A frame with a wrong last octet is passed over.", "frame.other")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    if method.arguments.get("end", 206) == 206:
        proceed(method)


@on_input("unknown-frame-type-accepted", "CONN-016", "A frame of an unknown type is passed over.", "frame.other")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    if method.arguments.get("type", 1) in (1, 2, 3, 8):
        proceed(method)


@on_input(
    "stray-content-accepted", "CHAN-012", "Content that nothing announced is passed over.", "frame.header", "frame.body"
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    if _awaits_content(broker, method):
        proceed(method)


@on_input("content-of-any-class", "CHAN-014", "The class of a content header is not looked at.", "frame.header")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(altered(method, class_id=60) if _awaits_content(broker, method) else method)


@on_input("long-body-cut", "CHAN-015", "A body that is longer than announced is cut.", "frame.body")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    missing = _missing_octets(broker, method)
    content = method.content or EMPTY_CONTENT
    proceed(method if missing is None else replace(method, content=replace(content, body=content.body[:missing])))


def _awaits_content(broker: ServedBroker, method: Method) -> bool:
    return broker.channel(method.connection, method.channel).assembly is not None


def _missing_octets(broker: ServedBroker, method: Method) -> int | None:
    assembly = broker.channel(method.connection, method.channel).assembly
    return None if assembly is None else assembly.missing


@on_output("octet-behind-arguments", "SERVER-002", "A method goes on behind its last argument.", "basic.consume-ok")
def _(broker: ServedBroker, method: Method) -> Iterable[RawFrame]:
    class_id, method_id = METHOD_IDS[method.name]
    payload = encode_method_payload(method.name, method.arguments)[4:] + b"\0"
    arguments = {"class_id": class_id, "method_id": method_id, "payload": payload.hex()}
    yield RawFrame(method.connection, method.channel, "frame.method", arguments, sent=False)


# ------------------------------------------------------------------------------------------ the end of it


@on_input(
    "exclusive-queue-outlives-connection",
    "QUEUE-020",
    "Exclusive queues stay after connection.close.",
    "connection.close",
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    owned = [queue for queue in broker.queues.values() if queue.owner == method.connection]
    for queue in owned:
        queue.owner = None
    proceed(method)


# --------------------------------------------------------------------------------------------- permissions


@on_input("permissions-not-checked", "PERMISSION-001", "Every user may do everything.", "operator.set-permissions")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(altered(method, configure=".*", write=".*", read=".*"))


@on_output("refusal-names-nobody", "PERMISSION-001", "A refusal does not say whom it refuses.", "channel.close")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    text = method.arguments["reply_text"]
    yield altered(method, reply_text=text.partition(" refused for user")[0])
