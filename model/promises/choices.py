"""The choices that a dialect makes: what may differ between brokers where the text leaves, or history took, a choice.

Each choice names its source; sources of the form `module:function` are RabbitMQ's, at the newest tag of the range.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from amqpspec.model.promises.deleted_before_commit import DeletedBeforeCommit
from amqpspec.model.promises.passive_declare_permission import PassiveDeclarePermission
from amqpspec.model.promises.queue_arguments import KnownArguments
from amqpspec.model.promises.text_choices import RABBITMQS_WAYS, TextChoices


class QuorumRequeue(Enum):
    """Where a message goes that a client gives back to a quorum queue (`rabbit_fifo:return`)."""

    #: in front of all ready messages when the queue has a delivery limit, else to the tail
    FRONT_WITH_LIMIT = "front with a delivery limit"
    #: in front of all ready messages, always
    FRONT = "front"


class DeprecatedFeature(Enum):
    """What becomes of a feature that RabbitMQ gives up (rabbit_deprecated_features)."""

    ALLOWED = "allowed"
    #: a build or an administrator may have forbidden or allowed it: both are right
    EITHER = "either"
    #: refused with 541, unless an administrator has allowed it: both are right
    USUALLY_REFUSED = "usually refused"
    #: refused with 541
    REFUSED = "refused"

    @property
    def is_refused(self) -> bool:
        return self in (DeprecatedFeature.USUALLY_REFUSED, DeprecatedFeature.REFUSED)


class QuorumPriorities(Enum):
    """What the property `priority` is worth in a quorum queue (QUORUM-005)."""

    NONE = "none"
    #: above 4, or not; two of the first to one of the second (`rabbit_fifo_q`)
    TWO_CLASSES = "two classes"
    #: 0 to 31, higher ones first (`rabbit_fifo_pq`)
    STRICT = "strict"


class ConsumerTimeouts(Enum):
    """What becomes of a delivery that is not settled in time (area TIMEOUT)."""

    NONE = "none"
    #: the channel closes, by the server's setting; looked at with every tick of the channel
    #: (rabbit_channel:evaluate_consumer_timeout)
    OF_CHANNELS = "of channels"
    #: the same, by the queue's argument and policy before that of the server (3.12 to 4.2)
    OF_CHANNELS_BY_QUEUE = "of channels by queue"
    #: the message goes back to its queue and the consumer is told; in quorum queues only (rabbit_fifo, from 4.3 on)
    OF_QUORUM_QUEUES = "of quorum queues"


class CarriedFailures(Enum):
    """Which failed deliveries a dead letter takes along to the next queue (DLX-010; mc's `delivery_count`)."""

    NONE = "none"
    #: rabbit_fifo:discard, and return_all of a lost channel; classic queues hand it on and do not look at it
    OF_QUORUM_QUEUES = "of quorum queues"
    #: what counts as failed by QUORUM-002, also in classic queues (rabbit_variable_queue:maybe_inc_delivery_count)
    OF_ALL_QUEUES = "of all queues"


@dataclass(frozen=True, slots=True)
class Dialect:
    """The named choices of one broker family and version range."""

    name: str
    title: str
    #: reply texts are part of the contract (RabbitMQ's clients match on them); the bare text leaves them open
    fixed_reply_texts: bool
    #: RabbitMQ's own methods and queue types exist: basic.nack, confirm.select, quorum queues, streams
    extensions: bool
    #: exchange.declare with an unknown type: reply code (406 closes the channel, 503 the connection);
    #: rabbit_exchange:check_type
    unknown_exchange_type: int
    #: basic.recover and basic.recover-async with requeue=false are implemented; rabbit_channel refuses with 540
    recover_to_original_recipient: bool
    #: rabbit_fifo:return
    quorum_requeue: QuorumRequeue
    #: times a quorum message may come back before it is dropped; None: no limit; rabbit_quorum_queue defaults
    quorum_delivery_limit: int | None
    #: a negative `x-delivery-limit` means no limit; else it is exceeded at the first return (QUORUM-004)
    negative_delivery_limit_is_none: bool
    #: `expires` of a policy holds whatever a quorum queue's `x-expires` says; else the lower of both (POLICY-007)
    quorum_expires_by_policy: bool
    #: only reject and a lost holder count as failed deliveries, nack and recover do not (rabbit_fifo, 4.3)
    quorum_nack_has_not_failed: bool
    #: a node of a cluster that finds that it cannot reach a majority ends its connections, until it can: which of them
    #: find that out when a node was paused or cut off is open (rabbit_node_monitor, pause_minority)
    nodes_pause_themselves: bool
    #: a policy may mirror classic queues to other nodes of a cluster (CLUSTER-013, CLUSTER-014)
    mirrors_classic_queues: bool
    #: the header `x-acquired-count` exists (rabbit_fifo, 4.3)
    quorum_acquired_count: bool
    #: basic.get-ok carries `x-delivery-count` 0 on a first delivery (rabbit_fifo of 3.10)
    quorum_count_on_first_get: bool
    #: deliveries of a lost channel go back consumer by consumer: in the order in which these were created, gets
    #: last, or all by their tags as text (rabbit_fifo: the key of a consumer is its index in the log from 4.0)
    lost_consumers_by_creation: bool
    #: x-priority decides who is a quorum queue's active consumer (rabbit_fifo:activate_next_consumer, 4.0)
    quorum_active_by_priority: bool
    #: how the queue type is named where basic.get is refused (rabbit_channel:unsupported_single_active_consumer_error)
    queue_type_in_get_error: str
    #: deliveries from a stream always name a delivery mode, 1 if the publish named none (mc_amqpl, from 4.0)
    stream_names_delivery_mode: bool
    #: the name that the queue type has in redeclare errors when it was not given: "classic", or None: "none"
    default_queue_type_in_errors: str | None
    #: which arguments queue.declare knows (rabbit_*_queue:capabilities)
    queue_arguments: KnownArguments
    #: queues that are neither durable nor exclusive: denied by default from 4.3 on, which a build or a configuration
    #: may undo (rabbit_amqqueue, feature `transient_nonexcl_queues`; QUEUE-018)
    transient_queues: DeprecatedFeature
    #: `x-queue-master-locator` of a classic queue (rabbit_classic_queue:validate_arguments, feature
    #: `queue_master_locator`; QUEUE-030)
    master_locators: DeprecatedFeature
    #: `x-consumer-timeout` of basic.consume is checked (rabbit_queue_type:consume)
    consumer_timeout_checked: bool
    consumer_timeouts: ConsumerTimeouts
    #: refusals of stream consumers name the stream as 3 did (rabbit_stream_queue:consume)
    first_stream_texts: bool
    #: a mandatory message that goes to an address of direct replies only is not returned (REPLY-003); rabbit_channel
    #: knew such an address for a queue only from 4.2 on
    reply_address_is_routable: bool
    #: qos(global=true) limits the whole channel; otherwise it is read as global=false (rabbit_channel, 4.3)
    channel_prefetch: bool
    #: qos(global=false) limits the channel, and global=true the connection (0-9-1 section 1.8.3.1; QOS-016)
    prefetch_is_shared: bool
    #: a refusal for want of a permission names the permission (rabbit_access_control:check_resource_access)
    refusals_name_permission: bool
    #: rabbit_channel:check_any_resource_access_permitted
    passive_declare_permission: PassiveDeclarePermission
    #: basic.cancel-ok sent by the client: accepted, or 503 (rabbit_channel:handle_method)
    client_cancel_ok: bool
    #: after connection.update-secret consumers are gone that may not read any more (rabbit_channel:recheck_consumers)
    rechecks_consumers: bool
    #: reply code for declaring an exchange again with another type (rabbit_exchange:assert_equivalence; 0-9-1: 530)
    exchange_type_change: int
    #: reply code for a content header of another class than its method's (0-9-1 section 4.2.6.1: 501)
    wrong_content_class: int
    #: octets of the largest body that a content header may announce (rabbit_command_assembler, 4.3); None: any
    largest_announced_body: int | None
    #: what is no frame ends the TCP connection without a close (0-9-1 section 4.2.3), and not with 501
    ends_silently_without_frame_end: bool
    #: octets of the largest body (`max_message_size` in rabbit's environment, rabbit_channel:check_msg_size)
    max_message_size: int
    #: user-id is checked before expiration, CC and BCC, and not after them (rabbit_channel, basic.publish)
    user_id_checked_first: bool
    #: a header 1 equals a binding's argument 1.0 (rabbit_exchange_type_headers: `==` up to 3, `=:=` later)
    headers_numbers_by_value: bool
    #: most `#` in the key of a topic binding (rabbit_exchange_type_topic:validate_binding, from 4.3.5); None: no limit
    topic_wildcard_limit: int | None
    #: what is offered in connection.start (rabbit_reader:auth_mechanisms; CONN-001)
    mechanisms: tuple[str, ...]
    #: the header of 0-9 is taken for that of 0-9-1 (rabbit_reader:version_negotiation; CONN-002)
    accepts_0_9_header: bool
    #: 0-8 is spoken as well (rabbit_reader:handshake of 3.10; CONN-004)
    speaks_0_8: bool
    #: the headers of AMQP 1.0 that are answered by AMQP 1.0, as octets in hexadecimal text (rabbit_reader:become_1_0)
    headers_1_0: tuple[str, ...]
    #: a header that nobody understands is answered with that of AMQP 1.0, unless it looks like 0-9 or later (CONN-003)
    refuses_with_1_0_header: bool
    #: least frame-max of connection.tune-ok (FRAME_MIN_SIZE in rabbit.hrl, since 4.1 that of 1.0's initial frame)
    least_frame_max: int
    #: seconds for the whole handshake (handshake_timeout in rabbit's environment); None: none is known
    handshake_timeout: float | None
    #: rabbit_fifo:maybe_enqueue
    quorum_priorities: QuorumPriorities = QuorumPriorities.NONE
    #: an `x-max-priority` below this counts as this (rabbit_priority_queue:priorities, from 4.0)
    least_max_priority: int = 0
    #: the history of a dead letter is what its headers say, also a client's; else the broker's own (mc:record_death)
    deaths_in_headers: bool = True
    carried_failures: CarriedFailures = CarriedFailures.NONE
    deleted_before_commit: DeletedBeforeCommit = DeletedBeforeCommit.LOOKED_UP
    #: a quorum queue looks for expired messages at the front of each priority (rabbit_fifo:expire_batch, 4.3)
    quorum_expires_by_priority: bool = False
    #: types of exchanges beside those of the text that are there without a plugin (EXCHANGE-011)
    further_exchange_types: tuple[str, ...] = ()
    #: where RabbitMQ's ways are not those of the text
    text: TextChoices = RABBITMQS_WAYS
    #: beside the text: the capabilities of the text's dialect (`model.promises.dialects.extensions`)
    announced: frozenset[str] = frozenset()

    def has(self, capability: str) -> bool:
        """Is the extension there, of which the server's capabilities tell?"""
        return self.extensions or capability in self.announced

    def __deepcopy__(self, memo: object) -> Dialect:
        return self
