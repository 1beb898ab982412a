"""Faults of publisher confirms (area CONFIRM), of which `targets.faults.messages` has the plainest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from amqpspec.model.broker.queues import Message, Queue
from amqpspec.model.protocol.methods import Frame
from amqpspec.targets.embedded.hooks import Chapter, Proceed, altered
from amqpspec.targets.embedded.served_broker import ServedBroker

CONFIRMS = Chapter()
on_input, on_output = CONFIRMS.on_input, CONFIRMS.on_output

Copies = tuple[tuple[Queue, Message], ...]


def _ack(of: Frame, number: int, multiple: bool = False) -> Frame:
    """One more confirm on the channel of that frame."""
    return replace(of, method="basic.ack", arguments={"delivery_tag": number, "multiple": multiple}, content=None)


def _latest(broker: ServedBroker, frame: Frame) -> tuple[int, Copies] | None:
    """Number and copies of the publish that was just processed, if it is to be confirmed."""
    channel = broker.channel(frame.connection, frame.channel)
    copies = channel.unconfirmed.get(channel.published)
    return None if copies is None else (channel.published, copies)


def _forget(broker: ServedBroker, frame: Frame, number: int) -> None:
    channel = broker.channel(frame.connection, frame.channel)
    del channel.unconfirmed[number]
    broker.settle_debts(channel)


# ---------------------------------------------------------------------------------------------- numbers


@on_output("confirm-counts-from-zero", "CONFIRM-002", "The first publish has the number 0.", "basic.ack", "basic.nack")
def _(broker: ServedBroker, frame: Frame) -> Iterable[Frame]:
    yield altered(frame, delivery_tag=frame.arguments["delivery_tag"] - 1)


@on_output("confirm-counts-from-two", "CONFIRM-002", "The first publish has the number 2.", "basic.ack", "basic.nack")
def _(broker: ServedBroker, frame: Frame) -> Iterable[Frame]:
    yield altered(frame, delivery_tag=frame.arguments["delivery_tag"] + 1)


@on_input("confirm-without-select", "CONFIRM-002", "Publishes are confirmed without confirm.select.", "basic.publish")
def _(broker: ServedBroker, frame: Frame, proceed: Proceed) -> None:
    channel = broker.channel(frame.connection, frame.channel)
    if channel.transaction is None:
        channel.confirming = True
    proceed(frame)


@on_input("select-counts-anew", "CONFIRM-001", "A repeated confirm.select begins to count anew.", "confirm.select")
def _(broker: ServedBroker, frame: Frame, proceed: Proceed) -> None:
    proceed(frame)
    channel = broker.channel(frame.connection, frame.channel)
    channel.published = 0
    channel.unconfirmed.clear()


# --------------------------------------------------------------------------------------------- once each


@on_output("nack-behind-ack", "CONFIRM-003", "A publish is acked and then nacked.", "basic.ack")
def _(broker: ServedBroker, frame: Frame) -> Iterable[Frame]:
    yield frame
    yield replace(frame, method="basic.nack", arguments={**frame.arguments, "multiple": True, "requeue": True})


@on_output("confirmed-together-and-singly", "CONFIRM-005", "What multiple covers is confirmed again.", "basic.ack")
def _(broker: ServedBroker, frame: Frame) -> Iterable[Frame]:
    yield frame
    if frame.arguments["multiple"]:
        yield _ack(frame, frame.arguments["delivery_tag"] - 1)


@on_output("single-ack-multiple", "CONFIRM-006", "The ack of a single publish has multiple.", "basic.ack")
def _(broker: ServedBroker, frame: Frame) -> Iterable[Frame]:
    yield altered(frame, multiple=True)


@on_output("single-nack-not-multiple", "CONFIRM-006", "The nack of a single publish is without multiple.", "basic.nack")
def _(broker: ServedBroker, frame: Frame) -> Iterable[Frame]:
    yield altered(frame, multiple=False)


@on_output("nack-without-requeue", "CONFIRM-007", "The broker's nack does not ask for requeue.", "basic.nack")
def _(broker: ServedBroker, frame: Frame) -> Iterable[Frame]:
    yield altered(frame, requeue=False)


# ------------------------------------------------------------------------------------------- not at all


@on_input("unroutable-not-confirmed", "CONFIRM-008", "What no queue takes is never confirmed.", "basic.publish")
def _(broker: ServedBroker, frame: Frame, proceed: Proceed) -> None:
    proceed(frame)
    if (latest := _latest(broker, frame)) is not None and not latest[1]:
        _forget(broker, frame, latest[0])


@on_input(
    "several-queues-not-confirmed", "CONFIRM-010", "What several queues take is never confirmed.", "basic.publish"
)
def _(broker: ServedBroker, frame: Frame, proceed: Proceed) -> None:
    proceed(frame)
    if (latest := _latest(broker, frame)) is not None and len(latest[1]) > 1:
        _forget(broker, frame, latest[0])


@on_input("persistent-not-confirmed", "CONFIRM-016", "A persistent message in a durable queue is never confirmed.",
          "basic.publish")  # fmt: skip
def _(broker: ServedBroker, frame: Frame, proceed: Proceed) -> None:
    proceed(frame)
    persistent = frame.content is not None and frame.content.properties.get("delivery_mode") == 2
    if persistent and (latest := _latest(broker, frame)) is not None and any(queue.durable for queue, _ in latest[1]):
        _forget(broker, frame, latest[0])


@on_input("deletion-forgets-confirms", "CONFIRM-012", "Publishes to a queue that is deleted are not confirmed.",
          "queue.delete")  # fmt: skip
def _(broker: ServedBroker, frame: Frame, proceed: Proceed) -> None:
    queue = broker.queues.get(frame.arguments.get("queue", ""))
    proceed(frame)
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
def _(broker: ServedBroker, frame: Frame) -> Iterable[Frame]:
    key = (frame.connection, frame.channel)
    if frame.method == "basic.return" and broker.channel(*key).confirming:
        broker.memory.setdefault(key, []).append(frame)
        return
    yield frame
    yield from broker.memory.pop(key, [])


@on_output("failed-publish-confirmed", "CONFIRM-019", "A publish that closes the channel is confirmed before.",
           "channel.close")  # fmt: skip
def _(broker: ServedBroker, frame: Frame) -> Iterable[Frame]:
    channel = broker.channel(frame.connection, frame.channel)
    if channel.confirming and (frame.arguments["class_id"], frame.arguments["method_id"]) == (60, 40):
        yield _ack(frame, channel.published + 1)
    yield frame


@on_output(
    "confirm-behind-close", "CONFIRM-018", "Publishes are confirmed when the channel is closed.", "channel.close"
)
def _(broker: ServedBroker, frame: Frame) -> Iterable[Frame]:
    yield frame
    channel = broker.channel(frame.connection, frame.channel)
    if channel.published:
        yield _ack(frame, channel.published)
