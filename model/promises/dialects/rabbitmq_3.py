"""RabbitMQ 3.10 to 3.13: what it chose, and what it added to the text."""

from __future__ import annotations

from dataclasses import replace

from amqpspec.model.promises.choices import ConsumerTimeouts, QuorumRequeue
from amqpspec.model.promises.dialects.amqp_0_9_1 import AMQP_0_9_1
from amqpspec.model.promises.text_choices import RABBITMQS_WAYS

RABBITMQ_3 = replace(
    AMQP_0_9_1,
    name="rabbitmq-3",
    title="RabbitMQ 3.10 to 3.13",
    consumer_timeouts=ConsumerTimeouts.OF_CHANNELS,
    fixed_reply_texts=True,
    text=RABBITMQS_WAYS,
    extensions=True,
    recover_to_original_recipient=False,
    quorum_requeue=QuorumRequeue.FRONT_WITH_LIMIT,
    negative_delivery_limit_is_none=False,
    quorum_expires_by_policy=True,
    mirrors_classic_queues=True,
    quorum_count_on_first_get=True,
    first_stream_texts=True,
    prefetch_is_shared=False,
    refusals_name_permission=False,
    exchange_type_change=406,
    wrong_content_class=505,
    ends_silently_without_frame_end=False,
    max_message_size=134_217_728,
    mechanisms=("PLAIN", "AMQPLAIN"),
    accepts_0_9_header=True,
    speaks_0_8=True,
    headers_1_0=("414d515000010000", "414d515003010000"),
    handshake_timeout=10.0,
)
