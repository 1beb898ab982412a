"""The bare text: AMQP 0-9-1 without any extension, where the text says something."""

from __future__ import annotations

from amqpspec.model.promises.choices import ConsumerTimeouts, DeprecatedFeature, Dialect, QuorumRequeue
from amqpspec.model.promises.passive_declare_permission import PassiveDeclarePermission
from amqpspec.model.promises.queue_arguments import KNOWN_TO_3
from amqpspec.model.promises.text_choices import THE_TEXT

AMQP_0_9_1 = Dialect(
    name="amqp-0-9-1",
    title="the bare AMQP 0-9-1 text",
    fixed_reply_texts=False,
    extensions=False,
    unknown_exchange_type=503,
    recover_to_original_recipient=True,
    quorum_requeue=QuorumRequeue.FRONT,
    quorum_delivery_limit=None,
    negative_delivery_limit_is_none=True,
    quorum_expires_by_policy=False,
    quorum_nack_has_not_failed=False,
    quorum_acquired_count=False,
    nodes_pause_themselves=True,
    quorum_count_on_first_get=False,
    lost_consumers_by_creation=False,
    quorum_active_by_priority=False,
    queue_type_in_get_error="quorum",
    stream_names_delivery_mode=False,
    default_queue_type_in_errors=None,
    queue_arguments=KNOWN_TO_3,
    transient_queues=DeprecatedFeature.ALLOWED,
    master_locators=DeprecatedFeature.ALLOWED,
    consumer_timeout_checked=False,
    consumer_timeouts=ConsumerTimeouts.NONE,
    first_stream_texts=False,
    reply_address_is_routable=False,
    channel_prefetch=True,
    prefetch_is_shared=True,
    refusals_name_permission=True,
    passive_declare_permission=PassiveDeclarePermission.NONE,
    client_cancel_ok=False,
    rechecks_consumers=False,
    exchange_type_change=530,
    wrong_content_class=501,
    largest_announced_body=None,
    ends_silently_without_frame_end=True,
    max_message_size=2**63 - 1,
    user_id_checked_first=True,
    headers_numbers_by_value=True,
    topic_wildcard_limit=None,
    mechanisms=("PLAIN",),
    accepts_0_9_header=False,
    speaks_0_8=False,
    headers_1_0=(),
    refuses_with_1_0_header=False,
    least_frame_max=4096,
    handshake_timeout=None,
    text=THE_TEXT,
)
