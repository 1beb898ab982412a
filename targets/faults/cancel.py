"""Faults of the ends of consumers: cancelled by their client, or told that their queue is gone (area CANCEL)."""

from __future__ import annotations

from collections.abc import Iterable

from amqpspec.model.broker.channels import Channel, ChannelState
from amqpspec.model.broker.owed import Expected
from amqpspec.model.broker.queues import Consumer, Queue
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import ChannelKey, Content, Method
from amqpspec.model.rules.connection.closing import fail
from amqpspec.targets.embedded.hooks import Chapter, Proceed, altered
from amqpspec.targets.embedded.served_broker import ServedBroker

CANCEL = Chapter()
on_input, on_output, in_broker = CANCEL.on_input, CANCEL.on_output, CANCEL.in_broker

# ------------------------------------------------------------------------------------------- the client's cancel


@on_output("cancel-ok-names-another", "CANCEL-001", "basic.cancel-ok has another consumer tag.", "basic.cancel-ok")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield altered(method, consumer_tag=f"{method.arguments['consumer_tag']}x")


@on_output("delivery-after-cancel", "CANCEL-001", "One more message follows basic.cancel-ok.", "basic.cancel-ok")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    return _with_one_more(broker, method)


@on_input("cancel-of-unknown-unanswered", "CANCEL-003", "Cancelling what never was is not answered.", "basic.cancel")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    channel, tag = _channel_and_tag(broker, method)
    if tag in channel.consumers or tag in channel.ended_consumers:
        proceed(method)


@on_input(
    "cancel-after-deletion-refused",
    "CANCEL-004",
    "Who cancels a consumer whose queue is gone gets 404.",
    "basic.cancel",
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    channel, tag = _channel_and_tag(broker, method)
    if channel.state is ChannelState.OPEN and channel.ended_consumers.get(tag) == "CANCEL-007":
        fail(broker, channel, method, ProtocolError("CANCEL-004", 404, f"no consumer '{tag}'"))
    else:
        proceed(method)


@on_output("cancel-ok-then-cancel", "CANCEL-002", "The client is told of its own cancel as well.", "basic.cancel-ok")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield method
    if broker.connections[method.connection].is_told_of_cancels:
        yield _notice(method.connection, method.channel, method.arguments["consumer_tag"])


@in_broker("cancelled-consumer-told", "CANCEL-002", "Who cancelled a consumer is told when its queue is deleted.")
class CancelledConsumerTold(ServedBroker):
    def remove_consumer(self, consumer: Consumer, requirement: str) -> None:
        super().remove_consumer(consumer, requirement)
        if requirement == "CANCEL-001":
            self.memory.setdefault(consumer.queue, []).append((consumer.channel, consumer.tag))

    def delete_queue(self, queue: Queue, requirement: str, told_later: ChannelKey | None = None) -> None:
        super().delete_queue(queue, requirement, told_later)
        for key, tag in self.memory.pop(queue, []):
            if key in self.channels and tag not in self.channels[key].consumers:
                self.owe_notice(self.channels[key], tag, "CANCEL-002")


# ------------------------------------------------------------------------------------------- the broker's cancel


@on_output("deletion-not-told", "CANCEL-007", "Nobody is told that the queue of a consumer is gone.", "basic.cancel")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    return ()


@in_broker("deletion-told-once-a-channel", "CANCEL-012", "Of several consumers on a channel only one is told of.")
class ToldOnceAChannel(ServedBroker):
    def owe_notice(self, channel: Channel, tag: str, *requirements: str, crossing: str = "") -> None:
        if not any(isinstance(owed, Expected) and owed.method == "basic.cancel" for owed in channel.owed):
            super().owe_notice(channel, tag, *requirements, crossing=crossing)


@in_broker("deletion-told-to-all", "CANCEL-007", "Consumers of other queues on the channel are told of as well.")
class ToldToAll(ServedBroker):
    def delete_queue(self, queue: Queue, requirement: str, told_later: ChannelKey | None = None) -> None:
        keys = dict.fromkeys(consumer.channel for consumer in queue.consumers)
        super().delete_queue(queue, requirement, told_later)
        for key in keys:
            for tag in self.channels[key].consumers:
                self.owe_notice(self.channels[key], tag, "CANCEL-007")


@in_broker("capability-not-asked", "CANCEL-010", "Who did not ask to be told of ended consumers is told all the same.")
class CapabilityNotAsked(ServedBroker):
    def owe_notice(self, channel: Channel, tag: str, *requirements: str, crossing: str = "") -> None:
        if channel.state is ChannelState.OPEN:
            self.owe(channel, "basic.cancel", {"consumer_tag": tag, "nowait": True}, *requirements, lane=tag)


@on_output("notice-wants-answer", "CANCEL-008", "The broker's basic.cancel asks for cancel-ok.", "basic.cancel")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    yield altered(method, nowait=False)


@on_output("delivery-after-notice", "CANCEL-007", "One more message follows the broker's basic.cancel.", "basic.cancel")
def _(broker: ServedBroker, method: Method) -> Iterable[Method]:
    return _with_one_more(broker, method)


@in_broker("notice-before-delete-ok", "CANCEL-011", "Who deletes its own consumer's queue is told before delete-ok.")
class NoticeBeforeDeleteOk(ServedBroker):
    def delete_queue(self, queue: Queue, requirement: str, told_later: ChannelKey | None = None) -> None:
        super().delete_queue(queue, requirement, None)
        for channel in self.channels.values():
            channel.owed.sort(key=lambda owed: not isinstance(owed, Expected) or owed.method != "basic.cancel")

    def tell_of_deletion(self, key: ChannelKey, tags: tuple[str, ...], crossing: str) -> None:
        """They know already."""


@on_input(
    "tag-taken-after-notice", "CANCEL-013", "The tag of a consumer whose queue is gone stays taken.", "basic.consume"
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    channel, tag = _channel_and_tag(broker, method)
    if channel.state is ChannelState.OPEN and channel.ended_consumers.get(tag) == "CANCEL-007":
        fail(broker, channel, method, ProtocolError("CANCEL-013", 530, f"attempt to reuse consumer tag '{tag}'"))
    else:
        proceed(method)


@on_input("deletion-forgets-unacked", "ACK-012", "What is held of a deleted queue cannot be settled.", "queue.delete")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(method)
    for channel in broker.channels.values():
        for tag, entry in list(channel.unsettled.items()):
            if entry.queue.deleted:
                broker.release(channel, tag, "CANCEL-014")


def _channel_and_tag(broker: ServedBroker, method: Method) -> tuple[Channel, str]:
    return broker.channel(method.connection, method.channel), method.arguments.get("consumer_tag", "")


def _notice(connection: str, channel: int, tag: str) -> Method:
    return Method(connection, channel, "basic.cancel", {"consumer_tag": tag, "nowait": True}, sent=False)


def _with_one_more(broker: ServedBroker, method: Method) -> Iterable[Method]:
    """The frame, and a delivery to the consumer that it names."""
    yield method
    channel = broker.channel(method.connection, method.channel)
    arguments = {
        "consumer_tag": method.arguments["consumer_tag"],
        "delivery_tag": channel.next_tag,
        "redelivered": False,
        "exchange": "",
        "routing_key": "",
    }
    yield Method(method.connection, method.channel, "basic.deliver", arguments, sent=False, content=Content())
    channel.next_tag += 1
