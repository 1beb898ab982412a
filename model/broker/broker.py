"""The reference broker: the state, and the steps of which every rule is made.

`model.rules.inputs.process` takes one input and changes the state at once: it leaves behind what the broker now owes
(`owed` lists, unconfirmed publishes) and what it may deliver (ready messages, consumers with room).
`model.outputs.observation` takes outputs out of these again. The rules in `model.rules` are made
of the steps below, and of those that concern one queue (`model.broker.queue_steps`) or no more than what is noted
(`model.broker.broker_state`).

Pure: no clock, no randomness, no input or output.

Requirements:

* ACK-007: Double ack. Acking twice is 406. [RabbitMQ guide: consumer acknowledgements and publisher confirms; AMQP
  0-9-1 basic.ack]
* CANCEL-005: Cancel/delete race, classic and stream. A client cancel that crosses the deletion of its queue ends in
  either [Cancel, CancelOk] or [CancelOk]; never an error, and never in a Cancel after CancelOk. [RabbitMQ guide:
  consumer cancel notification]
* CANCEL-006: Cancel/delete race, quorum. As for classic queues: a client cancel that crosses the deletion of its queue
  is never an error; cancel-ok is sent as normal. [RabbitMQ guide: consumer cancel notification;
  rabbit_channel.erl:cancel_consumer does otherwise]
* CANCEL-007: Server cancel on queue deletion. When a consumed queue is deleted (by any connection), every consumer on a
  capable connection gets basic.cancel(tag, nowait=true), once; nothing is delivered to it after that. Consumers of
  other queues go on. [RabbitMQ guide: consumer cancel notification]
* CANCEL-008: nowait is true. Server-sent basic.cancel always has nowait=true: the client must not answer.
  [rabbit_channel.erl:cancel_consumer]
* CANCEL-010: Without the capability. Nothing is sent when the queue is deleted; the consumer is silently gone; a later
  cancel of its tag gets cancel-ok. [RabbitMQ guide: consumer cancel notification]
* CANCEL-011: Order delete-ok / cancel on one channel. Deleting the queue from the channel that consumes it: DeleteOk
  first, then Basic.Cancel (cancel comes with the asynchronous eol event). From another channel the order relative to
  that channel is open. [rabbit_channel.erl:handle_eol]
* CANCEL-012: Several consumers of one queue on a channel. All are told, each once. The order is nobody's promise;
  RabbitMQ 4.3.6 was seen to go by ascending tags (a fold over gb_sets, in rabbit_channel and so for all queue types).
  [rabbit_channel.erl:handle_consuming_queue_down_or_eol]
* CANCEL-014: Unacked after queue deletion. Unacked deliveries of a deleted queue are discarded; ack is accepted
  silently. [rabbit_channel.erl]
* CAP-005: consumer_cancel_notify must be inside capabilities table as boolean true. Server-sent basic.cancel is enabled
  only by client-properties.capabilities.consumer_cancel_notify = true (field type t). Anything else means disabled.
  [rabbit_channel.erl:server_consumer_cancel_supported; RabbitMQ guide: consumer cancel notification]
* CONSUME-002: Server-generated tag. Empty consumer tag yields amq.ctag-<22 chars>. In amqp-0-9-1: any tag that is
  unique. [rabbit_channel.erl; AMQP 0-9-1 basic.consume]
* REPLY-004: Cancelling the consumer of replies. basic.cancel of the reply consumer is answered by cancel-ok; its
  address is gone, and what is published to it then reaches nobody. Another consumer of replies may follow on the
  channel, with an address of its own. [rabbit_channel:handle_method basic.cancel, clause of the reply consumer]
* QOS-004: Window slides on ack. Each ack/nack/reject(false) of a delivery frees one slot; multiple frees several; a
  requeued message may come back to the same consumer. In amqp-0-9-1: as stated; the window is that of the channel and
  basic.nack is not part of the text. [RabbitMQ guide: consumer acknowledgements and publisher confirms; AMQP 0-9-1
  basic.qos]
* QUEUE-006: Server-named queue. Empty name in a non-passive declare creates amq.gen-<22 base64url chars> and returns
  it; allowed for classic only. In amqp-0-9-1: any name that is unique. [rabbit_channel.erl;
  rabbit_amqqueue:is_server_named_allowed; AMQP 0-9-1 class queue]
* QUEUE-021: Auto-delete queue. An auto-delete queue is deleted when its LAST consumer goes; basic.get does not count; a
  queue that never had a consumer stays. [rabbit_amqqueue_process:should_auto_delete; AMQP 0-9-1 class queue]
* SAC-002: Failover on cancel. When the active consumer is cancelled, a waiting one becomes active and gets ready
  messages although the old one still holds unacknowledged ones; what that gives back goes to the new one. Classic
  queues choose by x-priority, then the oldest. In rabbitmq-3: quorum: the oldest, whatever its priority; broken on
  classic: ready messages stay, the next publish crashes the queue or overtakes them. In rabbitmq-4.0: quorum: by
  x-priority, then the one with the greatest limit, then the oldest. In rabbitmq-4.3: quorum: by x-priority, then the
  one with the greatest limit, then the oldest. [rabbit_queue_consumers / rabbit_fifo:activate_next_consumer]
* SAC-003: Failover on channel close. Unacked messages of the closed channel are delivered first to the next consumer,
  redelivered=true. [rabbit test suite single_active_consumer_SUITE]
* SAC-004: Priority takeover. quorum 4.x: a later consumer with higher x-priority takes over once the active one has no
  unacknowledged messages; until then the active one gets nothing new, unless the other ends before. Classic queues and
  3.10: the active one stays. In rabbitmq-3: no takeover. In rabbitmq-4.0: quorum takeover; broken: not when the last
  message was given back, and not undone when the other ends. In rabbitmq-4.3: quorum takeover; broken: not undone when
  the other ends. [rabbit_fifo:quiescing]
* TX-004: commit-ok waits for all confirms. tx.commit-ok is sent only when every published message has been confirmed by
  all queues; no basic.ack is sent to the client. [rabbit_channel.erl:maybe_complete_tx]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeGuard

from amqpspec.model.broker.channels import Channel, ChannelState, Unacknowledged
from amqpspec.model.broker.effects import ConsumerOver
from amqpspec.model.broker.facts import remember
from amqpspec.model.broker.limits import own_limit_holds, sharing
from amqpspec.model.broker.message_order import note_all_left
from amqpspec.model.broker.owed import Expected, PendingGet
from amqpspec.model.broker.queue_steps import QueueSteps
from amqpspec.model.broker.queues import Consumer, Message, Queue
from amqpspec.model.broker.stream_log import stored
from amqpspec.model.broker.survival import COMMITTED
from amqpspec.model.broker.topology import remove_bindings_to, rename_in_bindings
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import ChannelKey, Method

#: A rule: what the broker does with one method on an open channel.
Rule = Callable[["Broker", Channel, Method], None]
#: Begins the lane of a cancel-ok, before the name of the queue that sends it for the channel.
CANCELLING = "cancelling at queue "


class Broker(QueueSteps):
    """All steps: here those in which channels, consumers and queues depend on each other."""

    def published(self, pattern: Message, copies: tuple[tuple[Queue, Message], ...]) -> None:
        """A message was published, and routed to these queues: a broker that serves may keep a note of it."""

    # -------------------------------------------------------------------- consumers and queues that go

    def remove_consumer(self, consumer: Consumer, requirement: str) -> None:
        """The consumer is gone from its channel and its queue; its unacknowledged deliveries stay with the channel.

        Its own limit goes with it; in a limit that the channel shares these deliveries still count until they are
        settled.
        """
        channel = self.channels[consumer.channel]
        channel.consumers.pop(consumer.tag, None)
        remember(channel.ended_consumers, consumer.tag, requirement)
        queue = consumer.queue
        if consumer in queue.consumers:
            queue.consumers.remove(consumer)
            self.used(queue)
            queue.still_counted += 1
            self.elect(queue, "SAC-002" if requirement.startswith("CANCEL") else "SAC-003")
        if queue.reply_address:
            self.delete_queue(queue, "REPLY-004")
        elif queue.auto_delete and not queue.consumers and not queue.deleted:
            self.fired("QUEUE-021")
            self.end_queue(queue, "QUEUE-021")
        else:
            self.refresh(queue)

    def end_queue(self, queue: Queue, requirement: str) -> None:
        """The queue goes by itself; the requirement is blamed if it is found to be still there."""
        remember(self.bookkeeping.ended_queues, queue.name, requirement)
        self.delete_queue(queue, requirement)

    def delete_queue(self, queue: Queue, requirement: str, told_later: ChannelKey | None = None) -> None:
        """The queue is gone, with its bindings, ready messages and consumers, who are told if they asked to be.

        Those on the channel `told_later` are told by `tell_of_deletion`.
        """
        queue.deleted = True
        queue.dropped_at_deletion = list(queue.messages)
        self.queues.pop(queue.name, None)
        self.deleted_of_late[queue.name] = queue.type
        for message in queue.messages:
            self.note_gone(queue, message, requirement)
        note_all_left(queue)
        if queue in self.deliverable or queue.open_by:
            self._note_leaving(queue)
        remove_bindings_to(self, queue)
        crossing = crossed_by_cancel(queue)
        told: set[ChannelKey] = set()
        # the embedded broker tells them in the order of tags, as RabbitMQ does
        for consumer in sorted(queue.consumers, key=lambda c: (c.channel, c.tag)):
            channel = self.channels[consumer.channel]
            channel.consumers.pop(consumer.tag, None)
            remember(channel.ended_consumers, consumer.tag, "CANCEL-007")
            if consumer.timed_out and self.connections[channel.connection].is_told_of_cancels:
                continue  # the client has been told that it is gone
            if consumer.channel != told_later:
                first = "CANCEL-012" if consumer.channel in told else "CANCEL-007"
                self.owe_notice(channel, consumer.tag, first, "CANCEL-007", "CANCEL-008", crossing=crossing)
                told.add(consumer.channel)
        queue.consumers.clear()
        self._cross_cancels(queue, crossing)
        self.refresh(queue)

    def _note_leaving(self, queue: Queue) -> None:
        """Messages may be under way to consumers that hear of the deletion later, or never."""
        for consumer in queue.consumers:
            channel = self.channels[consumer.channel]
            if self.has_room(consumer):
                consumer.stamp = self.stamp
                channel.may_still_be_served[consumer.tag] = consumer
                if not self.connections[channel.connection].is_told_of_cancels:
                    # only a round trip says where that ends
                    self.touch(channel, queue, keeps_state=False)

    def nothing_more(self, key: ChannelKey, tag: str) -> None:
        """The client knows now that the consumer is gone: it is handed nothing more."""
        self.channels[key].may_still_be_served.pop(tag, None)

    def _cross_cancels(self, queue: Queue, crossing: str) -> None:
        """Cancels that are being answered cross the deletion of their queue: nothing comes of that."""
        lane = f"{CANCELLING}{queue.name}"
        for key in self.debtors:
            channel = self.channels.get(key)
            if channel is not None:
                channel.owed = [
                    replace(owed, requirements=(crossing, *owed.requirements))
                    if isinstance(owed, Expected) and owed.lane == lane
                    else owed
                    for owed in channel.owed
                ]

    def tell_of_deletion(self, key: ChannelKey, tags: tuple[str, ...], crossing: str) -> None:
        """A channel that deleted a queue has seen delete-ok: now its consumers may be told (CANCEL-011)."""
        channel = self.channels[key]
        is_told = self.connections[channel.connection].is_told_of_cancels
        for place, tag in enumerate(tags):
            first = "CANCEL-012" if place else "CANCEL-007"
            self.owe_notice(channel, tag, first, "CANCEL-007", "CANCEL-008", "CANCEL-011", crossing=crossing)
            for answer in [owed for owed in channel.owed if is_told and _is_answer_to_cancel(owed, tag)][:1]:
                # the client has cancelled it meanwhile: it is told before it is answered
                channel.owed.remove(answer)
                channel.owed.append(replace(answer, lane=_end_of(tag)))

    def owe_notice(self, channel: Channel, tag: str, *requirements: str, crossing: str = "") -> None:
        """The broker tells the channel that a consumer is gone, if the client can take it (CANCEL-010).

        Notices of several consumers come in any order (CANCEL-012).
        """
        if channel.state is not ChannelState.OPEN:
            return
        connection = self.connections[channel.connection]
        if not connection.is_told_of_cancels:
            self.fired("CAP-005" if connection.wish_in_vain else "CANCEL-010")
            return
        self.owe(
            channel, "basic.cancel", {"consumer_tag": tag, "nowait": True}, *dict.fromkeys(requirements),
            blame={"nowait": "CANCEL-008"}, lane=_end_of(tag), crossing=crossing,
            effect=ConsumerOver(channel.key, tag) if tag in channel.may_still_be_served else None,
        )  # fmt: skip

    # ---------------------------------------------------------------------------- settling deliveries

    def release(self, channel: Channel, tag: int, requirement: str) -> Unacknowledged:
        """Take a delivery off the unacknowledged ones; its consumer, if it is still there, has room for one more."""
        entry = channel.unacknowledged.pop(tag)
        channel.note_over(tag, again="ACK-007")
        consumer = entry.consumer
        if entry.queue.deleted:
            self.fired("CANCEL-014")
        if entry.queue.type is QueueType.QUORUM:
            self.used(entry.queue)
        if consumer is not None:
            if own_limit_holds(consumer) and entry.queue.messages:
                self.fired("QOS-004")
            consumer.outstanding -= 1
            consumer.reason = requirement
            consumer.stamp = self.stamp
            consumer.is_doubtful, consumer.overtaken_by = True, frozenset()
            # a quiescing consumer may hold nothing now; one that was cancelled is not the active consumer
            self.elect(entry.queue, "SAC-004")
        return entry

    def make_room(self, channel: Channel, requirement: str) -> None:
        """All who share a limit with the channel have room for as many more as were settled by that requirement."""
        for consumer in sharing(self, channel):
            if consumer.queue.messages and consumer.queue not in self.deliverable and self.has_room(consumer):
                self.fired("QOS-004")
            consumer.reason = requirement
            consumer.stamp = self.stamp

    def committed(self, key: ChannelKey) -> None:
        """commit-ok has come: what the transaction published has arrived (TX-004)."""
        transaction = self.channels[key].transaction
        if transaction is not None:
            for queue, message in transaction.arriving:
                message.stored_by = COMMITTED
                if queue.unproven:
                    self.prove(queue, message)
                if queue.type is QueueType.STREAM:
                    stored(queue, message.position)
            transaction.arriving = ()

    # --------------------------------------------------------------- names that the broker has chosen

    def rename_queue(self, queue: Queue, name: str) -> None:
        """The name of a server-named queue is known now (QUEUE-006)."""
        for channel in self.channels.values():
            if channel.last_queue == queue.name:
                channel.last_queue = name
        self.queues.pop(queue.name, None)
        rename_in_bindings(self, queue.name, name)
        expires = queue.name in self.expiring
        queue.name = name
        if not queue.deleted:
            self.queues[queue.name] = queue
            if expires:
                self.expiring[queue.name] = None

    def announce_consumer(self, consumer: Consumer, told: str) -> None:
        """consume-ok has come: deliveries may follow, and a tag that the broker chose is known (CONSUME-002)."""
        consumer.announced = True
        meant = consumer.tag
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


def crossed_by_cancel(queue: Queue) -> str:
    """The requirement of a basic.cancel that crosses the deletion of the queue."""
    return "CANCEL-006" if queue.type is QueueType.QUORUM else "CANCEL-005"


def _is_answer_to_cancel(owed: Expected | PendingGet, tag: str) -> TypeGuard[Expected]:
    """Is it the cancel-ok for a basic.cancel that came when the consumer's queue was deleted already?"""
    if not isinstance(owed, Expected) or owed.method != "basic.cancel-ok" or owed.lane != "channel":
        return False
    return bool(owed.arguments["consumer_tag"] == tag)


def _end_of(tag: str) -> str:
    """The lane of the broker's basic.cancel."""
    return f"end of consumer {tag}"
