"""Messages of which it is not known whether they survived: the broker went down before anybody was told.

Such a message may be there, or may not (`Message.may_be_absent`), each for itself: it may be handed out, and nobody is
owed it. Whoever sees it proves that it is there; what is handed out from behind it, and a number that leaves no room
for it, prove that it is not.

Requirements:

* DURABLE-001: Durable and transient. Durable queues, durable exchanges, and what is persistent in classic queues
  survive a stop; transient queues and exchanges, and transient messages in classic queues, do not survive stop or kill.
  In rabbitmq-4.3: broken: a transient exchange survives. In amqp-0-9-1: durable and transient queues and exchanges;
  messages are kept as well as may be. [AMQP 0-9-1 queue.declare and exchange.declare, durable; AMQP 0-9-1 class basic;
  RabbitMQ guide: queues (durability)]
* DURABLE-002: Messages of quorum queues. All messages that have come to a quorum queue survive a stop and a kill, those
  with delivery-mode 1 as well. [RabbitMQ guide: quorum queues (data safety)]
* DURABLE-003: Unacknowledged messages. What a client held when the broker went down, and had not settled, is delivered
  again with redelivered=true. [RabbitMQ guide: consumer acknowledgements and publisher confirms (automatic requeueing);
  AMQP 0-9-1 basic.deliver, redelivered]
* DURABLE-004: Confirmed implies durable. A persistent message that was confirmed survives a kill. One that was not
  confirmed may be there or not; a classic queue may also have lost what it has delivered or counted. [RabbitMQ guide:
  consumer acknowledgements and publisher confirms]
* DURABLE-005: Bindings. Bindings between durable exchanges and durable queues survive, with their routing keys and
  arguments. [AMQP 0-9-1 queue.bind (durable bindings)]
* DURABLE-006: Exclusive queues. Exclusive queues do not survive, also durable ones; nor do consumers, channels and
  connections. [rabbit_amqqueue:recover; AMQP 0-9-1 queue.declare, exclusive]
* DURABLE-007: Transactions. What was committed survives as what was confirmed does, from commit-ok on. Of what was not
  committed nothing is there: neither its messages nor its acknowledgements. [RabbitMQ guide: semantics of AMQP 0-9-1
  transactions; AMQP 0-9-1 class tx]
* DURABLE-008: Streams. All messages of a stream that were confirmed survive a stop and a kill, in their order and at
  their offsets. [RabbitMQ guide: streams (data safety)]
* DURABLE-009: Order. What is left is delivered in the order that it had: of a priority in the order of publishing, with
  what came back where it belongs. [AMQP 0-9-1 section 4.7; RabbitMQ guide: queues (ordering)]
* DURABLE-010: Counts of quorum queues. The counts of a quorum queue go on: what was counted before the broker went down
  stays, and that a client held the message then counts as the end of its channel does. [rabbit_fifo:apply of down and
  nodeup]
* DURABLE-011: Time goes on. Times to live go on while the broker is down: what is over when it is up again is gone, as
  a dead letter if the queue says so; the rest lives as long as was left. [RabbitMQ guide: time-to-live and expiration;
  rabbit_variable_queue, rabbit_fifo: the moment of expiry is stored]
* DURABLE-012: Settled for good. What was settled before a stop is not delivered again, and nothing comes twice. After a
  kill a classic queue may deliver it once more, with redelivered=true; a quorum queue does not, once it has processed
  the settlement. [RabbitMQ guide: consumer acknowledgements and publisher confirms; rabbit_classic_queue_index_v2
  (acknowledgements are written late)]
* DURABLE-013: First deliveries. What nobody was handed before the broker was stopped comes with redelivered=false.
  After a kill a classic queue may say of all its messages that they are redelivered. [AMQP 0-9-1 basic.deliver,
  redelivered; rabbit_variable_queue:init]
* DURABLE-014: Paused. A broker that is paused and goes on loses nothing: connections stay open, and what was owed is
  sent then. [observed]
* DURABLE-015: Auto-delete queues. A durable auto-delete queue that never had a consumer survives. One that has a
  consumer goes with it when the broker is stopped, and survives a kill. [observed;
  rabbit_amqqueue_process:should_auto_delete]
* DURABLE-016: Dead letters. A dead letter survives as any message of its queue does, with its history, and comes once.
  After a kill both it and the message that it was made of may be there, or one of them. [RabbitMQ guide: dead letter
  exchanges (safety)]
* DURABLE-017: What the operator has set up. Users, permissions, virtual hosts and policies survive. Settings that were
  made while it ran do not. [RabbitMQ guides: access control, parameters and policies]
* DURABLE-018: Expiring queues. The time of a durable queue with x-expires begins anew when the broker is up again.
  [RabbitMQ guide: time-to-live and expiration (queue TTL: leases of durable queues restart)]
* DURABLE-019: Half a content. A publish whose content was not complete is none. [AMQP 0-9-1 section 4.2.6]
* DURABLE-020: Given back before. A message that was delivered and given back before the broker went down comes with
  redelivered=true. In rabbitmq-4.3: broken: a classic queue forgets it over a stop, if it was given back by basic.nack
  or basic.recover. [AMQP 0-9-1 basic.deliver, redelivered]
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from amqpspec.model.broker.broker_state import BrokerState
from amqpspec.model.broker.facts import told
from amqpspec.model.broker.queues import Arrival, Gone, Message, Queue
from amqpspec.model.promises.queue_types import QueueType

#: The requirements of what is left when the broker was started again, and of what is not.
DURABLE, QUORUM, HELD, CONFIRMED = "DURABLE-001", "DURABLE-002", "DURABLE-003", "DURABLE-004"
BINDINGS, EXCLUSIVE, COMMITTED, OFFSETS = "DURABLE-005", "DURABLE-006", "DURABLE-007", "DURABLE-008"
ORDER, COUNTS, AGE, SETTLED = "DURABLE-009", "DURABLE-010", "DURABLE-011", "DURABLE-012"
FIRST, PAUSED, WITHOUT_CONSUMERS, LETTERS = "DURABLE-013", "DURABLE-014", "DURABLE-015", "DURABLE-016"
SET_UP, EXPIRES, HALF_CONTENT, GIVEN_BACK = "DURABLE-017", "DURABLE-018", "DURABLE-019", "DURABLE-020"


def shown_by(queue: Queue, message: Message) -> Iterator[str]:
    """What it shows that a message is handed over that was there before; it is out of the queue."""
    if not message.survived_by:
        return
    yield message.survived_by
    if queue.type is QueueType.STREAM:
        return
    if not message.redelivered:
        yield FIRST
    if queue.messages and queue.messages[0].survived_by:
        yield ORDER
    if message.deadline is not None:
        yield AGE
    if message.delivery_count:
        yield COUNTS
    if message.deaths:
        yield LETTERS


def survivor_requirement(queue: Queue) -> str:
    """The requirement by which a queue is there that was there before."""
    if queue.auto_delete:
        return WITHOUT_CONSUMERS
    return EXPIRES if "x-expires" in queue.arguments else DURABLE


def flag_requirement(message: Message) -> str:
    """The requirement that a wrong flag of such a message breaks."""
    return message.survived_by if message.survived_by in (HELD, GIVEN_BACK, SETTLED) else FIRST


def absent_at_most(broker: BrokerState, queue: Queue) -> int:
    """How many of the ready messages need not be there."""
    return sum(message.may_be_absent for message in queue.messages) if broker.has_doubts else 0


def uncounted_at_most(queue: Queue) -> int:
    """How many of the ready messages, of those that have arrived for all that is known, need not be counted."""
    doubtful = (message for message in queue.messages if message.may_be_absent or message.may_be_late)
    return sum(message not in queue.unproven for message in doubtful)


def late_ones_are_away(queue: Queue) -> None:
    """The queue was seen not to have all of them: what may be late is so, whatever it has counted before."""
    for message in queue.messages:
        if message.may_be_late:
            message.arrival = Arrival.RETURNING
            queue.unproven[message] = None


def is_certain(broker: BrokerState, queue: Queue) -> bool:
    """Is any message ready, for all that is known?"""
    return len(queue.messages) > absent_at_most(broker, queue)


def all_are_there(broker: BrokerState, queue: Queue) -> None:
    """The queue was seen to have all of them."""
    if broker.has_doubts:
        for message in queue.messages:
            message.may_be_absent = False
        note_doubts(broker)


def none_is_there(broker: BrokerState, queue: Queue, places: Collection[int] | None = None) -> None:
    """The queue was seen to have none of them. `places`: of those there."""
    if not broker.has_doubts:
        return
    absent = [
        message
        for place, message in enumerate(queue.messages)
        if message.may_be_absent and (places is None or place in places)
    ]
    for message in absent:
        queue.returned -= list(queue.messages).index(message) < queue.returned
        queue.messages.remove(message)
        queue.unproven.pop(message, None)
        queue.gone = told(queue.gone, Gone(message, message.reason))
    note_doubts(broker)


def note_doubts(broker: BrokerState) -> None:
    """Is there still anything that may be absent, or late?"""
    messages = (message for queue in broker.queues.values() for message in queue.messages)
    broker.has_doubts = any(message.may_be_absent or message.may_be_late for message in messages)


def may_hand_out(broker: BrokerState) -> bool:
    """May some consumer be handed a message that is not certain to be there?"""
    if not broker.has_doubts:
        return False
    return any(queue.consumers and absent_at_most(broker, queue) for queue in broker.queues.values())
