"""The closes that the broker owes for errors, and what breaks a connection.

Area CHAN (CHAN-005, CHAN-007, CHAN-008); RabbitMQ: rabbit_channel:handle_exception,
rabbit_reader:terminate_channels. What ends with the channel or connection is in `model.rules.connection.ending`.

Requirements:

* ACK-022: Max delivery tag. Delivery tags are unsigned 64 bit on the wire. The guide names 9223372036854775807 as the
  maximum; the broker accepts and prints any 64-bit value. In amqp-0-9-1: as stated, with any text. [RabbitMQ guide:
  consumer acknowledgements and publisher confirms]
* CHAN-005: After a soft error the channel ignores everything but close/close-ok. After sending channel.close the server
  drops all methods on that channel until channel.close-ok; a crossing client channel.close is answered with close-ok.
  [rabbit_channel.erl:handle_exception; rabbit_reader.erl:handle_frame closing; AMQP 0-9-1 class channel]
* CHAN-007: Soft and hard error classes. Soft (channel) codes: 311,312(return only),313,403,404,405,406. Hard
  (connection) codes: 320,402,501,502,503,504,505,506,530,540,541. The class-id/method-id of the close are those of the
  offending method, or 0/0 when the failure was not caused by a decoded method. [AMQP 0-9-1 1.1 constants;
  rabbit_framing_amqp_0_9_1:lookup_amqp_exception]
* CHAN-008: Reply text format. Reply text is "<NAME> - <explanation>", NAME upper-case of the constant
  (PRECONDITION_FAILED, NOT_FOUND, ...), truncated to 255 octets. [rabbit_binary_generator:map_exception/explanation]
* CHAN-018: no-wait suppresses only the ok. With nowait=true the -ok is omitted; errors still close the channel.
  [rabbit_channel.erl:return_ok; AMQP 0-9-1 class channel]
* CONFIRM-018: Pending confirms at channel error. If the channel dies, outstanding confirms are never sent.
  [rabbit_channel.erl:terminate]
* CONFIRM-019: Publish failing with a channel error consumes no seqno. A publish that closes the channel (404, 403, 406)
  gets neither return nor ack. [rabbit_channel.erl]
* CONN-013: channel-max limits the count, not the number. The server limits the NUMBER OF OPEN channels; a channel id
  above the negotiated channel-max is accepted while the count is below it. A channel that the server closed counts
  until the client's close-ok. Any frame on one channel more is refused with 530, whatever it is. In amqp-0-9-1: a
  number above channel-max is refused, or a channel more than so many. [rabbit_reader.erl:create_channel]
* PERMISSION-001: Refusal text. An operation without the permission is refused with a soft 403, whether what it names
  exists or not; the text of 4.x names the permission that is missing. The default exchange is called amq.default. In
  rabbitmq-3: with or without the permission word, as versions differ (with from 3.12.0 on). In rabbitmq-4.0: with. In
  rabbitmq-4.3: with. [rabbit_access_control:check_resource_access]
* PERMISSION-002: Which permission. declare/delete: configure; bind/unbind: write on the destination and read on the
  source; publish: write on the exchange (the default exchange as amq.default); consume/get/purge: read. A new queue
  with x-dead-letter-exchange, or exchange with alternate-exchange: also read on itself and write on what the argument
  names. A permission is a pattern that is looked for in the name. [rabbit_channel:handle_method;
  rabbit_auth_backend_internal:check_resource_access]
* PERMISSION-003: Passive declare. Passive declare needs no permission up to 4.2.5, configure in 4.2.6 and 4.3.0, and
  any one of read/write/configure from 4.2.7 and 4.3.1 on. In rabbitmq-3: none. In rabbitmq-4.0: none, configure or any,
  as versions differ (configure in 4.2.6, any from 4.2.7 on). In rabbitmq-4.3: any, or configure (4.3.0). [RabbitMQ
  release notes of 4.2.6, 4.2.7, 4.3.0, 4.3.1; rabbit_channel.erl:check_any_resource_access_permitted]
"""

from __future__ import annotations

from dataclasses import replace

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.channels import Channel, ChannelState, Unacknowledged
from amqpspec.model.broker.connections import Connection, ConnectionState
from amqpspec.model.broker.deadlines import LATE_SECONDS
from amqpspec.model.broker.internal_events import ChannelCrash, ConnectionTeardown
from amqpspec.model.broker.limits import limit_channel
from amqpspec.model.broker.owed import Expected
from amqpspec.model.promises.choices import ConsumerTimeouts
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.promises.text_choices import CODES
from amqpspec.model.protocol.errors import FrameError, ProtocolError
from amqpspec.model.protocol.methods import METHOD_IDS, TraceEvent
from amqpspec.model.protocol.patterns import Anything, OneOf
from amqpspec.model.rules.connection.ending import end_channel, end_connection, is_said_by_queue, replies_owed

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
    # whatever comes after the close
    broker.blame(channel, "CHAN-005")


def _timing_out(broker: Broker, channel: Channel) -> list[Unacknowledged]:
    """What may time out before the client has answered the close: quorum queues hear of the end of a channel no sooner.

    RabbitMQ 4.3: rabbit_channel:notify_queues tells classic queues; rabbit_fifo waits for the end of the process.
    """
    if broker.dialect.consumer_timeouts is not ConsumerTimeouts.OF_QUORUM_QUEUES:
        return []
    answered_by = max(broker.latest, broker.looked_ahead_until) + LATE_SECONDS
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
    """The channel that breaks its connection ends; those of its consumers that have room may be served after that."""
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

def _drop_answers_of_queues(broker: Broker, channel: Channel) -> None:
    """What has not come from the queues when the channel finds the error is not said (rabbit_channel:handle_cast in
    state closing).
    """
    channel.owed = [owed for owed in channel.owed if not is_said_by_queue(owed)]
    broker.settle_debts(channel)


def _codes(broker: Broker, error: ProtocolError) -> int | OneOf | Anything:
    """The reply codes that are right: the text may leave open which, or name several."""
    if error.any_code:
        return Anything(error.code)
    codes = broker.dialect.text.codes.get(error.requirement, ())
    if codes and error.unsettled_code:
        codes = CODES[error.requirement]
    if len(codes) == 1:  # settled, for what has no code of its own
        return error.code if error.named_code else codes[0]
    codes = tuple(dict.fromkeys((error.code, *codes)))
    return OneOf(codes) if len(codes) > 1 else error.code


def _close(broker: Broker, method: str, event: TraceEvent | None, error: ProtocolError) -> Expected:
    class_id, method_id = error.identifiers or METHOD_IDS.get(event.name if event is not None else "", (0, 0))
    is_fixed = broker.dialect.fixed_reply_texts and not error.any_text
    arguments = {
        "reply_code": _codes(broker, error),
        "reply_text": error.pattern or error.text if is_fixed else Anything(error.text),
        "class_id": class_id,
        "method_id": method_id,
    }
    if error.requirement == "CONN-013" and broker.dialect.text.channel_max_is_a_number:
        # provoked by the method or by the number that it comes with
        arguments |= {"class_id": Anything(class_id), "method_id": Anything(method_id)}
    elif isinstance(error, FrameError) and not broker.dialect.extensions and class_id:
        # CHAN-007: the failure may be that of a frame, which was never decoded
        arguments |= {"class_id": OneOf((class_id, 0)), "method_id": OneOf((method_id, 0))}
    requirements: tuple[str, ...] = (error.requirement, "CHAN-007", "CHAN-008")
    if error.is_cut:
        requirements = ("CHAN-008", error.requirement, "CHAN-007")  # what makes this close special
    if event is not None and event.arguments.get("nowait"):
        requirements += ("CHAN-018",)
    blame = CLOSE_BLAME
    if error.requirement in OF_TEXTS:
        blame = {**CLOSE_BLAME, "reply_text": OF_TEXTS[error.requirement]}
    return Expected(method, arguments, requirements, blame=blame, counted=broker.bookkeeping.counting)
