"""consume-ok on its way from the queue to the channel.

The channel notes a consumer when consume-ok comes back from the queue (rabbit_channel:handle_cast {command,
basic.consume_ok}, consumer_monitor), and goes by what it has noted when the client cancels the consumer, or uses its
tag again, before that.
"""

from __future__ import annotations

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.owed import Expected, PendingGet
from amqpspec.model.broker.queues import Consumer
from amqpspec.model.defects.crash import break_some_time
from amqpspec.model.judging.known_defect import DefectTransition
from amqpspec.model.promises.strength import Strength
from amqpspec.model.protocol.methods import Method
from amqpspec.model.rules.basic.unseen import lose
from amqpspec.model.rules.inputs import process


def _own_consumer(broker: Broker, method: Method) -> Consumer | None:
    """The live consumer that a basic.cancel names."""
    channel = broker.open_channel(method)
    if channel is None:
        return None
    return channel.consumers.get(method.arguments.get("consumer_tag", ""))


def _cancels_before_consume_ok(broker: Broker, method: Method) -> bool:
    consumer = _own_consumer(broker, method)
    return consumer is not None and not consumer.announced


def _cancels_before_consume_ok_beside(broker: Broker, method: Method) -> bool:
    """The channel has another consumer on the same queue, whose consume-ok has come."""
    consumer = _own_consumer(broker, method)
    if consumer is None or consumer.announced:
        return False
    others = broker.channels[(method.connection, method.channel)].consumers.values()
    return any(other.queue is consumer.queue and other.announced for other in others)


def _without_consume_ok(broker: Broker, method: Method) -> None:
    """What the queue delivers until it comes to the cancel is sent all the same."""
    channel = broker.channels[(method.connection, method.channel)]
    channel.owed = [owed for owed in channel.owed if not _is_consume_ok(owed, method)]
    consumer = channel.consumers[method.arguments["consumer_tag"]]
    consumer.announced = True
    if consumer.queue in broker.deliverable and broker.has_room(consumer):
        channel.may_still_be_served[consumer.tag] = consumer
    process(broker, method)


def _is_consume_ok(owed: Expected | PendingGet, method: Method) -> bool:
    tag = method.arguments.get("consumer_tag", "")
    if not isinstance(owed, Expected) or owed.method != "basic.consume-ok":
        return False
    return bool(owed.arguments["consumer_tag"] == tag)


def _consumes_before_consume_ok_of_tag(broker: Broker, method: Method) -> bool:
    channel = broker.open_channel(method)
    if channel is None:
        return False
    return any(_is_consume_ok(owed, method) for owed in channel.owed)


def _break_after_it(broker: Broker, method: Method) -> None:
    """The input is processed, and at some time from then on the connection closes with 541."""
    process(broker, method)
    break_some_time(broker, (method.connection, method.channel))


def _break_after_cancel(broker: Broker, method: Method) -> None:
    """So too; and what the queue has handed to the consumer before it comes to the cancel nobody sees."""
    channel = broker.channels[(method.connection, method.channel)]
    consumer = channel.consumers[method.arguments["consumer_tag"]]
    lose(broker, channel, [consumer])
    _break_after_it(broker, method)
    consumer.queue.still_counted += 1  # no cancel-ok says that the queue has come to it


CONSUME_OK_DEFECTS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="cancel-before-consume-ok-breaks",
        requirement="CONSUME-005",
        strength=Strength.PROMISED,
        statement="The channel looks for the consumer when consume-ok comes back from the queue; if it was cancelled"
        " meanwhile the channel crashes, and the connection closes with 541.",
        source="v4.0.5 rabbit_channel:consumer_monitor, maps:get of a tag that basic.cancel has removed",
        dialects=("rabbitmq-3", "rabbitmq-4.0"),
        methods=("basic.cancel",),
        applies=_cancels_before_consume_ok,
        process=_break_after_cancel,
    ),
    DefectTransition(
        name="consume-ok-dropped",
        requirement="CONSUME-005",
        strength=Strength.PROMISED,
        statement="A consume-ok that comes back from the queue when its consumer was cancelled meanwhile is not sent.",
        source="rabbit_channel:handle_cast {command, basic.consume_ok}, second clause",
        dialects=("rabbitmq-4.3",),
        by_chance=True,
        methods=("basic.cancel",),
        applies=_cancels_before_consume_ok,
        process=_without_consume_ok,
    ),
    DefectTransition(
        name="cancel-before-consume-ok-beside-breaks",
        requirement="CONSUME-005",
        strength=Strength.PROMISED,
        statement="A basic.cancel before consume-ok has come crashes the channel if it has another consumer on that"
        " queue: the connection closes with 541.",
        source="v4.3.5 rabbit_channel:cancel_consumer/4, gb_sets:delete of a tag that consume-ok has not noted yet",
        dialects=("rabbitmq-4.3",),
        methods=("basic.cancel",),
        applies=_cancels_before_consume_ok_beside,
        process=_break_after_cancel,
    ),
    DefectTransition(
        name="reused-tag-before-consume-ok-breaks",
        requirement="CONSUME-004",
        strength=Strength.PROMISED,
        statement="Two consume-oks of one tag reach the channel while its second consumer lives: the second one is"
        " noted twice, the channel crashes, and the connection closes with 541.",
        source="rabbit_channel:consumer_monitor, gb_sets:insert of a tag that is there already",
        dialects=("rabbitmq-4.3",),
        methods=("basic.consume",),
        applies=_consumes_before_consume_ok_of_tag,
        process=_break_after_it,
    ),
)
