"""Known defects: known wrong behaviour of brokers, each a way to go on after a failure.

A known defect never makes a run green. Where it applies, the judge follows it beside the lawful explanation. When the
lawful one dies and the known defect explains what was seen, the failure is recorded with the known defect's name, and
judging goes on from the state that the known defect leads to: so a known defect does not hide unknown ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from amqpspec.model.broker.broker import Broker
from amqpspec.model.broker.hooks import Guest, Hooks
from amqpspec.model.broker.internal_events import Kind
from amqpspec.model.defects.body_length import BODY_LENGTH_DEFECTS
from amqpspec.model.defects.cancelling import CANCELLING_DEFECTS
from amqpspec.model.defects.channel_closing import ChannelClosing
from amqpspec.model.defects.channel_limiter import ChannelLimiter, follow_limiters
from amqpspec.model.defects.channel_mailbox import ChannelMailbox
from amqpspec.model.defects.classic_active_consumer import CLASSIC_ACTIVE_CONSUMER_DEFECTS, ClassicActiveConsumer
from amqpspec.model.defects.consume_ok import CONSUME_OK_DEFECTS
from amqpspec.model.defects.consumers_of_ended_queues import (
    ENDED_QUEUE_DEFECTS,
    ENDED_QUEUE_TAG_DEFECTS,
    ConsumersOfEndedQueues,
)
from amqpspec.model.defects.crashes import CRASHING_DEFECTS
from amqpspec.model.defects.dead_letters import DEAD_LETTER_DEFECTS, DeadLettersToStreams
from amqpspec.model.defects.delivery_numbers import DeliveryNumbers
from amqpspec.model.defects.direct_replies import DIRECT_REPLY_DEFECTS, REPLY_PUBLISHING_DEFECTS, DirectReplies
from amqpspec.model.defects.drop_order import DROP_ORDER_DEFECTS, DropOrder
from amqpspec.model.defects.errors import CLOSE_DEFECTS, ERROR_DEFECTS
from amqpspec.model.defects.exclusive_consumers import EXCLUSIVE_CONSUMER_DEFECTS, ExclusiveConsumers
from amqpspec.model.defects.exclusive_queues import EXCLUSIVE_QUEUE_DEFECTS, ExclusiveQueues
from amqpspec.model.defects.expiry_by_priority import ExpiryByPriority
from amqpspec.model.defects.forgotten_deadlines import FORGOTTEN_DEADLINE_DEFECTS, ForgottenDeadlines
from amqpspec.model.defects.habits import HABITS
from amqpspec.model.defects.header_values import HEADER_DEFECTS, TIME_STAMP_DEFECTS
from amqpspec.model.defects.late_settling import LATE_SETTLING_DEFECTS
from amqpspec.model.defects.limiter_defects import LIMIT_DEFECTS
from amqpspec.model.defects.merged_consumers import MERGED_DEFECTS, MergedConsumers
from amqpspec.model.defects.overflow import OVERFLOW_DEFECTS, OctetsOfQuorumQueues
from amqpspec.model.defects.queue_arguments import QUEUE_ARGUMENT_DEFECTS
from amqpspec.model.defects.queue_counts import QueueCounts, untold_queues
from amqpspec.model.defects.queue_types_by_name import QUEUE_TYPE_DEFECTS, QueueTypesByName
from amqpspec.model.defects.quorum_queue_clients import QUORUM_CLIENT_DEFECTS, QuorumQueueClients
from amqpspec.model.defects.repeated_notices import RepeatedNotices
from amqpspec.model.defects.resumed_consumers import RESUMING_DEFECTS, ResumedConsumers
from amqpspec.model.defects.returns import RETURN_DEFECTS, ReturnsBeyondLimit
from amqpspec.model.defects.service_queue import SERVICE_DEFECTS, ServiceQueue
from amqpspec.model.defects.settling import SETTLING_DEFECTS
from amqpspec.model.defects.stalled_queues import StalledQueues
from amqpspec.model.defects.stream_chunks import StreamChunks
from amqpspec.model.defects.stream_content import StreamContent
from amqpspec.model.defects.stream_settlement import STREAM_SETTLEMENT_DEFECTS, StreamSettlement
from amqpspec.model.defects.streams import STREAM_DEFECTS, StreamReaders
from amqpspec.model.defects.timed_deliveries import TimedDeliveries
from amqpspec.model.defects.timed_out_tags import TIMED_OUT_TAG_DEFECTS
from amqpspec.model.defects.timeout_text import TimeoutText
from amqpspec.model.defects.transactions import TRANSACTION_DEFECTS, Transactions
from amqpspec.model.defects.virtual_hosts import VirtualHosts
from amqpspec.model.defects.waiting_consumers import WaitingConsumers
from amqpspec.model.defects.wrong_active_consumers import WAITING_DEFECTS
from amqpspec.model.defects.wrong_outputs import MISSING_OUTPUTS, OUTPUT_DEFECTS
from amqpspec.model.judging.acceptor import DEFAULT_BOUND, Acceptor
from amqpspec.model.judging.known_defect import DefectsFollowed, DefectTransition
from amqpspec.model.promises.choices import Dialect

DEFECT_TRANSITIONS: tuple[DefectTransition, ...] = (
    *BODY_LENGTH_DEFECTS,
    *EXCLUSIVE_CONSUMER_DEFECTS,
    *CONSUME_OK_DEFECTS,
    *CLOSE_DEFECTS,
    *CANCELLING_DEFECTS,
    *ERROR_DEFECTS,
    *HEADER_DEFECTS,
    *REPLY_PUBLISHING_DEFECTS,
    *TIMED_OUT_TAG_DEFECTS,
    *RESUMING_DEFECTS,
    *FORGOTTEN_DEADLINE_DEFECTS,
    *LATE_SETTLING_DEFECTS,
    *TRANSACTION_DEFECTS,
    *EXCLUSIVE_QUEUE_DEFECTS,
    *ENDED_QUEUE_TAG_DEFECTS,
    *QUEUE_TYPE_DEFECTS,
    *ENDED_QUEUE_DEFECTS,
    *QUORUM_CLIENT_DEFECTS,
    *QUEUE_ARGUMENT_DEFECTS,
    *MERGED_DEFECTS,
    *SERVICE_DEFECTS,
    *SETTLING_DEFECTS,
    *CRASHING_DEFECTS,
    *STREAM_DEFECTS,
    *STREAM_SETTLEMENT_DEFECTS,
    *LIMIT_DEFECTS,
    *CLASSIC_ACTIVE_CONSUMER_DEFECTS,
    *WAITING_DEFECTS,
    *DEAD_LETTER_DEFECTS,
    *DROP_ORDER_DEFECTS,
    *RETURN_DEFECTS,
    *OVERFLOW_DEFECTS,
    *DIRECT_REPLY_DEFECTS,
    *TIME_STAMP_DEFECTS,
)


def defects_of(dialect: Dialect) -> Mapping[Kind, tuple[DefectTransition, ...]]:
    """The known defects of a dialect's brokers, by the kinds of inputs that can come under them."""
    return _followed(dialect.name).by_kind


#: Those who keep in mind what the known defects of the mechanisms go by.
GUESTS: tuple[Guest, ...] = (
    ChannelLimiter(), DeliveryNumbers(), QuorumQueueClients(), ConsumersOfEndedQueues(), QueueTypesByName(),
    ExclusiveQueues(), ExclusiveConsumers(), StreamReaders(), Transactions(),
    TimedDeliveries(), ForgottenDeadlines(), RepeatedNotices(), ResumedConsumers(), TimeoutText(),
    OctetsOfQuorumQueues(), ReturnsBeyondLimit(), DeadLettersToStreams(), QueueCounts(),
    ChannelClosing(), ChannelMailbox(), DirectReplies(), ExpiryByPriority(), VirtualHosts(), StreamContent(),
    ClassicActiveConsumer(), WaitingConsumers(), MergedConsumers(), ServiceQueue(),
    DropOrder(), StreamChunks(), StreamSettlement(),
    StalledQueues(),  # after those that look whether it is one
)  # fmt: skip
HOOKS = Hooks(GUESTS)


def acceptor_for(dialect: Dialect, bound: int = DEFAULT_BOUND, virtual_host: str = "/", own_user: str = "") -> Acceptor:
    """The acceptor that follows what the dialect's brokers are known to do wrong."""
    followed = _followed(dialect.name) if dialect.extensions else HABITS_FOLLOWED
    return Acceptor(dialect, bound, virtual_host, own_user, followed)


@cache
def _followed(dialect: str) -> DefectsFollowed:
    return _by_kind([defect for defect in DEFECT_TRANSITIONS if dialect in defect.dialects], follow_limiters)


def _by_kind(own: Sequence[DefectTransition], once_shown: Callable[[Broker], None]) -> DefectsFollowed:
    kinds = {kind for defect in own for kind in defect.kinds}
    by_kind = {kind: tuple(defect for defect in own if kind in defect.kinds) for kind in kinds}
    return DefectsFollowed(by_kind, once_shown, HOOKS, OUTPUT_DEFECTS, MISSING_OUTPUTS, untold_queues)


#: What is followed of brokers that are no RabbitMQ.
HABITS_FOLLOWED = _by_kind(HABITS, lambda broker: None)
