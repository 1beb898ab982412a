"""RabbitMQ 4.0 to 4.2: what is otherwise than in 3.

Verified with 4.0.5. Of 4.1 and 4.2 the release notes were read (4.1.0, 4.2.0), and nothing was seen. By them 4.1
refuses a frame-max below 8192 (`least_frame_max`), and 4.2 takes an address of direct replies for a queue, so that a
mandatory message to it is not returned (`reply_address_is_routable`): of these two they are as 4.3 is.
"""

from __future__ import annotations

from dataclasses import replace

from amqpspec.model.promises.choices import CarriedFailures, ConsumerTimeouts, QuorumPriorities, QuorumRequeue
from amqpspec.model.promises.deleted_before_commit import DeletedBeforeCommit
from amqpspec.model.promises.dialects.rabbitmq_3 import RABBITMQ_3
from amqpspec.model.promises.queue_arguments import KNOWN_TO_4_0

RABBITMQ_4_0 = replace(
    RABBITMQ_3,
    name="rabbitmq-4.0",
    title="RabbitMQ 4.0 to 4.2",
    consumer_timeouts=ConsumerTimeouts.OF_CHANNELS_BY_QUEUE,
    unknown_exchange_type=406,
    further_exchange_types=("x-local-random",),
    quorum_requeue=QuorumRequeue.FRONT_WITH_LIMIT,
    quorum_delivery_limit=20,
    negative_delivery_limit_is_none=True,
    quorum_expires_by_policy=False,
    mirrors_classic_queues=False,
    quorum_count_on_first_get=False,
    lost_consumers_by_creation=True,
    quorum_active_by_priority=True,
    stream_names_delivery_mode=True,
    quorum_priorities=QuorumPriorities.TWO_CLASSES,
    least_max_priority=1,
    deaths_in_headers=False,
    carried_failures=CarriedFailures.OF_QUORUM_QUEUES,
    deleted_before_commit=DeletedBeforeCommit.KEPT,
    default_queue_type_in_errors="classic",
    queue_arguments=KNOWN_TO_4_0,
    first_stream_texts=False,
    refusals_name_permission=True,
    max_message_size=16_777_216,
    user_id_checked_first=False,
    headers_numbers_by_value=False,
    mechanisms=("PLAIN", "AMQPLAIN", "ANONYMOUS"),
    speaks_0_8=False,
    headers_1_0=("414d515003010000",),
    refuses_with_1_0_header=True,
)
