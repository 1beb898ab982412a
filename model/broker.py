"""The reference broker: the state, and the steps of which every rule is made.

`model.inputs.process` takes one input and changes the state at once: it leaves behind what the broker now owes
(`owed` lists, unconfirmed publishes) and what it may deliver (ready messages, consumers with room).
`model.observation` takes outputs out of these again. The rules in `model.rules`, one file a chapter, are made of the
steps below, and of those that concern one queue (`model.queue_steps`) or no more than what is noted
(`model.broker_state`).

Pure: no clock, no randomness, no input or output.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from model.alphabet import ChannelKey, Frame, Table
from model.queue_steps import QueueSteps
from model.queues import Consumer, Queue, QueueType
from model.state import Channel, ChannelState, Expected, Unacknowledged
from model.topology import remove_bindings_to

#: A rule: what the broker does with one method on an open channel.
Rule = Callable[["Broker", Channel, Frame], None]


class Broker(QueueSteps):
    """All steps: here those in which channels, consumers and queues depend on each other."""

    # -------------------------------------------------------------------- consumers and queues that go

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


def _remember_end(channel: Channel, tag: str, requirement: str) -> None:
    """Keep why a consumer ended, of the latest ones only: it words failures."""
    channel.ended_consumers[tag] = requirement
    if len(channel.ended_consumers) > 64:
        del channel.ended_consumers[next(iter(channel.ended_consumers))]
