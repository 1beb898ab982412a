"""What the broker may send now, enumerated: the choices of the embedded broker and of the explorer.

Every frame given here is accepted by `model.outputs.observation.observe` in the same state; a test holds them together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, ChannelState
from amqpspec.model.broker.dead_letter_headers import chosen
from amqpspec.model.broker.length_limits import refusal_of
from amqpspec.model.broker.owed import Expected, PendingGet
from amqpspec.model.broker.queues import Message, Queue
from amqpspec.model.broker.stream_log import first_owed
from amqpspec.model.broker.time_to_live import dropped_by_fetch
from amqpspec.model.outputs.expected_properties import expected_properties
from amqpspec.model.outputs.turns import is_out_of_turn
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import Content, Method, Table, TraceEvent, event_of
from amqpspec.model.protocol.patterns import choose


def _nobody(connection: str) -> bool:
    return False


def permitted(broker: Broker, hears_later: Callable[[str], bool] = _nobody) -> Iterator[TraceEvent]:
    """Frames that the broker may send next, those that a simple broker would send first coming first.

    Replies in the order of their lanes, a confirm of each open publish, and for each queue its next message to each
    consumer that may have it. The state must not change while this is iterated. Connections that `hears_later` are not
    told yet of what queues have taken or refused, though it is permitted.
    """
    for key in broker.debtors:
        channel = broker.channels.get(key)
        if channel is not None:
            yield from _replies(broker, channel)
            if channel.unconfirmed:
                yield from _unroutable(channel) if hears_later(key[0]) else _confirms(channel)
        elif (connection := broker.connections.get(key[0])) is not None and connection.owed:
            yield _concrete(connection.name, 0, connection.owed[0])
    for queue in broker.deliverable:
        yield from deliveries(broker, queue)


def _concrete(connection: str, number: int, owed: Expected | PendingGet) -> TraceEvent:
    assert isinstance(owed, Expected)
    arguments = {name: choose(value) for name, value in owed.arguments.items()}
    return event_of(connection, number, owed.method, arguments, sent=False, content=owed.content)


def _replies(broker: Broker, channel: Channel) -> Iterator[TraceEvent]:
    lanes: set[str] = set()
    for owed in channel.owed:
        lane = "channel" if isinstance(owed, PendingGet) else owed.lane
        if lane in lanes:
            continue
        lanes.add(lane)
        if isinstance(owed, PendingGet):
            yield _get_reply(broker, channel, owed)
        else:
            yield _concrete(channel.connection, channel.number, owed)


def _get_reply(broker: Broker, channel: Channel, pending: PendingGet) -> Method:
    queue = pending.queue
    if not queue.messages or channel.key in queue.messages[0].passed_over_by:
        return Method(channel.connection, channel.number, "basic.get-empty", {}, sent=False)
    message = queue.messages[0]
    dropped, _ = dropped_by_fetch(queue, 0, broker.latest, broker.last_at_rest, no_ack=pending.no_ack)
    arguments = {
        "delivery_tag": channel.next_tag,
        "redelivered": message.redelivered,
        "exchange": message.exchange,
        "routing_key": message.routing_key,
        "message_count": len(queue.messages) - 1 - dropped,
    }
    content = _content(broker, queue, message, by_get=True)
    return Method(channel.connection, channel.number, "basic.get-ok", arguments, sent=False, content=content)


def _unroutable(channel: Channel) -> Iterator[TraceEvent]:
    """Confirms of what no queue has to take."""
    if all(channel.unconfirmed.values()):
        return
    returning = _returning(channel)
    for number, copies in channel.unconfirmed.items():
        if not copies and number not in returning:
            yield _confirm(channel, number, multiple=False)


def _returning(channel: Channel) -> set[int]:
    return {owed.publish for owed in channel.owed if isinstance(owed, Expected)}


def _confirms(channel: Channel) -> Iterator[TraceEvent]:
    """First what no queue has to take; then, as rabbit_channel:coalesce_and_send does it, what lies below everything
    else that is open in one frame, and the rest one by one.
    """
    returning = _returning(channel)
    ready = [number for number in channel.confirms_due() if number not in returning]
    refused = [number for number in ready if refusal_of(channel.unconfirmed[number])]
    taken = [number for number in ready if channel.unconfirmed[number] and number not in refused]
    for number in ready:
        if not channel.unconfirmed[number]:
            yield _confirm(channel, number, multiple=False)
    cutoff = min((number for number in channel.unconfirmed if number not in taken), default=channel.published + 1)
    together = [number for number in taken if number < cutoff]
    if len(together) > 1:
        yield _confirm(channel, together[-1], multiple=True)
    for number in taken:
        yield _confirm(channel, number, multiple=False)
    for number in refused:
        yield _confirm(channel, number, multiple=number == min(channel.unconfirmed), refused=True)


def _confirm(channel: Channel, number: int, multiple: bool, refused: bool = False) -> Method:
    arguments: Table = {"delivery_tag": number, "multiple": multiple}
    if refused:
        return Method(channel.connection, channel.number, "basic.nack", {**arguments, "requeue": True}, sent=False)
    return Method(channel.connection, channel.number, "basic.ack", arguments, sent=False)


def deliveries(broker: Broker, queue: Queue, *, in_order: bool = True) -> Iterator[TraceEvent]:
    """The queue's next message to each consumer that may have it. Not `in_order`: also to those whom nobody can explain
    any more that they were handed a later one.
    """
    for consumer in broker.recipients(queue):
        channel = broker.channels[consumer.channel]
        if not consumer.announced or channel.state is not ChannelState.OPEN or is_out_of_turn(broker, queue, consumer):
            continue
        if queue.type is QueueType.STREAM:
            if consumer.latest_offset >= len(queue.log):
                continue
            message = queue.log[first_owed(consumer)]
        else:
            message = queue.messages[0]
            if in_order and channel.key in message.passed_over_by:
                continue
        arguments = {
            "consumer_tag": consumer.tag,
            "delivery_tag": channel.next_tag,
            "redelivered": message.redelivered,
            "exchange": message.exchange,
            "routing_key": message.routing_key,
        }
        content = _content(broker, queue, message, by_get=False)
        yield Method(channel.connection, channel.number, "basic.deliver", arguments, sent=False, content=content)


def _content(broker: Broker, queue: Queue, message: Message, by_get: bool) -> Content:
    properties = expected_properties(broker, queue, message, by_get)
    if message.deaths:
        properties = chosen(properties)
    return message.content if properties is message.content.properties else Content(properties, message.content.body)
