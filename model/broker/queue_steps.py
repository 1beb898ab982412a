"""Steps that concern one queue: who may be handed its messages, how they come, arrive and are taken.

Requirements:

* QUEUE-002: ready count may lag behind publishes. Without confirms the message-count of a following declare may not
  include messages just published on the same channel (stat is prioritised in the queue; quorum answers from a local
  query). [rabbit_amqqueue_process:prioritise_call; rabbit_fifo_client:stat]
* QUEUE-027: x-expires. A queue with x-expires is deleted after being unused that long; no basic.cancel arises since
  there is no consumer at that moment. Uses are a consumer, basic.get, on classic queues a declare with an answer, and
  on quorum queues whoever holds messages; on these expiry is evaluated on a coarser tick (5 s).
  [rabbit_amqqueue_process:ensure_expiry_timer; rabbit_fifo tick]
* QUEUE-029: A name can be used again with another type. After delete-ok a queue of the same name and another type can
  be declared, and used on every channel as if the first one had never been. In rabbitmq-3: broken: 541, both ways. In
  rabbitmq-4.0: broken: 541 from quorum to classic. In rabbitmq-4.3: broken: 541 from quorum to classic.
  [rabbit_queue_type:get_ctx_with; 0-9-1 section 1.7.2.9 (queue.delete)]
* SAC-004: Priority takeover. quorum 4.x: a later consumer with higher x-priority takes over once the active one has no
  unacknowledged messages; until then the active one gets nothing new, unless the other ends before. Classic queues and
  3.10: the active one stays. In rabbitmq-3: no takeover. In rabbitmq-4.0: quorum takeover; broken: not when the last
  message was given back, and not undone when the other ends. In rabbitmq-4.3: quorum takeover; broken: not undone when
  the other ends. [rabbit_fifo:quiescing]
* TIMEOUT-014: A timed-out consumer is gone. The basic.cancel that tells of a timeout says that the consumer is gone: it
  is handed nothing, and not before everything that has timed out is settled in any case; it is not counted, and
  excludes nobody. A broker that announces accept_consumer_cancel_ok may still know it until the client answers with
  basic.cancel-ok, and for a short time without that (TIMEOUT-016, TIMEOUT-030). In rabbitmq-4.3: broken up to 4.3.6:
  counted. [RabbitMQ guide: consumer cancel notification (the consumption has stopped); RabbitMQ guide: consumer
  timeouts (no new messages, and none before all timed-out ones are settled); release notes of RabbitMQ 4.3.7]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from amqpspec.model.broker.broker_state import BrokerState
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.deadlines import NEVER
from amqpspec.model.broker.dispatch import (
    contenders,
    elect,
    highest,
    service_is_unknown,
    taker_before,
    was_on_its_way,
)
from amqpspec.model.broker.drops_in_doubt import forget_dropped, most_ready
from amqpspec.model.broker.facts import told
from amqpspec.model.broker.length_limits import tell_publishers
from amqpspec.model.broker.limits import own_limit_holds, shared_limit_holds, sharing
from amqpspec.model.broker.limits_shown import shown_by_waiting
from amqpspec.model.broker.message_order import note_all_left, note_left, put_new
from amqpspec.model.broker.owed import PendingGet
from amqpspec.model.broker.queues import ANY_NUMBER, Arrival, Consumer, Dropping, Gone, Message, Queue
from amqpspec.model.broker.stream_log import append
from amqpspec.model.broker.survival import (
    absent_at_most,
    all_are_there,
    is_certain,
    late_ones_are_away,
    none_is_there,
    note_doubts,
    uncounted_at_most,
)
from amqpspec.model.broker.time_to_live import begin_time_to_live
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Table


class QueueSteps(BrokerState):
    """The steps that change one queue and what is noted about it, and those that ask about it."""

    def used(self, queue: Queue) -> None:
        """The queue is used: where it expires (QUEUE-027), its time begins anew."""
        if self.expiring:
            queue.idle_since, queue.idle_by = self.now, self.latest
            queue.uses += 1

    def touch(self, channel: Channel, queue: Queue, keeps_state: bool = True) -> None:
        """The channel dealt with the queue. `keeps_state`: in a way of which RabbitMQ's channel process keeps state.

        Settling deliveries of a deleted queue keeps nothing (rabbit_queue_type:settle, a queue that is not known).
        """
        self.touched[(channel.key, queue)] = None
        if keeps_state and not queue.deleted:
            if channel.known_types.get(queue.name, queue.type) is not queue.type:
                self.fired("QUEUE-029")
            channel.known_types[queue.name] = queue.type

    def come_to_rest(self) -> None:
        """Nothing is under way any more."""
        self.busy_since = NEVER
        for _, queue in self.touched:
            queue.dropping.clear()
        self.touched.clear()
        self.deleted_of_late.clear()
        self.known_before_deletion.clear()
        for channel in self.channels.values():
            is_busy = channel.under_way or channel.admissions or channel.may_still_be_served or channel.lost
            if is_busy or channel.lowest_of_acks:
                channel.come_to_rest()

    # ------------------------------------------------------------------------------------ deliverable

    def has_room(self, consumer: Consumer) -> bool:
        """May the consumer be handed one more message, as far as limits go (`model.broker.limits`), and TIMEOUT-014?"""
        if consumer.timed_out or consumer.channel in self.paused:
            return False
        return not own_limit_holds(consumer) and not shared_limit_holds(self, consumer)

    def refresh_sharing(self, channel: Channel) -> None:
        """Look again at the queues of all consumers that share a limit with the channel."""
        for consumer in sharing(self, channel):
            self.refresh(consumer.queue)

    def recipients(self, queue: Queue) -> Iterator[Consumer]:
        """The consumers that may be handed the queue's next message."""
        if not queue.consumers:
            return
        if queue.type is QueueType.STREAM:
            yield from (c for c in queue.consumers if self.has_room(c))
            return
        yield from highest(self.with_room(queue))
        if queue.messages and queue.messages[0].passed_over_by:
            # what another one was handed after it was read before it
            before = taker_before(queue, queue.messages[0])
            if before is not None and self.has_room(before):
                yield before

    def with_room(self, queue: Queue) -> list[Consumer]:
        """The consumers that may be handed messages, whatever their priority: one after another, if there are many."""
        if service_is_unknown(self, queue):
            return []
        return [consumer for consumer in contenders(self, queue) if self.has_room(consumer)]

    def elect(self, queue: Queue, requirement: str) -> None:
        """Consumers came, went or settled: a single active consumer may follow another, by that requirement."""
        if not queue.single_active_consumer:
            return
        before = queue.active.consumer
        left = before if queue.active.is_quiescing else None
        elect(self, queue, requirement)
        if queue.messages and queue.active.consumer is left is not None and not queue.active.is_quiescing:
            self.fired("SAC-004")  # what was held back for another goes to the active consumer after all

    def refresh(self, queue: Queue) -> None:
        """Note whether the queue has something to deliver and somebody to take it."""
        deliverable = False
        if queue.open_by:
            pass  # nothing is owed
        elif queue.type is QueueType.STREAM:
            deliverable = any(c.latest_offset < len(queue.log) for c in self.recipients(queue))
        elif queue.messages and not queue.deleted and not (self.has_doubts and not is_certain(self, queue)):
            for _ in self.recipients(queue):
                deliverable = True
                break
        if deliverable:
            self.deliverable[queue] = None
        else:
            self.deliverable.pop(queue, None)
            if self.bookkeeping.counting and queue.messages and queue.consumers:
                self.fired(*dict.fromkeys(shown_by_waiting(self, queue)))
        tell_publishers(self, queue)

    def may_begin(self, earliest: int, latest: int) -> tuple[int, int]:
        """Between which offsets a consumer of a stream may begin, by what is known."""
        return earliest, latest

    # --------------------------------------------------------------------------- messages come and go

    def enqueue(self, queue: Queue, message: Message) -> None:
        """Put a new message into the queue; whether it has arrived is not proven yet."""
        if queue.open_by:
            return
        message.position = queue.next_position
        queue.next_position += 1
        message.stamp = self.stamp
        queue.reason = message.reason
        if queue.type is QueueType.STREAM:
            append(queue, message, self.now)
        else:
            put_new(self.dialect, queue, message)
            message.transit_group = self.join_transit_group(queue, message)
            if begin_time_to_live(self.dialect, queue, message, self.now, self.step_done_by):
                self.ageing[queue] = None
        self.refresh(queue)

    def join_transit_group(self, queue: Queue, message: Message) -> int:
        """The message is on its way into the queue. Gives the number of those that may all be so at one time."""
        via = message.via if message.arrival is Arrival.PUBLISHED else None
        if not queue.unproven:
            queue.transit_group += 1
            queue.transit_group_via = via
        elif queue.transit_group_via != via:
            queue.transit_group_via = None
        queue.unproven[message] = None
        return queue.transit_group

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
        note_left(self.dialect, queue, index)
        message.may_be_gone = False
        if message.may_be_absent or message.may_be_late:
            message.may_be_absent = message.may_be_late = False
            note_doubts(self)
        return message

    def prove(self, queue: Queue, message: Message, *, by_confirm: bool = False) -> None:
        """The message has arrived in its queue, so those that its channel published before it have as well."""
        published = message.arrival is Arrival.PUBLISHED
        came = [message] if message in queue.unproven else []
        if message.arrival is not Arrival.PROVEN:
            message.arrival = Arrival.PROVEN
            queue.unproven.pop(message, None)
        if queue.dropping:
            forget_dropped(queue, message, self._gets_from(queue) if by_confirm else ())
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
            came += earlier
            if queue.transit_group_via is not None and queue.unproven:
                # one channel's come in order: with these nothing is on its way any more but what is behind them
                queue.transit_group += 1
                for other in queue.unproven:
                    other.transit_group = queue.transit_group
        self._note_missed(queue, came)

    def _gets_from(self, queue: Queue) -> list[PendingGet]:
        """Those that are not answered yet."""
        owed = (each for key in self.debtors if key[1] for each in self.channels[key].owed)
        return [each for each in owed if isinstance(each, PendingGet) and each.queue is queue]

    def _note_missed(self, queue: Queue, came: Sequence[Message]) -> None:
        """These are known to have come, but perhaps not before a get is answered that was processed after them."""
        for key in self.debtors if came else ():
            channel = self.channels.get(key)
            for owed in channel.owed if channel is not None else ():
                if isinstance(owed, PendingGet) and owed.queue is queue:
                    owed.missed += sum(message.position < owed.position_limit for message in came)

    def prove_all(self, queue: Queue) -> None:
        for message in queue.unproven:
            message.arrival = Arrival.PROVEN
        queue.unproven.clear()

    def note_gone(self, queue: Queue, message: Message, requirement: str) -> None:
        """The message is gone for good, by that requirement."""
        message.reason = requirement
        message.stamp = self.stamp
        queue.reason = requirement
        queue.gone = told(queue.gone, Gone(message, requirement))

    def doubt_drop(self, queue: Queue, dropping: Dropping) -> None:
        """What has driven the message out may not have come yet, so it may still be seen to be there."""
        queue.dropping.append(dropping)

    def remove_ready(self, queue: Queue, requirement: str) -> None:
        """All ready messages are gone for good, by that requirement."""
        for message in queue.messages:
            self.note_gone(queue, message, requirement)
        note_all_left(queue)
        queue.reason = requirement
        self.refresh(queue)

    # -------------------------------------------------------------------------------- what it answers

    def owe_get(self, channel: Channel, queue: Queue, no_ack: bool) -> None:
        self.used(queue)
        channel.owed.append(PendingGet(queue, no_ack, queue.next_position, counted=self.bookkeeping.counting))
        self.debtors[channel.key] = None

    def ready_range(self, queue: Queue) -> tuple[int, int]:
        """Least and most ready messages that the queue may count now.

        Messages on their way into the queue may be missed, and those on their way to a consumer are out of it.
        """
        if queue.open_by:
            return 0, ANY_NUMBER
        high = most_ready(queue) + queue.expired_counted
        low = len(queue.messages) - len(queue.unproven)
        if self.has_doubts:
            low -= uncounted_at_most(queue)
        if low <= 0 or service_is_unknown(self, queue):
            return 0, high
        takers = self.with_room(queue) if queue in self.deliverable else []
        for consumer in (*takers, *self._leaving(queue), *self._previous_active(queue)):
            if consumer.no_ack or not consumer.prefetch:
                return 0, high
            low -= consumer.prefetch - consumer.outstanding
        return max(low, 0), high

    def _leaving(self, queue: Queue) -> Iterator[Consumer]:
        """Consumers that are gone while messages of the queue may be on their way to them."""
        gone = (consumer for channel in self.channels.values() for consumer in channel.may_still_be_served.values())
        return (consumer for consumer in gone if consumer.queue is queue and self.has_room(consumer))

    def _previous_active(self, queue: Queue) -> Iterator[Consumer]:
        """The active consumer before, while messages may be on their way to it (`dispatch.was_on_its_way`)."""
        previous = queue.active.previous
        if previous is None or not self.has_room(previous):
            return
        if any(was_on_its_way(queue, previous, message.stamp) for message in queue.messages):
            yield previous

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

    def may_not_be_led(self, queue: Queue) -> bool:
        """Nobody knows who leads the queue since a node failed. Who asks a leader of a quorum queue that cannot be
        reached for numbers is told that there is nothing (rabbit_quorum_queue:stat), and a mirror begins with none.
        """
        return self.is_unsteady and queue.node == 0

    def counted_while_lost(self, queue: Queue) -> int:
        """A quorum queue counts the consumers of a node that is gone until it is back (rabbit_fifo: suspected_down)."""
        return queue.still_counted if self.failed and queue.type is QueueType.QUORUM else 0

    def counts_seen(self, queue: Queue, arguments: Table) -> None:
        """A declare-ok told the numbers of ready messages and consumers: all that it counted is there (QUEUE-002).

        But while the queue counts somebody who is gone it may hand messages to that one yet, which come back.
        """
        if queue.open_by:
            return
        if self.may_not_be_led(queue) and not arguments["message_count"] and not arguments["consumer_count"]:
            return
        if arguments["message_count"] == len(queue.messages):
            queue.miscounted = ""
        if not arguments["consumer_count"] and queue.present_consumers:
            return  # what does not count those who are there says nothing of who is gone
        holders = self.holders(queue) if queue.type is QueueType.QUORUM else 0  # whom such a queue may count as well
        lost = self.counted_while_lost(queue)
        if arguments["consumer_count"] <= len(queue.consumers) + holders + lost:
            queue.still_counted = lost
            if queue.dropping and (self.bookkeeping.counting or arguments["message_count"] > len(queue.messages)):
                return  # what came has driven out as much as it brought, or is still to come; a barrier goes by this
            if arguments["message_count"] >= len(queue.messages):
                queue.dropping.clear()
                self.prove_all(queue)
                all_are_there(self, queue)
                return
            if not self.has_doubts:
                return
            late_ones_are_away(queue)
            if not queue.unproven and arguments["message_count"] <= self.ready_range(queue)[0]:
                none_is_there(self, queue)
                self.refresh(queue)
            elif arguments["message_count"] >= len(queue.messages) - absent_at_most(self, queue):
                # those that came since may all be there, or some that may have been lost in their place
                for message in queue.unproven:
                    message.may_be_absent = True
                self.prove_all(queue)
                self.refresh(queue)
        else:
            queue.ready_while_gone_counted = arguments["message_count"]
