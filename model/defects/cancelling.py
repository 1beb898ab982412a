"""Known defects (`model.defects.transitions`) of cancelling."""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.state import ChannelState, Expected
from amqpspec.model.defects.crash import crash_with, internal_error
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.protocol.methods import Frame
from amqpspec.model.rules.basic.cancel import crossing_of, withdraw_notice
from amqpspec.model.rules.connection.closing import break_connection
from amqpspec.model.rules.inputs import process


def _confirms_what_is_over(broker: Broker, frame: Frame) -> bool:
    """Does the client say cancel-ok of what is no consumer, as it is when the broker has cancelled it?"""
    channel = broker.channels.get((frame.connection, frame.channel))
    if frame.method != "basic.cancel-ok" or channel is None or channel.state is not ChannelState.OPEN:
        return False
    consumer = channel.consumers.get(frame.arguments.get("consumer_tag", ""))
    # a consumer of direct replies is none of the channel's
    return consumer is None or consumer.queue.reply_address


def _crosses_deletion(broker: Broker, frame: Frame) -> bool:
    """Does the client cancel a consumer of a quorum queue that is being deleted?"""
    if frame.method != "basic.cancel":
        return False
    return crossing_of(broker, frame) == "CANCEL-006" or _crosses_untold(broker, frame)


def _crosses_untold(broker: Broker, frame: Frame) -> bool:
    """The same of a client that is not told of the end of its consumers: who deletes has not been answered yet."""
    channel = broker.channels.get((frame.connection, frame.channel))
    if channel is None or channel.state is not ChannelState.OPEN:
        return False
    if frame.arguments.get("consumer_tag", "") not in channel.bereft:
        return False
    return any(
        isinstance(owed, Expected) and owed.method == "queue.delete-ok"
        for other in broker.channels.values()
        for owed in other.owed
    )


def _break_instead(broker: Broker, frame: Frame) -> None:
    """What the channel would have said of other consumers of the queue is lost with it."""
    broker.stamp += 1
    broker.fired("CANCEL-006")
    channel = broker.channels[(frame.connection, frame.channel)]
    channel.owed = [o for o in channel.owed if not (isinstance(o, Expected) and o.method == "basic.cancel")]
    break_connection(broker, channel, internal_error())


def _answer_twice(broker: Broker, frame: Frame) -> None:
    process(broker, frame)
    withdraw_notice(broker, frame)
    channel = broker.channels[(frame.connection, frame.channel)]
    tag = frame.arguments.get("consumer_tag", "")
    for owed in channel.owed:
        if isinstance(owed, Expected) and owed.method == "basic.cancel-ok" and owed.arguments["consumer_tag"] == tag:
            channel.owed.append(owed)
            break


CANCELLING_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="cancel-ok-for-no-consumer-breaks",
        requirement="CANCEL-009",
        statement="A client that answers the basic.cancel for a deleted queue with cancel-ok crashes the channel, which"
        " knows the consumer no longer; the connection closes with 541.",
        source="rabbit_channel:handle_method basic.cancel_ok, cancel_consumer: return_ok replies with undefined",
        dialects=("rabbitmq-4.3",),
        methods=("basic.cancel-ok",),
        applies=_confirms_what_is_over,
        process=crash_with("CANCEL-009"),
    ),
    DefectTransition(
        name="cancel-crossing-deletion-breaks",
        requirement="CANCEL-006",
        statement="A basic.cancel that comes to its channel when the quorum queue is gone and the channel has not heard"
        " of that crashes the channel; the connection closes with 541.",
        source="rabbit_channel:cancel_consumer, case_clause {error, noproc} of rabbit_fifo_client:cancel_checkout",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=("basic.cancel",),
        applies=_crosses_deletion,
        process=_break_instead,
    ),
    DefectTransition(
        name="cancel-crossing-deletion-answered-twice",
        requirement="CANCEL-006",
        statement="A basic.cancel that comes to its channel while the quorum queue is being deleted is answered by two"
        " cancel-oks.",
        source="v4.0.5 rabbit_quorum_queue:cancel sends one before it asks the queue; when that ends meanwhile"
        " rabbit_channel:handle_method basic.cancel returns another (with_exit_handler, not_found)",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=("basic.cancel",),
        applies=_crosses_deletion,
        process=_answer_twice,
    ),
)
