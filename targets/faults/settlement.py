"""Faults of acknowledging, rejecting and recovering (areas ACK and RECOVER)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from amqpspec.model.broker.channels import Channel, ChannelState
from amqpspec.model.broker.queues import Message, Queue
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.connection.closing import fail_channel_zero
from amqpspec.targets.embedded.hooks import Chapter, Proceed, altered
from amqpspec.targets.embedded.served_broker import ServedBroker

SETTLEMENT = Chapter()
on_input, on_output = SETTLEMENT.on_input, SETTLEMENT.on_output
_SETTLING = ("basic.ack", "basic.nack", "basic.reject")


def _tag(method: Method) -> int:
    return int(method.arguments.get("delivery_tag", 0))


def _multiple(method: Method) -> bool:
    return bool(method.arguments.get("multiple"))


def _channel(broker: ServedBroker, method: Method) -> Channel:
    return broker.channel(method.connection, method.channel)


def _is_unknown(broker: ServedBroker, method: Method) -> bool:
    """The frame settles one tag that is not outstanding."""
    channel = _channel(broker, method)
    return channel.state is ChannelState.OPEN and not _multiple(method) and _tag(method) not in channel.unacknowledged


def _is_used(broker: ServedBroker, method: Method) -> bool:
    again = _channel(broker, method).forbidden_again(_tag(method))
    return _is_unknown(broker, method) and again in ("ACK-007", "RECOVER-004")


def _was_never_used(broker: ServedBroker, method: Method) -> bool:
    return _is_unknown(broker, method) and _tag(method) >= _channel(broker, method).next_tag


# ------------------------------------------------------------------------------------------- which deliveries


@on_input("ack-acks-nothing", "ACK-001", "basic.ack of one delivery does nothing.", "basic.ack")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    if _multiple(method) or _is_unknown(broker, method):
        proceed(method)


@on_input("multiple-ack-ignored", "ACK-002", "basic.ack with multiple settles its own tag only.", "basic.ack")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(altered(method, multiple=False) if _tag(method) else method)


@on_input("multiple-zero-ignored", "ACK-003", "basic.ack of tag 0 with multiple settles nothing.", "basic.ack")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    if _tag(method) or not _multiple(method):
        proceed(method)


@on_input("multiple-acks-too-many", "ACK-001", "basic.ack with multiple settles the next tag as well.", "basic.ack")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    too_far = _multiple(method) and _tag(method) + 1 in _channel(broker, method).unacknowledged
    proceed(altered(method, delivery_tag=_tag(method) + 1) if too_far else method)


@on_input("nack-multiple-single", "ACK-014", "basic.nack with multiple settles its own tag only.", "basic.nack")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(altered(method, multiple=False) if _tag(method) else method)


# -------------------------------------------------------------------------------------------------- errors


@on_input("unknown-tag-accepted", "ACK-006", "Settling a tag that was never delivered is no error.", *_SETTLING)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    if not _was_never_used(broker, method):
        proceed(method)


@on_input("double-ack-accepted", "ACK-007", "Settling a delivery a second time is no error.", *_SETTLING)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    if not _is_used(broker, method):
        proceed(method)


@on_input("tag-zero-accepted", "ACK-005", "Settling tag 0 without multiple is no error.", *_SETTLING)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    if _tag(method) or _multiple(method):
        proceed(method)


@on_input("unknown-tag-closes-connection", "ACK-006", "Settling an unknown tag closes the connection.", *_SETTLING)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    if _was_never_used(broker, method):
        error = ProtocolError("ACK-006", 406, f"unknown delivery tag {_tag(method)}")
        fail_channel_zero(broker, broker.connections[method.connection], method, error)
    else:
        proceed(method)


@on_output("wrong-reply-code", "ACK-006", "An unknown tag is answered with 404 instead of 406.", "channel.close")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    unknown_tag = "unknown delivery tag" in method.arguments["reply_text"]
    yield altered(method, reply_code=404) if unknown_tag else method


@on_input(
    "others-lose-what-they-hold",
    "ACK-001",
    "Whoever closes its connection gives back what all others hold.",
    "connection.close",
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    for channel in list(broker.channels.values()):
        if channel.connection != method.connection and channel.unacknowledged:
            everything = {"delivery_tag": 0, "multiple": True, "requeue": True}
            proceed(replace(method, name="basic.nack", arguments=everything, connection=channel.connection,
                            channel=channel.number))  # fmt: skip
    proceed(method)


# -------------------------------------------------------------------------------------------- giving back


def _given_back(broker: ServedBroker, method: Method, proceed: Proceed) -> dict[Queue, list[Message]]:
    """Process the frame; what came back to each queue by that, in the order of the queue."""
    before = {queue: set(queue.messages) for queue in broker.queues.values()}
    proceed(method)
    return {queue: [m for m in queue.messages if m not in known] for queue, known in before.items()}


@on_input(
    "message-lost-on-requeue", "ACK-014", "basic.nack of several with requeue discards the messages.", "basic.nack"
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(altered(method, requeue=False) if _multiple(method) else method)


@on_input("message-lost-on-reject", "ACK-013", "basic.reject with requeue discards the message.", "basic.reject")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(altered(method, requeue=False))


@on_input("reject-requeues-always", "ACK-013", "basic.reject requeues also where it must discard.", "basic.reject")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(altered(method, requeue=True))


@on_input(
    "requeue-at-tail-on-classic",
    "ACK-016",
    "A classic queue puts what is given back behind its ready messages.",
    "basic.nack",
    "basic.reject",
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    for queue, messages in _given_back(broker, method, proceed).items():
        if queue.type is QueueType.CLASSIC:
            for message in messages:
                queue.messages.remove(message)
                message.position = queue.next_position
                queue.next_position += 1
                queue.messages.append(message)


@on_input(
    "requeue-order-reversed-on-quorum",
    "ACK-017",
    "A quorum queue turns round the order of what is given back together.",
    "basic.nack",
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    for queue, messages in _given_back(broker, method, proceed).items():
        if queue.type is QueueType.QUORUM and len(messages) > 1:
            places = [queue.messages.index(message) for message in messages]
            for place, message in zip(places, reversed(messages), strict=True):
                queue.messages[place] = message


@on_output("recover-ok-missing", "RECOVER-001", "basic.recover is carried out and not answered.", "basic.recover-ok")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    return ()


@on_input(
    "recover-forgets-consumer-deliveries",
    "RECOVER-001",
    "basic.recover gives back what basic.get took and loses what consumers hold.",
    "basic.recover",
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    channel = _channel(broker, method)
    for tag, entry in list(channel.unsettled.items()):
        if entry.consumer is not None:
            broker.release(channel, tag, "RECOVER-001")
    proceed(method)
