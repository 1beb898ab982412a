"""Known defects: known wrong behaviour of brokers, each a way to go on after a failure.

A known defect never makes a run green. Where it applies, the judge follows it beside the lawful explanation. When the
lawful one dies and the known defect explains what was seen, the failure is recorded with the known defect's name, and
judging goes on from the state that the known defect leads to: so a known defect does not hide unknown ones behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import cache

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.hooks import Guest, Hooks
from amqpspec.model.broker.queues import Consumer, Queue
from amqpspec.model.broker.reply_addresses import REPLY_TO
from amqpspec.model.broker.routing import TIME_STAMPS
from amqpspec.model.broker.state import ChannelState, ConnectionState, Expected, PendingGet
from amqpspec.model.defects.cancelling import CANCELLING_DEFECTS
from amqpspec.model.defects.channel_closing import ChannelClosing
from amqpspec.model.defects.channel_limiter import LIMIT_DEFECTS, ChannelLimiter, follow_limiters, limiter_of
from amqpspec.model.defects.channel_mailbox import ChannelMailbox
from amqpspec.model.defects.crash import crash_with
from amqpspec.model.defects.crashes import CRASHING_DEFECTS
from amqpspec.model.defects.dead_letters import DEAD_LETTER_DEFECTS, DeadLettersToStreams
from amqpspec.model.defects.direct_replies import DirectReplies
from amqpspec.model.defects.dispatch import DISPATCH_DEFECTS
from amqpspec.model.defects.errors import ERROR_DEFECTS
from amqpspec.model.defects.expiry_by_priority import ExpiryByPriority
from amqpspec.model.defects.late_settling import LATE_SETTLING_DEFECTS
from amqpspec.model.defects.overflow import OVERFLOW_DEFECTS, OctetsOfQuorumQueues
from amqpspec.model.defects.phantoms import PHANTOM_DEFECTS
from amqpspec.model.defects.publishing import PUBLISHING_DEFECTS
from amqpspec.model.defects.queue_counts import QueueCounts, untold_queues
from amqpspec.model.defects.queues import QUEUE_DEFECTS
from amqpspec.model.defects.returns import RETURN_DEFECTS, ReturnsBeyondLimit
from amqpspec.model.defects.settling import SETTLING_DEFECTS
from amqpspec.model.defects.stream_content import StreamContent
from amqpspec.model.defects.streams import STREAM_DEFECTS
from amqpspec.model.defects.tags import TAG_DEFECTS, break_some_time
from amqpspec.model.defects.timeouts import TIMEOUT_DEFECTS, TimedDeliveries
from amqpspec.model.defects.transactions import TRANSACTION_DEFECTS
from amqpspec.model.defects.virtual_hosts import VirtualHosts
from amqpspec.model.defects.wrong_frames import FRAME_DEFECTS, MISSING_FRAMES
from amqpspec.model.judging.acceptor import DEFAULT_BOUND, Acceptor
from amqpspec.model.judging.known_defect import ANY_NUMBER, DefectsFollowed, DefectTransition
from amqpspec.model.promises.choices import Dialect
from amqpspec.model.promises.queue_types import QueueType
from amqpspec.model.protocol.methods import EMPTY_CONTENT, Frame
from amqpspec.model.rules.basic.publish import routes_of
from amqpspec.model.rules.inputs import process
from amqpspec.model.rules.unseen import lose


def _consumes_exclusively_beside(broker: Broker, frame: Frame) -> Queue | None:
    """The queue that would have to refuse it, and was not seen before not to (`Queue.ignores_exclusive`)."""
    if frame.method != "basic.consume":
        return None
    channel = broker.channels.get((frame.connection, frame.channel))
    if channel is None or channel.state is not ChannelState.OPEN:
        return None
    queue = broker.queues.get(frame.arguments.get("queue", "") or channel.last_queue or "")
    if queue is None or queue.type is QueueType.CLASSIC or not queue.consumers or queue.ignores_exclusive:
        return None
    is_exclusive = frame.arguments.get("exclusive") or any(consumer.exclusive for consumer in queue.consumers)
    return queue if is_exclusive else None


def _consume_all_the_same(broker: Broker, frame: Frame) -> None:
    queue = _consumes_exclusively_beside(broker, frame)
    if queue is not None:
        queue.ignores_exclusive = True
    # a limit that RabbitMQ has lifted (QOS-010) does not stand in the way of it either
    channel = broker.channels[(frame.connection, frame.channel)]
    limiter = limiter_of(broker, channel)
    limiter.is_followed |= not limiter.limit
    process(broker, frame)
    broker.fired("CONSUME-008")


def _own_consumer(broker: Broker, frame: Frame) -> Consumer | None:
    """The live consumer that a basic.cancel names."""
    channel = broker.channels.get((frame.connection, frame.channel))
    if frame.method != "basic.cancel" or channel is None or channel.state is not ChannelState.OPEN:
        return None
    return channel.consumers.get(frame.arguments.get("consumer_tag", ""))


def _cancels_before_consume_ok(broker: Broker, frame: Frame) -> bool:
    consumer = _own_consumer(broker, frame)
    return consumer is not None and not consumer.announced


def _cancels_before_consume_ok_beside(broker: Broker, frame: Frame) -> bool:
    """The channel has another consumer on the same queue, whose consume-ok has come."""
    consumer = _own_consumer(broker, frame)
    if consumer is None or consumer.announced:
        return False
    others = broker.channels[(frame.connection, frame.channel)].consumers.values()
    return any(other.queue is consumer.queue and other.announced for other in others)


def _without_consume_ok(broker: Broker, frame: Frame) -> None:
    """What the queue delivers until it comes to the cancel is sent all the same."""
    channel = broker.channels[(frame.connection, frame.channel)]
    channel.owed = [owed for owed in channel.owed if not _is_consume_ok(owed, frame)]
    consumer = channel.consumers[frame.arguments["consumer_tag"]]
    consumer.announced = True
    if consumer.queue in broker.deliverable and broker.has_room(consumer):
        channel.leaving[consumer.tag] = consumer
    process(broker, frame)


def _is_consume_ok(owed: Expected | PendingGet, frame: Frame) -> bool:
    tag = frame.arguments.get("consumer_tag", "")
    if not isinstance(owed, Expected) or owed.method != "basic.consume-ok":
        return False
    return bool(owed.arguments["consumer_tag"] == tag)


def _consumes_before_consume_ok_of_tag(broker: Broker, frame: Frame) -> bool:
    channel = broker.channels.get((frame.connection, frame.channel))
    if frame.method != "basic.consume" or channel is None or channel.state is not ChannelState.OPEN:
        return False
    return any(_is_consume_ok(owed, frame) for owed in channel.owed)


def _break_after_it(broker: Broker, frame: Frame) -> None:
    """The input is processed, and at some time from then on the connection closes with 541."""
    process(broker, frame)
    break_some_time(broker, (frame.connection, frame.channel))


def _break_after_cancel(broker: Broker, frame: Frame) -> None:
    """So too; and what the queue has handed to the consumer before it comes to the cancel nobody sees."""
    channel = broker.channels[(frame.connection, frame.channel)]
    consumer = channel.consumers[frame.arguments["consumer_tag"]]
    lose(broker, channel, [consumer])
    _break_after_it(broker, frame)
    consumer.queue.leaving += 1  # no cancel-ok says that the queue has come to it


def _uses_tag_of_reply_consumer(broker: Broker, frame: Frame) -> bool:
    channel = broker.channels.get((frame.connection, frame.channel))
    if frame.method != "basic.consume" or channel is None or channel.state is not ChannelState.OPEN:
        return False
    consumer = channel.consumers.get(frame.arguments.get("consumer_tag", ""))
    return consumer is not None and consumer.queue.reply_address and frame.arguments.get("queue", "") != REPLY_TO


def _consume_under_the_same_tag(broker: Broker, frame: Frame) -> None:
    """The reply consumer goes on as well; nobody can tell its deliveries from the other's, so it is left out."""
    channel = broker.channels[(frame.connection, frame.channel)]
    broker.remove_consumer(channel.consumers[frame.arguments["consumer_tag"]], "CONSUME-003")
    process(broker, frame)


def _routes_by_time_stamp(broker: Broker, frame: Frame) -> bool:
    channel = broker.channels.get((frame.connection, frame.channel))
    exchange = broker.exchanges.get(frame.arguments.get("exchange", ""))
    if exchange is None or channel is None or channel.state is not ChannelState.OPEN:
        return False
    content = frame.content or EMPTY_CONTENT
    if not any(isinstance(value, datetime) for value in (content.properties.get("headers") or {}).values()):
        return False
    return TIME_STAMPS in routes_of(broker, exchange, frame.arguments.get("routing_key", ""), content).queues.values()


def _route_without_time_stamps(broker: Broker, frame: Frame) -> None:
    dialect = broker.dialect
    broker.dialect = replace(dialect, timestamp_headers_match=False)
    process(broker, frame)
    broker.dialect = dialect
    broker.fired("PUBLISH-018")


def _declares_malformed_address(broker: Broker, frame: Frame) -> bool:
    channel = broker.channels.get((frame.connection, frame.channel))
    if channel is None or channel.state is not ChannelState.OPEN:
        return False
    name = frame.arguments.get("queue", "")
    return bool(name.startswith(REPLY_TO) and name != REPLY_TO and name not in broker.queues)


def _closes_behind_error(broker: Broker, frame: Frame) -> bool:
    """Does the client close a connection that an error on a channel has broken, before the broker has said so?"""
    connection = broker.connections.get(frame.connection)
    if frame.method != "connection.close" or connection is None or connection.state is not ConnectionState.OPEN:
        return False
    return any(isinstance(owed, Expected) and owed.method == "connection.close" for owed in connection.owed)


def _leave_unanswered(broker: Broker, frame: Frame) -> None:
    broker.stamp += 1
    broker.fired("CONN-030")


DEFECT_TRANSITIONS: tuple[DefectTransition, ...] = (
    DefectTransition(
        name="exclusive-consumer-ignored",
        requirement="CONSUME-008",
        statement="Quorum queues and streams take the exclusive flag of basic.consume and do not act on it.",
        source="rabbit_quorum_queue:consume, rabbit_stream_queue:consume (exclusive_consume only enters the metrics)",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=("basic.consume",),
        applies=lambda broker, frame: _consumes_exclusively_beside(broker, frame) is not None,
        process=_consume_all_the_same,
        shows_within=ANY_NUMBER,  # where its connection breaks at once, what it was handed shows later
    ),
    DefectTransition(
        name="cancel-before-consume-ok-breaks",
        requirement="CONSUME-005",
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
        statement="A consume-ok that comes back from the queue when its consumer was cancelled meanwhile is not sent.",
        source="rabbit_channel:handle_cast {command, basic.consume_ok}, second clause",
        dialects=("rabbitmq-4.3",),
        methods=("basic.cancel",),
        applies=_cancels_before_consume_ok,
        process=_without_consume_ok,
    ),
    DefectTransition(
        name="cancel-before-consume-ok-beside-breaks",
        requirement="CONSUME-005",
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
        statement="Two consume-oks of one tag reach the channel while its second consumer lives: the second one is"
        " noted twice, the channel crashes, and the connection closes with 541.",
        source="rabbit_channel:consumer_monitor, gb_sets:insert of a tag that is there already",
        dialects=("rabbitmq-4.3",),
        methods=("basic.consume",),
        applies=_consumes_before_consume_ok_of_tag,
        process=_break_after_it,
    ),
    DefectTransition(
        name="close-behind-error-unanswered",
        requirement="CONN-030",
        statement="When a client's connection.close crosses the one that an error on a channel brings about, it is not"
        " answered.",
        source="rabbit_reader:handle_exception in state closing sends connection.close; maybe_close no close-ok then",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=("connection.close",),
        applies=_closes_behind_error,
        process=_leave_unanswered,
    ),
    *CANCELLING_DEFECTS,
    *ERROR_DEFECTS,
    *PUBLISHING_DEFECTS,
    *TIMEOUT_DEFECTS,
    *LATE_SETTLING_DEFECTS,
    *TRANSACTION_DEFECTS,
    *QUEUE_DEFECTS,
    *TAG_DEFECTS,
    *SETTLING_DEFECTS,
    *CRASHING_DEFECTS,
    *STREAM_DEFECTS,
    *LIMIT_DEFECTS,
    *DISPATCH_DEFECTS,
    *PHANTOM_DEFECTS,
    *DEAD_LETTER_DEFECTS,
    *RETURN_DEFECTS,
    *OVERFLOW_DEFECTS,
    DefectTransition(
        name="reply-consumer-tag-taken-twice",
        requirement="REPLY-005",
        statement="The tag of a consumer of direct replies can be used again on its channel: it is not among the"
        " channel's consumers, where basic.consume looks for it.",
        source="rabbit_channel:handle_method basic.consume, consumer_mapping does not hold the reply consumer",
        dialects=("rabbitmq-3", "rabbitmq-4.0", "rabbitmq-4.3"),
        methods=("basic.consume",),
        applies=_uses_tag_of_reply_consumer,
        process=_consume_under_the_same_tag,
    ),
    DefectTransition(
        name="timestamp-headers-never-match",
        requirement="PUBLISH-018",
        statement="A headers exchange compares a time stamp in milliseconds, the message's, with one in seconds, the"
        " binding's, so no two are equal.",
        source="mc_amqpl:routing_value multiplies by 1000; rabbit_exchange_type_headers takes the argument as it is",
        dialects=("rabbitmq-4.0", "rabbitmq-4.3"),
        methods=("basic.publish",),
        applies=_routes_by_time_stamp,
        process=_route_without_time_stamps,
    ),
    DefectTransition(
        name="malformed-reply-address-breaks",
        requirement="REPLY-002",
        statement="Declaring a queue whose name begins like an address of direct replies and is none, passively or not,"
        " crashes the channel; the connection closes with 541.",
        source="rabbit_channel:handle_method queue.declare: rabbit_volatile_queue:new gives error, taken for a queue",
        dialects=("rabbitmq-4.3",),
        methods=("queue.declare",),
        applies=_declares_malformed_address,
        process=crash_with("REPLY-002"),
    ),
)


def defects_of(dialect: Dialect) -> Mapping[str, tuple[DefectTransition, ...]]:
    """The known defects of a dialect's brokers, by the methods that can come under them."""
    return _followed(dialect.name).by_method


#: Those who keep in mind what the known defects of the mechanisms go by.
GUESTS: tuple[Guest, ...] = (
    ChannelLimiter(), TimedDeliveries(), OctetsOfQuorumQueues(), ReturnsBeyondLimit(), DeadLettersToStreams(),
    QueueCounts(), ChannelClosing(), ChannelMailbox(), DirectReplies(), ExpiryByPriority(), VirtualHosts(),
    StreamContent(),
)  # fmt: skip
HOOKS = Hooks(GUESTS)


def acceptor_for(
    dialect: Dialect, bound: int = DEFAULT_BOUND, virtual_host: str = "/", own_user: str = ""
) -> Acceptor:
    """The acceptor that follows what the dialect's brokers are known to do wrong."""
    return Acceptor(dialect, bound, virtual_host, own_user, _followed(dialect.name))


@cache
def _followed(dialect: str) -> DefectsFollowed:
    own = [defect for defect in DEFECT_TRANSITIONS if dialect in defect.dialects]
    methods = {method for defect in own for method in defect.methods}
    by_method = {method: tuple(defect for defect in own if method in defect.methods) for method in methods}
    return DefectsFollowed(by_method, follow_limiters, HOOKS, FRAME_DEFECTS, MISSING_FRAMES, untold_queues)
