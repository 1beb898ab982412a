"""The questions of `model.judging.questions`, answered by an acceptor: from its explanations and their states."""

from __future__ import annotations

from collections.abc import Collection

from amqpspec.model.broker import nodes
from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import ChannelState
from amqpspec.model.broker.connections import Connection, ConnectionState
from amqpspec.model.broker.dead_letter_headers import EXCHANGE
from amqpspec.model.broker.dispatch import service_is_unknown
from amqpspec.model.broker.queues import Consumer, Queue, flags_of
from amqpspec.model.broker.reply_addresses import ADDRESS
from amqpspec.model.judging.acceptor import Acceptor
from amqpspec.model.judging.certain_debts import is_owed_elsewhere
from amqpspec.model.judging.doubts import may_give_up, unprocessed
from amqpspec.model.judging.questions import KnownConnection
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import ChannelKey, Method, Table, TraceEvent
from amqpspec.model.protocol.patterns import UNKNOWN_NAME

#: Seconds of which no more may pass between a question and its answer.
SOON = 1.0


class AcceptorQuestions:
    """`Questions` about the sequence that an acceptor judges."""

    def __init__(self, acceptor: Acceptor) -> None:
        self._acceptor = acceptor

    # ---- the sequence

    @property
    def finished(self) -> bool:
        return self._acceptor.finished

    def owes(self) -> bool:
        return self._acceptor.owes()

    def owes_others(self, mute: Collection[str]) -> bool:
        explanations = self._acceptor.explanations
        return not self._acceptor.finished and all(is_owed_elsewhere(each, mute) for each in explanations)

    @property
    def patience(self) -> float:
        return self._acceptor.patience

    # ---- connections and channels

    def connection(self, name: str) -> KnownConnection | None:
        connection = self._usual.connections.get(name)
        return None if connection is None else _known(self._usual, connection)

    def connections(self) -> list[KnownConnection]:
        return [_known(self._usual, connection) for connection in self._usual.connections.values()]

    def was_opened(self, channel: ChannelKey) -> bool:
        return channel in self._usual.channels

    def is_open(self, channel: ChannelKey) -> bool:
        return _is_open(self._usual, channel)

    def may_be_open(self, channel: ChannelKey) -> bool:
        return any(_is_open(broker, channel) for broker in self._brokers)

    def flush(self, channel: ChannelKey, exchange: str) -> TraceEvent:
        """Where the channel has a limit of its own it is channel.flow: up to RabbitMQ 4.2 basic.qos with global=false
        lifts that limit, against the promise (the known defect consumer-limit-lifts-channel-limit). The flag of the
        last basic.qos is kept: it would else be the barrier's that is seen to work.
        """
        text = self._usual.dialect.text
        if text.flushed_by_passive_declare and text.predeclared_are_there:
            # `durable` says nothing there, but some brokers compare it all the same
            declare = {"exchange": "amq.direct", "type": "direct", "passive": True, "durable": True}
            return Method(*channel, "exchange.declare", declare, sent=True)
        if text.flushed_by_passive_declare:
            return Method(*channel, "exchange.declare", {"exchange": exchange, "type": "direct"}, sent=True)
        known = self._usual.channels[channel]
        if known.channel_prefetch:
            return Method(*channel, "channel.flow", {"active": True}, sent=True)
        is_global = known.prefetch_from in ("QOS-009", "QOS-010")
        return Method(*channel, "basic.qos", {"prefetch_count": known.prefetch, "global_": is_global}, sent=True)

    def unprocessed(self) -> list[ChannelKey]:
        return list(dict.fromkeys([*unprocessed(self._acceptor.explanations), *self._perhaps_ended]))

    def served_elsewhere(self) -> list[ChannelKey]:
        usual = self._usual
        served = {queue.name: queue for broker in self._brokers if broker is not usual for queue in broker.deliverable}
        known = {queue.name for queue in usual.deliverable}
        consumers = [consumer for name, queue in served.items() if name not in known for consumer in queue.consumers]
        # these get no basic.cancel when their queue is deleted: only a round trip shows which delivery was the last
        consumers += [each for broker in self._brokers if broker is not usual for each in _never_told(broker)]
        return list(dict.fromkeys(consumer.channel for consumer in consumers))

    # ---- queues

    def touched(self) -> list[tuple[ChannelKey, str]]:
        return [(channel, queue.name) for channel, queue in self._usual.touched]

    def consuming(self, queue: str) -> list[ChannelKey]:
        known = self._usual.queues.get(queue)
        return [] if known is None else [consumer.channel for consumer in known.consumers]

    def may_get(self, channel: ChannelKey, queue: str) -> bool:
        usual = self._usual
        known = usual.queues.get(queue)
        return (
            known is not None
            and not known.is_down
            and usual.dialect.text.get_is_known
            and not known.messages
            and not known.dropping
            and known.type is not QueueType.STREAM
            and not (known.type is QueueType.QUORUM and known.single_active_consumer)
            and not (usual.dialect.text.exclusive_consumer_may_exclude_gets and _is_in_exclusive_use(known))
            and not self._may_fill(queue)
            and _may_ask_about(usual, channel[0], known)
            # a name that the broker has not told yet (queue.declare with nowait) is the channel's last one
            and (not queue.startswith(UNKNOWN_NAME) or usual.channels[channel].last_queue == queue)
        )

    def who_may_ask(self, queue: str, by_any: bool = False) -> list[str]:
        usual = self._usual
        brokers = self._brokers if by_any else [usual]
        known = next((broker.queues[queue] for broker in brokers if queue in broker.queues), None)
        if known is None:
            return []
        return [
            each.name
            for each in self.connections()
            if each.answers and each.has_channels_to_spare and _may_ask_about(usual, each.name, known)
        ]

    def declared_as(self, queue: str) -> Table:
        known = next((broker.queues[queue] for broker in self._brokers if queue in broker.queues), None)
        return {} if known is None else flags_of(known)

    def is_to_be_counted(self, queue: str) -> bool:
        known = self._usual.queues.get(queue)
        # nobody can ask for a queue of unknown name on another channel
        if known is None or known.type is QueueType.STREAM or queue.startswith(UNKNOWN_NAME) or known.is_down:
            return False
        if not self._usual.dialect.text.counts_are_told:
            return False
        return bool(known.messages or known.unproven or known.dropping or known.still_counted)

    def is_as_counted(self, queue: str) -> bool:
        known = self._usual.queues.get(queue)
        if known is None or service_is_unknown(self._usual, known):
            return True
        if self.is_doubtful() and self._acceptor.may_be_proven(queue):
            return True
        # a quorum queue counts those who hold its deliveries as consumers, so their number never becomes the model's
        counts_holders = known.type is QueueType.QUORUM and self._usual.holders(known) > 0
        counts_holders = counts_holders or self._usual.counted_while_lost(known) > 0
        return not known.unproven and not known.dropping and (not known.still_counted or counts_holders)

    def at_rest(self) -> list[str]:
        usual = self._usual
        if self.is_doubtful() or len(self._acceptor.explanations) > 1 or not usual.dialect.text.counts_are_told:
            return []
        return [name for name, queue in usual.queues.items() if _is_certain(usual, queue)]

    def unproven(self) -> list[str]:
        return self._acceptor.unproven_queues()

    def unproven_elsewhere(self) -> list[str]:
        usual = self._usual
        others = (broker for broker in self._brokers if broker is not usual)
        unproven = dict.fromkeys(name for each in others for name, queue in each.queues.items() if queue.unproven)
        return [name for name in unproven if name not in usual.queues or not usual.queues[name].unproven]

    def perhaps_expired(self) -> list[str]:
        names = (
            queue.name for broker in self._brokers for queue in broker.ageing if _may_expire(queue, broker.latest)
        )
        return list(dict.fromkeys(names))

    def is_doubtful(self) -> bool:
        if may_give_up(self._acceptor.explanations):
            return True
        brokers = self._brokers
        return any(broker.ageing or any(queue.timeouts for queue in broker.queues.values()) for broker in brokers)

    def left_behind(self) -> str | None:
        usual = self._usual
        for queue in usual.queues.values():
            if queue.owner is not None and usual.connections[queue.owner].state is ConnectionState.CLOSED:
                return queue.name
        return None

    def is_deleting_itself(self, queue: str) -> bool:
        usual = self._usual
        return queue not in usual.queues and usual.bookkeeping.ended_queues.get(queue) == "QUEUE-021"

    # ---- the explanations

    @property
    def _usual(self) -> Broker:
        """The state by the first lawful explanation in which the broker does what brokers do."""
        explanations = self._acceptor.explanations
        if len(explanations) == 1:
            return explanations[0].broker
        usual = (each.broker for each in explanations if each.defect is None and not each.is_unusual)
        return next(usual, self._acceptor.broker)

    @property
    def _brokers(self) -> list[Broker]:
        return [explanation.broker for explanation in self._acceptor.explanations]

    @property
    def _perhaps_ended(self) -> list[ChannelKey]:
        """Open by one explanation and not by another: nothing has been answered to what ends them or does not, and
        what is asked on other channels may overtake it.
        """
        brokers = self._brokers
        if len(brokers) == 1:
            return []
        channels = dict.fromkeys(channel for broker in brokers for channel in broker.channels)
        return [each for each in channels if len({_is_open(broker, each) for broker in brokers}) > 1]

    def _may_fill(self, queue: str) -> bool:
        """May there be a message in it all the same? Not all is known while messages expire."""
        brokers = self._brokers
        if any(broker.ageing and _has_letters_coming(broker) for broker in brokers):
            return True
        if len(brokers) == 1:
            return False
        others = (broker.queues.get(queue) for broker in brokers)
        return any(other is not None and other.messages for other in others)


def _is_open(broker: Broker, channel: ChannelKey) -> bool:
    known = broker.channels.get(channel)
    if known is None or known.state is not ChannelState.OPEN or known.assembly is not None:
        return False
    connection = broker.connections[channel[0]]
    return not connection.blocked and not connection.out_of_step and not nodes.is_mute(broker.failed, channel[0])


def _never_told(broker: Broker) -> list[Consumer]:
    """Consumers of deleted queues that may be handed something yet, and that do not hear of the deletion."""
    return [
        consumer
        for channel in broker.channels.values()
        if channel.may_still_be_served and not broker.connections[channel.connection].is_told_of_cancels
        for consumer in channel.may_still_be_served.values()
    ]


def _known(broker: Broker, connection: Connection) -> KnownConnection:
    is_mute = nodes.is_mute(broker.failed, connection.name)
    is_open = connection.state is ConnectionState.OPEN
    return KnownConnection(
        connection.name,
        connection.state,
        connection.offered,
        is_over=connection.state is ConnectionState.CLOSED and not connection.owed,
        answers=is_open and not connection.blocked and not connection.out_of_step and not is_mute,
        has_channels_to_spare=connection.channel_max == connection.offered.get("channel_max", connection.channel_max),
        channel_max=connection.channel_max,
    )


def _is_in_exclusive_use(queue: Queue) -> bool:
    return any(consumer.exclusive for consumer in queue.consumers)


def _is_certain(broker: Broker, queue: Queue) -> bool:
    """Can the queue be asked for its numbers, and does the model know them? A stream's say little."""
    if queue.type is QueueType.STREAM or queue.name.startswith(UNKNOWN_NAME) or service_is_unknown(broker, queue):
        return False
    return not queue.name.startswith(ADDRESS)  # of direct replies: it is a queue of the model only


def _may_ask_about(broker: Broker, connection: str, queue: Queue) -> bool:
    """May whoever has the connection ask about the queue?"""
    if queue.is_down:
        return False
    asking = broker.connections[connection]
    return queue.owner in (None, connection) and asking.vhost == queue.vhost and asking.user not in broker.users


def _has_letters_coming(broker: Broker) -> bool:
    """Will messages expire, now or soon, that go to another queue then? Which one is not looked at."""
    return any(EXCHANGE in queue.in_force and _may_expire(queue, broker.latest + SOON) for queue in broker.ageing)


def _may_expire(queue: Queue, by: float) -> bool:
    return any(message.deadline is not None and message.deadline.earliest < by for message in queue.messages)
