"""What a delivery must say of its message: number, redelivered, properties (PUBLISH-016, QUORUM-001, STREAM-003).

Requirements:

* ACK-015: redelivered flag. false on first delivery of a message from this queue, true on every later delivery after
  requeue by nack, reject, recover, cancel+close, channel/connection close, timeout - whether or not the client saw the
  first delivery. [AMQP 0-9-1 basic.deliver; rabbit_channel.erl]
* CONSUME-014: Delivery tags are shared per channel. Tags start at 1 per channel and increase by 1 over ALL deliveries
  and get-oks of the channel, ack or no-ack, across consumers and queues. [RabbitMQ guide: consumer acknowledgements and
  publisher confirms; rabbit_channel.erl:record_sent]
* DLX-002: x-death entry. x-death is an array of tables
  {count,reason,queue,time,exchange,routing-keys[,original-expiration]}, newest first, merged by (queue,reason). Field
  order is not fixed across versions. The count is a long-long-int (l), the time a time stamp (T). In rabbitmq-3: broken
  up to 3.12: each further death turns the order of the earlier ones: third, first, second. [mc_amqpl]
* DLX-003: x-first-death-* and x-last-death-*. x-first-death-{exchange,queue,reason} always; x-last-death-* from 4.0
  (3.13). In rabbitmq-3: first only. In rabbitmq-4.0: first and last. In rabbitmq-4.3: first and last. [mc]
* DLX-005: Routing. Dead-lettering uses x-dead-letter-routing-key or the original keys; the delivered exchange is the
  name of the dead-letter exchange. [RabbitMQ Java client test DeadLetterExchange]
* DLX-010: redelivered flag and counts in the DLQ. What was handed to nobody before it was dead-lettered comes as a
  first delivery, without counts. Of what was handed out and not acknowledged no text says how many of these deliveries
  it takes along, and whether they go on counting towards a delivery limit: from none to all, told by redelivered and by
  a quorum queue's headers, until it is given back there. In rabbitmq-3: usually none: all counts begin anew. In
  rabbitmq-4.0: usually a quorum queue counts each lost holder and each refusal without requeue, not what nack or reject
  gave back; only a quorum queue looks at the number. In rabbitmq-4.3: usually what QUORUM-002 says counts, in classic
  queues too; it goes on counting towards the limit. A classic queue that hands the message to a waiting consumer at
  once does not look at it: redelivered=false. [mc annotation delivery_count: rabbit_fifo:annotate_msg,
  rabbit_variable_queue:set_deliver_flag (4.3)]
* PUBLISH-002: Default exchange routes by queue name. routing key = queue name; unknown name is unroutable.
  [rabbit_exchange:route; AMQP 0-9-1 basic.publish]
* PUBLISH-016: Properties and body are preserved bit-exact. Properties, header table and body (also empty and
  multi-frame) arrive unchanged apart from broker-added headers (x-death*, x-delivery-count, x-acquired-count,
  x-stream-offset) and BCC removal. In rabbitmq-3: as stated; a long-long-int of type L may come back as l. In
  rabbitmq-4.0: broken: expiration comes back as the number that it is (060000 as 60000); type L may come back as l. In
  rabbitmq-4.3: broken: expiration comes back as the number that it is (060000 as 60000); type L may come back as l.
  [rabbit_channel.erl:handle_deliver0; AMQP 0-9-1 basic.publish]
* QUORUM-001: x-delivery-count header. Counts earlier failed deliveries; absent on the first delivery from 4.0 on, 0 on
  basic.get in 3.10. A client's own header of that name comes through as long as the broker has no count. Classic queues
  count nothing. The counts are long-long-ints (l). In rabbitmq-3: 0 or absent on first get, as versions differ (absent
  from 3.12.0 on), absent on first deliver. In rabbitmq-4.0: absent first, then 1,2.. In rabbitmq-4.3: absent unless
  failed; x-acquired-count counts every return. [rabbit_fifo_client:add_delivery_count_header]
* QUORUM-002: What counts as failed (4.3). reject(requeue=true), channel/connection close: x-delivery-count +1 and
  x-acquired-count +1. nack(requeue=true), recover, timeout: only x-acquired-count +1. In rabbitmq-3: every return +1
  x-delivery-count. In rabbitmq-4.0: every return +1 x-delivery-count. [rabbit_channel.erl: nack->requeue,
  reject->settle(true,false)]
* RECOVER-001: basic.recover(true). Requeues ALL unacked messages of the channel (consumers and gets) and answers
  recover-ok; messages come back with redelivered=true and new tags, possibly to other consumers.
  [rabbit_channel.erl:basic.recover_async; AMQP 0-9-1 basic.recover]
* RECOVER-002: basic.recover-async(true). basic.recover-async(true) does the same as basic.recover(true), without a
  reply. [rabbit_channel.erl; AMQP 0-9-1 basic.recover-async]
* RECOVER-005: recover on quorum counts like nack. 4.0: x-delivery-count +1; 4.3: only x-acquired-count +1. In
  rabbitmq-3: x-delivery-count 1, message to tail. In rabbitmq-4.0: x-delivery-count 1. In rabbitmq-4.3:
  x-acquired-count 1. [rabbit_fifo]
* STREAM-003: Non-destructive, offset header. Reading a stream takes nothing away: every consumer is handed the same
  messages, in the order of the log, also after others have acknowledged them. Deliveries carry x-stream-offset (from 0,
  a long-long-int), and redelivered is always false. [RabbitMQ guide: streams; rabbit_stream_queue:stream_entries]
* TIMEOUT-012: Messages are returned. Timed-out messages become ready at once: passive declare counts them, another
  consumer gets them with redelivered=true. [RabbitMQ guide: consumer timeouts (ready, for any consumer); AMQP 0-9-1
  basic.deliver (redelivered)]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.dead_letter_headers import HISTORY, as_seen, is_of_history, wrong_of_death
from amqpspec.model.broker.queues import Message, Queue
from amqpspec.model.broker.reply_addresses import agree
from amqpspec.model.broker.routing import FURTHER_KEYS
from amqpspec.model.broker.survival import COUNTS, flag_requirement
from amqpspec.model.outputs.carried_counts import (
    counts_are_open,
    may_be_redelivered,
)
from amqpspec.model.outputs.content_differences import table_differences
from amqpspec.model.outputs.delivered_message import ONE_COPY
from amqpspec.model.outputs.deliveries_of_others import as_of_others, is_of_others
from amqpspec.model.outputs.expected_properties import expected_properties
from amqpspec.model.outputs.free_properties import as_free
from amqpspec.model.outputs.mismatch import Mismatch
from amqpspec.model.outputs.unseen_counts import counted_unseen
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.verdict import Shape
from amqpspec.model.protocol.erlang_wording import wire_type
from amqpspec.model.protocol.field_types import retyped
from amqpspec.model.protocol.methods import Method

#: basic.recover: "The server MUST set the redelivered flag on all messages that are resent"; of others it SHOULD.
_RECOVERED = ("RECOVER-001", "RECOVER-002")


def wrong_number(broker: Broker, channel: Channel, queue: Queue, method: Method) -> tuple[Mismatch, ...]:
    """CONSUME-014: what is wrong with the delivery tag. Empty if it is right."""
    tag, is_free = method.arguments["delivery_tag"], not broker.dialect.extensions
    if is_free and tag not in (0, channel.next_tag) and not channel.has_used(tag):
        channel.number_anew(tag)  # numbers may be left out, and come later: their order is in no text
    right = channel.next_tag
    if tag == right and not (is_free and channel.has_used(tag)):
        return ()
    detail = f"{method.name} delivery-tag"
    return (Mismatch("CONSUME-014", Shape.WRONG_ARGUMENT, detail, True, str(right), "delivery_tag", right, queue),)


def check_delivery(
    broker: Broker, channel: Channel, queue: Queue, message: Message, method: Method, by_get: bool
) -> tuple[Mismatch, ...]:
    """Compare everything that a deliver or get-ok says about a message that may be delivered. Empty if right."""
    wrong: list[Mismatch] = [*wrong_number(broker, channel, queue, method)]
    expected = expected_properties(broker, queue, message, by_get)
    if not broker.dialect.extensions and is_of_others(queue, message):
        method = as_of_others(queue, message, method, expected)
    arguments = method.arguments
    if (message.unseen or message.recalled) and arguments.get("redelivered"):
        message.redelivered = True
    if message.may_be_flagged or may_be_redelivered(queue, message):
        message.may_be_flagged = False
        message.redelivered = bool(arguments.get("redelivered"))
    if arguments.get("redelivered", False) is not message.redelivered:
        allowed = str(message.redelivered).lower()
        requirement = "STREAM-003" if queue.type is QueueType.STREAM else "ACK-015"
        if message.survived_by:
            requirement = flag_requirement(message)
        elif message.is_first_here:
            requirement = "DLX-010"
        elif message.reason.startswith("TIMEOUT") and message.redelivered:
            requirement = "TIMEOUT-012"
        elif message.reason in _RECOVERED and message.redelivered and not broker.dialect.extensions:
            requirement = message.reason
        wrong.append(Mismatch(requirement, Shape.WRONG_ARGUMENT, f"{method.name} redelivered", False, allowed))
    if arguments.get("exchange", "") != message.exchange or arguments.get("routing_key", "") != message.routing_key:
        allowed = f"exchange={message.exchange} routing-key={message.routing_key}"
        requirement = message.reason if message.reason in ONE_COPY else "PUBLISH-002"
        if message.deaths:
            requirement = "DLX-005"
        wrong.append(Mismatch(requirement, Shape.WRONG_ARGUMENT, f"{method.name} exchange or key", False, allowed))
    observed = method.content.properties if method.content else {}
    if message.unseen or message.recalled or message.may_have_timed_out or counts_are_open(queue, message):
        expected = counted_unseen(broker, queue, message, observed, by_get)
    if message.deaths:
        expected = as_seen(expected, observed)
    expected = as_free(broker.dialect, queue, message, expected, observed)
    if not agree(broker, expected, observed):
        wrong.append(_wrong_property(queue, message, method, observed, expected))
    elif header := retyped(expected.get("headers"), observed.get("headers")):
        requirement = _writer_of(message, header.name)
        allowed = f"{header.path} of type {wire_type(header.value)}"
        detail = f"{method.name} headers"
        wrong.append(Mismatch(requirement, Shape.WRONG_ARGUMENT, detail, False, allowed, "headers"))
    return tuple(wrong)


def _wrong_property(
    queue: Queue,
    message: Message,
    method: Method,
    observed: Mapping[str, Any],
    expected: Mapping[str, Any],
) -> Mismatch:
    names = sorted({*observed, *expected})
    name = next(name for name in names if observed.get(name) != expected.get(name))
    requirement = "PUBLISH-016"
    if name == "headers" and "BCC" in (observed.get(name) or {}):
        requirement = FURTHER_KEYS
    elif message.deaths and name in ("headers", "expiration") and (of_death := wrong_of_death(expected, observed)):
        requirement = of_death
    elif name == "headers" and queue.type is QueueType.CLASSIC and _counts(observed) != _counts(expected):
        requirement = "QUORUM-001"
    elif name == "headers" and queue.type is QueueType.QUORUM and message.survived_by:
        requirement = COUNTS
    elif name == "headers" and queue.type is QueueType.QUORUM:
        requirement = "RECOVER-005" if message.reason.startswith("RECOVER") else _wrong_count(expected, observed)
    elif name == "headers" and queue.type is QueueType.STREAM and _offset(observed) != _offset(expected):
        requirement = "STREAM-003"
    allowed = f"{name}={expected.get(name, 'none')}"
    if name == "headers":
        allowed = "; ".join(f"headers {each}" for each in table_differences(expected.get(name), observed.get(name)))
    if not observed and len(expected) > 1 and requirement == "PUBLISH-016":
        name = "without properties"  # whichever of several
    detail = f"{method.name} {name}"
    return Mismatch(requirement, Shape.WRONG_ARGUMENT, detail, False, allowed, "properties", expected, queue)


def _writer_of(message: Message, header: str) -> str:
    """The requirement by which the header is there: that of the broker's own, or that of the client's."""
    if message.deaths and is_of_history(header):
        return "DLX-002" if header == HISTORY else "DLX-003"
    if header in (message.content.properties.get("headers") or {}):
        return "PUBLISH-016"
    return "STREAM-003" if header == "x-stream-offset" else "QUORUM-001"


def _offset(properties: Mapping[str, Any]) -> Any:
    return (properties.get("headers") or {}).get("x-stream-offset")


def _counts(properties: Mapping[str, Any]) -> tuple[Any, Any]:
    headers = properties.get("headers") or {}
    return headers.get("x-delivery-count"), headers.get("x-acquired-count")


def _wrong_count(expected: Mapping[str, Any], observed: Mapping[str, Any]) -> str:
    """Deliveries are counted right, and which of them failed is not (QUORUM-002); else QUORUM-001."""
    (_, acquired), (_, told) = _counts(expected), _counts(observed)
    return "QUORUM-002" if acquired is not None and told == acquired else "QUORUM-001"


def shows_what_is_kept(message: Message) -> bool:
    """Does the message have more to keep than a short body?"""
    content = message.content
    return bool(content.properties) or not content.body or len(content.body) > 65536
