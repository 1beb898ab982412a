"""What the end of a channel or connection does, whoever ended it, and the closes that the broker owes for errors.

Area CHAN (CHAN-007, CHAN-008, CHAN-016) and CONN-020; RabbitMQ: rabbit_channel:handle_exception, notify_queues;
rabbit_reader:terminate_channels, rabbit_queue_collector.

Requirements:

* ACK-022: Max delivery tag. Delivery tags are unsigned 64 bit on the wire. The guide names 9223372036854775807 as the
  maximum; the broker accepts and prints any 64-bit value. [RabbitMQ guide: consumer acknowledgements and publisher
  confirms]
* CHAN-005: After a soft error the channel ignores everything but close/close-ok. After sending channel.close the server
  drops all methods on that channel until channel.close-ok; a crossing client channel.close is answered with close-ok.
  [rabbit_channel.erl:handle_exception; rabbit_reader.erl:handle_frame closing; AMQP 0-9-1 class channel]
* CHAN-007: Soft and hard error classes. Soft (channel) codes: 311,312(return only),313,403,404,405,406. Hard
  (connection) codes: 320,402,501,502,503,504,505,506,530,540,541. The class-id/method-id of the close are those of the
  offending method, or 0/0 when the failure was not caused by a decoded method. [AMQP 0-9-1 1.1 constants;
  rabbit_framing_amqp_0_9_1:lookup_amqp_exception]
* CHAN-008: Reply text format. Reply text is "<NAME> - <explanation>", NAME upper-case of the constant
  (PRECONDITION_FAILED, NOT_FOUND, ..), truncated to 255 octets. [rabbit_binary_generator:map_exception/explanation]
* CHAN-016: The end of a channel requeues and cancels. When a channel ends, by an error or by the client's
  channel.close, its consumers disappear and its unacked messages are requeued (redelivered=true). When the server
  closes it: on a classic queue that the channel consumes from before the channel.close is sent, otherwise (quorum
  queues, gets) only once the client answered with close-ok. A hard error ends all channels and deletes the exclusive
  queues before the connection.close is sent; what waits for the end of a channel may still return just after it.
  [rabbit_channel.erl:handle_exception notify_queues]
* CHAN-018: no-wait suppresses only the ok. With nowait=true the -ok is omitted; errors still close the channel.
  [rabbit_channel.erl:return_ok; AMQP 0-9-1 class channel]
* CONFIRM-018: Pending confirms at channel error. If the channel dies, outstanding confirms are never sent.
  [rabbit_channel.erl:terminate]
* CONFIRM-019: Publish failing with a channel error consumes no seqno. A publish that closes the channel (404, 403, 406)
  gets neither return nor ack. [rabbit_channel.erl]
* CONN-021: Abrupt socket close is asynchronous. After a TCP close without connection.close the server cleans up later:
  an exclusive queue may still exist (405 from others) for some milliseconds. [observed; rabbit_queue_collector]
* GET-004: Unacked get is requeued at channel close. An unacked get returns to its queue (redelivered=true) when the
  channel's process ends, which is just after close-ok; before close-ok only on a classic queue that the channel also
  consumes from. After a server-sent channel.close this waits for the client's close-ok.
  [rabbit_channel.erl:notify_queues]
* PERMISSION-001: Refusal text. An operation without the permission is refused with a soft 403, whether what it names
  exists or not; the text of 4.x names the permission that is missing. The default exchange is called amq.default. In
  rabbitmq-3: without the permission word. In rabbitmq-4.0: with. In rabbitmq-4.3: with.
  [rabbit_access_control:check_resource_access]
* PERMISSION-002: Which permission. declare/delete: configure; bind/unbind: write on the destination and read on the
  source; publish: write on the exchange (the default exchange as amq.default); consume/get/purge: read. A new queue
  with x-dead-letter-exchange, or exchange with alternate-exchange: also read on itself and write on what the argument
  names. A permission is a pattern that is looked for in the name. [rabbit_channel:handle_method;
  rabbit_auth_backend_internal:check_resource_access]
* PERMISSION-003: Passive declare. Passive declare needs no permission up to 4.2; 4.3 needs any one of
  read/write/configure. In rabbitmq-3: none. In rabbitmq-4.0: none. In rabbitmq-4.3: any.
  [rabbit_channel.erl:check_any_resource_access_permitted]
* QUEUE-020: Exclusive queue lifetime. Exclusive queues survive the declaring channel and die with the connection.
  [rabbit_queue_collector; AMQP 0-9-1 class queue]
* TX-009: Closing an uncommitted tx. The end of the channel, by whomever and however, discards uncommitted publishes and
  acks (messages are requeued). [rabbit_channel.erl]
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, ChannelState, Unacknowledged
from amqpspec.model.broker.connections import Connection, ConnectionState
from amqpspec.model.broker.dead_letter_headers import EXCHANGE
from amqpspec.model.broker.deadlines import LATE_SECONDS
from amqpspec.model.broker.effects import Committed
from amqpspec.model.broker.internal_events import ChannelCrash, ConnectionCleanup, ConnectionTeardown
from amqpspec.model.broker.limits import limit_channel
from amqpspec.model.broker.owed import Expected, PendingGet
from amqpspec.model.broker.queues import Consumer, Message, Queue
from amqpspec.model.broker.uncommitted import drop
from amqpspec.model.promises.choices import ConsumerTimeouts
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.errors import FrameError, ProtocolError
from amqpspec.model.protocol.methods import METHOD_IDS, ChannelKey, TraceEvent
from amqpspec.model.protocol.patterns import Anything
from amqpspec.model.rules.basic.requeue import give_back, lost_order
from amqpspec.model.rules.basic.unseen import expect_exceeded_limits, expect_losses, lose, may_serve_anybody
from amqpspec.model.rules.common.steps import Step

#: The message was on its way to that channel, which has ended: it is the latest that the queue has again.
unseen_is_back: Step[Broker, Queue, Message, ChannelKey] = Step()

#: Argument of a close that is wrong without being the wrong code: the requirement of its own.
CLOSE_BLAME = {"reply_text": "CHAN-008", "class_id": "CHAN-007", "method_id": "CHAN-007"}
#: Errors whose texts have a requirement of their own: the number in it, or the permission.
OF_TEXTS = {
    "ACK-022": "ACK-022",
    "PERMISSION-001": "PERMISSION-001",
    "PERMISSION-002": "PERMISSION-001",
    "PERMISSION-003": "PERMISSION-001",
}


#: The reply code of a crash.
INTERNAL_ERROR = 541


def fail_channel_zero(broker: Broker, connection: Connection, event: TraceEvent | None, error: ProtocolError) -> None:
    """The broker closes the connection because of `event`, if any."""
    end_connection(broker, connection)
    connection.state = ConnectionState.CLOSING
    connection.may_end = True
    connection.owed.append(_close(broker, "connection.close", event, error))
    broker.debtors[(connection.name, 0)] = None


def fail_frame(broker: Broker, connection: Connection, event: TraceEvent, error: FrameError) -> None:
    """The broker closes the connection because of a frame that is wrong as such."""
    fail_channel_zero(broker, connection, event, error)
    if error.fatal:
        connection.state = ConnectionState.ENDING  # not even close-ok is read any more


def fail(broker: Broker, channel: Channel, event: TraceEvent | None, error: ProtocolError) -> None:
    """The broker closes the channel, or the connection where the reply code says so, because of `event`, if any."""
    method = "connection.close" if error.closes_connection else "channel.close"
    close = _close(broker, method, event, error)
    if shown := _shown_by_close(channel, event):
        close = replace(close, requirements=(*close.requirements, *shown))
    if error.closes_connection:
        break_connection(broker, channel, close)
        return
    timing_out = _timing_out(broker, channel)
    end_channel(broker, channel)
    for entry in timing_out:
        entry.message.may_have_timed_out = entry.message in entry.queue.messages
    channel.unread = replies_owed(channel, is_said_by_queue)
    _drop_answers_of_queues(broker, channel)
    channel.state = ChannelState.CLOSING
    channel.owed.append(close)
    broker.debtors[channel.key] = None
    # whatever comes behind the close
    broker.blame(channel, "CHAN-005")


def _timing_out(broker: Broker, channel: Channel) -> list[Unacknowledged]:
    """What may time out before the client has answered the close: quorum queues hear of the end of a channel no sooner.

    RabbitMQ 4.3: rabbit_channel:notify_queues tells classic queues; rabbit_fifo waits for the end of the process.
    """
    if broker.dialect.consumer_timeouts is not ConsumerTimeouts.OF_QUORUM_QUEUES:
        return []
    answered_by = max(broker.latest, broker.foreseen) + LATE_SECONDS
    held = channel.unacknowledged.values()
    return [entry for entry in held if entry.deadline is not None and entry.deadline.earliest <= answered_by]


def _shown_by_close(channel: Channel, event: TraceEvent | None) -> list[str]:
    """What becomes of confirms, where the channel ends because of `event`."""
    shown = ["CONFIRM-018"] if channel.unconfirmed else []
    if channel.confirming and event is not None and event.name == "basic.publish":
        shown.append("CONFIRM-019")
    return shown


def break_connection(broker: Broker, channel: Channel, close: Expected) -> None:
    """An error on a channel ends the connection: this channel now, the others before connection.close is sent.

    rabbit_channel:handle_exception gives back what the channel held before the reader hears of the error;
    rabbit_reader:terminate_channels ends the others some time later. Until then they may be handed messages.
    """
    if close.arguments["reply_code"] == INTERNAL_ERROR:
        _lift_shared_limit(broker, channel)
    end_before_others(broker, channel)
    connection = broker.connections[channel.connection]
    connection.owed.append(close)
    broker.debtors[(connection.name, 0)] = None
    broker.teardowns.append(ConnectionTeardown(connection.name))


def end_before_others(broker: Broker, channel: Channel) -> None:
    """The channel that breaks its connection ends; those of its consumers that have room may be served behind that."""
    with_room = (consumer for consumer in channel.consumers.values() if broker.has_room(consumer))
    channel.may_be_served_by = frozenset(each.queue.name for each in with_room if each.queue.type is QueueType.QUORUM)
    end_channel(broker, channel)
    _drop_answers_of_queues(broker, channel)
    channel.state = ChannelState.CLOSED


def tear_down(broker: Broker, event: ConnectionTeardown) -> None:
    """The broker ends the channels of a connection that an error broke; the close is owed."""
    connection = broker.connections[event.connection]
    if connection.state is ConnectionState.OPEN:
        end_connection(broker, connection)


def crash(broker: Broker, event: ChannelCrash) -> None:
    """A channel that breaks its connection some time after what makes it do so comes to it; the close is owed."""
    channel = broker.channel(event.connection, event.number)
    connection = broker.connections[channel.connection]
    if channel.state is not ChannelState.CLOSED and connection.state is ConnectionState.OPEN:
        channel.unread = replies_owed(channel)
        _lift_shared_limit(broker, channel)
        end_before_others(broker, channel)


def _lift_shared_limit(broker: Broker, channel: Channel) -> None:
    """A channel that crashes takes its limiter along, and queues may be somewhat later in hearing of the end of it.

    rabbit_limiter:can_send is true where nobody answers.
    """
    limit_channel(broker, channel, 0)
    for queue in dict.fromkeys(consumer.queue for consumer in channel.consumers.values()):
        broker.refresh(queue)


def replies_owed(
    channel: Channel, chosen: Callable[[Expected | PendingGet], bool] = lambda _: True
) -> tuple[Expected, ...]:
    """What may have been said before the channel ended; it changes nothing any more."""
    said = filter(chosen, channel.owed)
    replies = (owed for owed in said if isinstance(owed, Expected) and owed.method.endswith("-ok"))
    return tuple(replace(owed, effect=None) for owed in replies)


def is_said_by_queue(owed: Expected | PendingGet) -> bool:
    """Is it what a queue's process has the channel say?"""
    if not isinstance(owed, Expected):
        return False
    return owed.lane != "channel" or isinstance(owed.effect, Committed)


def _drop_answers_of_queues(broker: Broker, channel: Channel) -> None:
    """What has not come from the queues when the channel finds the error is not said (rabbit_channel:handle_cast in
    state closing).
    """
    channel.owed = [owed for owed in channel.owed if not is_said_by_queue(owed)]
    broker.settle_debts(channel)


def _close(broker: Broker, method: str, event: TraceEvent | None, error: ProtocolError) -> Expected:
    class_id, method_id = error.identifiers or METHOD_IDS.get(event.name if event is not None else "", (0, 0))
    is_fixed = broker.dialect.fixed_reply_texts and not error.any_text
    arguments = {
        "reply_code": error.code,
        "reply_text": error.pattern or error.text if is_fixed else Anything(error.text),
        "class_id": class_id,
        "method_id": method_id,
    }
    requirements: tuple[str, ...] = (error.requirement, "CHAN-007", "CHAN-008")
    if error.is_cut:
        requirements = ("CHAN-008", error.requirement, "CHAN-007")  # what makes this close special
    if event is not None and event.arguments.get("nowait"):
        requirements += ("CHAN-018",)
    blame = CLOSE_BLAME
    if error.requirement in OF_TEXTS:
        blame = {**CLOSE_BLAME, "reply_text": OF_TEXTS[error.requirement]}
    return Expected(method, arguments, requirements, blame=blame, counted=broker.counting)


def end_channel(broker: Broker, channel: Channel, requirement: str = "CHAN-016") -> None:
    """Consumers go, unacknowledged messages return to their queues, and open confirms are never sent (CONFIRM-018)."""
    returning: dict[Queue, list[tuple[int, Unacknowledged]]] = {}
    for tag, entry in channel.unacknowledged.items():
        if entry.queue.type is not QueueType.STREAM:
            returning.setdefault(entry.queue, []).append((tag, entry))
    if returning or channel.consumers:
        broker.fired(requirement)
    dropped_by = "TX-009" if broker.dialect.extensions else requirement
    drop(broker, channel, dropped_by)
    tags = channel.transaction.reserved if channel.transaction is not None else ()
    reserved = {channel.queue_of(tag) for tag in tags}
    channel.unacknowledged = {}
    channel.timed_out = {}
    for queue in _as_they_hear(broker, channel, returning, requirement):
        entries = returning[queue]
        broker.used(queue)
        for told in broker.hooks.deliveries_taken_back:
            told(broker, queue, len(entries))
        order = lost_order(broker, queue, entries)
        reason = "GET-004" if all(entry.consumer is None for _, entry in entries) else requirement
        reason = dropped_by if queue in reserved else reason
        give_back(broker, queue, order, reason, failed=True, holder=channel.key, lost_holder=True)
        broker.touch(channel, queue)
    _take_back_unseen(broker, channel, returning)
    channel.unconfirmed = {}
    channel.transaction = None
    channel.may_still_be_served = {}
    for told in broker.hooks.channel_ended:
        told(broker, channel)
    broker.refresh_sharing(channel)
    broker.settle_debts(channel)
    expect_exceeded_limits(broker)
    expect_losses(broker)


def _take_back_unseen(broker: Broker, channel: Channel, returning: Collection[Queue]) -> None:
    """What was on its way to the channel counts again: queues that get nothing else back look at their limits.

    Not where others may have been handed it, or where it need not come back.
    """
    last: dict[Queue, Message] = {}
    never: set[Queue] = set(returning)
    for lost in channel.lost:
        queue = lost.consumer.queue
        if lost.consumer.no_ack or queue.type is QueueType.STREAM or queue in broker.deliverable:
            never.add(queue)
        elif lost.message in queue.messages:
            last[queue] = lost.message
    for queue, message in last.items():
        if queue not in never and not queue.deleted:
            unseen_is_back(broker, queue, message, channel.key)


def _as_they_hear(broker: Broker, channel: Channel, returning: Collection[Queue], requirement: str) -> Iterator[Queue]:
    """The queues of what comes back, as they hear of the end of the channel, whose consumers there are gone then.

    First classic queues that it consumes from (rabbit_channel:notify_queues), in any order: what these give up for good
    may be handed to its consumers on the others yet.
    """
    consumers = list(channel.consumers.values())
    classic = dict.fromkeys(consumer.queue for consumer in consumers if consumer.queue.type is QueueType.CLASSIC)
    for queue in sorted(classic, key=lambda queue: not (queue in returning and EXCHANGE in queue.arguments)):
        _leave(broker, channel, [consumer for consumer in consumers if consumer.queue is queue], requirement)
        if queue in returning:
            yield queue
    _leave(broker, channel, [consumer for consumer in consumers if consumer.queue not in classic], requirement)
    yield from (queue for queue in returning if queue not in classic)


def _leave(broker: Broker, channel: Channel, consumers: Collection[Consumer], requirement: str) -> None:
    lose(broker, channel, consumers)
    for consumer in consumers:
        broker.touch(channel, consumer.queue)
        broker.remove_consumer(consumer, requirement)


def end_connection(broker: Broker, connection: Connection) -> None:
    """All channels end, then the queues that are exclusive to the connection are deleted (QUEUE-020)."""
    end_channels(broker, connection)
    _delete_own_queues(broker, connection.name, "QUEUE-020")


def abandon_connection(broker: Broker, connection: Connection) -> None:
    """The client is gone without a word: the broker notices it, and deletes its queues some time later (CONN-021)."""
    end_channels(broker, connection)
    cleanup = ConnectionCleanup(connection.name)
    if has_left_queues(broker, cleanup):
        broker.internal_events.append(cleanup)


def clean_up(broker: Broker, event: ConnectionCleanup) -> None:
    """The broker comes to clean up behind a client that is gone."""
    _delete_own_queues(broker, event.connection, "CONN-021")


def has_left_queues(broker: Broker, event: ConnectionCleanup) -> bool:
    """Is anything left to clean up?"""
    return any(queue.owner == event.connection for queue in broker.queues.values())


def _delete_own_queues(broker: Broker, connection: str, requirement: str) -> None:
    for queue in list(broker.queues.values()):
        if queue.owner == connection:
            broker.fired("QUEUE-020")
            broker.end_queue(queue, requirement)


def end_channels(broker: Broker, connection: Connection) -> None:
    """All of the connection's channels end, in an order that is the broker's business."""
    takers = _takers(broker, connection)
    returning = _note_unseen(broker, connection, takers) if takers else []
    _end_each(broker, connection)
    for message, most in returning:
        message.unseen = max(message.unseen, most)
    expect_exceeded_limits(broker)
    expect_losses(broker)


def _takers(broker: Broker, connection: Connection) -> dict[Queue, set[ChannelKey]]:
    """By queue, the connection's channels with a consumer that has room for a message of it."""
    takers: dict[Queue, set[ChannelKey]] = {}
    for key, channel in broker.channels.items():
        if key[0] == connection.name and channel.state is ChannelState.OPEN:
            for consumer in channel.consumers.values():
                if consumer.queue.type is not QueueType.STREAM and broker.has_room(consumer):
                    takers.setdefault(consumer.queue, set()).add(key)
        if key[0] == connection.name:
            for name in channel.may_be_served_by & broker.queues.keys():
                takers.setdefault(broker.queues[name], set()).add(key)
    return takers


def _seat_falls_vacant(queue: Queue, keys: Collection[ChannelKey]) -> bool:
    """Does the active consumer end with the connection, and another of these channels' may follow it before it ends?"""
    holder = queue.seat.holder
    return holder is not None and any(key != holder.channel and key[0] == holder.channel[0] for key in keys)


def _note_unseen(
    broker: Broker, connection: Connection, takers: dict[Queue, set[ChannelKey]]
) -> list[tuple[Message, int]]:
    """Messages that may be handed to such a consumer while the connection ends, and how often then: nobody sees it, but
    the queue counts it. What one channel holds comes back when it ends, and another may end after it.
    """
    noted = [
        (message, message.unseen + len(keys))
        for queue, keys in takers.items()
        if queue in broker.deliverable or may_serve_anybody(broker, queue) or _seat_falls_vacant(queue, keys)
        for message in queue.messages
    ]
    for key, channel in broker.channels.items():
        if key[0] == connection.name:
            for entry in channel.unacknowledged.values():
                others = takers.get(entry.queue, set()) - {key}
                if others:
                    entry.message.may_be_gone |= any(
                        consumer.no_ack and consumer.channel in others for consumer in entry.queue.consumers
                    )
                    noted.append((entry.message, entry.message.unseen + len(others)))
    return noted


def _end_each(broker: Broker, connection: Connection) -> None:
    for key, channel in broker.channels.items():
        if key[0] == connection.name:
            if channel.state is ChannelState.OPEN:
                channel.unread = replies_owed(channel)
                end_channel(broker, channel)
            channel.state = ChannelState.CLOSED
            channel.owed = []
            broker.settle_debts(channel)
