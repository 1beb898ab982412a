"""Chapter basic, publish and return (0-9-1 sections 1.8.3.7 and 1.8.3.8; area PUBLISH), and publisher confirms.

Which confirm follows, and in which order and form: `model.outputs.confirms`. Which queue refuses the message, and when:
`model.rules.extensions.drop_or_refuse`.

Requirements:

* CONFIRM-002: Sequence numbers. The n-th basic.publish after the first confirm.select on the channel has delivery-tag n
  (from 1); publishes before select are not counted. [RabbitMQ guide: consumer acknowledgements and publisher confirms]
* CONFIRM-009: Return before ack. For an unroutable mandatory message basic.return precedes its basic.ack on the
  channel. [RabbitMQ guide: consumer acknowledgements and publisher confirms; rabbit_channel.erl:deliver_to_queues]
* CONFIRM-017: Confirm vs delivery order on one channel. If publisher and consumer share a channel, the delivery and the
  confirm of the same message have no fixed order (classic transient: deliver usually first). [rabbit_channel.erl]
* REPLY-003: A mandatory reply. A mandatory message whose only destination is the address of a live reply consumer is
  not returned. Up to 4.1 the address does not count as a queue: the reply is delivered, and returned with 312 as well.
  In rabbitmq-3: delivered and returned. In rabbitmq-4.0: as stated, or delivered and returned, as versions differ (as
  stated from 4.2.0 on). [the guide on direct reply-to; rabbit_channel:deliver_to_queues]
* EXCHANGE-009: Internal exchange. Publishing to an internal exchange is 403 and closes the channel.
  [rabbit_channel.erl:check_internal_exchange]
* PUBLISH-001: Publish to a missing exchange. 404 soft error; the message is lost, no return, no confirm for it.
  [rabbit_channel.erl:basic.publish lookup_or_die; AMQP 0-9-1 basic.publish]
* PUBLISH-007: Mandatory and unroutable. A mandatory message that is routed to no queue comes back as basic.return with
  code 312, text NO_ROUTE, original exchange and routing key, same properties and body. In amqp-0-9-1: as stated, in any
  words. [rabbit_channel.erl:basic_return; AMQP 0-9-1 basic.publish]
* PUBLISH-008: Mandatory and routed. A message routed to at least one queue is never returned, even if the queue later
  rejects it (reject-publish) or drops it. [rabbit_channel.erl:process_routing_mandatory]
* PUBLISH-009: immediate. immediate=true is hard error 540. [rabbit_channel.erl]
* TX-003: Mandatory returns at commit. basic.return for unroutable messages is sent during commit, before commit-ok;
  publish to a missing exchange closes the channel immediately. [rabbit_channel.erl]
"""

from __future__ import annotations

from dataclasses import replace

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel
from amqpspec.model.broker.nodes import OPEN_BY
from amqpspec.model.broker.openness import open_queue
from amqpspec.model.broker.owed import Expected
from amqpspec.model.broker.queues import Exchange, Message, Queue
from amqpspec.model.broker.routing import ENDED_BINDING, Routes, out_of_the_ordinary, route
from amqpspec.model.broker.survival import BINDINGS
from amqpspec.model.broker.transaction import Publication
from amqpspec.model.broker.uncommitted import LARGE_BODY, keep
from amqpspec.model.protocol.errors import ProtocolError
from amqpspec.model.protocol.methods import EMPTY_CONTENT, ChannelKey, Content, Method, Table
from amqpspec.model.protocol.patterns import Anything, OneOf
from amqpspec.model.rules.basic.message_checks import as_delivered, check_properties, check_size, further_keys
from amqpspec.model.rules.common.lookup import exchange_text, find_exchange
from amqpspec.model.rules.common.permission import check_write
from amqpspec.model.rules.common.steps import Question, Step

#: What the channel makes of a content before its properties are looked at; None: it stays as it is.
rewritten: Question[[Broker, Channel, Content], Content] = Question()
#: The channel's message is about to come to the queue: does it refuse it (`dead_letter.refuse_published`)?
refused: Question[[Broker, Queue, Message, Channel], bool] = Question()
#: The message is in the queue, where that channel has published it to.
enqueued: Step[Broker, Queue, Message, ChannelKey] = Step()

#: How many of the queues that a message passes over are looked at afterwards: enough to notice, not to be slow.
WATCHED = 4


def publish(broker: Broker, channel: Channel, method: Method) -> None:
    """Route the message to each matching queue once. A mandatory one that is routed to no queue is returned. A confirm
    is owed (CONFIRM-002).
    """
    arguments = method.arguments
    immediate = bool(arguments.get("immediate"))
    content = method.content or EMPTY_CONTENT
    exchange = exchange_of(broker, channel, method)
    name = exchange.name
    routing_key = arguments.get("routing_key", "")
    content = rewritten(broker, channel, content) or content
    check_properties(broker, channel, content)
    routes = routes_of(broker, exchange, routing_key, content)
    pattern = Message(
        as_delivered(broker, content),
        name,
        routing_key,
        0,
        via=channel.key,
        further_keys=further_keys(broker, content),
        hidden_keys=further_keys(broker, content, ("BCC",)),
    )
    if immediate:
        routes = replace(routes, queues={queue: why for queue, why in routes.queues.items() if queue.consumers})
    publication = Publication(pattern, routes, immediate or bool(arguments.get("mandatory")), immediate)
    if channel.transaction is not None:
        keep(broker, channel, channel.transaction, publication)
        return
    deliver(broker, channel, publication)


def exchange_of(broker: Broker, channel: Channel, method: Method) -> Exchange:
    """The exchange that the client publishes to. Checks all that RabbitMQ checks before it reads the properties."""
    if method.arguments.get("immediate") and not broker.dialect.text.immediate_is_known:
        raise ProtocolError("PUBLISH-009", 540, "immediate=true")
    check_size(broker, method.content or EMPTY_CONTENT)
    name = method.arguments.get("exchange", "")
    check_write(broker, channel, name, "exchange")
    missing = "TX-003" if channel.transaction is not None and broker.dialect.extensions else "PUBLISH-001"
    exchange = find_exchange(broker, channel, name, broker.bookkeeping.ended_exchanges.get(name, missing))
    if exchange.internal:
        raise ProtocolError("EXCHANGE-009", 403, f"cannot publish to internal {exchange_text(broker, channel, name)}")
    return exchange


def deliver(broker: Broker, channel: Channel, publication: Publication) -> tuple[tuple[Queue, Message], ...]:
    """The message goes to the queues that it was routed to, or back to the client."""
    pattern, routes = publication.pattern, publication.routes
    copies = _enqueue(broker, channel, routes, pattern)
    broker.published(pattern, copies)
    _remember(broker, channel, routes, pattern.content)
    if not copies and not pattern.exchange:
        broker.deleted_of_late.pop(pattern.routing_key, None)
    if channel.confirming:
        channel.published += 1
    if publication.mandatory and not routes.open_by and not _counts_as_routed(broker, copies):
        # it comes before the confirm (CONFIRM-009), by its number in `Expected.publish`: model.outputs.confirms
        channel.owed.append(_returned(broker, channel, publication))
        broker.debtors[channel.key] = None
    elif publication.mandatory and not routes.open_by:
        broker.fired("PUBLISH-008")
    if channel.confirming:
        channel.unconfirmed[channel.published] = copies
        broker.settle_debts(channel)
    return copies


def return_at_once(broker: Broker, channel: Channel, publication: Publication) -> None:
    """What is routed to no queue comes back before the transaction is over; the text says nothing of when."""
    channel.owed.append(_returned(broker, channel, publication))
    broker.debtors[channel.key] = None


def routes_of(broker: Broker, exchange: Exchange, routing_key: str, content: Content) -> Routes:
    """Where the exchange sends such a message. A headers exchange does not see BCC."""
    keys = (routing_key, *further_keys(broker, content))
    headers = content.properties.get("headers") or {}
    if len(keys) > 1:
        headers = {name: value for name, value in headers.items() if name != "BCC"}
    routes = route(broker.exchanges, broker.queues, exchange, keys, headers, broker.dialect, chooses=broker.is_punctual)
    if exchange.survived:
        routes = replace(routes, queues=dict.fromkeys(routes.queues, BINDINGS))
    if down := tuple(queue for queue in routes.queues if queue.is_down):
        others = {queue: why for queue, why in routes.queues.items() if not queue.is_down}
        routes = replace(routes, queues=others, perhaps=(*routes.perhaps, *down), open_by=OPEN_BY)
    if broker.routes_nothing:
        routes = replace(routes, open_by="", perhaps=())
    return routes


def _enqueue(broker: Broker, channel: Channel, routes: Routes, pattern: Message) -> tuple[tuple[Queue, Message], ...]:
    """A message like `pattern` in each of the queues."""
    copies: list[tuple[Queue, Message]] = []
    perhaps = [queue for queue in routes.perhaps if not queue.deleted]
    for queue in perhaps:
        open_queue(broker, queue, routes.open_by)
    for queue, reason in (routes.queues | dict.fromkeys(perhaps, routes.decided_by)).items():
        message = Message(
            pattern.content,
            pattern.exchange,
            pattern.routing_key,
            0,
            reason=reason,
            via=pattern.via,
            further_keys=pattern.further_keys,
            hidden_keys=pattern.hidden_keys,
        )
        if not queue.open_by and not refused(broker, queue, message, channel):
            broker.enqueue(queue, message)
            enqueued(broker, queue, message, channel.key)
        if channel.confirming and any(consumer.channel == channel.key for consumer in broker.recipients(queue)):
            # its confirm and its delivery come on one channel, in any order
            broker.fired("CONFIRM-017")
        if not queue.reply_address:
            broker.touch(channel, queue)
        copies.append((queue, message))
    return tuple(copies)


def _remember(broker: Broker, channel: Channel, routes: Routes, content: Content) -> None:
    """What decided where the message goes made a difference; and is to blame if it turns up elsewhere."""
    if routes.open_by or broker.is_punctual:  # who serves blames nobody
        return
    reasons = set(routes.queues.values()) or {routes.decided_by}
    broker.fired(*reasons)
    blamed = out_of_the_ordinary(*sorted(reasons))
    for queue, requirement in list(routes.passed_over.items())[:WATCHED]:
        broker.touch(channel, queue, keeps_state=False)
        if not queue.unproven:
            queue.reason = requirement
        if not routes.queues and blamed != ENDED_BINDING:
            blamed = requirement
    broker.blame(channel, blamed)
    if len(content.body) <= LARGE_BODY and broker.bookkeeping.counting:
        broker.bookkeeping.note_published(blamed, content.body)


def _counts_as_routed(broker: Broker, copies: tuple[tuple[Queue, Message], ...]) -> bool:
    """REPLY-003: whether an address of direct replies is a queue in this."""
    for queue, _ in copies:
        if not queue.reply_address:
            return True
        broker.fired("REPLY-003")
    return bool(copies) and broker.dialect.reply_address_is_routable


def _returned(broker: Broker, channel: Channel, publication: Publication) -> Expected:
    """PUBLISH-007; rabbit_channel:basic_return. The content is without BCC (`message_checks.as_delivered`).

    What is immediate may be told that nobody consumes (313), whatever the broker says elsewhere.
    """
    pattern = publication.pattern
    arguments: Table = {
        "reply_code": 312, "reply_text": "NO_ROUTE", "exchange": pattern.exchange, "routing_key": pattern.routing_key,
    }  # fmt: skip
    if broker.dialect.text.returns_are_in_any_words or publication.immediate:
        arguments |= {"reply_code": OneOf((312, 313)), "reply_text": Anything(broker.dialect.text.return_text)}
    shown = ("CONFIRM-009",) if channel.confirming else ()
    first = ("TX-003",) if channel.transaction is not None and broker.dialect.extensions else ()
    return Expected(
        "basic.return",
        arguments,
        (*first, "PUBLISH-007", *shown, publication.routes.decided_by),
        content=pattern.content,
        counted=broker.bookkeeping.counting,
        publish=channel.published if channel.confirming else 0,
    )
