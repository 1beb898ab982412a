"""Faults of the limits on unacknowledged deliveries (area QOS).

Most show whatever the dialect; those of a limit of the channel only where there is one.
"""

from __future__ import annotations

from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.limits import can_share, limit_channel, own_limit_holds, shared_limit_holds
from amqpspec.model.broker.queues import Consumer
from amqpspec.model.promises.dialects.rabbitmq_4_0 import RABBITMQ_4_0
from amqpspec.model.protocol.methods import Method
from amqpspec.targets.embedded.hooks import Chapter, Proceed, altered
from amqpspec.targets.embedded.served_broker import ServedBroker

LIMITS = Chapter()
on_input, in_broker = LIMITS.on_input, LIMITS.in_broker
#: the last dialect in which channels have limits
_WITH_CHANNEL_LIMIT = RABBITMQ_4_0.name


def _channel(broker: ServedBroker, method: Method) -> Channel:
    return broker.channel(method.connection, method.channel)


def _refresh(broker: ServedBroker, channel: Channel) -> None:
    for consumer in channel.consumers.values():
        broker.refresh(consumer.queue)


# ---------------------------------------------------------------------------------- the limit of a consumer


@on_input(
    "qos-changes-existing-consumers", "QOS-003", "basic.qos sets the limit of consumers that exist.", "basic.qos"
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(method)
    channel = _channel(broker, method)
    for consumer in channel.consumers.values():
        consumer.prefetch = channel.prefetch
    _refresh(broker, channel)


@on_input("prefetch-zero-is-one", "QOS-002", "A prefetch count of zero is taken for one.", "basic.qos")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(method if method.arguments.get("prefetch_count") else altered(method, prefetch_count=1))


@on_input("prefetch-size-accepted", "QOS-007", "A limit in octets is accepted, and ignored.", "basic.qos")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(altered(method, prefetch_size=0))


@in_broker("no-ack-consumer-limited", "QOS-005", "A consumer without acknowledgements gets its prefetch count only.")
class NoAckConsumerLimited(ServedBroker):
    def has_room(self, consumer: Consumer) -> bool:
        channel = self.channels[consumer.channel]
        if consumer.no_ack and 0 < channel.prefetch <= channel.automatic and not consumer.queue.reply_address:
            return False
        return super().has_room(consumer)


@in_broker("consumers-share-limit", "QOS-001", "The limit of a consumer is that of all consumers of its channel.")
class ConsumersShareLimit(ServedBroker):
    def has_room(self, consumer: Consumer) -> bool:
        others = self.channels[consumer.channel].consumers.values()
        outstanding = sum(other.outstanding for other in others if other is not consumer)
        if consumer.prefetch and outstanding + consumer.outstanding >= consumer.prefetch:
            return False
        return super().has_room(consumer)


@on_input(
    "requeue-frees-two", "QOS-006", "A delivery that is given back makes room for two.", "basic.nack", "basic.reject"
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    channel = _channel(broker, method)
    entry = channel.unacknowledged.get(method.arguments.get("delivery_tag", 0))
    if entry is not None and entry.consumer is not None and entry.consumer.prefetch and method.arguments.get("requeue"):
        entry.consumer.prefetch += 1
    proceed(method)


@in_broker("window-opens-when-empty", "QOS-004", "A consumer at its limit waits until all it holds is settled.")
class WindowOpensWhenEmpty(ServedBroker):
    def has_room(self, consumer: Consumer) -> bool:
        if not consumer.outstanding:
            self.memory[consumer] = False
        elif own_limit_holds(consumer):
            self.memory[consumer] = True
        return not self.memory.get(consumer) and super().has_room(consumer)


@on_input("cancel-lifts-limits", "QOS-001", "A cancel ends the limits of all consumers of its channel.", "basic.cancel")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(method)
    channel = _channel(broker, method)
    for consumer in channel.consumers.values():
        consumer.prefetch = 0
    _refresh(broker, channel)


# ------------------------------------------------------------------------------------------- what global means


@on_input("global-limits-channel", "QOS-009", "A limit with global is still one of the whole channel.", "basic.qos")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    if not method.arguments.get("global_") or method.arguments.get("prefetch_size"):
        proceed(method)
        return
    channel = _channel(broker, method)
    limit_channel(broker, channel, method.arguments.get("prefetch_count", 0))
    _refresh(broker, channel)
    broker.owe(channel, "basic.qos-ok", {}, "QOS-009")


@on_input("global-limit-ignored", "QOS-009", "A limit with global is confirmed, and ignored.", "basic.qos")
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    if method.arguments.get("global_") and not method.arguments.get("prefetch_size"):
        broker.owe(_channel(broker, method), "basic.qos-ok", {}, "QOS-009")
    else:
        proceed(method)


# ----------------------------------------------------------------------------------- the limit of a channel


@in_broker(
    "channel-limit-per-consumer",
    "QOS-008",
    "The limit of a channel is one of each of its consumers.",
    dialect=_WITH_CHANNEL_LIMIT,
)
class ChannelLimitPerConsumer(ServedBroker):
    def has_room(self, consumer: Consumer) -> bool:
        limit = self.channels[consumer.channel].channel_prefetch
        if not limit or not can_share(self, consumer):
            return super().has_room(consumer)
        return not own_limit_holds(consumer) and (consumer.no_ack or consumer.outstanding < limit)


@in_broker(
    "channel-limit-forgets-cancelled",
    "QOS-008",
    "What a cancelled consumer holds does not count towards the limit of its channel.",
    dialect=_WITH_CHANNEL_LIMIT,
)
class ChannelLimitForgetsCancelled(ServedBroker):
    def has_room(self, consumer: Consumer) -> bool:
        channel = self.channels[consumer.channel]
        limit = channel.channel_prefetch
        if not limit or not can_share(self, consumer):
            return super().has_room(consumer)
        live = sum(each.outstanding for each in channel.consumers.values())
        return not own_limit_holds(consumer) and (consumer.no_ack or live < limit)


@in_broker(
    "channel-limit-for-new-consumers",
    "QOS-011",
    "The limit of a channel does not hold for consumers that were there before.",
    dialect=_WITH_CHANNEL_LIMIT,
)
class ChannelLimitForNewConsumers(ServedBroker):
    def has_room(self, consumer: Consumer) -> bool:
        channel = self.channels[consumer.channel]
        if channel.channel_prefetch and consumer not in self.memory:
            # first asked with the limit set: was it handed something before?
            self.memory[consumer] = any(
                entry.consumer is consumer and tag < channel.counted_below_tag
                for tag, entry in channel.unacknowledged.items()
            )
        if self.memory.get(consumer):
            return not own_limit_holds(consumer)
        return super().has_room(consumer)


@in_broker(
    "channel-limit-replaces-consumers",
    "QOS-010",
    "With a limit of the channel its consumers have none of their own.",
    dialect=_WITH_CHANNEL_LIMIT,
)
class ChannelLimitReplacesConsumers(ServedBroker):
    def has_room(self, consumer: Consumer) -> bool:
        if self.channels[consumer.channel].channel_prefetch and can_share(self, consumer):
            return not shared_limit_holds(self, consumer)
        return super().has_room(consumer)


@on_input(
    "gets-not-counted",
    "QOS-013",
    "What basic.get holds does not count when the limit of the channel comes.",
    "basic.qos",
    dialect=_WITH_CHANNEL_LIMIT,
)
def _(broker: ServedBroker, method: Method, proceed: Proceed) -> None:
    proceed(method)
    channel = _channel(broker, method)
    channel.counted_below_tag = 0
    _refresh(broker, channel)
