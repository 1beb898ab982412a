"""RabbitMQ 4.3: what is otherwise than in 4.0 to 4.2.

Verified with 4.3.6. Of later ones it was read, and nothing was seen:

* 4.3.7, release notes and consumer_timeout_SUITE: a consumer that was cancelled because its time was up is forgotten a
  short time later, or when the client has answered with basic.cancel-ok. Such a broker announces
  accept_consumer_cancel_ok; what it does until then is left open
  (`model.rules.extensions.timed_out_consumer_still_known`), and so is what its setting
  `consumer_timeout_response` chooses (`model.judging.alternatives_of_timeouts`).
* 4.4.0, release notes as far as they could be had: streams may begin at another offset than 0 (queue argument
  x-stream-initial-offset, which is not known here); headers x-amqp-1.0-*, of messages that 3.13 stored, are headers
  like others. Nothing else in them is of AMQP 0-9-1.
"""

from __future__ import annotations

from dataclasses import replace

from amqpspec.model.promises.choices import (
    CarriedFailures,
    ConsumerTimeouts,
    DeprecatedFeature,
    QuorumPriorities,
    QuorumRequeue,
)
from amqpspec.model.promises.deleted_before_commit import DeletedBeforeCommit
from amqpspec.model.promises.dialects.rabbitmq_4_0 import RABBITMQ_4_0
from amqpspec.model.promises.passive_declare_permission import PassiveDeclarePermission
from amqpspec.model.promises.queue_arguments import KNOWN_TO_4_3

RABBITMQ_4_3 = replace(
    RABBITMQ_4_0,
    name="rabbitmq-4.3",
    title="RabbitMQ 4.3",
    quorum_requeue=QuorumRequeue.FRONT,
    quorum_nack_has_not_failed=True,
    quorum_priorities=QuorumPriorities.STRICT,
    carried_failures=CarriedFailures.OF_ALL_QUEUES,
    deleted_before_commit=DeletedBeforeCommit.MISSED,
    quorum_expires_by_priority=True,
    largest_announced_body=536_870_912,
    quorum_acquired_count=True,
    nodes_pause_themselves=False,
    queue_type_in_get_error='<<"quorum">>',
    queue_arguments=KNOWN_TO_4_3,
    transient_queues=DeprecatedFeature.EITHER,
    master_locators=DeprecatedFeature.USUALLY_REFUSED,
    further_exchange_types=("x-local-random", "x-modulus-hash"),
    consumer_timeout_checked=True,
    consumer_timeouts=ConsumerTimeouts.OF_QUORUM_QUEUES,
    reply_address_is_routable=True,
    channel_prefetch=False,
    client_cancel_ok=True,
    rechecks_consumers=True,
    passive_declare_permission=PassiveDeclarePermission.ANY,
    topic_wildcard_limit=2,
    least_frame_max=8192,
)
