"""Faults of publisher confirms (area CONFIRM), of which `targets.faults.messages` has the plainest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from amqpspec.model.broker.queues import Message, Queue
from amqpspec.model.protocol.methods import Method
from amqpspec.targets.embedded.hooks import Chapter, Proceed, altered
from amqpspec.targets.embedded.served_broker import ServedBroker

CONFIRMS = Chapter()
on_input, on_output = CONFIRMS.on_input, CONFIRMS.on_output

Copies = tuple[tuple[Queue, Message], ...]


def _ack(of: Method, number: int, multiple: bool = False) -> Method:
    """One more confirm on the channel of that frame."""
    return replace(of, name="basic.ack", arguments={"delivery_tag": number, "multiple": multiple}, content=None)


def _latest(broker: ServedBroker, method: Method) -> tuple[int, Copies] | None:
    """Number and copies of the publish that was just processed, if it is to be confirmed."""
    channel = broker.channel(method.connection, method.channel)
    copies = channel.unconfirmed.get(channel.published)
    return None if copies is None else (channel.published, copies)


def _forget(broker: ServedBroker, method: Method, number: int) -> None:
    channel = broker.channel(method.connection, method.channel)
    del channel.unconfirmed[number]
    broker.settle_debts(channel)


# ---------------------------------------------------------------------------------------------- numbers


@on_output("confirm-counts-from-zero", "CONFIRM-002", "The first publish has the number 0.", "basic.ack", "basic.nack")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield altered(method, delivery_tag=method.arguments["delivery_tag"] - 1)


@on_output("confirm-counts-from-two", "CONFIRM-002", "The first publish has the number 2.", "basic.ack", "basic.nack")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield altered(method, delivery_tag=method.arguments["delivery_tag"] + 1)


@on_input("confirm-without-select", "CONFIRM-002", "Publishes are confirmed without confirm.select.", "basic.publish")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    channel = broker.channel(method.connection, method.channel)
    if channel.transaction is None:
        channel.confirming = True
    proceed(method)


@on_input("select-counts-anew", "CONFIRM-001", "A repeated confirm.select begins to count anew.", "confirm.select")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(method)
    channel = broker.channel(method.connection, method.channel)
    channel.published = 0
    channel.unconfirmed.clear()


# --------------------------------------------------------------------------------------------- once each


@on_output("nack-behind-ack", "CONFIRM-003", "A publish is acked and then nacked.", "basic.ack")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield method
    yield replace(method, name="basic.nack", arguments={**method.arguments, "multiple": True, "requeue": True})


@on_output("confirmed-together-and-singly", "CONFIRM-005", "What multiple covers is confirmed again.", "basic.ack")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield method
    if method.arguments["multiple"]:
        yield _ack(method, method.arguments["delivery_tag"] - 1)


@on_output("single-ack-multiple", "CONFIRM-006", "The ack of a single publish has multiple.", "basic.ack")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield altered(method, multiple=True)


@on_output("single-nack-not-multiple", "CONFIRM-006", "The nack of a single publish is without multiple.", "basic.nack")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield altered(method, multiple=False)


@on_output("nack-without-requeue", "CONFIRM-007", "The broker's nack does not ask for requeue.", "basic.nack")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield altered(method, requeue=False)


# ------------------------------------------------------------------------------------------- not at all


@on_input("unroutable-not-confirmed", "CONFIRM-008", "What no queue takes is never confirmed.", "basic.publish")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(method)
    if (latest := _latest(broker, method)) is not None and not latest[1]:
        _forget(broker, method, latest[0])


@on_input(
    "several-queues-not-confirmed", "CONFIRM-010", "What several queues take is never confirmed.", "basic.publish"
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(method)
    if (latest := _latest(broker, method)) is not None and len(latest[1]) > 1:
        _forget(broker, method, latest[0])


@on_input("persistent-not-confirmed", "CONFIRM-016", "A persistent message in a durable queue is never confirmed.",
          "basic.publish")  # fmt: skip
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(method)
    persistent = method.content is not None and method.content.properties.get("delivery_mode") == 2
    if persistent and (latest := _latest(broker, method)) is not None and any(queue.durable for queue, _ in latest[1]):
        _forget(broker, method, latest[0])


@on_input("deletion-forgets-confirms", "CONFIRM-012", "Publishes to a queue that is deleted are not confirmed.",
          "queue.delete")  # fmt: skip
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    queue = broker.queues.get(method.arguments.get("queue", ""))
    proceed(method)
    if queue is None or not queue.deleted:
        return
    for channel in broker.channels.values():
        going = [n for n, copies in channel.unconfirmed.items() if any(taker is queue for taker, _ in copies)]
        for number in going:
            del channel.unconfirmed[number]
        broker.settle_debts(channel)


# ------------------------------------------------------------------------------------ at the wrong moment


@on_output("confirm-before-return", "CONFIRM-009", "A message is confirmed before it is returned.",
           "basic.return", "basic.ack")  # fmt: skip
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    key = (method.connection, method.channel)
    if method.name == "basic.return" and broker.channel(*key).confirming:
        broker.memory.setdefault(key, []).append(method)
        return
    yield method
    yield from broker.memory.pop(key, [])


@on_output("failed-publish-confirmed", "CONFIRM-019", "A publish that closes the channel is confirmed before.",
           "channel.close")  # fmt: skip
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    channel = broker.channel(method.connection, method.channel)
    if channel.confirming and (method.arguments["class_id"], method.arguments["method_id"]) == (60, 40):
        yield _ack(method, channel.published + 1)
    yield method


@on_output(
    "confirm-behind-close", "CONFIRM-018", "Publishes are confirmed when the channel is closed.", "channel.close"
)
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield method
    channel = broker.channel(method.connection, method.channel)
    if channel.published:
        yield _ack(method, channel.published)
