"""Replies and other frames that a channel owes, and the blame for a frame that nothing explains.

Requirements:

* CANCEL-001: Client cancel. basic.cancel is answered by cancel-ok; after cancel-ok no basic.deliver with that tag is
  sent. [RabbitMQ guide: consumer cancel notification; rabbit_channel.erl:cancel_consumer comment; AMQP 0-9-1
  basic.cancel]
* CANCEL-002: No server cancel for client cancel. A client-initiated cancel never causes a server-sent basic.cancel.
  [RabbitMQ guide: consumer cancel notification]
* CANCEL-007: Server cancel on queue deletion. When a consumed queue is deleted (by any connection), every consumer on a
  capable connection gets basic.cancel(tag, nowait=true), once; nothing is delivered to it after that. Consumers of
  other queues go on. [RabbitMQ guide: consumer cancel notification]
* CANCEL-010: Without the capability. Nothing is sent when the queue is deleted; the consumer is silently gone; a later
  cancel of its tag gets cancel-ok. [RabbitMQ guide: consumer cancel notification]
* CANCEL-011: Order delete-ok / cancel on one channel. Deleting the queue from the channel that consumes it: DeleteOk
  first, then Basic.Cancel (cancel comes with the asynchronous eol event). From another channel the order relative to
  that channel is open. [rabbit_channel.erl:handle_eol]
* CAP-005: consumer_cancel_notify must be inside capabilities table as boolean true. Server-sent basic.cancel is enabled
  only by client-properties.capabilities.consumer_cancel_notify = true (field type t). Anything else means disabled.
  [rabbit_channel.erl:server_consumer_cancel_supported; RabbitMQ guide: consumer cancel notification]
* CHAN-007: Soft and hard error classes. Soft (channel) codes: 311,312(return only),313,403,404,405,406. Hard
  (connection) codes: 320,402,501,502,503,504,505,506,530,540,541. The class-id/method-id of the close are those of the
  offending method, or 0/0 when the failure was not caused by a decoded method. [AMQP 0-9-1 1.1 constants;
  rabbit_framing_amqp_0_9_1:lookup_amqp_exception]
* CHAN-019: Replies are not in request order. Pipelined synchronous methods may be answered out of order: consume-ok and
  cancel-ok are sent by way of the queue, so a qos-ok, declare-ok or delete-ok for a LATER request can precede them.
  Order within the channel-only methods is FIFO. [rabbit_channel.erl:basic_consume/cancel_consumer (ok_msg sent by
  queue)]
* CONFIRM-003: Every publish confirmed exactly once. Each sequence number is covered by exactly one ack or nack EVENT
  for the first time; never both ack and nack. A multiple=true frame may cover tags already confirmed individually, so
  the checker must treat it as "all still outstanding <= tag". [RabbitMQ guide: consumer acknowledgements and publisher
  confirms; rabbit_channel.erl:coalesce_and_send]
* CONN-020: Client-initiated close. connection.close is answered by connection.close-ok and the socket closes; all
  exclusive queues of the connection are already deleted when close-ok arrives. [rabbit_reader.erl:handle_method0
  connection.close; AMQP 0-9-1 class connection]
* GET-001: get-ok / get-empty. Message-count in get-ok is the number of ready messages left; empty queue gives
  get-empty. [rabbit_channel.erl:basic.get; AMQP 0-9-1 basic.get]
* PUBLISH-008: Mandatory and routed. A message routed to at least one queue is never returned, even if the queue later
  rejects it (reject-publish) or drops it. [rabbit_channel.erl:process_routing_mandatory]
* QUEUE-001: declare-ok content. queue.declare-ok carries the (CR/LF-stripped) queue name, number of READY messages and
  number of consumers. [rabbit_channel.erl:return_queue_declare_ok; AMQP 0-9-1 class queue]
* TIMEOUT-001: <=4.2: channel closed with 406. When the OLDEST unacked delivery of a channel is older than the timeout,
  the channel is closed with 406, whatever the capabilities and the queue type (classic, quorum, stream, basic.get).
  [RabbitMQ guide: consumer timeouts (the channel is closed whatever the capabilities); rabbit_channel
  v4.0.5:evaluate_consumer_timeout (the oldest one, whatever the queue type)]
* TIMEOUT-003: <=4.2: only the head of the unacked list counts. Only the oldest outstanding tag is examined; acking it
  resets the clock to the next oldest. All consumers of the channel die together. [rabbit_channel
  v4.0.5:evaluate_consumer_timeout]
* TIMEOUT-008: basic.cancel on timeout, once. With consumer_cancel_notify the server sends basic.cancel(tag,
  nowait=true) at (delivery time + timeout), within about 10 ms on an idle broker; the channel and its other consumers
  live on. It is told once: when another delivery of the consumer times out, or its queue is deleted, nothing more is
  said of it. A broker that announces accept_consumer_cancel_ok has a setting by which it closes the channel instead
  (consumer_timeout_response). In rabbitmq-4.3: broken up to 4.3.6: told again. [RabbitMQ guide: consumer timeouts;
  RabbitMQ guide: consumer cancel notification (the consumer is gone, of which the client is told); release notes of
  RabbitMQ 4.3.7 (the setting); rabbit_channel.erl:handle_queue_actions released]
* TIMEOUT-009: Without the capability: channel close. Channel is closed with 406; the text names the timeout value used.
  In rabbitmq-4.3: broken: the text names -1 ms. [RabbitMQ guide: consumer timeouts (the channel is closed);
  rabbit_channel.erl:handle_consumer_timed_out(-1,..) (406, the text)]
* TIMEOUT-011: Timeout of what a consumer that is gone has left. A consumer is gone, cancelled by its client or by the
  broker because its time was up, and the client still holds unacknowledged messages of it; their time passes. They go
  back to their queue, and a client with the capability keeps its channel and is told nothing. In rabbitmq-4.3: broken:
  the channel is closed. [RabbitMQ guide: consumer timeouts (with the capability the channel remains open); RabbitMQ
  guide: consumer cancel notification; rabbitmq-server discussion 18207; rabbit_channel.erl: is_map_key(CTag,
  consumer_mapping)]
* TIMEOUT-022: Other consumers of the channel unaffected. Two consumers on one channel with different timeouts: only the
  expired one is cancelled. [RabbitMQ guide: consumer timeouts]
* TIMEOUT-028: Values are fixed at consume time. Changing the global value or a policy does not affect consumers that
  already exist. [rabbit_quorum_queue:consume Spec timeout]
* TX-003: Mandatory returns at commit. basic.return for unroutable messages is sent during commit, before commit-ok;
  publish to a missing exchange closes the channel immediately. [rabbit_channel.erl]
"""

from __future__ import annotations

from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, ChannelState
from amqpspec.model.broker.connections import Connection, ConnectionState
from amqpspec.model.broker.delivery_timeouts import exempt_on
from amqpspec.model.broker.effects import CountsTold, DeletionAnswered
from amqpspec.model.broker.mirrors import may_be_cancelled
from amqpspec.model.broker.nodes_shown import CANCELLED
from amqpspec.model.broker.owed import Expected, PendingGet
from amqpspec.model.broker.queues import Consumer, Queue
from amqpspec.model.broker.reply_addresses import agree
from amqpspec.model.broker.routing import BY_TYPE
from amqpspec.model.outputs.delivered_message import ONE_COPY, routed_by
from amqpspec.model.outputs.mismatch import NONE, Mismatch, Mismatches, unexpected
from amqpspec.model.promises.choices import ConsumerTimeouts
from amqpspec.model.promises.verdict import Shape
from amqpspec.model.protocol.field_types import retyped
from amqpspec.model.protocol.methods import METHOD_IDS, Content, Method, TraceEvent
from amqpspec.model.protocol.patterns import Generated, Pattern, matches
from amqpspec.model.rules.extensions.timeout_cancels_consumer import contested

#: Arguments that can be wrong without leaving the state in doubt.
HARMLESS = frozenset(
    {"reply_text", "reply_code", "class_id", "method_id", "message_count", "consumer_count", "nowait", "octets",
     "server_properties", "mechanisms", "locales", "channel_max", "frame_max", "heartbeat"}
)  # fmt: skip
#: Of a close: the method that it is about.
_OF_THE_CAUSE = ("class_id", "method_id")

CONFIRMS = ("basic.ack", "basic.nack")
#: Frames that a channel sends only if they are owed. basic.get-ok is left out: judging can go on after a wrong one.
ASKED_FOR = frozenset(name for name in METHOD_IDS if name.endswith("-ok")) - {"basic.get-ok"} | {
    "basic.get-empty", *CONFIRMS
}  # fmt: skip

#: The reply code of what a broker has not.
NOT_IMPLEMENTED = 540
#: What is wrong with a number that takes in what is not acknowledged.
WITH_UNACKNOWLEDGED = "message-count with the unacknowledged"

#: The requirement that an unsolicited frame breaks.
UNSOLICITED = {
    "basic.cancel": "CANCEL-002",
    "basic.return": "PUBLISH-008",
    "basic.ack": "CONFIRM-003",
    "basic.nack": "CONFIRM-003",
    "basic.get-ok": "GET-001",
    "basic.get-empty": "GET-001",
    "basic.deliver": "CANCEL-001",
    "socket.closed": "CONN-020",
}


def observe_reply(broker: Broker, channel: Channel, method: Method) -> Mismatches:
    """Match the frame with an owed one. Frames of one lane come in order; lanes have no order among each other
    (`Expected.lane`). Gives what is wrong.
    """
    lanes: set[str] = set()
    found: Expected | None = None
    for owed in channel.owed:
        lane = "channel" if isinstance(owed, PendingGet) else owed.lane
        if lane in lanes:
            continue
        lanes.add(lane)
        if isinstance(owed, Expected) and owed.method == method.name:
            if fits(owed, method):
                found = owed
                break
            if method.name != "basic.cancel":
                found = found or owed
    if found is None:
        consumer = channel.consumers.get(method.arguments.get("consumer_tag", ""))
        if method.name == "basic.cancel" and consumer is not None and may_be_cancelled(broker, consumer):
            broker.remove_consumer(consumer, CANCELLED)
            return NONE
        return nothing_explains(broker, channel, method, None)
    if len(channel.owed) > 1 and any(
        not isinstance(other, PendingGet) and other.lane != found.lane for other in channel.owed
    ):
        broker.fired("CHAN-019")
    return take_expected(broker, channel, found, method)


def is_unasked(broker: Broker, event: TraceEvent) -> bool:
    """Is it a reply that the channel does not owe, or the confirm of a number above its publishes? Then it answers an
    input that the model has not processed yet.
    """
    if event.name not in ASKED_FOR or not event.channel:
        return False
    channel = broker.channels.get((event.connection, event.channel))
    if channel is None:
        return True
    if channel.state is not ChannelState.OPEN:
        connection = broker.connections.get(event.connection)
        if channel.unread or (connection is not None and connection.state is ConnectionState.CLOSING):
            return False  # it may be one from before the end
    if event.name in CONFIRMS:
        return bool(event.arguments.get("delivery_tag", 0) > channel.published)
    if event.name == "basic.get-empty":
        return not any(isinstance(owed, PendingGet) for owed in channel.owed)
    return all(isinstance(owed, PendingGet) or owed.method != event.name for owed in channel.owed)


def fits(expected: Expected, event: TraceEvent) -> bool:
    """Do all arguments match, but for those that can be wrong without leaving the state in doubt (`HARMLESS`)?"""
    for name, value in expected.arguments.items():
        if name not in HARMLESS and not matches(value, event.arguments.get(name)):
            return False
    return True


def take_expected(broker: Broker, holder: Channel | Connection, expected: Expected, event: TraceEvent) -> Mismatches:
    """The owed frame has come: gives in what it differs. Unless that is fatal, it is owed no more, and its effect comes
    about; where it is, nothing changes.
    """
    wrong: Mismatches = NONE
    for name, value in expected.arguments.items():
        observed = event.arguments.get(name)
        if value.matches(observed) if isinstance(value, Pattern) else value == observed:
            continue
        if not value and not observed and not isinstance(value, Pattern):
            continue  # a field at its zero value may be left out of the frame's arguments
        requirement = expected.blame.get(name, expected.requirements[0])
        detail = f"{event.name} {name.replace('_', '-')}"
        if isinstance(value, Generated) and not observed:
            detail += " that is empty"
        allowed = f"{name.replace('_', '-')}={value}"
        counts = expected.effect if name == "message_count" and isinstance(expected.effect, CountsTold) else None
        is_habit = counts is not None and counts_unacknowledged(broker, counts.queue, value, observed)
        if is_habit:
            requirement, detail = "QUEUE-001", f"{event.name} {WITH_UNACKNOWLEDGED}"
        elif counts is not None and not broker.dialect.extensions:
            # one cause for all wrong numbers of the queue; RabbitMQ is judged number by number
            counts.queue.miscounted = counts.queue.miscounted or requirement
        fatal = name not in HARMLESS
        if _has_another_cause(broker, name, observed, wrong):
            continue
        wrong += (
            Mismatch(
                requirement, Shape.WRONG_ARGUMENT, detail, fatal, allowed, name, value, expected, is_habit=is_habit
            ),
        )  # fmt: skip
    if expected.due is not None and event.time > broker.client_idle_until > expected.due.latest:
        wrong += (Mismatch(expected.requirements[0], Shape.UNEXPECTED, f"{event.name} too late", False),)
    if expected.content is not None and not _same_content(broker, expected.content, event.content):
        detail = f"{event.name} content"
        wrong += (
            Mismatch(
                expected.requirements[0], Shape.WRONG_ARGUMENT, detail, False, argument="content",
                right=expected.content, about=expected,
            ),
        )  # fmt: skip
    if wrong and any(mismatch.fatal for mismatch in wrong):
        return wrong
    holder.owed.remove(expected)
    if expected.due is not None and not broker.is_punctual:
        broker.bookkeeping.measurements.append(expected.due.measured(event))
    if expected.effect is not None:
        expected.effect(broker, event.arguments)
    if expected.counted:
        for requirement in expected.requirements:
            broker.bookkeeping.exercised[requirement] += 1
    if isinstance(holder, Channel):
        broker.settle_debts(holder)
    elif not holder.owed:
        broker.debtors.pop((holder.name, 0), None)
    return wrong


def _has_another_cause(broker: Broker, name: str, observed: Any, wrong: Mismatches) -> bool:
    """Of a close with another code: is it about another method as well? What was to be refused is not, and what came
    after it is. RabbitMQ's own dialects are looked at argument by argument.
    """
    another_code = any(each.argument == "reply_code" for each in wrong)
    return not broker.dialect.extensions and another_code and name in _OF_THE_CAUSE and bool(observed)


def counts_unacknowledged(broker: Broker, queue: Queue, right: Any, observed: Any, more: int = 0) -> bool:
    """Is the number wrong because it counts what is delivered and not acknowledged? That is one cause, wherever it
    shows; RabbitMQ is judged number by number. `more`: so many further deliveries may be counted.
    """
    if broker.dialect.extensions or not isinstance(observed, int):
        return False
    held = sum(each.queue is queue for c in broker.channels.values() for each in c.unacknowledged.values())
    # the question may have been processed before the last of them were handed out, and a purge may have deleted some
    counted = range(max(held - queue.handed_out - queue.held_when_purged, 1), held + more + 1)
    return any(matches(right, observed - each) for each in counted)


def _same_content(broker: Broker, expected: Content, observed: Content | None) -> bool:
    if observed is None or observed.body != expected.body:
        return False
    if retyped(expected.properties.get("headers"), observed.properties.get("headers")):
        return False
    return agree(broker, expected.properties, observed.properties)


def _routed_all_the_same(broker: Broker, method: Method) -> str:
    """Blame for the return of a message that has reached a queue, or that was not mandatory.

    Where routing takes more than to compare a name, that went wrong; else the broker knows what it did.
    """
    reason = routed_by(broker, method.content.body) if method.content is not None else None
    return reason if reason in (*ONE_COPY, BY_TYPE["topic"], BY_TYPE["headers"]) else UNSOLICITED["basic.return"]


def _told_in_vain(broker: Broker, channel: Channel, method: Method) -> str:
    """Blame for a basic.cancel of a consumer that did not end, that the client ended, or of which it is not told."""
    connection = broker.connections[channel.connection]
    for owed in channel.owed:
        if isinstance(owed, Expected) and owed.method == "channel.close" and owed.due is not None:
            return owed.requirements[0]
    consumer = channel.consumers.get(method.arguments.get("consumer_tag", ""))
    if consumer is not None and (of_time := _of_time(broker, channel, consumer)):
        return of_time
    if not connection.is_told_of_cancels:
        return "CAP-005" if connection.wish_in_vain else "CANCEL-010"
    tag = method.arguments.get("consumer_tag", "")
    for owed in channel.owed:
        effect = owed.effect if isinstance(owed, Expected) else None
        if isinstance(effect, DeletionAnswered) and tag in effect.tags:
            return ""  # it only comes too early
    ended = channel.ended_consumers.get(tag)
    if ended == "CANCEL-001":
        return "CANCEL-002"
    # others go on, and nobody is told two times
    return "CANCEL-007" if tag in channel.consumers or ended is not None else ""


def _of_time(broker: Broker, channel: Channel, consumer: Consumer) -> str:
    """Blame for a basic.cancel of a consumer whose time is not up, or who was told of it; "": time is no matter."""
    if any(isinstance(owed, Expected) and owed.due is not None for owed in channel.owed):
        return "TIMEOUT-022"  # that of another one is
    if not consumer.timeout_from:
        return exempt_on(broker, channel) or ""  # it is not its time that counts
    if consumer.timed_out:
        return "TIMEOUT-008"
    held = [entry.deadline for entry in channel.unacknowledged.values() if entry.consumer is consumer]
    wrong = contested(broker, consumer) if held else []
    if any(held) or "TIMEOUT-028" in wrong:
        return next(iter(wrong), "TIMEOUT-008")
    if any(other.timed_out for other in channel.consumers.values()):
        return "TIMEOUT-022"
    return exempt_on(broker, channel) or ""


def _closed_for_time(broker: Broker, channel: Channel, method: Method) -> str:
    """Blame for a channel.close that says that a delivery was not settled in time; "": it says something else."""
    if method.name != "channel.close" or "delivery acknowledgement" not in str(method.arguments.get("reply_text")):
        return ""
    if spared := exempt_on(broker, channel):
        return spared
    if broker.dialect.consumer_timeouts is not ConsumerTimeouts.OF_QUORUM_QUEUES:
        return "TIMEOUT-003" if channel.over else "TIMEOUT-001"
    if broker.connections[channel.connection].is_told_of_cancels:
        return "TIMEOUT-008" if channel.consumers else "TIMEOUT-011"
    return "TIMEOUT-009"


def is_refused_by(owed: Expected, close: TraceEvent) -> bool:
    """Does the close say that it refuses the very request that this would answer? One that names no method, and says
    that something is not implemented, is about the latest.
    """
    named = close.arguments.get("class_id", 0), close.arguments.get("method_id", 0)
    refused = METHOD_IDS.get(owed.method.removesuffix("-ok"))
    is_of_latest = named == (0, 0) and close.arguments.get("reply_code") == NOT_IMPLEMENTED
    return owed.method.endswith("-ok") and (named == refused or is_of_latest)


def nothing_explains(
    broker: Broker, channel: Channel, method: Method, requirement: str | None, asked: bool = False
) -> Mismatches:
    """Blame for a frame that may not come now: an error that is owed and did not come, else the frame's own rule."""
    for owed in broker.connections[channel.connection].owed:
        if isinstance(owed, Expected) and owed.method in ("connection.close", "socket.closed"):
            return unexpected(owed.requirements[0], f"{method.name} in place of {owed.method}")
    if closed := _closed_for_time(broker, channel, method):
        return unexpected(closed, method.name)
    if method.name == "basic.cancel" and (told := _told_in_vain(broker, channel, method)):
        return unexpected(told, method.name)
    if not asked:
        for owed in channel.owed:
            if isinstance(owed, Expected) and owed.method in ("channel.close", "basic.return"):
                return unexpected(owed.requirements[0], f"{method.name} in place of {owed.method}")
        if method.name == "basic.return" and channel.transaction is not None and channel.transaction.publications:
            return unexpected("TX-003", "basic.return before tx.commit")
        if method.name == "basic.return":
            return unexpected(_routed_all_the_same(broker, method), method.name)
        first = channel.owed[0] if channel.owed else None
        # what a barrier waits for is not to blame, unless it is that which is refused
        about = isinstance(first, Expected) and (
            first.counted or (method.name == "channel.close" and is_refused_by(first, method))
        )
        if requirement is None and isinstance(first, Expected) and about:
            owed = first
            if method.name == "basic.cancel" and owed.method == "queue.delete-ok":
                return unexpected("CANCEL-011", "basic.cancel before queue.delete-ok")
            return unexpected(owed.requirements[0], f"{method.name} in place of {owed.method}")
    if requirement is None:
        requirement = UNSOLICITED.get(method.name) or channel.reason or "CHAN-007"
    return unexpected(requirement, method.name)
