"""The reference broker: the state, and the steps of which every rule is made.

`model.inputs.process` takes one input and changes the state at once: it leaves behind what the broker now owes
(`owed` lists, unconfirmed publishes) and what it may deliver (ready messages, consumers with room).
`model.observation` takes outputs out of these again. The rules in `model.rules`, one file a chapter, are made of the
steps below.

Pure: no clock, no randomness, no input or output. Copied with `copy.deepcopy` when explanations part.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import replace

from model.alphabet import Frame, Table
from model.dialects import Dialect
from model.state import (
    Arrival,
    Channel,
    ChannelKey,
    ChannelState,
    Connection,
    Consumer,
    Exchange,
    Expected,
    Message,
    PendingGet,
    Queue,
    QueueType,
    Unacknowledged,
    User,
)
from model.topology import remove_bindings_to

PREDECLARED_EXCHANGES = {
    "": "direct",
    "amq.direct": "direct",
    "amq.fanout": "fanout",
    "amq.topic": "topic",
    "amq.headers": "headers",
    "amq.match": "headers",
}

#: A rule: what the broker does with one method on an open channel.
Rule = Callable[["Broker", Channel, Frame], None]


class Broker:
    """One virtual host of a broker that speaks `dialect`, and everybody's connections to it."""

    def __init__(self, dialect: Dialect, virtual_host: str = "/", own_user: str = "") -> None:
        """`virtual_host`: the one that exists. `own_user`: who logs in with what the target was given, if known."""
        self.dialect = dialect
        self.own_user = own_user
        self.connections: dict[str, Connection] = {}
        self.channels: dict[ChannelKey, Channel] = {}
        self.queues: dict[str, Queue] = {}
        self.exchanges = {name: Exchange(name, type) for name, type in PREDECLARED_EXCHANGES.items()}
        #: whom the operator made; virtual hosts that are there (True) or were deleted (False); an alarm of his
        self.users: dict[str, User] = {}
        self.vhosts: dict[str, bool] = {virtual_host: True}
        self.alarm = False
        #: the requirement by which the input is processed at all: blamed before those that say what it brings about
        self.credit = ""
        #: counts the inputs; stamps say which of two changes is the later one
        self.stamp = 0
        #: how often each requirement made a difference
        self.exercised: Counter[str] = Counter()
        #: the requirement that the input processed last came under: blamed for what nothing explains
        self.reason = ""
        #: False while barrier traffic is processed: it is judged, but shows nothing
        self.counting = True
        #: connections that an error has broken, and whose other channels the broker ends when it comes to it
        self.teardowns: list[str] = []
        #: what the broker will do by itself, sooner or later (model.rules.happenings)
        self.happenings: list[Frame] = []
        #: when the input being processed was sent, and the latest moment that was heard of; both of `Frame.time`
        self.now = self.latest = 0.0
        #: names of queues that expire when they are not used (model.rules.expiry)
        self.expiring: dict[str, None] = {}
        #: names handed out so far (amq.gen-…, amq.ctag-…)
        self.serial = 0
        #: addresses of direct replies: the model's name for each, and the broker's once it was seen
        self.reply_addresses: dict[str, str | None] = {}
        #: who owes a frame, and which queues have something to deliver and somebody to take it
        #: (dictionaries serve as sets that remember the order in which things were put in)
        self.debtors: dict[ChannelKey, None] = {}
        self.deliverable: dict[Queue, None] = {}
        #: (channel, queue) pairs whose order towards each other only a round trip can settle
        self.touched: dict[tuple[ChannelKey, Queue], None] = {}
        #: queues that went by themselves, with the requirement that says so: blamed if they are still there
        self.ended_queues: dict[str, str] = {}
        #: exchanges that went by themselves, with the requirement that says so: blamed if they are still there
        self.ended_exchanges: dict[str, str] = {}
        #: bodies published of late, with the requirement that routed them: blamed if they turn up where they should not
        self.published: deque[tuple[bytes, str]] = deque(maxlen=64)

    # ------------------------------------------------------------------------------- small things

    def channel(self, connection: str, number: int) -> Channel:
        """The channel of that number, which need not be open."""
        key = (connection, number)
        channel = self.channels.get(key)
        if channel is None:
            channel = self.channels[key] = Channel(connection, number)
        return channel

    def fired(self, *requirements: str) -> None:
        """These requirements made a difference just now."""
        if self.counting:
            for requirement in requirements:
                self.exercised[requirement] += 1

    # ------------------------------------------------------------------------------------ what is owed

    def owe(
        self,
        channel: Channel,
        method: str,
        arguments: Table,
        *requirements: str,
        blame: dict[str, str] | None = None,
        lane: str = "channel",
        effect: tuple[str, object] | None = None,
        departures: dict[str, tuple[object, str]] | None = None,
    ) -> None:
        """The channel owes this frame; the first requirement is broken if it does not come."""
        if self.credit:
            requirements = (self.credit, *requirements)
        self.blame(channel, requirements[0])
        channel.owed.append(
            Expected(
                method, arguments, requirements, blame or {}, None, lane, effect, self.counting, 0, departures or {}
            )
        )
        self.debtors[channel.key] = None

    def blame(self, channel: Channel, requirement: str) -> None:
        """The input being processed comes under this requirement: blamed for a frame that nothing explains."""
        if self.counting:
            channel.reason = self.reason = self.credit or requirement

    def owe_get(self, channel: Channel, queue: Queue, no_ack: bool) -> None:
        self.used(queue)
        channel.owed.append(PendingGet(queue, no_ack, queue.next_position, self.counting))
        self.debtors[channel.key] = None

    def settle_debts(self, channel: Channel) -> None:
        """Note whether the channel still owes something."""
        if channel.owed or channel.unconfirmed:
            self.debtors[channel.key] = None
        else:
            self.debtors.pop(channel.key, None)

    @property
    def quiet(self) -> bool:
        """Nothing is owed: a broker that is silent now is right to be silent."""
        return not self.debtors and not self.deliverable

    # ----------------------------------------------------------------------------------------- queues

    def used(self, queue: Queue) -> None:
        """The queue is used: where it expires (QUEUE-027), its time begins anew."""
        if self.expiring:
            queue.idle_since, queue.idle_by = self.now, self.latest
            queue.uses += 1

    def has_room(self, consumer: Consumer) -> bool:
        """May the consumer be handed one more message, as far as its limits go (QOS-001, QOS-005, QOS-008)?"""
        if consumer.no_ack:
            return True
        if consumer.prefetch and consumer.outstanding >= consumer.prefetch:
            return False
        limit = self.channels[consumer.channel].channel_prefetch
        return not limit or len(self.channels[consumer.channel].unacknowledged) < limit

    def recipients(self, queue: Queue) -> Iterator[Consumer]:
        """The consumers that may be handed the queue's next message."""
        # SAC-001: with a single active consumer that is the first one's seat
        for consumer in queue.consumers[:1] if queue.single_active_consumer else queue.consumers:
            if self.has_room(consumer):
                yield consumer

    def refresh(self, queue: Queue) -> None:
        """Note whether the queue has something to deliver and somebody to take it."""
        deliverable = False
        if queue.type is QueueType.STREAM:
            deliverable = any(c.next_offset < len(queue.log) for c in self.recipients(queue))
        elif queue.messages and not queue.deleted:
            for _ in self.recipients(queue):
                deliverable = True
                break
        if deliverable:
            self.deliverable[queue] = None
        else:
            self.deliverable.pop(queue, None)

    def touch(self, channel: Channel, queue: Queue, keeps_state: bool = True) -> None:
        """The channel dealt with the queue. `keeps_state`: in a way of which RabbitMQ's channel process keeps state."""
        self.touched[(channel.key, queue)] = None
        if keeps_state:
            if channel.known_types.get(queue.name, queue.type) is not queue.type:
                self.fired("QUEUE-029")
            channel.known_types[queue.name] = queue.type

    def enqueue(self, queue: Queue, message: Message) -> None:
        """Append a new message; whether it has arrived is not proven yet."""
        message.position = queue.next_position
        queue.next_position += 1
        message.stamp = self.stamp
        queue.reason = message.reason
        if queue.type is QueueType.STREAM:
            queue.log.append(message)
        else:
            queue.messages.append(message)
            message.crowd = self.join_crowd(queue, message)
        self.refresh(queue)

    def join_crowd(self, queue: Queue, message: Message) -> int:
        """The message is on its way into the queue. Gives the number of those that may all be so at one time."""
        if not queue.unproven:
            queue.crowd += 1
        queue.unproven[message] = None
        return queue.crowd

    def take(self, queue: Queue, index: int) -> Message:
        """Take a ready message out of its queue; that proves that it had arrived."""
        messages = queue.messages
        message = messages[index]
        if queue.unproven:
            self.prove(queue, message)
        if index == 0:
            messages.popleft()
        else:
            del messages[index]
        if index < queue.returned:
            queue.returned -= 1
        return message

    def prove(self, queue: Queue, message: Message) -> None:
        """The message has arrived in its queue, so those that its channel published before it have as well."""
        published = message.arrival is Arrival.PUBLISHED
        if message.arrival is not Arrival.PROVEN:
            message.arrival = Arrival.PROVEN
            queue.unproven.pop(message, None)
        if published and queue.unproven:
            earlier = []
            for other in queue.unproven:
                if other.arrival is Arrival.PUBLISHED:
                    if other.position > message.position:
                        break  # published messages set out in the order of their positions
                    if other.via == message.via:
                        earlier.append(other)
            for other in earlier:
                other.arrival = Arrival.PROVEN
                del queue.unproven[other]

    def prove_all(self, queue: Queue) -> None:
        for message in queue.unproven:
            message.arrival = Arrival.PROVEN
        queue.unproven.clear()

    def ready_range(self, queue: Queue) -> tuple[int, int]:
        """Least and most ready messages that the queue may count now.

        Messages on their way into the queue may be missed, and those on their way to a consumer are out of it.
        """
        high = len(queue.messages)
        low = high - len(queue.unproven)
        if queue in self.deliverable:
            for consumer in self.recipients(queue):
                if consumer.no_ack or not consumer.prefetch:
                    return 0, high
                low -= consumer.prefetch - consumer.outstanding
        return max(low, 0), high

    def holders(self, queue: Queue) -> int:
        """How many hold deliveries of the queue and are not its consumers: cancelled consumers, and basic.get's."""
        former: set[int] = set()
        gets = 0
        for channel in self.channels.values():
            for entry in channel.unacknowledged.values():
                if entry.queue is not queue:
                    continue
                if entry.consumer is None:
                    gets += 1
                elif entry.consumer not in queue.consumers:
                    former.add(id(entry.consumer))
        return len(former) + gets

    def drop(self, queue: Queue, message: Message, requirement: str) -> None:
        """The message is gone for good, by that requirement."""
        message.reason = requirement
        message.stamp = self.stamp
        queue.reason = requirement
        queue.gone.append(message)

    def remove_consumer(self, consumer: Consumer, requirement: str) -> None:
        """The consumer is gone from its channel and its queue; its unacknowledged deliveries stay with the channel."""
        channel = self.channels[consumer.channel]
        channel.consumers.pop(consumer.tag, None)
        _remember_end(channel, consumer.tag, requirement)
        queue = consumer.queue
        if consumer in queue.consumers:
            was_active = queue.consumers[0] is consumer
            queue.consumers.remove(consumer)
            self.used(queue)
            queue.leaving += 1
            if was_active and queue.single_active_consumer and queue.consumers:
                queue.consumers[0].reason, queue.consumers[0].stamp = "SAC-002", self.stamp
        if queue.reply_address:
            self.delete_queue(queue, "REPLY-004")
        elif queue.auto_delete and not queue.consumers and not queue.deleted:
            self.fired("QUEUE-021")
            self.end_queue(queue, "QUEUE-021")
        else:
            self.refresh(queue)

    def end_queue(self, queue: Queue, requirement: str) -> None:
        """The queue goes by itself; the requirement is blamed if it is found to be still there."""
        self.ended_queues[queue.name] = requirement
        if len(self.ended_queues) > 64:
            del self.ended_queues[next(iter(self.ended_queues))]
        self.delete_queue(queue, requirement)

    def delete_queue(self, queue: Queue, requirement: str, told_later: ChannelKey | None = None) -> None:
        """The queue is gone, with its bindings, ready messages and consumers, who are told if they asked to be.

        Those on the channel `told_later` are told by `tell_of_deletion`.
        """
        queue.deleted = True
        self.queues.pop(queue.name, None)
        remove_bindings_to(self, queue)
        for message in queue.messages:
            self.drop(queue, message, requirement)
        queue.messages.clear()
        queue.unproven.clear()
        queue.returned = 0
        # in the order of tags (CANCEL-012)
        for consumer in sorted(queue.consumers, key=lambda c: (c.channel, c.tag)):
            channel = self.channels[consumer.channel]
            channel.consumers.pop(consumer.tag, None)
            _remember_end(channel, consumer.tag, "CANCEL-007")
            if consumer.channel != told_later:
                self._owe_cancel(channel, consumer.tag, "CANCEL-007", "CANCEL-008")
        queue.consumers.clear()
        self.refresh(queue)

    def tell_of_deletion(self, subject: tuple[ChannelKey, tuple[str, ...]], arguments: Table) -> None:
        """A channel that deleted a queue has seen delete-ok: now its consumers may be told (CANCEL-011)."""
        key, tags = subject
        for tag in tags:
            self._owe_cancel(self.channels[key], tag, "CANCEL-007", "CANCEL-008", "CANCEL-011")

    def _owe_cancel(self, channel: Channel, tag: str, *requirements: str) -> None:
        """The broker tells the channel that a consumer is gone, if the client can take it (CANCEL-010)."""
        if channel.state is not ChannelState.OPEN:
            return
        connection = self.connections[channel.connection]
        if not connection.is_told_of_cancels:
            self.fired("CAP-005" if connection.wish_in_vain else "CANCEL-010")
            return
        arguments = {"consumer_tag": tag, "nowait": True}
        self.owe(
            channel, "basic.cancel", arguments, *requirements, blame={"nowait": "CANCEL-008"}, lane="notifications"
        )

    # ---------------------------------------------------------------------------- settling deliveries

    def release(self, channel: Channel, tag: int, requirement: str) -> Unacknowledged:
        """Take a delivery off the channel's unacknowledged ones; its consumer has room for one more."""
        entry = channel.unacknowledged.pop(tag)
        channel.settled.append(tag)
        consumer = entry.consumer
        if entry.queue.deleted:
            self.fired("CANCEL-014")
        if entry.queue.type is QueueType.QUORUM:
            entry.queue.settling += 1
            self.used(entry.queue)
        if consumer is not None:
            if consumer.prefetch and consumer.outstanding == consumer.prefetch and entry.queue.messages:
                self.fired("QOS-004")
            consumer.outstanding -= 1
            consumer.reason = requirement
            consumer.stamp = self.stamp
        return entry

    # --------------------------------------------------------------- names that the broker has chosen

    def rename_queue(self, queue: Queue, arguments: Table) -> None:
        """The name of a server-named queue is known now (QUEUE-006)."""
        for channel in self.channels.values():
            if channel.last_queue == queue.name:
                channel.last_queue = arguments["queue"]
        self.queues.pop(queue.name, None)
        expires = queue.name in self.expiring
        queue.name = arguments["queue"]
        if not queue.deleted:
            self.queues[queue.name] = queue
            if expires:
                self.expiring[queue.name] = None

    def announce_consumer(self, consumer: Consumer, arguments: Table) -> None:
        """consume-ok has come: deliveries may follow, and a tag that the broker chose is known (CONSUME-002)."""
        consumer.announced = True
        told, meant = arguments["consumer_tag"], consumer.tag
        if told == meant:
            return
        channel = self.channels[consumer.channel]
        consumer.tag = told
        if channel.consumers.get(meant) is consumer:
            del channel.consumers[meant]
            channel.consumers[told] = consumer
        elif meant in channel.ended_consumers:
            # it ended before its tag was known
            channel.ended_consumers[told] = channel.ended_consumers.pop(meant)
        channel.owed = [
            replace(owed, arguments={**owed.arguments, "consumer_tag": told})
            if isinstance(owed, Expected) and owed.arguments.get("consumer_tag") == meant
            else owed
            for owed in channel.owed
        ]

    def counts_seen(self, queue: Queue, arguments: Table) -> None:
        """A declare-ok told the numbers of ready messages and consumers: all that it counted is there (QUEUE-002)."""
        if arguments["message_count"] >= len(queue.messages):
            self.prove_all(queue)
        if arguments["consumer_count"] <= len(queue.consumers) + self.holders(queue):
            queue.leaving = queue.settling = 0


def _remember_end(channel: Channel, tag: str, requirement: str) -> None:
    """Keep why a consumer ended, of the latest ones only: it words failures."""
    channel.ended_consumers[tag] = requirement
    if len(channel.ended_consumers) > 64:
        del channel.ended_consumers[next(iter(channel.ended_consumers))]
