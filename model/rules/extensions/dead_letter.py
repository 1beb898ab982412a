"""Dead-lettering: where a message goes that its queue gives up (area DLX; guide: dead letter exchanges).

RabbitMQ: rabbit_dead_letter:publish. A queue's process does it itself, so dead letters of one queue keep their order
(DLX-009) and are on their way to their queues for a while, as publishes of a channel are.

Reasons: a rejection, the delivery limit of a quorum queue, a limit on ready messages, and the end of its time.

Requirements:

* DLX-001: Reasons. The reason of a dead-lettering is rejected (nack/reject requeue=false), expired, maxlen, or
  delivery_limit (quorum). [rabbit_dead_letter; RabbitMQ Java client test DeadLetterExchange]
* DLX-002: x-death entry. x-death is an array of tables
  {count,reason,queue,time,exchange,routing-keys[,original-expiration]}, newest first, merged by (queue,reason). Field
  order is not fixed across versions. The count is a long-long-int (l), the time a time stamp (T). In rabbitmq-3: broken
  up to 3.12: each further death turns the order of the earlier ones: third, first, second. [mc_amqpl]
* DLX-003: x-first-death-* and x-last-death-*. x-first-death-{exchange,queue,reason} always; x-last-death-* from 4.0
  (3.13). In rabbitmq-3: first only. In rabbitmq-4.0: first and last. In rabbitmq-4.3: first and last. [mc]
* DLX-004: Client-supplied x-death. 3.10 increments the count when a message is REPUBLISHED with its x-death header; 4.x
  ignores client-supplied x-death and starts at 1. In rabbitmq-3: 2. In rabbitmq-4.0: 1. In rabbitmq-4.3: 1. [mc_amqpl;
  RabbitMQ 4.0 release notes]
* DLX-005: Routing. Dead-lettering uses x-dead-letter-routing-key or the original keys; the delivered exchange is the
  name of the dead-letter exchange. [RabbitMQ Java client test DeadLetterExchange]
* DLX-006: Expiration removed. expiration property is removed from the dead-lettered message and kept as
  original-expiration in x-death. [rabbit_dead_letter]
* DLX-007: Missing DLX. If the dead-letter exchange does not exist, the message is dropped silently.
  [rabbit_dead_letter]
* DLX-008: Cycle detection. A message that would return to a queue in which it has died before, with no rejection on the
  way round, is dropped. In rabbitmq-3: broken up to 3.12: by the order of deaths in DLX-002 a rejection on the way
  round is overlooked, or one before it heeded. [mc:is_death_cycle; up to 3.12 rabbit_dead_letter:is_cycle]
* DLX-009: Order. What is rejected together is dead-lettered in delivery order, and what a limit on length drops at one
  time from the head on. In rabbitmq-3: broken: of what a quorum queue drops at one time the latest comes first. In
  rabbitmq-4.0: broken up to 4.2.0: of what a quorum queue drops at one time the latest comes first. [RabbitMQ release
  notes of 4.2.1 and 4.3.0 (correct order); rabbit_fifo:drop_head]
* DLX-010: redelivered flag and counts in the DLQ. What was handed to nobody before it was dead-lettered comes as a
  first delivery, without counts. Of what was handed out and not acknowledged no text says how many of these deliveries
  it takes along, and whether they go on counting towards a delivery limit: from none to all, told by redelivered and by
  a quorum queue's headers, until it is given back there. In rabbitmq-3: usually none: all counts begin anew. In
  rabbitmq-4.0: usually a quorum queue counts each lost holder and each refusal without requeue, not what nack or reject
  gave back; only a quorum queue looks at the number. In rabbitmq-4.3: usually what QUORUM-002 says counts, in classic
  queues too; it goes on counting towards the limit. A classic queue that hands the message to a waiting consumer at
  once does not look at it: redelivered=false. [mc annotation delivery_count: rabbit_fifo:annotate_msg,
  rabbit_variable_queue:set_deliver_flag (4.3)]
* QUORUM-002: What counts as failed (4.3). reject(requeue=true), channel/connection close: x-delivery-count +1 and
  x-acquired-count +1. nack(requeue=true), recover, timeout: only x-acquired-count +1. In rabbitmq-3: every return +1
  x-delivery-count. In rabbitmq-4.0: every return +1 x-delivery-count. [rabbit_channel.erl: nack->requeue,
  reject->settle(true,false)]
* QUORUM-003: Delivery limit. With x-delivery-limit=L a message is removed (dead-lettered with reason delivery_limit, or
  dropped) when its count of returns would exceed L: where each return counts, L=2 gives 3 deliveries. In rabbitmq-3:
  every return counts; default none. In rabbitmq-4.0: every return counts; default 20. In rabbitmq-4.3: reject and the
  end of the channel count, nack with requeue and recover do not (QUORUM-002), so there may be more deliveries than L+1;
  default 20. [rabbit_fifo:return_one]
"""

from __future__ import annotations

from collections.abc import Collection

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.dead_letter_headers import (
    CAUSES,
    CYCLES,
    DELIVERY_LIMIT,
    EXCHANGE,
    EXPIRED,
    REJECTED,
    ROUTING_KEY,
    TOO_MANY,
    has_own_history,
    in_a_cycle,
    recorded,
    sent_history,
)
from amqpspec.model.broker.facts import told
from amqpspec.model.broker.length_limits import BYTES, Overflow, overflow
from amqpspec.model.broker.openness import open_queue
from amqpspec.model.broker.policies import AT_THAT_MOMENT, CLEARED
from amqpspec.model.broker.queues import Arrival, Dropping, Exchange, Gone, Message, Queue
from amqpspec.model.broker.routing import Routes, route
from amqpspec.model.promises.choices import CarriedFailures
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import ChannelKey, Content, Table
from amqpspec.model.rules.common.steps import Step
from amqpspec.model.rules.extensions.drop_or_refuse import drop_excess, refuse, refuses

#: A dead letter has come to the queue, which has given up what is too much.
letter_came: Step[Broker, Queue] = Step()


def discard_message(broker: Broker, queue: Queue, message: Message, holder: ChannelKey, failed: bool) -> None:
    """The client refused the message for good. `failed`: it counts as a failed delivery (QUORUM-002)."""
    carried = broker.dialect.carried_failures
    if EXCHANGE in queue.in_force:
        message.tries += 1
    if carried is CarriedFailures.OF_QUORUM_QUEUES and queue.type is QueueType.QUORUM:
        message.failures += 1  # rabbit_fifo:discard, whatever the method
    elif carried is CarriedFailures.OF_ALL_QUEUES and failed:
        message.failures += 1
    _dead_letter(broker, queue, message, holder, REJECTED)


def dead_letter_at_limit(broker: Broker, queue: Queue, message: Message, holder: ChannelKey | None) -> None:
    """The message came back more often than its queue bears (QUORUM-003)."""
    _dead_letter(broker, queue, message, holder, DELIVERY_LIMIT)


def outlive(broker: Broker, queue: Queue, message: Message, holder: ChannelKey | None) -> None:
    """The message's time in the queue was up (area TTL)."""
    _dead_letter(broker, queue, message, holder, EXPIRED)


#: So often a message may come to a queue in a chain of dead letters that no client takes part in.
MOST_ROUNDS = 4


def refuse_published(broker: Broker, queue: Queue, message: Message, channel: Channel) -> bool:
    """The queue may refuse what the channel publishes (`model.broker.length_limits`)."""
    if not refuses(broker, queue, message, channel.key):
        return False
    refuse(broker, queue, message, confirming=channel.confirming)
    if overflow(queue) is Overflow.REJECT_AND_DEAD_LETTER:
        _dead_letter(broker, queue, message, channel.key, TOO_MANY)
    return True


def _put(broker: Broker, queue: Queue, letter: Message, holder: ChannelKey | None, chain: tuple[str, ...]) -> None:
    """A dead letter comes to the queue, by what that channel did; the queue may refuse it, or give up others for it.

    `chain`: the queues that have made dead letters one after another by themselves, which this is the next of.
    """
    if refuses(broker, queue, letter, None):
        refuse(broker, queue, letter, confirming=False)
        if overflow(queue) is Overflow.REJECT_AND_DEAD_LETTER:
            _dead_letter(broker, queue, letter, holder, TOO_MANY, chain=chain)
    else:
        broker.enqueue(queue, letter)
        keep_within_limits(broker, queue, letter, holder, chain=chain)
        if not letter.sent_history:  # a history that a client sent may hide a cycle
            letter_came(broker, queue)


def take_back_unseen(broker: Broker, queue: Queue, message: Message, holder: ChannelKey) -> None:
    """What was on its way to a channel that has ended counts again."""
    keep_within_limits(broker, queue, message, holder, given_back=True)


def keep_within_limits(
    broker: Broker,
    queue: Queue,
    cause: Message,
    holder: ChannelKey | None,
    *,
    given_back: bool = False,
    away: Collection[Message] = (),
    chain: tuple[str, ...] = (),
) -> None:
    """What is too much in the queue because of that message is dead-lettered (DLX-009).

    `given_back`: it has come back to it. `away`: what was on its way to consumers before. `chain` as for `_put`.
    """
    dropped = drop_excess(broker, queue, given_back=given_back, away=away)
    if dropped:
        broker.refresh(queue)
    for message in dropped:
        letters = _dead_letter(broker, queue, message, holder, TOO_MANY, chain)
        if cause.arrival is not Arrival.PROVEN and message is not cause:
            broker.doubt_drop(queue, Dropping(message, cause, letters))


def _dead_letter(
    broker: Broker,
    queue: Queue,
    message: Message,
    holder: ChannelKey | None,
    reason: str,
    chain: tuple[str, ...] = (),
) -> tuple[tuple[Queue, Message], ...]:
    """Publish the message to the queue's dead-letter exchange, if it has one. Gives what comes of it, and where.

    `holder`: the channel that gave it up, if one did and is there. `chain` as for `_put`. Its headers (DLX-001,
    DLX-002, DLX-003, DLX-006) are made by `model.broker.dead_letter_headers`.
    """
    name = queue.in_force.get(EXCHANGE)
    if queue.policies and EXCHANGE in queue.policies.cleared:
        broker.fired(CLEARED)
    if name is None or not broker.dialect.has(EXCHANGE) or queue.deleted:
        return ()
    exchange = broker.exchanges.get(name)
    if exchange is None:
        broker.fired("DLX-007")
        return ()
    if has_own_history(message):
        broker.fired("DLX-004")
    by_policies = queue.decided(EXCHANGE, ROUTING_KEY)
    if by_policies and queue.policies and message.position < queue.policies.since:
        by_policies = (AT_THAT_MOMENT, *by_policies)
    broker.fired(*dict.fromkeys(by_policies))
    content, deaths = recorded(broker.dialect, queue, message, reason)
    key: str | None = queue.in_force.get(ROUTING_KEY)
    keys = _keys(queue, message)
    content = _without_key_headers(broker, content) if key is not None else content
    letters: list[tuple[Queue, Message]] = []
    for target in _targets(broker, exchange, keys, content):
        # a history that the client sent may hide a cycle: one that goes round by itself ends all the same
        goes_round = chain.count(target.name) >= MOST_ROUNDS
        if reason != REJECTED and (goes_round or in_a_cycle(deaths, target.name)):
            broker.fired(CYCLES)
            target.gone = told(target.gone, Gone(Message(content, exchange.name, keys[0], -1), CYCLES))
            if target is not queue:
                target.reason = CYCLES  # what else there is to be said of this queue is why the message left it
            continue
        letter = Message(
            content,
            exchange.name,
            keys[0],
            0,
            reason=message.refused_by or next(iter(by_policies), CAUSES[reason]),
            via=sender(queue),
            deaths=deaths,
            is_first_here=True,
            further_keys=keys[1:],
            hidden_keys=message.hidden_keys if key is None or not broker.dialect.deaths_in_headers else (),
            failures=message.failures,
            tries=message.tries + message.unseen + message.recalled,
            unseen=message.unseen,
            sent_history=sent_history(message),
        )
        begin_anew(broker, target, letter)
        _put(broker, target, letter, holder, (*chain, queue.name))
        if holder is not None:
            broker.touch(broker.channels[holder], target, keeps_state=False)
        letters.append((target, letter))
    return tuple(letters)


def has_to_be_seen(broker: Broker, queue: Queue, message: Message) -> bool:
    """Would the dead letter go to a queue that may not take it as it should?

    Some streams take none, and quorum queues may find that it is too much, by their limit of octets; but what expires
    in a queue never comes to that one again (DLX-008).
    """
    return any(
        each.type is QueueType.STREAM or (each.type is QueueType.QUORUM and BYTES in each.in_force)
        for each in letters_go_to(broker, queue, message)
        if each is not queue
    )


def letters_go_to(broker: Broker, queue: Queue, message: Message) -> list[Queue]:
    """The queues to which a dead letter of the message would go from the queue now."""
    exchange = broker.exchanges.get(queue.in_force[EXCHANGE]) if EXCHANGE in queue.in_force else None
    if exchange is None or queue.deleted or not broker.dialect.has(EXCHANGE):
        return []
    content, _ = recorded(broker.dialect, queue, message, REJECTED)
    return list(_routes(broker, exchange, _keys(queue, message), content).queues)


def sender(queue: Queue) -> ChannelKey:
    """Who sends the queue's dead letters: like a channel, it keeps their order."""
    return (f"dead letters of {queue.name}", 0)


def _keys(queue: Queue, message: Message) -> tuple[str, ...]:
    """DLX-005."""
    key: str | None = queue.in_force.get(ROUTING_KEY)
    return (message.routing_key, *message.further_keys) if key is None else (key,)


def _targets(broker: Broker, exchange: Exchange, keys: tuple[str, ...], content: Content) -> list[Queue]:
    routes = _routes(broker, exchange, keys, content)
    for queue in routes.perhaps:
        open_queue(broker, queue, routes.open_by)
    return list(routes.queues)


def _routes(broker: Broker, exchange: Exchange, keys: tuple[str, ...], content: Content) -> Routes:
    headers: Table = content.properties["headers"]
    return route(broker.exchanges, broker.queues, exchange, keys, headers, broker.dialect, chooses=broker.is_punctual)


def begin_anew(broker: Broker, queue: Queue, letter: Message) -> None:
    """DLX-010: what the queue makes of the failed deliveries that the message brings along."""
    carried = broker.dialect.carried_failures
    if queue.type is QueueType.QUORUM:
        letter.redelivered = letter.failures > 0
        if carried is CarriedFailures.OF_ALL_QUEUES:
            letter.delivery_count = letter.failures  # and so towards its delivery limit
    elif queue.type is QueueType.CLASSIC and carried is CarriedFailures.OF_ALL_QUEUES:
        letter.redelivered = letter.failures > 0  # rabbit_variable_queue:set_deliver_flag


def _without_key_headers(broker: Broker, content: Content) -> Content:
    """Up to 3 a routing key of its own takes CC out of the message (rabbit_dead_letter:make_msg)."""
    headers = content.properties["headers"]
    if not broker.dialect.deaths_in_headers or "CC" not in headers:
        return content
    headers = {name: value for name, value in headers.items() if name != "CC"}
    return Content({**content.properties, "headers": headers}, content.body)
